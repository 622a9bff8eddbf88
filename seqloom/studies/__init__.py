"""Published results, reproduced: what is trained, how it is measured, and the gates it must pass.

`seqloom reproduce NAME` trains (or resumes) the runs of a study, measures them and writes results/NAME.json;
docs/results.md is made of those files. Data sets are looked for under $SEQLOOM_DATA, one folder each.
"""
