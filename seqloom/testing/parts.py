"""The contract checks of a part, found by what it is and what it can do, and run."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isabstract, isfunction, signature
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal

from seqloom.contracts import Attention, Cell, Codec, Constraint, Decoder, Encoder, Head, Objective, Online, Search
from seqloom.errors import SeqloomError, one_line
from seqloom.testing import (
    attention,
    cells,
    codecs,
    constraints,
    decoders,
    encoders,
    heads,
    metrics,
    objectives,
    online,
    search,
    streaming,
)
from seqloom.testing.claims import ContractError, NotAsked
from seqloom.testing.models import DECODERS, from_program, refuse_special, small_model
from seqloom.testing.small import build, build_or_refuse

Part = Callable[..., Any]
KINDS: dict[type, tuple[str, ModuleType]] = {  # the first that fits; a head is a decoder too
    Cell: ("a cell", cells),
    Attention: ("an attention", attention),
    Encoder: ("an encoder", encoders),
    Head: ("a head", heads),
    Online: ("a decoder that writes while it reads", online),
    Decoder: ("a decoder", decoders),
    Objective: ("an objective", objectives),
    Search: ("a search", search),
    Constraint: ("a constraint", constraints),
    Codec: ("a codec", codecs),
}


@dataclass(frozen=True)
class Check:
    """One claim about a part, and how to see whether it holds."""

    claim: str
    run: Callable[[], None]  # raises ContractError, or NotAsked


@dataclass(frozen=True)
class Result:
    """What became of one check."""

    claim: str
    outcome: Literal["passed", "failed", "not asked"]
    reason: str = ""

    def __str__(self) -> str:
        mark = {"passed": "pass", "failed": "FAIL", "not asked": "-   "}[self.outcome]
        return f"{mark}  {self.claim}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True)
class Report:
    """The results of all checks of a part."""

    part: str
    kind: str  # with its article
    results: list[Result]

    @property
    def failed(self) -> list[Result]:
        return [each for each in self.results if each.outcome == "failed"]

    def __str__(self) -> str:
        asked = [each for each in self.results if each.outcome != "not asked"]
        outcome = (
            f"{len(self.failed)} of {len(asked)} checks failed" if self.failed else f"all {len(asked)} checks passed"
        )
        return "\n".join([*map(str, self.results), f"{self.part}, {self.kind}: {outcome}"])


def check_part(part: Part, /, *, examples: Sequence[Any] | None = None, **settings: Any) -> Report:
    """Check that a part of anybody's keeps its contract; raises ContractError, an AssertionError, if it does not.

    `part` is a class, or the function of a metric; `settings` are arguments of its constructor. `examples` are values
    for a codec, or pairs of source and target for a metric, where texts will not do.
    """
    report = examine(part, examples=examples, **settings)
    if report.failed:
        raise ContractError(f"\n{report}")
    return report


def examine(part: Part, /, *, examples: Sequence[Any] | None = None, **settings: Any) -> Report:
    """The same, without raising for what fails."""
    kind, _ = suite_of(part)
    results = [run(check) for check in checks_of(part, examples=examples, **settings)]
    return Report(getattr(part, "__qualname__", str(part)), kind, results)


def run(check: Check) -> Result:
    """Whether the claim holds, and if not, why."""
    try:
        check.run()
    except NotAsked as reason:
        return Result(check.claim, "not asked", str(reason))
    except ContractError as error:
        return Result(check.claim, "failed", str(error))
    except Exception as error:  # a part of anybody's may fail in any way
        return Result(check.claim, "failed", f"{type(error).__name__}: {one_line(error)}{place_of(error)}")
    return Result(check.claim, "passed")


def checks_of(part: Part, /, *, examples: Sequence[Any] | None = None, **settings: Any) -> Iterator[Check]:
    """The checks of a part with these settings. Each builds a part of its own."""
    _, suite = suite_of(part)
    if suite is metrics:
        if settings:
            raise SeqloomError(f"{part.__name__}: a metric takes no settings, found {', '.join(settings)}")
        metric = metrics.Metric(part)
        yield from checks(metrics, lambda: metric, {"": lambda: examples or metric.examples})
        return
    if suite is objectives:
        settings = {**from_program(part), **settings}
        models = {f"with the decoder {name}": partial(small_model, name) for name in DECODERS}
        refuse_special(build_or_refuse(part, **settings))
        yield from checks(objectives, lambda: build(part, **settings).train(), models)
        return
    made = build_or_refuse(part, **settings)
    make = partial(build, part, **settings)
    if suite is codecs:
        values = list(examples) if examples is not None else codecs.values_for(made)
        yield from checks(codecs, make, {"": lambda: values})
        return
    yield from checks(suite, make)
    if suite is encoders and made.streams:
        yield from checks(streaming, make)


def checks(
    suite: ModuleType, make: Callable[[], Any], given: Mapping[str, Callable[[], Any]] = MappingProxyType({})
) -> Iterator[Check]:
    """Every public function of a suite: a claim about a part, perhaps together with something it is given."""
    for name, claim in claims(suite).items():
        words = name.replace("_", " ")
        takes = [each for each in signature(claim).parameters.values() if each.default is each.empty]
        if len(takes) == 1:
            yield Check(words, lambda claim=claim: claim(make()))  # type: ignore[misc]
            continue
        for label, other in given.items():
            text = f"{words}, {label}" if label else words
            yield Check(text, lambda claim=claim, other=other: claim(make(), other()))  # type: ignore[misc]


def claims(suite: ModuleType) -> dict[str, Callable[..., None]]:
    """The public functions that a file of checks defines and that return nothing; what they share is private."""
    return {
        name: function
        for name, function in vars(suite).items()
        if isfunction(function) and function.__module__ == suite.__name__ and not name.startswith("_")
        if function.__annotations__.get("return") in (None, "None")
    }


def suite_of(part: Part) -> tuple[str, ModuleType]:
    """What a part is, and the file of checks for it."""
    whole = part.func if isinstance(part, partial) else part
    if isfunction(whole):
        return "a metric", metrics
    if not isinstance(whole, type):
        raise SeqloomError(f"{whole!r:.80}: expected the class of a part, or the function of a metric")
    found = next((suite for contract, suite in KINDS.items() if issubclass(whole, contract)), None)
    if found is None:
        known = ", ".join(contract.__name__ for contract in KINDS)
        raise SeqloomError(f"{whole.__qualname__}: expected a subclass of one of seqloom.contracts: {known}")
    if isabstract(whole):
        missing = ", ".join(sorted(whole.__abstractmethods__))  # type: ignore[attr-defined]
        raise SeqloomError(f"{whole.__qualname__} is not complete: {found[0]} also needs {missing}")
    return found


def place_of(error: BaseException) -> str:
    """The last line of the part's own code that an exception passed."""
    ours = Path(__file__).parent
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    own = [frame for frame in frames if ours not in Path(frame.filename).parents]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
