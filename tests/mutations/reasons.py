"""Mutants that no test can notice, and why: they do the same as the original, or nothing that anybody promised.

By file, line of code, column and change: {(path, line, column, "before -> after"): reason}.
"""

REASONS: dict[tuple[str, str, int, str], str] = {
    (
        "seqloom/nn/attention/monotonic.py",
        "stops = (energy > 0) & (positions >= indices[-1][:, None])  # (rows, T)",
        18,
        "energy > 0 -> (energy >= 0)",
    ): "An energy of exactly 0 is a probability of 1/2 to stop: either is right.",
    (
        "seqloom/nn/attention/multihead.py",
        "if len(values) == sources:",
        8,
        "len(values) == sources -> False",
    ): "A short cut: one row per source, folded, is the same values.",
    (
        "seqloom/nn/layers/fast_forward.py",
        "return cell.project(nothing).shape[-1] // 2 + cell.size",
        40,
        "-1 -> (1)",
    ): "What is projected has two dimensions: the last is the second.",
    (
        "seqloom/nn/decoders/bottom_attention.py",
        "projected = cell.project(torch.cat([vector, context[:, 0]], dim=-1))",
        68,
        "0 -> (-1)",
    ): "There is one query at a time: the first context is the last.",
    (
        "seqloom/nn/decoders/emission.py",
        "states = memory.states if memory.states.shape[1] else memory.states.new_zeros(memory.rows, 1, "
        "self.memory_size)",
        100,
        "1 -> (2)",
    ): "Stands in for the states of an empty source: two states of zeros say what one does.",
    (
        "seqloom/train/planning.py",
        "WORTH_MEASURING = 100  # updates",
        19,
        "100 -> (99)",
    ): "A round number: how long a training is worth measuring is a matter of judgement.",
    (
        "seqloom/train/liveness.py",
        "deadline = time.monotonic() + min(max(limit / 10, 1.0), 10.0)",
        51,
        "10 -> (11)",
    ): "How many seconds of patience a limit gives is a matter of judgement.",
}
