"""Published results trained anew: what is run, what must come out, and what did.

`seqloom reproduce NAME` trains (or continues) the runs of a study, measures them and writes results/NAME.json;
docs/results.md is made of those files. Data sets are looked for under $SEQLOOM_DATA, one folder each.
"""
