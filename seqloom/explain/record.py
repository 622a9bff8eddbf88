"""The record of an explanation: the page, the terminal view and the JSON of `seqloom explain` are made from it.

Sizes: T source tokens, U target tokens (EOS included). All attention matrices are query x key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite, isnan
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, TypeAdapter, ValidationError

from seqloom.errors import SeqloomError

Matrix = list[list[float]]
Heads = list[list[Matrix]]  # [layer][head] -> matrix
Experts = dict[str, list[list[int]]]  # layer -> for each token the numbers of its experts, the largest gate first
LogProbability = Annotated[
    float,  # JSON has no infinity: null is the logarithm of zero
    BeforeValidator(lambda value: -inf if value is None else value),
    PlainSerializer(lambda value: value if isfinite(value) else None),
]


@dataclass(frozen=True)
class TreeNode:
    """One hypothesis that the beam kept at one step."""

    step: int
    parent: int  # index of an earlier node, -1 at the first step
    token: str
    score: LogProbability  # cumulative log-probability
    finished: bool = False
    best: bool = False  # on the path to the first hypothesis


@dataclass(frozen=True)
class Branch:
    """A node of a parse tree: a constituent, or a word with its tag."""

    label: str  # of the constituent, or the tag; empty where a model writes no tags
    parent: int  # index of an earlier node, -1 for a root
    begin: int  # the token that opens it
    end: int  # the token that closes it; a word has one token
    word: str = ""


@dataclass(frozen=True)
class ExplainedHypothesis:
    """One output, token by token."""

    text: str
    score: LogProbability  # what the search ranked by
    tokens: list[str]  # U, the last is "<eos>" where the decoder has one
    log_probs: list[LogProbability]  # U
    runners_up: list[list[tuple[str, float]]]  # U times (token, probability), likeliest first, the chosen one included
    alignment: Matrix = field(default_factory=list)  # U x T, mean over layers and heads; empty without a source
    source_attention: Heads = field(default_factory=list)  # U x T each
    self_attention: Heads = field(default_factory=list)  # U x U each; column 0 is <bos>, column j the token before j
    times: list[float] = field(default_factory=list)  # U: source positions read by then; empty if all are read first
    steps: list[float] = field(default_factory=list)  # U: steps of adaptive computation; empty for other models
    copied: list[float] = field(default_factory=list)  # U: share of the probability that comes from copying
    experts: Experts = field(default_factory=dict)  # U each: experts used by the decoder; empty for other models
    parse: list[Branch] = field(default_factory=list)  # the output as a tree, nodes from left to right; if it is one

    def __post_init__(self) -> None:
        for name in ("log_probs", "runners_up"):
            expect(len(getattr(self, name)) == len(self.tokens), name, f"{len(self.tokens)} entries, one per token")
        expect_numbers("times", self.times, self.tokens)
        expect_numbers("steps", self.steps, self.tokens)
        expect_numbers("copied", self.copied, self.tokens, 1.0001)
        expect_experts(self.experts, self.tokens)
        expect(not any(map(isnan, [self.score, *self.log_probs])), "score and log_probs", "numbers")
        shares = [share for ranked in self.runners_up for _, share in ranked]
        expect(all(0 <= share <= 1.0001 for share in shares), "runners_up", "probabilities from 0 to 1")
        for index, node in enumerate(self.parse):
            fits = -1 <= node.parent < index and 0 <= node.begin <= node.end < len(self.tokens)
            expect(fits, f"parse[{index}]", "an earlier node as its parent, and tokens of the output")
        expect_heads(self.self_attention, "self_attention", len(self.tokens), len(self.tokens))


@dataclass(frozen=True)
class Points:
    """Points in the plane as a source, and the places (indices of points) that outputs choose."""

    where: Matrix  # T x 2
    outputs: list[list[int]]  # places, one list per hypothesis
    truth: list[int] = field(default_factory=list)  # places, where they are known
    triangles: bool = False  # every three places are a triangle; else all are one path

    def __post_init__(self) -> None:
        expect_matrix(self.where, "points.where", len(self.where), 2)
        for places in (*self.outputs, self.truth):
            expect(all(0 <= place < len(self.where) for place in places), "points", "places of the points there are")


@dataclass(frozen=True)
class Image:
    """A picture as a source, and the grid of places that it is attended by: the tokens of the source, row by row.

    The places of a film are its frames, whose names are times; the last row may have fewer.
    """

    uri: str  # the picture itself: "data:image/png;base64,..."
    rows: int
    columns: int
    names: list[str] = field(default_factory=list)  # of frames; empty: numbers of row and column
    aspect: float = 1.0  # how many times as wide as high a place is

    def __post_init__(self) -> None:
        expect(self.uri.startswith("data:image/png;base64,"), "image.uri", "a PNG file in base64")
        expect(self.rows > 0 and self.columns > 0, "image.rows and image.columns", "numbers from 1 on")

    @property
    def places(self) -> list[str]:
        """The names of the places: "2,3" is row 2, column 3."""
        return self.names or [
            f"{row},{column}" for row in range(1, self.rows + 1) for column in range(1, self.columns + 1)
        ]


@dataclass(frozen=True)
class PixelByPixel:
    """A picture or film as an output: n values in the order in which they are written, channels of a pixel together."""

    height: int
    width: int
    channels: int
    frames: int
    film: bool
    levels: int
    values: list[int]  # n: levels
    log_probs: list[LogProbability]  # n
    chances: Matrix  # n x levels, or fewer where so many neighbouring levels are added up
    together: int
    first: int  # the value that is shown first, in the middle
    fields: dict[int, list[int]]  # of some values: how much each value before it matters, from 0, not at all, to 255

    def __post_init__(self) -> None:
        count = self.frames * self.height * self.width * self.channels
        expect(len(self.values) == count, "pixels.values", f"{count} levels, one for each channel of each pixel")
        expect(all(0 <= value < self.levels for value in self.values), "pixels.values", f"levels below {self.levels}")
        expect(len(self.log_probs) == count, "pixels.log_probs", f"{count} numbers")
        expect_matrix(self.chances, "pixels.chances", count, len(self.chances[0]) if self.chances else 0)
        expect(0 <= self.first < count, "pixels.first", "one of the values")
        for place, field_ in self.fields.items():
            fits = place < count and len(field_) == place and all(0 <= each <= 255 for each in field_)
            expect(fits, f"pixels.fields.{place}", "a number from 0 to 255 for each value before it")


@dataclass(frozen=True)
class Explanation:
    """All that is shown of one input."""

    source: list[str]  # T tokens; empty for a language model
    source_text: str
    hypotheses: list[ExplainedHypothesis]  # the answer, then the others, best first
    tree: list[TreeNode] = field(default_factory=list)
    encoder_attention: Heads = field(default_factory=list)  # T x T each
    model: dict[str, str] = field(default_factory=dict)  # facts: recipe, parameters, search settings
    picture: Matrix = field(default_factory=list)  # spectrogram of a sound: energies from 0 to 1, positions x bands
    seconds: float = 0.0  # per position of a sound
    points: Points | None = None  # where these are the source
    image: Image | None = None  # where it is the source
    steps: list[float] = field(default_factory=list)  # T: steps of adaptive computation; empty for other encoders
    experts: Experts = field(default_factory=dict)  # T each: experts used by the encoder; empty for other encoders
    pixels: PixelByPixel | None = None  # where the output is a picture or film
    per_token: bool = False  # a hypothesis has one token, its tag, for each token of the source: U = T

    def __post_init__(self) -> None:
        expect(bool(self.hypotheses), "hypotheses", "at least one")
        expect_numbers("steps", self.steps, self.source)
        expect_experts(self.experts, self.source)
        expect_heads(self.encoder_attention, "encoder_attention", len(self.source), len(self.source))
        expect(self.image is None or self.image.places == self.source, "image", "the places that the source lists")
        if self.picture:
            expect_matrix(self.picture, "picture", len(self.picture), len(self.picture[0]))
        for hypothesis in self.hypotheses:
            if hypothesis.alignment:
                expect_matrix(hypothesis.alignment, "alignment", len(hypothesis.tokens), len(self.source))
            if self.per_token:
                fits = len(hypothesis.tokens) == len(self.source)
                expect(fits, "tokens", f"{len(self.source)} tags, one per source token")
            expect_heads(hypothesis.source_attention, "source_attention", len(hypothesis.tokens), len(self.source))
        for index, node in enumerate(self.tree):
            parent = self.tree[node.parent] if 0 <= node.parent < index else None
            earlier = node.parent == -1 or (parent is not None and parent.step < node.step)
            expect(earlier, f"tree[{index}].parent", "the index of a node of an earlier step, or -1")

    @property
    def attention(self) -> Matrix:
        """The alignment of the best output.  U x T"""
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


def expect_numbers(name: str, values: list[float], tokens: list[str], most: float = inf) -> None:
    fits = len(values) in (0, len(tokens)) and all(isfinite(each) and 0 <= each <= most for each in values)
    upper = "on" if most == inf else "to 1"
    expect(fits, name, f"{len(tokens)} numbers from 0 {upper}, one per token")


def expect_experts(experts: Experts, tokens: list[str]) -> None:
    for layer, used in experts.items():
        fits = len(used) == len(tokens) and all(each and min(each) >= 0 for each in used)
        expect(fits, f"experts.{layer}", f"{len(tokens)} lists of numbers from 0 on, one per token")


def expect_heads(layers: Heads, where: str, rows: int, columns: int) -> None:
    for matrix in (matrix for heads in layers for matrix in heads):
        expect_matrix(matrix, where, rows, columns)


def expect_matrix(matrix: Matrix, where: str, rows: int, columns: int) -> None:
    fits = len(matrix) == rows and all(len(row) == columns and all(map(isfinite, row)) for row in matrix)
    expect(fits, where, f"{rows} rows of {columns} finite weights")


RECORD = TypeAdapter(Explanation)
