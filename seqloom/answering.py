"""Models in use, whatever computes their answers: values in, values out, constraints, metrics. No torch here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqloom import config
from seqloom.data.batching import in_order
from seqloom.data.copying import Copying
from seqloom.data.places import Places
from seqloom.data.symbols import BOS, EOS, PAD, SYMBOLS, UNK
from seqloom.errors import SeqloomError
from seqloom.metrics.latency import latency
from seqloom.plain_contracts import Codec, Constraint, Search, Task
from seqloom.search.constraints import Banned, Required
from seqloom.types import Example, Hypothesis, Padded

if TYPE_CHECKING:
    from seqloom.data.readers import Tally

TOKENS = 4096  # of source a batch, times beam
LM_WEIGHT = 0.3  # of a language model, unless told otherwise
UNEXPLAINED = -1e4  # the log-probability of a source given nothing: a number, so that an output of nothing has a rank


@dataclass(frozen=True)
class Prediction:
    """One output with what the search thought of it."""

    text: Any
    score: float
    tokens: list[str]  # pieces, the end symbol not among them
    log_probs: list[float]  # one a token, and one of the end
    attention: list[list[float]] | None = None  # on request: target x source, mean over layers and heads
    times: list[int] | None = None  # one a token: how many inputs had been read; None where all are


class Answering(ABC):
    """A model with its task and recipe: predict, evaluate. A subclass finds hypotheses."""

    task: Task
    recipe: dict[str, Any]
    path: Path | None
    trust: bool
    sources: tuple[Codec, ...]  # one codec, unless the members of an ensemble read a source each in its own way

    @abstractmethod
    def find(
        self,
        encoded: Sequence[Sequence[np.ndarray]],
        search: Search,
        prefix: np.ndarray | None,
        constraints: Sequence[Constraint],
        attention: bool,
        details: bool,
    ) -> list[list[Hypothesis]]:
        """For each source, as each codec reads it, its hypotheses, best first."""

    def search(self, **settings: Any) -> Search:
        """The recipe's search with some settings changed; another `type` starts from that type's defaults."""
        search: Search = config.build("search", self.search_table(**settings), "search", self.trust)
        return search

    def search_table(self, **settings: Any) -> dict[str, Any]:
        ours = self.recipe["search"]
        return settings if settings.get("type", ours["type"]) != ours["type"] else {**ours, **settings}

    # -- predicting

    def predict(self, sources: Sequence[Any], **settings: Any) -> list[Any]:
        """The best output of each source. Settings are those of the search, and what `candidates` takes."""
        return [found.text for found in self.best(sources, **settings)]

    def best(self, sources: Sequence[Any], **settings: Any) -> list[Prediction]:
        """The best of the candidates of each source, without details."""
        for source, found in zip(sources, answers := self.candidates(sources, details=False, **settings)):
            if not found:
                raise SeqloomError(f"no output for {source!r} meets the constraints within the length limit")
        return [found[0] for found in answers]

    def candidates(
        self,
        sources: Sequence[Any],
        *,
        attention: bool = False,
        details: bool = True,
        wait: int | None = None,
        lm: Any = None,
        lm_weight: float = LM_WEIGHT,
        channel: Any = None,
        rescore: Any = None,
        rescore_weight: float = LM_WEIGHT,
        prefix: Any = None,
        banned: Sequence[Any] = (),
        required: Sequence[Any] = (),
        replace_unknown: bool = False,
        search: Search | None = None,
        **settings: Any,
    ) -> list[list[Prediction]]:
        """The n_best outputs of each source, best first. Without details the text alone is promised.

        With `rescore`, a language model or the path of its run, all outputs of the beam are ranked anew; so they are
        by a run the other way round, which reads outputs and tells how likely the source is. With `replace_unknown` the
        unknown symbol may be written, and the word of the source that was most looked at stands for it.
        """
        if isinstance(sources, str):
            raise SeqloomError("predict takes a list of sources, not one string: write [source]")
        if self.task.source is None:
            raise SeqloomError("this run is a language model and reads no source: use `generate`")
        if wait is not None:
            raise SeqloomError(f"wait = {wait}: an exported model reads all before it writes; ask the run itself")
        if lm is not None or channel is not None:
            raise SeqloomError(
                "lm, channel: an exported model takes nobody into its beam; ask the run itself, or rescore"
            )
        if rescore is not None:
            chosen = search or self.search(**settings)
            wanted = getattr(chosen, "n_best", 1)
            if search is None:  # all there is
                chosen = self.search(**{**settings, "n_best": getattr(chosen, "beam_size", wanted)})
            wishes = {"attention": attention, "prefix": prefix, "banned": banned, "required": required}
            wishes["replace_unknown"] = replace_unknown
            every = self.candidates(sources, details=details, search=chosen, **wishes)
            return [each[:wanted] for each in rescored(every, rescore, rescore_weight, self.trust, sources)]
        search = search or self.search(**settings)
        copying = self.replacing() if replace_unknown else None
        asked, begun = self.constraints(banned, required, replace_unknown), self.beginning(prefix)
        encoded = [self.read(source) for source in sources]
        if self.task.target.chooses == "places" and (required or begun is not None):
            self.refuse_places(begun, required, encoded)
        answers: list[list[Prediction]] = [[] for _ in sources]
        longest = [max(each, key=len) for each in encoded]
        for rows in self.batches(longest, max(getattr(search, name, 1) for name in ("beam_size", "n_best"))):
            batch = [encoded[row] for row in rows]
            constraints = [*asked, *self.task.constraints(Padded.stack([own for own, *_ in batch]))]
            look = attention or replace_unknown
            for row, found in zip(rows, self.find(batch, search, begun, constraints, look, details)):
                if copying is not None:
                    found = [replaced(one, copying, len(encoded[row][0]), attention) for one in found]
                answers[row] = [self.prediction(one, sources[row], details, copying) for one in found]
        return answers

    def replacing(self) -> Copying:
        """A codec that writes words of the source in place of unknown ones."""
        task = self.task
        if task.target.chooses == "copies":
            raise SeqloomError("replace_unknown: this run copies words by itself; leave it out")
        try:
            ours, theirs = Copying(codec=task.target), Copying(codec=self.sources[0])
        except ValueError as error:
            raise SeqloomError(f"replace_unknown: {error}") from None
        if ours.units != theirs.units:
            both = f'"{theirs.units}" and "{ours.units}"'
            raise SeqloomError(f"replace_unknown: source and target are of units {both}; expected the same")
        return ours

    def batches(self, encoded: Sequence[np.ndarray], rows_each: int) -> Iterator[list[int]]:
        """Row numbers of sources of like length."""
        lengths = np.array([[len(each), 0] for each in encoded], dtype=np.int32).reshape(-1, 2)
        plan = in_order(lengths, max(TOKENS // rows_each, 1))
        for number in range(len(plan)):
            yield [int(row) for row in plan[number]]

    def constraints(self, banned: Sequence[Any], required: Sequence[Any], unknown: bool = False) -> list[Constraint]:
        """What outputs must and must not contain. They never contain the symbols that are ours, not the text's."""
        never = [ids for each in banned for ids in self.spellings(each, "banned text")]
        always = [self.spellings(each, "required text") for each in required]
        ours = [PAD, BOS] if self.task.writes_unknown or unknown else [PAD, UNK, BOS]
        chosen: list[Constraint] = [Banned([*([symbol] for symbol in ours), *never])]
        return [*chosen, Required(always, EOS)] if always else chosen

    def spellings(self, value: Any, what: str) -> list[list[int]]:
        tokens = self.encoded(self.task.target, value, what, known=True).tolist()
        spell = getattr(self.task.target, "spellings", None)
        return spell(value) if spell else [tokens]

    def beginning(self, value: Any) -> np.ndarray | None:
        """What every output begins with, in symbols."""
        return None if value is None or value == "" else self.encoded(self.task, value, "prefix", known=True)

    def refuse_places(
        self, begun: np.ndarray | None, required: Sequence[Any], encoded: Sequence[Sequence[np.ndarray]]
    ) -> None:
        """Complain of wishes for places that a source has not."""
        wishes = [*([] if begun is None else [begun]), *(self.task.encode(each) for each in required)]
        highest = max(int(wish.max()) for wish in wishes) - (self.task.target.vocabulary or 0)
        shortest = min((len(own) for own, *_ in encoded), default=highest + 1)
        if highest >= shortest:
            raise SeqloomError(
                f"prefix, required: place {highest} is beyond a source of {shortest}; ask for places that each has"
            )

    def has_unknown(self, source: Any) -> bool:
        """Whether a source has symbols the vocabulary lacks."""
        reads = [codec for codec in self.sources if codec.vocabulary and codec.chooses != "copies"]
        return any(UNK in codec.encode(source).tolist() for codec in reads)

    def lacks(self, example: Example) -> bool:
        """Whether a target has symbols that could not even be copied."""
        target = self.task.target
        return target.vocabulary is not None and UNK in target.encode(example.target, example.source).tolist()

    def read(self, source: Any) -> list[np.ndarray]:
        """The source as each codec reads it."""
        found = [self.encoded(codec, source, "source") for codec in self.sources]
        if isinstance(self.task.target, Places):
            self.task.target.check([], source, len(found[0]))
        return found

    @staticmethod
    def encoded(codec: Any, value: Any, what: str, known: bool = False) -> np.ndarray:
        """A value with something in it; with `known`, nothing the model could never write."""
        tokens: np.ndarray = codec.read(value) if what == "source" else codec.encode(value)
        if not len(tokens):
            raise SeqloomError(f"the {what} {value!r} is empty: give at least one symbol")
        if known and UNK in tokens.tolist():
            raise SeqloomError(f"the {what} {value!r} has symbols that this model's vocabulary lacks: leave them out")
        return tokens

    def prediction(
        self, hypothesis: Hypothesis, source: Any, details: bool = True, copying: Copying | None = None
    ) -> Prediction:
        pieces = self.pieces(copying or self.task.target, hypothesis.tokens, source) if details else []
        text = (copying or self.task).decode(hypothesis.tokens, source)
        return Prediction(text, hypothesis.score, pieces, hypothesis.log_probs, hypothesis.attention, hypothesis.times)

    @staticmethod
    def pieces(codec: Any, tokens: Any, source: Any = None) -> list[str]:
        """What each symbol shows as; what was copied shows as the source spells it."""
        if isinstance(codec, Copying):
            return codec.pieces(tokens, source)
        return list(codec.pieces(tokens)) if hasattr(codec, "pieces") else [str(token) for token in map(int, tokens)]

    # -- measuring

    def examples(
        self, paths: Sequence[str], *, skip_bad: bool = False, tally: Tally | None = None
    ) -> Iterator[Example]:
        """What files hold, read as the run's training data was."""
        from seqloom.data.dataset import accepted
        from seqloom.data.readers import Tally, read

        task, tally, title = self.task, tally or Tally(), " and ".join(paths)
        options: dict[str, Any] = {"running": task.running, "max_characters": self.recipe["data"]["max_characters"]}
        options["located"] = task.source is not None and task.source.names_files
        rows = read(paths, 1 if task.source is None else 2, skip_bad=skip_bad, tally=tally, **options)
        found = accepted(rows, task.source, task.target, title, skip_bad, tally, set(), task.check)
        return (each for each, *_ in found)

    def gathered(self, examples: Iterable[Any] | str | Path) -> list[Example]:
        """Examples of a file, or given as they are or as pairs."""
        if isinstance(examples, (str, Path)):
            examples = self.examples([str(examples)])
        found = [
            each if isinstance(each, Example) else as_example(each, self.task.source is not None) for each in examples
        ]
        for each in found:
            if not each.line:  # those of files were checked when they were read
                self.task.check(each)
        if not found:
            raise SeqloomError("nothing to evaluate: the data is empty")
        return found

    def evaluate(self, examples: Iterable[Any] | str | Path, **settings: Any) -> dict[str, float]:
        """The task's metrics on a file, examples or pairs; and the latency of models that write while they read."""
        sources, references = self.task.references(self.gathered(examples))
        found = self.best(sources, **settings)
        measured = self.task.measure([one.text for one in found], references, sources)
        times = [one.times for one in found if one.times is not None]
        if len(times) < len(found):
            return measured
        return {**measured, **latency(times, [len(self.read(source)[0]) for source in sources])}


def replaced(hypothesis: Hypothesis, copying: Copying, length: int, attention: bool) -> Hypothesis:
    """Unknown symbols as copies of the place of the source that was most looked at (Jean et al. 2015, section 3.3)."""
    looks = hypothesis.attention
    if looks is None:
        raise SeqloomError("replace_unknown: this run does not attend its source; train one with decoder.attention")
    if any(len(look) != length for look in looks):
        raise SeqloomError("replace_unknown: this run attends no single words; train an encoder with a state a symbol")
    tokens = [
        copying.vocabulary + int(np.argmax(look)) if token == UNK else token
        for token, look in zip(hypothesis.tokens, looks)
    ]
    return replace(hypothesis, tokens=tokens, attention=looks if attention else None)


def rescored(
    answers: Sequence[Sequence[Prediction]], by: Any, weight: float, trust: bool = False, sources: Sequence[Any] = ()
) -> list[list[Prediction]]:
    """Outputs ranked by score + weight * log p_LM(text) (Chan et al. 2016, eq. 14), each read by itself.

    By a run that reads, it is log p(source | text): a noisy channel (Yee, Dauphin & Auli 2019, section 3).
    """
    if not 0 <= weight < float("inf"):
        raise SeqloomError(f"rescore_weight = {weight}: expected a number of 0 or more")
    if any(not isinstance(one.text, str) for found in answers for one in found):
        raise SeqloomError("rescore: outputs of this run are no texts that another could read; leave it out")
    if isinstance(by, (str, Path)):
        from seqloom.predict import Predictor  # imports torch

        by = Predictor.load(by, trust=trust)
    worth = of_texts(answers, by) if by.task.source is None else of_sources(answers, by, sources)
    new = [
        [replace(one, score=one.score + weight * said) for one, said in zip(found, values)]
        for found, values in zip(answers, worth)
    ]
    return [sorted(found, key=lambda one: -one.score) for found in new]


def of_texts(answers: Sequence[Sequence[Prediction]], lm: Any) -> list[list[float]]:
    """A language model's log-probability of each output."""
    texts = list(dict.fromkeys(one.text for found in answers for one in found))
    # A running text goes on from line to line, and these lines are not one text.
    said = [lm.score([text])[0] for text in texts] if lm.task.running else lm.score(texts)
    worth = dict(zip(texts, said))
    return [[worth[one.text] for one in found] for found in answers]


def of_sources(answers: Sequence[Sequence[Prediction]], channel: Any, sources: Sequence[Any]) -> list[list[float]]:
    """The log-probability of the source of each output, by a run that reads outputs."""
    pairs = [(one.text, source) for found, source in zip(answers, sources) for one in found]
    said = iter(channel.score([pair for pair in pairs if len(channel.task.source.encode(pair[0]))]))
    return [
        [next(said) if len(channel.task.source.encode(one.text)) else UNEXPLAINED for one in found] for found in answers
    ]


def ranked(log_probs: np.ndarray, n_best: int) -> list[tuple[float, np.ndarray]]:
    """The likeliest answers, which symbols that are ours, not the text's, never are; none where all are alike.  (V,)"""
    words = log_probs[len(SYMBOLS) :]
    if len(words) > 1 and words.max() == words.min():  # a reader found no word that it could say
        return [(float(words[0]), np.empty(0, dtype=np.int64))]
    best = np.argsort(-words, kind="stable")[: min(n_best, np.count_nonzero(np.exp(words)))]
    return [(float(words[each]), np.array([each + len(SYMBOLS)])) for each in best]


def as_example(pair: Any, has_source: bool) -> Example:
    if not has_source:
        return Example(None, pair)
    if isinstance(pair, str) or len(pair) != 2:
        raise SeqloomError(f"expected (source, target), not {pair!r}")
    return Example(*pair)
