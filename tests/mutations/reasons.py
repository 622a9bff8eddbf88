"""Mutants that no test can notice, and why: they do the same as the original, or nothing that anybody promised.

By file, line of code and change: {(path, line, "before -> after"): reason}.
"""

REASONS: dict[tuple[str, str, str], str] = {
    (
        "seqloom/nn/attention/monotonic.py",
        "stops = (energy > 0) & (positions >= indices[-1][:, None])  # (rows, T)",
        "energy > 0 -> (energy >= 0)",
    ): "An energy of exactly 0 is a probability of 1/2 to stop: either is right.",
}
