"""A trained model in use: predict, score, evaluate, explain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqloom import config
from seqloom.checkpoint import Run, load_weights
from seqloom.contracts import Codec, Constraint, Head, Search, Task
from seqloom.data.batching import in_order
from seqloom.data.dataset import codec_key
from seqloom.data.readers import read
from seqloom.data.symbols import BOS, EOS, PAD, UNK
from seqloom.ensemble import Average, Ensemble, Readings, ensemble_of
from seqloom.errors import SeqloomError
from seqloom.explain.explanation import Explanation
from seqloom.model import Model
from seqloom.running import chosen, line_scores, written_on
from seqloom.search.constraints import Banned, Required
from seqloom.tasks.text import Text
from seqloom.train.device import choose_device
from seqloom.train.standing import Summary
from seqloom.types import Example, Hypothesis, Memory, Padded
from seqloom.weights import weights_of

TOKENS = 4096  # of source a batch, times beam


@dataclass(frozen=True)
class Prediction:
    """One output with what the search thought of it."""

    text: Any
    score: float
    tokens: list[str]  # pieces, the end symbol not among them
    log_probs: list[float]  # one a token, and one of the end
    attention: list[list[float]] | None = None  # on request: target x source, mean over layers and heads


class Predictor:
    """A model with its task and recipe. `seqloom.load` and `seqloom.fit` give one."""

    def __init__(
        self,
        model: Model,
        task: Task,
        recipe: dict[str, Any],
        path: Path | None = None,
        trust: bool = False,
        summary: Summary | None = None,
        sources: Sequence[Codec] = (),
    ):
        self.model, self.task, self.recipe, self.path, self.trust = model.eval(), task, recipe, path, trust
        self.summary = summary  # of the training that has just made it
        # One codec, unless the members of an ensemble read a source each in its own way.
        self.sources = tuple(sources) or (() if task.source is None else (task.source,))

    @classmethod
    def load(
        cls,
        path: Path | str | Sequence[Path | str],
        device: str = "auto",
        trust: bool = False,
        average: Average = "arithmetic",
    ) -> Predictor:
        """From a run folder; several are an ensemble. Code of a run's own (`module:Class`) needs your trust."""
        if not isinstance(path, (str, Path)):
            return cls.ensemble([cls.load(each, device, trust) for each in path], average)
        place = choose_device(device)
        run = Run.open(path)
        recipe = config.complete(run.recipe(), str(run.path / "config.toml"), trust)
        task = config.build_task(recipe, trust).load(run.path)
        model = config.build_model(recipe, task.source, task.target, trust)
        load_weights(model, run.weights)
        return cls(model.to(place), task, recipe, run.path, trust)

    @classmethod
    def ensemble(cls, members: Sequence[Predictor], average: Average = "arithmetic") -> Predictor:
        """Several as one: each symbol is chosen by the mean of their probabilities.

        Search and metrics are those of the first. Each reads a source in its own way; all write the same symbols.
        """
        if not members:
            raise SeqloomError("no run was given: name one, or several for an ensemble")
        if any(isinstance(each.model.decoder, Ensemble) for each in members):
            raise SeqloomError("a member of an ensemble is an ensemble already: give its runs instead")
        first, *others = members
        if not others:
            return first
        for other in others:
            refuse_strangers(first, other)
        codecs = [each.task.source for each in members if each.task.source is not None]
        alike = len({codec_key(codec) for codec in codecs}) < 2
        task = first.task
        if isinstance(task, Text):  # read on as every member can
            running = [each.task for each in members if isinstance(each.task, Text)]
            task = min(running, key=lambda each: (each.carry, each.window))
        model = ensemble_of([each.model for each in members], average)
        trust = any(each.trust for each in members)
        return cls(model, task, first.recipe, trust=trust, sources=() if alike else codecs)

    def save(self, path: Path | str) -> None:
        """Copy the run, without what only training needs."""
        if self.path is None:
            raise SeqloomError("this model has no run folder to copy")
        Run.open(self.path).copy(path, weights_of(self.model))

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

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
        for source, found in zip(sources, answers := self.candidates(sources, **settings)):
            if not found:
                raise SeqloomError(f"no output for {source!r} meets the constraints within the length limit")
        return [found[0].text for found in answers]

    @torch.no_grad()
    def candidates(
        self,
        sources: Sequence[Any],
        *,
        attention: bool = False,
        prefix: Any = None,
        banned: Sequence[Any] = (),
        required: Sequence[Any] = (),
        search: Search | None = None,
        **settings: Any,
    ) -> list[list[Prediction]]:
        """The n_best outputs of each source, best first."""
        if isinstance(sources, str):
            raise SeqloomError("predict takes a list of sources, not one string: write [source]")
        if self.task.source is None:
            raise SeqloomError("this run is a language model and reads no source: use `generate`")
        if isinstance(self.model.decoder, Head):
            wishes = {**settings, "attention": attention, "prefix": prefix, "banned": banned, "required": required}
            return self.answers(self.model.decoder, sources, [name for name, wish in wishes.items() if wish])
        search = search or self.search(**settings)
        constraints = self.constraints(banned, required)
        encoded = [self.read(source) for source in sources]
        answers: list[list[Prediction]] = [[] for _ in sources]
        longest = [max(each, key=len) for each in encoded]
        for rows in self.batches(longest, max(getattr(search, name, 1) for name in ("beam_size", "n_best"))):
            memory = self.model.encode(self.padded([encoded[row] for row in rows]))
            for row, entry, found in zip(
                rows, range(len(rows)), search(self.model.decoder, memory, self.prefix(prefix, len(rows)), constraints)
            ):
                maps = self.alignments(memory, entry, found) if attention else [None] * len(found)
                answers[row] = [
                    self.prediction(one, sources[row], weights) for one, weights in zip(found, maps, strict=True)
                ]
        return answers

    def answers(self, head: Head, sources: Sequence[Any], wishes: Sequence[str]) -> list[list[Prediction]]:
        """The one output of each source, where there is nothing to search."""
        if wishes:
            raise SeqloomError(f"this run says its output at once, without a search: leave out {', '.join(wishes)}")
        encoded = [self.read(source) for source in sources]
        answers: list[list[Prediction]] = [[] for _ in sources]
        for rows in self.batches([max(each, key=len) for each in encoded], 1):
            said = head.answer(self.model.encode(self.padded([encoded[row] for row in rows])))
            for row, values, length in zip(rows, said.values.cpu(), said.lengths.tolist()):
                output = values[:length]
                pieces = self.pieces(self.task.target, output)
                answers[row] = [Prediction(self.task.decode(output, sources[row]), 0.0, pieces, [])]
        return answers

    @torch.no_grad()
    def generate(
        self, count: int = 1, *, prefix: Any = None, search: Search | None = None, **settings: Any
    ) -> list[Any]:
        """Outputs of a language model: from nothing, or going on from a prefix."""
        if self.task.source is not None:
            raise SeqloomError("this run reads a source: use `predict`")
        constraints, beginning = self.constraints((), ()), self.prefix(prefix, count)

        def write(search: Search, beginning: Padded | None) -> list[Hypothesis]:
            found = search(self.model.decoder, self.model.encode(None, count), beginning, constraints)
            return [one[0] for one in found]

        if isinstance(self.task, Text) and not self.task.carry and search is None:
            return self.generate_in_windows(self.task, write, beginning, count, settings)
        search = search or self.search(**{"type": "sample", **settings})
        return [self.prediction(one, None).text for one in write(search, beginning)]

    def generate_in_windows(
        self,
        task: Text,
        write: Callable[[Search, Padded | None], list[Hypothesis]],
        prefix: Padded | None,
        count: int,
        settings: dict[str, Any],
    ) -> list[Any]:
        """A running text longer than the window the model has learned to see."""
        table = self.search_table(**{"type": "sample", **settings})
        length = table.get("maximum_length") or self.model.decoder.length_offset
        seed = table.get("seed")
        calls = 0

        def write_on(beginning: Tensor, length: int) -> Tensor:
            nonlocal calls
            limits = {"maximum_length": length, "minimum_length": 0}
            if seed is not None:  # other numbers for each part of the text
                limits["seed"] = seed + calls
            calls += 1
            rows, given = beginning.shape
            padded = Padded(beginning, torch.full((rows,), given, device=self.device)) if given else None
            written = write(config.build("search", {**table, **limits}, "search", self.trust), padded)
            return torch.tensor([one.tokens for one in written], device=self.device)

        nothing = torch.zeros(count, 0, dtype=torch.long, device=self.device)
        text = written_on(write_on, nothing if prefix is None else prefix.values, length, task.window)
        return [task.decode(row) for row in text.cpu()]

    def batches(self, encoded: Sequence[Tensor], rows_each: int) -> Iterator[list[int]]:
        """Row numbers of sources of like length."""
        lengths = np.array([[len(each), 0] for each in encoded], dtype=np.int32).reshape(-1, 2)
        plan = in_order(lengths, max(TOKENS // rows_each, 1))
        for number in range(len(plan)):
            yield [int(row) for row in plan[number]]

    def constraints(self, banned: Sequence[Any], required: Sequence[Any]) -> list[Constraint]:
        """What outputs must and must not contain. They never contain the symbols that are ours, not the text's."""
        never = [ids for each in banned for ids in self.spellings(each, "banned text")]
        always = [self.spellings(each, "required text") for each in required]
        chosen: list[Constraint] = [Banned([[PAD], [UNK], [BOS], *never])]
        return [*chosen, Required(always, EOS)] if always else chosen

    def spellings(self, value: Any, what: str) -> list[list[int]]:
        tokens = self.encoded(self.task.target, value, what, known=True).tolist()
        spell = getattr(self.task.target, "spellings", None)
        return spell(value) if spell else [tokens]

    def prefix(self, value: Any, rows: int) -> Padded | None:
        if value is None or value == "":
            return None
        return Padded.stack([self.encoded(self.task, value, "prefix", known=True)] * rows).to(self.device)

    def has_unknown(self, source: Any) -> bool:
        """Whether a source has symbols the vocabulary lacks."""
        return any(codec.vocabulary and UNK in codec.encode(source).tolist() for codec in self.sources)

    def read(self, source: Any) -> list[Tensor]:
        """The source as each codec reads it."""
        return [self.encoded(codec, source, "source") for codec in self.sources]

    def padded(self, encoded: Sequence[Sequence[Tensor]]) -> Padded:
        """Sources that were read, as the model takes them."""
        columns = [Padded.stack(column) for column in zip(*encoded)]
        return (columns[0] if len(columns) == 1 else Readings.of(columns)).to(self.device)

    @staticmethod
    def encoded(codec: Any, value: Any, what: str, known: bool = False) -> Tensor:
        """A value with something in it; with `known`, nothing the model could never write."""
        tokens: Tensor = codec.encode(value)
        if not len(tokens):
            raise SeqloomError(f"the {what} {value!r} is empty: give at least one symbol")
        if known and UNK in tokens.tolist():
            raise SeqloomError(f"the {what} {value!r} has symbols that this model's vocabulary lacks: leave them out")
        return tokens

    def prediction(self, hypothesis: Hypothesis, source: Any, weights: list[list[float]] | None = None) -> Prediction:
        tokens = torch.tensor(hypothesis.tokens, dtype=torch.long)
        pieces = self.pieces(self.task.target, tokens)
        text = self.task.decode(tokens, source)
        return Prediction(text, hypothesis.score, pieces, hypothesis.log_probs, weights)

    @staticmethod
    def pieces(codec: Any, tokens: Tensor) -> list[str]:
        return list(codec.pieces(tokens)) if hasattr(codec, "pieces") else [str(token) for token in tokens.tolist()]

    def alignments(self, memory: Memory, entry: int, found: Sequence[Hypothesis]) -> list[list[list[float]] | None]:
        """Where each hypothesis looked, by reading it once more."""
        from seqloom.explain.reading import read_again

        return [reading.alignment or None for reading in read_again(self.model.decoder, memory, entry, found)]

    # -- measuring

    @torch.no_grad()
    def score(self, pairs: Sequence[Any]) -> list[float]:
        """The log-probability of each target given its source; a language model takes the targets alone.

        Of a running text they are the lines, each after those before it.
        """
        source, target = self.task.source, self.task.target
        if target.vocabulary is None:
            raise SeqloomError("this run says numbers, which have no probabilities: measure it with `evaluate`")
        examples = [pair if isinstance(pair, Example) else as_example(pair, source is not None) for pair in pairs]
        if isinstance(self.task, Text):
            return line_scores(self.model, self.task, [example.target for example in examples])
        sources = None if source is None else [self.read(example.source) for example in examples]
        targets = [target.encode(example.target, example.source) for example in examples]
        scores = [0.0] * len(examples)
        longest = [
            torch.empty(max([len(t) + 1, *map(len, sources[row] if sources else ())])) for row, t in enumerate(targets)
        ]
        for rows in self.batches(longest, 1):
            batch = self.task.batch(None, [targets[row] for row in rows]).to(self.device)
            if sources is not None:
                batch = replace(batch, source=self.padded([sources[row] for row in rows]))
            log_probs = chosen(self.model(batch).scores, batch.targets.values) * batch.targets.mask
            for row, total in zip(rows, log_probs.sum(1).tolist()):
                scores[row] = total
        return scores

    def examples(self, paths: Sequence[str], **options: Any) -> Iterator[Example]:
        """What files hold, read as the run's training data was; options are those of `readers.read`."""
        columns = 1 if self.task.source is None else 2
        longest = self.recipe["data"]["max_characters"]
        return read(paths, columns, running=self.task.running, max_characters=longest, **options)

    def evaluate(self, examples: Iterable[Any] | str | Path, **settings: Any) -> dict[str, float]:
        """The task's metrics on a file, examples or pairs; a language model's perplexity."""
        if isinstance(examples, (str, Path)):
            examples = self.examples([str(examples)])
        found = [
            each if isinstance(each, Example) else as_example(each, self.task.source is not None) for each in examples
        ]
        if not found:
            raise SeqloomError("nothing to evaluate: the data is empty")
        if self.task.source is None:
            tokens = sum(len(self.task.target.encode(example.target)) + 1 for example in found)
            nll = -sum(self.score(found)) / tokens
            characters = sum(len(str(example.target)) + 1 for example in found)
            return {
                "perplexity": float(np.exp(nll)),
                "bits_per_character": nll * tokens / characters / float(np.log(2)),
                "nats_per_token": nll,
            }
        sources, references = self.task.references(found)
        return self.task.measure(self.predict(sources, **settings), references)

    # -- looking inside

    def explain(self, source: Any = None, *, n_best: int = 5, **settings: Any) -> Explanation:
        """Why the model answers as it does: alignment, attention, runners-up, n-best list, beam tree."""
        from seqloom.explain.reading import explain

        if isinstance(self.model.decoder, Ensemble):
            raise SeqloomError("explain shows one run: explain the runs of an ensemble one by one")
        if isinstance(self.model.decoder, Head):
            raise SeqloomError("explain shows a search, and this run says its output at once: use `predict`")
        if source is not None and self.task.source is not None:
            self.encoded(self.task.source, source, "source")
        return explain(self, source, n_best=n_best, **settings)


def refuse_strangers(one: Predictor, other: Predictor) -> None:
    """Members of an ensemble all read a source, or none does; and what they write, they write alike."""
    both = f"{one.path or 'a model'} and {other.path or 'a model'}"
    if (one.task.source is None) != (other.task.source is None):
        raise SeqloomError(f"{both} make no ensemble: one is a language model, the other reads a source")
    ours, theirs = ((each.task.bos, each.task.eos, codec_key(each.task.target)) for each in (one, other))
    if ours != theirs:
        raise SeqloomError(
            f"{both} make no ensemble: they write different symbols; "
            "train both with the same task.target, data and --valid"
        )


def as_example(pair: Any, has_source: bool) -> Example:
    if not has_source:
        return Example(None, pair)
    if isinstance(pair, str) or len(pair) != 2:
        raise SeqloomError(f"expected (source, target), not {pair!r}")
    return Example(*pair)
