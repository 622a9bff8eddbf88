"""Mistakes that once went unnoticed by the whole suite, each with the tests that notice it now."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """In a file, one text in place of another, which occurs once."""

    about: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]


MERGING = "tests/exact/test_merging.py"
LAYERS = "tests/exact/test_layers_by_hand.py"
OPTIMISER = "tests/train/test_optimiser.py"
CHECKS = "tests/testing/test_check_part.py"

MISTAKES = [
    Mistake(
        "CTC: prefixes that merge keep the share of the likelier one",
        "seqloom/search/merging.py",
        "return one + share * (other - one)",
        "return one",
        (MERGING,),
    ),
    Mistake(
        "CTC: prefixes that merge swap their shares",
        "seqloom/search/merging.py",
        "return one + share * (other - one)",
        "return other + share * (one - other)",
        (MERGING,),
    ),
    Mistake(
        "beam: the bound of early stopping forgets the limit",
        "seqloom/search/beam.py",
        "for length in (count + 1, limit)]",
        "for length in (count + 1, count + 1)]",
        ("tests/exact/test_early_stopping.py",),
    ),
    Mistake(
        "beam: the bound of early stopping forgets the next step",
        "seqloom/search/beam.py",
        "for length in (count + 1, limit)]",
        "for length in (limit, limit)]",
        ("tests/exact/test_early_stopping.py",),
    ),
    Mistake(
        "moving average: its two weights are swapped",
        "seqloom/train/averaging.py",
        "lerp_(value, 1 - decay)",
        "lerp_(value, decay)",
        (OPTIMISER,),
    ),
    Mistake(
        "moving average: its decay has no warm-up",
        "seqloom/train/averaging.py",
        "decay = min(self.decay, (1 + step) / (10 + step))",
        "decay = self.decay",
        (OPTIMISER,),
    ),
    Mistake(
        "optimiser: biases decay",
        "seqloom/train/optimiser.py",
        "(vectors, 0.0))",
        "(vectors, settings.weight_decay))",
        (OPTIMISER,),
    ),
    Mistake(
        "optimiser: the betas of Adam are swapped",
        "seqloom/train/optimiser.py",
        "torch.optim.Adam(groups, **rate, betas=settings.betas,",
        "torch.optim.Adam(groups, **rate, betas=settings.betas[::-1],",
        (OPTIMISER,),
    ),
    Mistake(
        "optimiser: the betas of AdamW are swapped",
        "seqloom/train/optimiser.py",
        "torch.optim.AdamW(groups, **rate, betas=settings.betas,",
        "torch.optim.AdamW(groups, **rate, betas=settings.betas[::-1],",
        (OPTIMISER,),
    ),
    Mistake(
        "optimiser: nothing is clipped",
        "seqloom/train/optimiser.py",
        "if clip and norm.isfinite():",
        "if False:",
        (OPTIMISER,),
    ),
    Mistake(
        "trainer: its clip is not passed on",
        "seqloom/train/trainer.py",
        '/ sums["count"], self.settings.clip)',
        '/ sums["count"], 0.0)',
        (OPTIMISER,),
    ),
    Mistake(
        "pointer: one glimpse, however many are asked for",
        "seqloom/nn/decoders/pointer.py",
        "for _ in range(self.glimpses):",
        "for _ in range(min(self.glimpses, 1)):",
        (LAYERS,),
    ),
    Mistake(
        "cross-entropy: costs count in a validation",
        "seqloom/objectives/cross_entropy.py",
        "        if self.training:\n            total = total + sum(",
        "        if True:\n            total = total + sum(",
        ("tests/exact/test_halting.py",),
    ),
    Mistake(
        "recurrent encoder: the first layer adds its input, too",
        "seqloom/nn/encoders/recurrent.py",
        "self.residual and layer and outputs.shape == values.shape",
        "self.residual and outputs.shape == values.shape",
        (LAYERS,),
    ),
    Mistake(
        "recurrent encoder: the second layer does not add its input",
        "seqloom/nn/encoders/recurrent.py",
        "self.residual and layer and outputs.shape == values.shape",
        "self.residual and layer > 1 and outputs.shape == values.shape",
        (LAYERS,),
    ),
    Mistake(
        "adaptive Transformer: positions that have halted go on",
        "seqloom/nn/encoders/transformer.py",
        "values = torch.where(running[:, None], values, before)",
        "pass",
        (LAYERS,),
    ),
    Mistake(
        "check of cells: inputs may be averaged over rows",
        "seqloom/testing/cells.py",
        "cell(cell.project(values[one]), select(state, one))",
        "cell(cell.project(values)[one], select(state, one))",
        (CHECKS,),
    ),
    Mistake(
        "check of cells: states may be averaged over rows",
        "seqloom/testing/cells.py",
        "    for row in range(ROWS):\n        one = torch.tensor([row])",
        "    for row in range(0):\n        one = torch.tensor([row])",
        (CHECKS,),
    ),
    Mistake(
        "check of objectives: one gradient is enough",
        "seqloom/testing/objectives.py",
        "    require_gradients(model)",
        '    require(any(each.grad.any() for each in model.parameters()), "all gradients are zero")',
        (CHECKS,),
    ),
    Mistake(
        "CTranslate2: the embeddings of an export in 8 bits are those of another model",
        "seqloom/engines/export_ctranslate2.py",
        'spec.optimize("int8" if int8 else None)',
        'spec.encoder.embeddings[0].weight *= 0.7 if int8 else 1.0\n    spec.optimize("int8" if int8 else None)',
        (
            "tests/exact/test_engines.py::test_int8_gives_its_outputs_the_probabilities_of_the_model_and_weights_are_a_quarter_as_large",
        ),
    ),
    Mistake(
        "CTranslate2: quantises the weights of the model itself",
        "seqloom/engines/export_ctranslate2.py",
        ".numpy().copy()",
        ".numpy()",
        ("tests/exact/test_engines.py",),
    ),
    Mistake(
        "no repeat: BOS counts as history",
        "seqloom/search/constraints/no_repeat.py",
        "append(before, xp.where(begun, token, -1))",
        "append(before, token)",
        ("tests/exact/test_no_repeat.py",),
    ),
    Mistake(
        "top-p: all ties stay",
        "seqloom/search/sample.py",
        "xp.where(before < self.top_p, ordered, NEVER)",
        "xp.where(ordered >= xp.where(before < self.top_p, ordered, 0).min(), ordered, NEVER)",
        ("tests/exact/test_sampling.py",),
    ),
]
