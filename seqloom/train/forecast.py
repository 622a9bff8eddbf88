"""What a training will take, measured on a copy of the model before the first update, and what to warn of."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from seqloom.config.budget import WARMUP, Speed
from seqloom.config.settings import Settings
from seqloom.data.batching import Plan
from seqloom.data.special_tokens import UNK
from seqloom.train import processes
from seqloom.train.batches import Batches
from seqloom.train.optimiser import NamedOptimiser
from seqloom.train.training import Training

if TYPE_CHECKING:
    from seqloom.data.corpus import Corpus

MIDDLE = 0.5  # of the training: some objectives change on the way
UNFORCED = 1.5  # outputs of a model in training are so much longer than references
LONG = 20  # times the median length: an example that costs more than it teaches
LONG_TOKENS = 1_000
HOURS = 2  # a training so long is announced with a way to shorten it
UNKNOWN = 0.2  # share of tokens


def measure_update(
    training: Training, batches: Batches, settings: Settings, seconds: float, most: int = 1000
) -> tuple[float, float]:
    """Seconds per update and target tokens per second, over batches from short to long.

    The model is a copy: nothing that is measured stays. Takes about that many seconds and at most that many batches,
    but two at least.
    """
    copied = copy.deepcopy(training)
    optimiser = NamedOptimiser(copied, settings)
    batches.start()
    plan = batches.plan
    spent: list[float] = []
    stepping: list[float] = []
    tokens, deadline = 0, time.monotonic() + seconds
    copied.train()
    for turn, number in enumerate(spread(plan, batches.corpus)):
        began = time.monotonic()
        if turn > 2 and (began >= deadline or turn > most):
            break
        batch = batches.make(0, number).to(copied.device)
        copied.seed_random_numbers(1, 0)
        copied(batch, MIDDLE).total.backward()
        computed = time.monotonic()
        optimiser.scale_and_clip(1.0, settings.clip)
        optimiser.step(0.0)
        optimiser.clear_gradients()
        if turn:  # the first pays for what is set up once
            spent.append(computed - began)
            stepping.append(time.monotonic() - computed)
            tokens += int(batch.targets.lengths.sum())
    shared = settings.accumulate / processes.world_size()
    update = shared * float(np.mean(spent)) + float(np.mean(stepping))
    return update, settings.accumulate * tokens / len(spent) / update


def spread(plan: Plan, corpus: Corpus) -> Iterator[int]:
    """The batches of a plan, so that any number of the first ones is spread evenly from the narrowest to the widest."""
    if plan.rows.ndim > 1:  # windows of a text are all alike
        yield from list(range(len(plan))) * (3 if len(plan) < 3 else 1)
        return
    widths = np.asarray(corpus.lengths)[plan.rows[plan.offsets[:, 0]]].max(axis=1)
    ascending = np.argsort(widths, kind="stable")
    seen: set[int] = set()
    yield int(ascending[len(plan) // 2])  # to warm up
    for turn in range(1, 2 * len(plan) + 2):
        place = int(van_der_corput(turn) * len(plan))
        if place not in seen or len(plan) < 3:
            seen.add(place)
            yield int(ascending[place])


def van_der_corput(number: int) -> float:
    """1/2, 1/4, 3/4, 1/8, ...: always spread evenly (van der Corput 1935)."""
    value, share = 0.0, 0.5
    while number:
        value, number, share = value + share * (number & 1), number >> 1, share / 2
    return value


@torch.no_grad()
def measure_validation(
    training: Training, corpus: Corpus, plan: Plan, batches: Batches, decode: Callable[[], float]
) -> float:
    """Seconds of a validation: the loss from three of its batches, and the time of decoding."""
    training.eval()
    picked = sorted({0, len(plan) // 2, len(plan) - 1})
    began = time.monotonic()
    for number in picked:
        training(batches.collate(corpus, plan[number]).to(training.device))
    loss = (time.monotonic() - began) / len(picked) * len(plan)
    decoding = decode()
    training.train()
    return loss + decoding


@dataclass(frozen=True)
class Forecast:
    """What will be done, as far as it is known before the first update."""

    updates: int
    tokens: int  # of a batch
    speed: Speed | None  # None: not measured
    needed: int  # updates that the recipe asks for
    seconds: float | None
    longest_source: int
    longest_target: int

    def line(self) -> str:
        """One sentence."""
        line = f"{self.updates:,} update{'s' * (self.updates != 1)} of {self.tokens:,} tokens"
        if self.speed:
            line += f" at {round_rate(self.speed.tokens)} tokens/s"
        if self.seconds is not None:
            line = f"About {minutes_in_words(self.seconds)}: {line}"
        lengths = [("source", self.longest_source), ("target", self.longest_target)]
        longest = ", ".join(f"longest {side} {length:,}" for side, length in lengths if length)
        return f"{line}; {longest} tokens." if longest else f"{line}."


def warnings(forecast: Forecast, settings: Settings, train: Corpus, valid: Corpus) -> list[str]:
    """What will spoil the result, one line each, with what to do."""
    updates = forecast.updates
    found = []
    if settings.warmup > max(WARMUP * updates, 20) + 1:
        found.append(
            f"the learning rate rises over {settings.warmup:,} of {updates:,} updates: "
            f"set train.warmup={round(WARMUP * updates)}, or train longer"
        )
    if settings.minutes and updates < forecast.needed / 2:
        minutes = settings.minutes * forecast.needed / updates
        found.append(
            f"{updates:,} updates are few: this recipe needs about {forecast.needed:,} on this data; "
            f"give it --minutes {minutes:.0f}, or make it smaller"
        )
    if forecast.seconds and forecast.seconds > HOURS * 3600 and not settings.minutes:
        found.append(f"this will take {minutes_in_words(forecast.seconds)}: limit it with --minutes 60")
    corpora: dict[str, Corpus] = getattr(train, "parts", {"": train})  # of several tasks
    for name, part in corpora.items():
        found += [
            f"{name}: {each}" if name else each for each in of_data(part, getattr(valid, "parts", {"": valid})[name])
        ]
    return [f"Warning: {each}." for each in found]


def of_data(train: Corpus, valid: Corpus) -> list[str]:
    """Warnings of the data of one task."""
    lengths, found = np.asarray(train.lengths), []
    for side, column in (("source", 0), ("target", 1)):
        longest, median = int(lengths[:, column].max()), float(np.median(lengths[:, column]))
        if longest > max(LONG * median, LONG_TOKENS) and train.lengths.shape[0] > 1 and median:
            found.append(
                f"the longest {side} has {longest:,} tokens, {longest / median:.0f} times the median: it slows down "
                f"training and fills the memory; leave such lines out with --skip-bad --set data.max_characters=N"
            )
        share = unknown_share(valid, column)
        if share > UNKNOWN:
            found.append(
                f"{100 * share:.0f} % of the {side} tokens of the validation data are not in the vocabulary: "
                f"raise task.{side}.size, or set task.{side}.units=bpe"
            )
    return found


def unknown_share(corpus: Corpus, column: int) -> float:
    """The share of tokens of the first 500 examples that are unknown; 0 for vectors and pixels."""
    unknown = count = 0
    for row in range(min(len(corpus), 500)):
        values = corpus[row][column]
        if isinstance(values, np.ndarray) and values.dtype == np.int64:  # pixels are smaller
            unknown, count = unknown + int((values == UNK).sum()), count + values.size
    return unknown / max(count, 1)


def round_rate(rate: float) -> str:
    return f"{float(f'{rate:.2g}'):,.0f}"


def minutes_in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} seconds"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
