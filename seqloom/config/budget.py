"""How long to train, and with which batches: a packaged recipe fitted to the data, and to the time there is.

A packaged recipe says how many examples it was written for (`train.made_for`). On other data:

| key              | less data                                     | more data                                     |
|------------------|-----------------------------------------------|-----------------------------------------------|
| updates          | fewer, as the square root; at most 300 epochs | more, as the square root: 4 times the data, 2 |
| tokens of a batch| halved until there are 2,000 updates          | as written                                    |
| warm-up          | at most a tenth of the updates                | the same                                      |
| validations      | 20 in all, where there are more epochs        | 10 in all, where there are fewer than 5 epochs|
| drop-out, if any | + 0.1 below half, + 0.2 below a tenth         | as written                                    |
| width            | halved below a fiftieth                       | as written                                    |
| pieces of words  | a quarter of the examples, at least 500       | as written                                    |

Within a quarter more or less, nothing changes. A limit in minutes becomes a number of updates at the measured speed;
where that is fewer than 2,000, batches are halved, and validations may take a tenth of the time. Keys that were set by
hand stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from seqloom.config.recipes import Recipe

Changes = dict[str, Any]  # dotted keys of a recipe and their new values, None to take one out: for `override`
PerEpoch = Callable[[int], int]  # the tokens of a batch -> the updates of an epoch

EPOCHS = 20.0  # of a training without a limit
UPDATES = 2_000  # that a training should have at least
FEWEST_TOKENS = 256  # of a batch
FEWEST_IN_HASTE = 512  # where time is short: smaller batches have more updates, but see less of the data
MOST_EPOCHS = 300
WARMUP = 0.1  # of a training, at most
SAME = 1.25  # data within this ratio is what the recipe was written for
LONGER = 2  # with much time, at most so many times the updates that the data needs
VALIDATING = 0.1  # share of the time
ECONOMY = 0.8  # the time of an update grows with the tokens of its batch to this power
RESERVE = 0.02  # share of the time that is kept for noise


@dataclass(frozen=True)
class Speed:
    """Measured before the first update."""

    update: float  # seconds
    tokens: float  # target tokens per second
    validation: float  # seconds, metrics included


def fit_to_data(recipe: Recipe, size: int, per_epoch: PerEpoch, by_hand: Collection[str]) -> Changes:
    """What to change in a completed recipe for `size` training examples (tokens, for a running text)."""
    train, changes = recipe["train"], Changes()
    made_for = train.get("made_for")
    if "train.steps" in by_hand and "train.epochs" not in by_hand and "epochs" in train:
        changes["train.epochs"] = None  # else the recipe's epochs might end it before
    if not made_for or 1 / SAME <= size / made_for <= SAME:
        return changes
    ratio = size / made_for
    tokens, steps = train["tokens"], train.get("steps")
    epochs = train.get("epochs", EPOCHS) if steps is None else steps / per_epoch(tokens) * ratio  # on its own data
    if not {"train.epochs", "train.steps"} & {*by_hand}:
        epochs = min(epochs / math.sqrt(ratio), MOST_EPOCHS)
        fixed = "train.tokens" in by_hand or per_epoch(tokens) == per_epoch(FEWEST_TOKENS)  # by the task
        while epochs * per_epoch(tokens) < UPDATES and tokens > FEWEST_TOKENS and not fixed:
            tokens //= 2
        steps = max(round(epochs * per_epoch(tokens)), 1)
        changes |= {"train.epochs": None, "train.steps": steps, "train.tokens": tokens}
        changes["train.validate_every"] = spacing(steps, per_epoch(tokens), train["validate_every"])
    updates = round(epochs * per_epoch(tokens)) if steps is None else steps
    changes["train.warmup"] = min(train["warmup"], math.ceil(WARMUP * updates))
    for side in ("encoder", "decoder"):
        changes |= regularise(recipe.get(side, {}), side, ratio)
    return {key: value for key, value in changes.items() if key not in by_hand and value != get(recipe, key)}


def spacing(steps: int, per_epoch: int, written: int) -> int:
    """Updates between two validations; 0: after each epoch."""
    epochs = steps / per_epoch
    if epochs > 20:
        return math.ceil(steps / 20)
    return math.ceil(steps / 10) if epochs < 5 else 0 if written == 0 else math.ceil(steps / 20)


def regularise(part: Recipe, side: str, ratio: float) -> Changes:
    """More drop-out for less data, and half of the width for very little; also of a part within the part."""
    if isinstance(inner := part.get(side), dict):
        return regularise({**part, side: None}, side, ratio) | regularise(inner, f"{side}.{side}", ratio)
    more = 0.2 if ratio < 0.1 else 0.1 if ratio < 0.5 else 0.0
    changes = Changes()
    if more and part.get("dropout"):
        changes[f"{side}.dropout"] = max(part["dropout"], round(min(part["dropout"] + more, 0.5), 3))
    if ratio < 0.02:
        for key in ("size", "hidden", "embedding_size"):
            if part.get(key, 0) >= 64:
                changes[f"{side}.{key}"] = part[key] // 2
    return changes


def smaller_batch(train: Recipe, speed: Speed, seconds: float, needed: int) -> int:
    """The tokens of a batch with which there is time for the needed updates."""
    tokens: int = train["tokens"]
    while tokens > FEWEST_IN_HASTE:
        update = speed.update * (tokens / train["tokens"]) ** ECONOMY
        if seconds / update >= needed:
            break
        tokens //= 2
    return tokens


def fit_to_time(train: Recipe, longest: int, speed: Speed, seconds: float) -> Changes:
    """The updates that fit in the seconds that are left, at most `longest`, and what is laid out over them."""
    left = max((1 - RESERVE) * seconds - last_validations(train["average"]) * speed.validation, 0.0)
    validations = max(1, min(20, int(VALIDATING * left / max(speed.validation, 1e-9))))
    spent = min(validations * speed.validation, VALIDATING * left)
    steps = max(min(int((left - spent) / speed.update), longest), 1)
    return {
        "train.epochs": None,
        "train.steps": steps,
        "train.warmup": min(train["warmup"], math.ceil(WARMUP * steps)),
        "train.validate_every": math.ceil(steps / validations),
    }


def last_validations(average: int) -> int:
    """How many validations follow the last update: an average of checkpoints is validated, too."""
    return 2 if average > 1 else 1


def fit_vocabulary(recipe: Recipe, examples: int) -> Changes:
    """Pieces of words: enough that common words are whole, few enough that each occurs often."""
    changes = Changes()
    for side in ("source", "target"):
        codec = recipe["task"].get(side, {})
        if codec.get("units") == "bpe" and codec["size"] > (pieces := vocabulary_size(examples)):
            changes[f"task.{side}.size"] = pieces
    return changes


def vocabulary_size(examples: int) -> int:
    return max(500, min(8000, examples // 4))


def get(recipe: Recipe, key: str) -> Any:
    """The value of a dotted key, or None."""
    value: Any = recipe
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
