"""check_part: right parts pass, and each wrong one is told what is wrong. These parts stand outside the package."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import seqloom
from seqloom.arrays import NEVER, Array
from seqloom.cli.main import main
from seqloom.contracts import Attention, Cell, Codec, Constraint
from seqloom.errors import SeqloomError
from seqloom.nn.attention.dot import Dot
from seqloom.nn.attention.scores import ScoredAttention
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.heads.word import Word
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.search.beam import BeamSearch
from seqloom.testing import ContractError, check_part, examine
from seqloom.types import Hypothesis, Loss, Memory, Padded, State

HIGHER_IS_BETTER = False  # which is wrong of the metric below


class Blurred(ScoredAttention):
    """A right one: dot attention with a learned sharpness."""

    def __init__(self, *, query_size: int, memory_size: int, sharpness: float = 1.0):
        super().__init__(query_size=query_size, memory_size=memory_size)
        self.sharpness = nn.Parameter(torch.tensor(sharpness))

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.sharpness * (query @ keys.transpose(1, 2))


class Located(Blurred):
    """Nearer the beginning is better, and it says that it uses positions."""

    uses_positions = True

    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().score(query, keys) - 0.3 * torch.arange(keys.shape[1])


class SecretlyLocated(Located):
    uses_positions = False


class OnlySaysSo(Blurred):
    uses_positions = True


class Leaks(Attention):
    """Looks at padding."""

    def __init__(self, *, query_size: int, memory_size: int):
        super().__init__()
        self.output_size, self.query = memory_size, nn.Linear(query_size, memory_size)

    def prepare(self, memory: Memory) -> Memory:
        return memory

    def forward(
        self, query: Tensor, memory: Memory, state: State, weights: bool = False, lengths: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        states = memory.states[memory.owner(len(query))]
        found = (self.query(query) @ states.transpose(1, 2)).softmax(-1)
        return found @ states, state, found[:, None] if weights else None


class MixesRows(Blurred):
    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().score(query, keys) * keys.mean().sigmoid()


class Breaks(Blurred):
    def score(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys


class Averaging(Cell):
    """The mean over rows goes into every row: permuting rows would not show it."""

    def __init__(self, *, input_size: int, size: int):
        super().__init__(input_size=input_size, size=size)
        self.input, self.hidden = nn.Linear(input_size, size), nn.Linear(size, size)
        self.spare = nn.Parameter(torch.zeros(3))

    def project(self, inputs: Tensor) -> Tensor:
        return self.input(inputs)

    def start(self, rows: int) -> State:
        return {"hidden": self.input.weight.new_zeros(rows, self.size)}

    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        output = torch.tanh(projected + self.hidden(state["hidden"].mean(0, keepdim=True)))
        return output, {"hidden": output}


class AveragesInputs(Averaging):
    """The mean over rows is in the inputs already."""

    def project(self, inputs: Tensor) -> Tensor:
        return self.input(inputs - inputs.mean(0, keepdim=True))

    def forward(self, projected: Tensor, state: State) -> tuple[Tensor, State]:
        output = torch.tanh(projected + self.hidden(state["hidden"]))
        return output, {"hidden": output}


class LooksAhead(RecurrentEncoder):
    """Says that it streams, as its parent does, and adds what comes last to every state."""

    def forward(self, source: Padded, attention: bool = False) -> Memory:
        memory = super().forward(source, attention)
        return Memory(memory.states + memory.final["summary"][:, None], memory.lengths, memory.final)


class Keeps(Recurrent):
    """Keeps on itself what belongs in the state."""

    seen = 0.0

    def step(self, token: Tensor, state: State, memory: Memory) -> tuple[Tensor, State]:
        logits, state = super().step(token, state, memory)
        self.seen += 0.01
        return logits + self.seen, state


class Deaf(Word):
    def answer(self, memory: Memory) -> Padded:
        found = super().answer(memory)
        return Padded(found.values.roll(1, 0), found.lengths)


class Detached(CrossEntropy):
    def forward(self, model: Any, batch: Any, progress: float) -> Loss:
        loss = super().forward(model, batch, progress)
        return Loss((loss.total.detach() + loss.total) / 2, loss.count, loss.logs)


class TrainsTheDecoderAlone(CrossEntropy):
    """The gradient of the encoder is there, and zero."""

    def forward(self, model: Any, batch: Any, progress: float) -> Loss:
        for value in model.encoder.parameters():
            value.register_hook(torch.zeros_like)
        return super().forward(model, batch, progress)


class WorstFirst(BeamSearch):
    def finish(self, *given: Any) -> list[list[Hypothesis]]:
        return [found[::-1] for found in super().finish(*given)]


class Trap(Constraint):
    """Allows nothing after four tokens."""

    def start(self, rows: int, limit: Array) -> State:
        return {"count": 0 * limit}

    def step(self, token: Array, state: State) -> State:
        return {"count": state["count"] + 1}

    def forbid(self, scores: Array, state: State) -> Array:
        scores[state["count"] > 4] = NEVER
        return scores


class Letters(Codec):
    """Forgets its last letter when it is saved."""

    def fit(self, values: Iterable[str]) -> Self:
        self.known = sorted({letter for value in values for letter in value})
        self.vocabulary = 4 + len(self.known)
        return self

    def encode(self, value: str, source: Any = None) -> np.ndarray:
        return np.array([4 + self.known.index(letter) if letter in self.known else 1 for letter in value])

    def decode(self, values: Any, source: Any = None) -> str:
        return "".join(self.known[token - 4] for token in values if token >= 4)

    def save(self, folder: Path, name: str) -> None:
        (folder / f"{name}.letters").write_text("".join(self.known[:-1]))

    def load(self, folder: Path, name: str) -> Self:
        return self.fit([(folder / f"{name}.letters").read_text()])


def shared(predictions: list[str], references: list[list[str]]) -> dict[str, float]:
    """The share of letters that are right: more is better, which the file denies."""
    pairs = zip(predictions, references)
    return {"shared": float(np.mean([max(len({*found} & {*each}) for each in choices) for found, choices in pairs]))}


def test_a_right_part_passes_and_the_report_lists_every_claim() -> None:
    report = check_part(Blurred, sharpness=2.0)
    lines = str(report).splitlines()
    assert lines[0] == "pass  weights are distributions over real positions"
    assert lines[-1] == "Blurred, an attention: all 9 checks passed"
    assert len(lines) == 10
    assert check_part(partial(Recurrent, attention=Dot)).failed == []


def test_an_attention_may_use_positions_if_it_says_so() -> None:
    assert check_part(Located).failed == []


@pytest.mark.parametrize(
    ("part", "claim", "reason"),
    [
        (
            Leaks,
            "weights are distributions over real positions",
            "padding gets some weight: mask the scores with memory",
        ),
        (
            Leaks,
            "padding changes nothing",
            "states beyond memory.lengths change the context: padding leaks (they differ",
        ),
        (MixesRows, "rows do not see each other", "the context of row 0 depends on the other rows of the batch"),
        (
            SecretlyLocated,
            "permuting the source permutes the weights unless it uses positions",
            "set uses_positions = True",
        ),
        (OnlySaysSo, "permuting the source permutes the weights unless it uses positions", "changes no context"),
        (Breaks, "padding changes nothing", "RuntimeError: Expected size for first two dimensions"),
        (Breaks, "padding changes nothing", "(test_check_part.py, line "),
        (Averaging, "rows do not see each other", "the output of row 0 depends on the other rows"),
        (AveragesInputs, "rows do not see each other", "the output of row 0 depends on the other rows"),
        (Averaging, "every parameter gets a gradient", "no gradient reaches spare: use it, or do not make it a"),
        (LooksAhead, "what is known so far never changes", "they depend on what follows"),
        (Keeps, "a step changes nothing it was given", "it keeps something on self"),
        (Deaf, "an answer is what is trained", "answer() is not the likeliest output: token"),
        (
            Detached,
            "a step against the gradient lowers the loss, with the decoder gnmt",
            "is Loss.total detached somewhere?",
        ),
        (
            TrainsTheDecoderAlone,
            "the same random numbers give the same loss and every weight learns, with the decoder recurrent",
            "no gradient reaches encoder.embedding.weight",
        ),
        (
            partial(WorstFirst, n_best=3),
            "every source gets its hypotheses best first",
            "source 0 are not best first: [-",
        ),
        (Trap, "following it never leads to a dead end", "after 4 tokens that it allowed, none may follow"),
        (Letters, "it is the same after save and load", "is encoded otherwise: save all that fit() learned"),
        (shared, "nothing is better than a perfect prediction", "HIGHER_IS_BETTER = False, but right outputs measure"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_wrong_part_is_told_what_is_wrong(part: Callable[..., Any], claim: str, reason: str) -> None:
    failed = {each.claim: each.reason for each in examine(part).failed}
    assert reason in failed[claim]
    assert "\n" not in failed[claim]


def test_a_failure_raises_with_the_whole_report() -> None:
    with pytest.raises(
        ContractError, match=r"(?s)pass  asking for weights.*FAIL  padding changes nothing.*2 of 9 checks"
    ):
        check_part(Leaks)
    with pytest.raises(AssertionError):
        seqloom.testing.check_part(Leaks)


@pytest.mark.parametrize(
    ("part", "settings", "reason"),
    [
        (Blurred, {"sharp": 2.0}, "Blurred has no setting sharp; expected some of query_size, memory_size, sharpness"),
        (Blurred, {"sharpness": "much"}, "Blurred cannot be built with sharpness='much': TypeError"),
        (Constraint, {}, "Constraint is not complete: a constraint also needs forbid, start, step"),
        (dict, {}, "dict: expected a subclass of one of seqloom.contracts: Cell, Attention,"),
        (Blurred(query_size=1, memory_size=1), {}, "expected the class of a part, or the function of a metric"),
        (test_an_attention_may_use_positions_if_it_says_so, {"a": 1}, "a metric takes no settings"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_line(part: Any, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(SeqloomError) as caught:
        examine(part, **settings)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_it_needs_neither_pytest_nor_hypothesis() -> None:
    program = "import sys, seqloom.testing; print({'pytest', 'hypothesis', '_pytest'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# -- on the command line


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["seqloom", "check", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return int(caught.value.code or 0)


def test_the_command_prints_the_report_and_says_by_its_exit_code_whether_all_is_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, f"{__name__}:Blurred", "--trust", "--set", "sharpness=0.5") == 0
    assert capsys.readouterr().out.endswith("Blurred, an attention: all 9 checks passed\n")
    assert run(monkeypatch, f"{__name__}:Leaks", "--trust") == 2
    assert capsys.readouterr().out.endswith("Leaks, an attention: 2 of 9 checks failed\n")
    for arguments, reason in (
        ([f"{__name__}:Blurred"], "names code outside Seqloom; trust it (--trust, or trust=True)"),
        ([f"{__name__}:Blured", "--trust"], "cannot be imported as module:Class (AttributeError"),
    ):
        assert run(monkeypatch, *arguments) == 2
        said = capsys.readouterr().err
        assert reason in said
        assert said.count("\n") == 1
