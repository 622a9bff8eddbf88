"""A trained model in use: predict, score, evaluate, explain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from seqloom import config
from seqloom.answering import LM_WEIGHT, Answering, Prediction, as_example, ranked
from seqloom.channel import NoisyChannel
from seqloom.checkpoint import Run, load_weights
from seqloom.contracts import Codec, Constraint, Decoder, Head, Search, Task
from seqloom.data.dataset import codec_key
from seqloom.ensemble import Average, Ensemble, Readings, ensemble_of
from seqloom.errors import SeqloomError
from seqloom.fusion import Fusion, same_symbols
from seqloom.model import Model
from seqloom.running import line_scores, written_on
from seqloom.simultaneous import Waiting
from seqloom.streaming import Stream
from seqloom.tasks.text import Text
from seqloom.train.device import choose_device
from seqloom.train.standing import Summary
from seqloom.types import Example, Hypothesis, Memory, Output, Padded
from seqloom.weights import unwritten, weights_of

if TYPE_CHECKING:
    from seqloom.explain.explanation import Explanation


class Predictor(Answering):
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
        with unwritten():
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
        if first.task.target.chooses and not alike:
            raise SeqloomError("members that choose from a source read it alike: train all with the same task.source")
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

    # -- predicting

    def candidates(self, sources: Sequence[Any], **wishes: Any) -> list[list[Prediction]]:
        """The n_best outputs of each source, best first; of a head the one it says.

        With `wait`, each is written as if its source came while it is written: so many states behind, one for one.
        With `lm`, a run without a source or its path, lm_weight times that one's log-probability of each symbol counts.
        With `channel`, a run the other way round or its path, channel_weight times its log-probability of the source
        counts, and length_bonus for each symbol.
        """
        if (wait := wishes.pop("wait", None)) is not None:
            waiting = Model(self.model.encoder, self.decoder(wait))
            ours = Predictor(waiting, self.task, self.recipe, self.path, self.trust, sources=self.sources)
            return ours.candidates(sources, **wishes)
        weight = wishes.pop("lm_weight", LM_WEIGHT)
        if (lm := wishes.pop("lm", None)) is not None:
            return self.fused(lm, weight).candidates(sources, **wishes)
        if (channel := wishes.pop("channel", None)) is not None:
            names = [name for name in ("channel_weight", "length_bonus", "proposals") if name in wishes]
            return self.through(channel, **{name: wishes.pop(name) for name in names}).candidates(sources, **wishes)
        if isinstance(self.model.decoder, Head) and not isinstance(sources, str):
            for name in ("details", "search"):  # there are none to leave out, and a validation brings its own search
                wishes.pop(name, None)
            n_best = wishes.pop("n_best", 1)
            return self.answers(self.model.decoder, sources, n_best, [name for name, wish in wishes.items() if wish])
        return super().candidates(sources, **wishes)

    @torch.inference_mode()
    def find(
        self,
        encoded: Sequence[Sequence[np.ndarray]],
        search: Search,
        prefix: np.ndarray | None,
        constraints: Sequence[Constraint],
        attention: bool,
        details: bool,
    ) -> list[list[Hypothesis]]:
        memory = self.model.encode(self.padded(encoded))
        found = search(self.model.decoder, memory, self.repeated(prefix, len(encoded)), constraints)
        found = [self.timed(each, len(own)) for each, (own, *_) in zip(found, encoded)]
        return [self.looked(memory, entry, each) for entry, each in enumerate(found)] if attention else found

    def fused(self, lm: Predictor | Path | str, lm_weight: float = LM_WEIGHT) -> Predictor:
        """This model with a language model in its beam (shallow fusion); both write with the same symbols."""
        other = lm if isinstance(lm, Predictor) else Predictor.load(lm, self.device.type, self.trust)
        name = f"lm = {str(other.path or 'a model')!r}"
        if other.task.source is not None:
            raise SeqloomError(f"{name}: reads a source; expected a language model, a run without one")
        if self.task.source is None:
            raise SeqloomError(f"{name}: this run is a language model itself; make an ensemble of both instead")
        complaint = (
            f"{name}: it writes other symbols than this run; train it with the same task.target, "
            "on text that has all of them, or give it to `rescore`"
        )
        symbols = numbers_in(other.task.target, self.task.target, complaint)
        both = {"decoder": self.model.decoder, "language_model": other.model.decoder}
        decoder = Fusion(**both, weight=lm_weight, symbols=symbols).to(self.device)
        model = Model(self.model.encoder, decoder)
        return Predictor(model, self.task, self.recipe, self.path, self.trust or other.trust, sources=self.sources)

    def through(
        self,
        channel: Predictor | Path | str,
        channel_weight: float = 0.5,
        length_bonus: float = 0.0,
        proposals: int = 10,
    ) -> Predictor:
        """This model with a noisy channel in its beam: a model that reads outputs and writes sources."""
        other = channel if isinstance(channel, Predictor) else Predictor.load(channel, self.device.type, self.trust)
        name = f"channel = {str(other.path or 'a model')!r}"
        ours, theirs = self.task, other.task
        if self.model.encoder is None or ours.source is None or ours.source.vocabulary is None:
            raise SeqloomError(f"{name}: this run reads no symbols that it could explain; leave the channel out")
        if self.model.encoder.stride != 1:
            raise SeqloomError(f"{name}: this run's encoder has no state for each symbol; expected one with stride 1")
        if theirs.source is None:
            raise SeqloomError(f"{name}: reads no outputs; expected a run trained the other way round")
        complaint = (
            f"{name}: it does not read what this run writes, symbol by symbol; train it on the same pairs, swapped"
        )
        symbols = numbers_in(theirs.source, ours.target, complaint)
        sources = numbers_in(
            theirs.target, ours.source, complaint.replace("read what this run writes", "write what this run reads")
        )
        decoder = NoisyChannel(
            decoder=self.model.decoder,
            channel=other.model,
            weight=channel_weight,
            length_bonus=length_bonus,
            proposals=proposals,
            symbols=symbols,
            sources=sources,
        ).to(self.device)
        model = Model(self.model.encoder, decoder)
        return Predictor(model, self.task, self.recipe, self.path, self.trust or other.trust, sources=self.sources)

    def decoder(self, wait: int | None = None) -> Decoder:
        """The model's decoder; with `wait` as one that writes while it reads, so many states behind."""
        return self.model.decoder if wait is None else Waiting.of(self.model, wait)

    def timed(self, found: Sequence[Hypothesis], length: int) -> list[Hypothesis]:
        """Hypotheses of a source of so many inputs, their times counted in inputs rather than in states."""
        stride = self.model.encoder.stride if self.model.encoder is not None else 1
        return [
            one if one.times is None else replace(one, times=[min(time * stride, length) for time in one.times])
            for one in found
        ]

    @torch.inference_mode()
    def answers(self, head: Head, sources: Sequence[Any], n_best: int, wishes: Sequence[str]) -> list[list[Prediction]]:
        """What is said of each source, where there is nothing to search: the likeliest symbols, or vectors."""
        symbols = self.task.target.vocabulary is not None
        if wishes or (n_best > 1 and not symbols):
            wishes = wishes or ["n_best"]
            raise SeqloomError(f"this run says its output at once, without a search: leave out {', '.join(wishes)}")
        encoded = [self.read(source) for source in sources]
        answers: list[list[Prediction]] = [[] for _ in sources]
        for rows in self.batches([max(each, key=len) for each in encoded], 1):
            memory = self.model.encode(self.padded([encoded[row] for row in rows]))
            if symbols:
                scores = self.said(head, memory).scores[:, 0].log_softmax(-1)  # (B, V)
                found = [ranked(each, n_best) for each in scores.cpu().numpy()]
            else:
                said = head.answer(memory)
                found = [[(0.0, value[:length])] for value, length in zip(said.values.cpu(), said.lengths.tolist())]
            for row, outputs in zip(rows, found):
                answers[row] = [
                    Prediction(
                        self.task.decode(output, sources[row]),
                        score,
                        self.pieces(self.task.target, output),
                        [score] if symbols else [],
                    )
                    for score, output in outputs
                ]
        return answers

    def said(self, head: Decoder, memory: Memory, attention: bool = False) -> Output:
        """What a head makes of each source: one symbol."""
        ones = memory.lengths.new_ones(memory.rows)
        output: Output = head(memory, Padded(torch.full_like(ones, self.task.bos)[:, None], ones), attention=attention)
        return output

    @torch.inference_mode()
    def generate(
        self, count: int = 1, *, prefix: Any = None, search: Search | None = None, **settings: Any
    ) -> list[Any]:
        """Outputs of a language model: from nothing, or going on from a prefix."""
        if self.task.source is not None:
            raise SeqloomError("this run reads a source: use `predict`")
        constraints, beginning = self.constraints((), ()), self.repeated(self.beginning(prefix), count)

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

    def stream(self, *, wait: int | None = None, search: Search | None = None, **settings: Any) -> Stream:
        """A source as it comes: `feed` it, and read what is certain by then. `wait` is that of `predict`."""
        return Stream(self, self.decoder(wait), search or self.search(**settings))

    def repeated(self, prefix: np.ndarray | None, rows: int) -> Padded | None:
        """The same beginning for every row."""
        return None if prefix is None else Padded.stack([prefix] * rows).to(self.device)

    def padded(self, encoded: Sequence[Sequence[np.ndarray]]) -> Padded:
        """Sources that were read, as the model takes them."""
        columns = [Padded.stack(column) for column in zip(*encoded)]
        return (columns[0] if len(columns) == 1 else Readings.of(columns)).to(self.device)

    def looked(self, memory: Memory, entry: int, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Hypotheses of one source with where each looked, by reading them once more."""
        from seqloom.explain.reading import read_again

        readings = read_again(self.model.decoder, memory, entry, found)
        return [replace(one, attention=reading.alignment or None) for one, reading in zip(found, readings)]

    # -- measuring

    @torch.inference_mode()
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
            np.empty(max([len(t) + 1, *map(len, sources[row] if sources else ())])) for row, t in enumerate(targets)
        ]
        for rows in self.batches(longest, 1):
            batch = self.task.batch(None, [targets[row] for row in rows]).to(self.device)
            if sources is not None:
                batch = replace(batch, source=self.padded([sources[row] for row in rows]))
            memory = self.model.encode(batch.source, len(rows))
            log_probs = self.model.decoder.log_prob(memory, batch.inputs, batch.targets)
            for row, total in zip(rows, log_probs.tolist()):
                scores[row] = total
        return scores

    def evaluate(self, examples: Iterable[Any] | str | Path, **settings: Any) -> dict[str, float]:
        """The task's metrics on a file, examples or pairs; a language model's perplexity."""
        if self.task.source is not None:
            return super().evaluate(examples, **settings)
        found = self.gathered(examples)
        tokens = sum(len(self.task.target.encode(example.target)) + 1 for example in found)
        nll = -sum(self.score(found)) / tokens
        characters = sum(len(str(example.target)) + 1 for example in found)
        return {
            "perplexity": float(np.exp(nll)),
            "bits_per_character": nll * tokens / characters / float(np.log(2)),
            "nats_per_token": nll,
        }

    # -- looking inside

    def explain(self, source: Any = None, *, n_best: int = 5, **settings: Any) -> Explanation:
        """Why the model answers as it does: alignment, attention, runners-up, n-best list, beam tree."""
        from seqloom.explain.reading import explain

        if isinstance(self.model.decoder, Ensemble):
            raise SeqloomError("explain shows one run: explain the runs of an ensemble one by one")
        if source is not None and self.task.source is not None:
            self.encoded(self.task.source, source, "source")
        if isinstance(self.model.decoder, Head):
            from seqloom.explain.hops import explain_head

            return explain_head(self, source, n_best=n_best, **settings)
        if self.model.decoder.silent:
            from seqloom.explain.online import explain_online

            return explain_online(self, source, n_best=n_best, **settings)
        return explain(self, source, n_best=n_best, **settings)


def numbers_in(theirs: Codec, ours: Codec, complaint: str) -> list[int] | None:
    """The other codec's number of each of our symbols; None if they are the same. It must have all of them."""
    if codec_key(ours) == codec_key(theirs):
        return None
    if (found := same_symbols(ours, theirs)) is None:
        raise SeqloomError(complaint)
    return found


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
