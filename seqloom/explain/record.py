"""Why a model answered as it did: the record behind the page, the terminal view and the JSON of `seqloom explain`.

Sizes: T source pieces, U target pieces (the end token included), all attention matrices query x key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite, isnan
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, TypeAdapter, ValidationError

from seqloom.errors import SeqloomError

Matrix = list[list[float]]
Heads = list[list[Matrix]]  # [layer][head] -> matrix
LogProbability = Annotated[
    float,  # JSON has no infinity: null is the logarithm of zero
    BeforeValidator(lambda value: -inf if value is None else value),
    PlainSerializer(lambda value: value if isfinite(value) else None),
]


@dataclass(frozen=True)
class TreeNode:
    """One hypothesis the beam kept at one step."""

    step: int
    parent: int  # index of an earlier node, -1 at the first step
    token: str
    score: LogProbability  # cumulative log-probability
    finished: bool = False
    best: bool = False  # on the way to the first hypothesis


@dataclass(frozen=True)
class ExplainedHypothesis:
    """One output, piece by piece."""

    text: str
    score: LogProbability  # what the search ranked by
    tokens: list[str]  # U pieces, the last is "<eos>" where the decoder has one
    log_probs: list[LogProbability]  # U
    runners_up: list[list[tuple[str, float]]]  # U times (piece, probability), likeliest first, the chosen one included
    alignment: Matrix = field(default_factory=list)  # U x T, mean over layers and heads; empty without a source
    source_attention: Heads = field(default_factory=list)  # U x T each
    self_attention: Heads = field(default_factory=list)  # U x U each; column 0 is <bos>, column j the token before j
    times: list[float] = field(default_factory=list)  # U: how much of the source had been read; none where it all was
    steps: list[float] = field(default_factory=list)  # U: how often it was thought over; none where that is fixed
    copied: list[float] = field(default_factory=list)  # U: how much of the probability there was that of copies

    def __post_init__(self) -> None:
        for name in ("log_probs", "runners_up"):
            expect(len(getattr(self, name)) == len(self.tokens), name, f"{len(self.tokens)} entries, one for a token")
        if self.times:
            expect(len(self.times) == len(self.tokens), "times", f"{len(self.tokens)} entries, one for a token")
            expect(all(isfinite(time) and time >= 0 for time in self.times), "times", "numbers from 0 on")
        expect_numbers("steps", self.steps, self.tokens)
        expect_numbers("copied", self.copied, self.tokens, 1.0001)
        expect(not any(map(isnan, [self.score, *self.log_probs])), "score and log_probs", "numbers")
        expect(
            all(0 <= p <= 1.0001 for ranked in self.runners_up for _, p in ranked),
            "runners_up",
            "probabilities from 0 to 1",
        )
        for heads in self.self_attention:
            for matrix in heads:
                expect_matrix(matrix, "self_attention", len(self.tokens), len(self.tokens))


@dataclass(frozen=True)
class Points:
    """A source of points in the plane, and which of them outputs choose."""

    where: Matrix  # T x 2
    outputs: list[list[int]]  # places, a list a hypothesis
    truth: list[int] = field(default_factory=list)  # places, where they are known
    triangles: bool = False  # three places are a triangle; else they are stops on a way

    def __post_init__(self) -> None:
        expect_matrix(self.where, "points.where", len(self.where), 2)
        for places in (*self.outputs, self.truth):
            expect(all(0 <= place < len(self.where) for place in places), "points", "places of the points there are")


@dataclass(frozen=True)
class Explanation:
    """Everything there is to see of one input."""

    source: list[str]  # T pieces; empty for a language model
    source_text: str
    hypotheses: list[ExplainedHypothesis]  # the answer, then the others, best first
    tree: list[TreeNode] = field(default_factory=list)
    encoder_attention: Heads = field(default_factory=list)  # T x T each
    model: dict[str, str] = field(default_factory=dict)  # small facts: recipe, parameters, search settings
    picture: Matrix = field(default_factory=list)  # of a source of sound: energy from 0 to 1, positions x bands
    seconds: float = 0.0  # that a position of the source lasts
    points: Points | None = None  # where these are the source
    steps: list[float] = field(default_factory=list)  # T: how often each was thought over; none where that is fixed

    def __post_init__(self) -> None:
        expect(bool(self.hypotheses), "hypotheses", "at least one")
        expect_numbers("steps", self.steps, self.source)
        for heads in self.encoder_attention:
            for matrix in heads:
                expect_matrix(matrix, "encoder_attention", len(self.source), len(self.source))
        if self.picture:
            expect_matrix(self.picture, "picture", len(self.picture), len(self.picture[0]))
        for hypothesis in self.hypotheses:
            if hypothesis.alignment:
                expect_matrix(hypothesis.alignment, "alignment", len(hypothesis.tokens), len(self.source))
            for heads in hypothesis.source_attention:
                for matrix in heads:
                    expect_matrix(matrix, "source_attention", len(hypothesis.tokens), len(self.source))
        for index, node in enumerate(self.tree):
            parent = self.tree[node.parent] if 0 <= node.parent < index else None
            earlier = node.parent == -1 or (parent is not None and parent.step < node.step)
            expect(earlier, f"tree[{index}].parent", "the index of a node of an earlier step, or -1")

    @property
    def attention(self) -> Matrix:
        """Where the best output looked in the source.  U x T"""
        return self.hypotheses[0].alignment

    def to_json(self) -> dict[str, Any]:
        return RECORD.dump_python(self, mode="json")

    @classmethod
    def from_json(cls, value: object) -> Explanation:
        """Read back what `to_json` wrote."""
        try:
            return RECORD.validate_python(value)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "its top level"
            raise SeqloomError(
                f"explanation: {where}: {first['msg']}; expected the JSON that explain writes, so write it again"
            ) from None


def expect(condition: bool, where: str, expected: str) -> None:
    if not condition:
        raise SeqloomError(f"explanation: {where} does not fit: expected {expected}; explain the input again")


def expect_numbers(name: str, values: list[float], pieces: list[str], most: float = inf) -> None:
    fits = len(values) in (0, len(pieces)) and all(isfinite(each) and 0 <= each <= most for each in values)
    upper = "on" if most == inf else "to 1"
    expect(fits, name, f"{len(pieces)} numbers from 0 {upper}, one for a piece")


def expect_matrix(matrix: Matrix, where: str, rows: int, columns: int) -> None:
    fits = len(matrix) == rows and all(len(row) == columns and all(map(isfinite, row)) for row in matrix)
    expect(fits, where, f"{rows} rows of {columns} finite weights")


RECORD = TypeAdapter(Explanation)
