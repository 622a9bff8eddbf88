"""Measures of a noisy channel: a direct model, a channel model and a language model in one beam."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from seqloom.studies.gates import Measures
from seqloom.studies.study import Splits, evaluate_test_set

if TYPE_CHECKING:
    from seqloom.predictor import Predictor

CHANNEL_WEIGHTS, LM_WEIGHTS, BONUSES = (0.25, 0.5, 1.0), (0.1, 0.3), (0.0, 0.4)


def noisy_channel(model: Predictor, data: Splits) -> Measures:
    """The WER of the direct model alone, with the channel, with the language model, and with both, of the same seed.

    Weights are the best of a small grid on every tenth source of the validation set. The other runs of the study have
    the metrics of their task.
    """
    from seqloom.predictor import Predictor

    folder = model.path
    assert folder is not None
    assert data.valid is not None
    if folder.parent.name != "direct":
        return evaluate_test_set(model, data)
    channel, lm = (
        Predictor.load(folder.parent.parent / name / folder.name, model.device.type)
        for name in ("channel", "language-model")
    )
    valid, test = (model.task.references(model.examples(files)) for files in (data.valid, data.test))

    def wer(sources: list[Any], references: list[Any], weights: dict[str, float]) -> float:
        helpers: dict[str, Any] = {"channel": channel, **weights} if weights else {}
        if "lm_weight" in weights:
            helpers["lm"] = lm
        return 100 - model.task.measure(model.predict(sources, **helpers), references)["exact"]

    tuning = valid[0][::10], valid[1][::10]
    systems = {
        "direct": {},
        "lm": {"channel_weight": (0.0,), "lm_weight": LM_WEIGHTS, "length_bonus": BONUSES},
        "channel": {"channel_weight": CHANNEL_WEIGHTS, "length_bonus": BONUSES},
        "channel_lm": {"channel_weight": CHANNEL_WEIGHTS, "lm_weight": LM_WEIGHTS, "length_bonus": BONUSES},
    }
    found: Measures = {}
    for name, grid in systems.items():
        candidates = [dict(zip(grid, values)) for values in product(*grid.values())]
        best = min(candidates, key=lambda weights: wer(*tuning, weights)) if grid else {}
        found[f"{name}_wer"] = wer(*test, best)
        found |= {f"{name}: {setting}": value for setting, value in best.items() if len(grid[setting]) > 1}
    return {**found, "channel_lm_better": float(found["channel_lm_wer"] < found["direct_wer"])}
