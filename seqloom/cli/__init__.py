"""The command line: one file per verb or pair of verbs, imported when it is asked for."""
