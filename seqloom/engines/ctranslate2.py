"""CTranslate2: Transformers on a CPU, in C++, optionally with 8-bit weights. Klein et al. 2020.

Its beam search is not quite ours: finished outputs do not narrow the beam, and `beam_size * patience` of them end it.
With a patience of 2 it rarely misses one of ours. Forbidden tokens are removed before the softmax, so a beam ranks by
probabilities among the allowed tokens. Scores that are reported are the model's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.contracts import Constraint, Search
from seqloom.engines.engine import Engine, require_packages
from seqloom.errors import SeqloomError
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.banned import Banned
from seqloom.search.options import SearchOptions
from seqloom.search.sample import Sampling
from seqloom.types import Hypothesis

PATIENCE = 2.0
NATIVE = "use the run it was exported from"

Names = list[str]  # tokens: the name of each is its id


class CTranslate2(Engine):
    """One thread by default: single 8-bit sentences take many times longer with two."""

    def __init__(self, translator: Any, *, eos: int, length_ratio: float, length_offset: int, longest: int):
        self.translator, self.eos, self.longest = translator, eos, longest
        self.length_ratio, self.length_offset = length_ratio, length_offset

    @classmethod
    def load(cls, folder: Path, settings: dict[str, Any], threads: int) -> CTranslate2:
        require_packages("ctranslate2")
        import ctranslate2

        return cls(ctranslate2.Translator(str(folder), device="cpu", intra_threads=threads), **settings)

    def compute(
        self,
        encoded: Sequence[Sequence[np.ndarray]],
        search: Search,
        prefix: np.ndarray | None,
        constraints: Sequence[Constraint],
        attention: bool,
        details: bool,
    ) -> list[list[Hypothesis]]:
        search = supported(search)
        sources = [own for own, *_ in encoded]
        options = {
            **search_options(search),
            "suppress_sequences": suppressed(constraints),
            "return_attention": attention,
        }
        begun = [] if prefix is None else names(prefix)
        limits = self.limits(sources, search.options, len(begun))
        named = [names(source) for source in sources]
        found = self.translate(named, begun, max(limits, default=0), options)
        # All had the length limit of the longest. Greedy outputs beyond their own limit are cut; in a beam the limit
        # could change the choice, so those sources are translated again.
        over = [row for row, limit in enumerate(limits) if any(self.length(each) > limit for each in found[row])]
        if options["beam_size"] == 1:
            for row in over:
                found[row] = [self.cut(each, limits[row]) for each in found[row]]
            over = []
        for limit in sorted({limits[row] for row in over}):
            rows = [row for row in over if limits[row] == limit]
            for row, hypotheses in zip(rows, self.translate([named[row] for row in rows], begun, limit, options)):
                found[row] = hypotheses
        penalty = search.length_penalty if isinstance(search, BeamSearch) else 0.0
        if details or max(map(len, found), default=0) > 1:  # a single one needs no ranking
            found = self.with_eos(named, found, len(begun), penalty)
        found = [each[: search.n_best] for each in best_first(found)]
        if details:  # in the order of the search
            found = self.rescored(named, found, len(begun), penalty)
        if isinstance(search, Sampling):
            found = best_first(found)
        return [
            [replace(each, tokens=each.tokens[:-1]) if self.ended(each) else each for each in hypotheses]
            for hypotheses in found
        ]

    def limits(self, sources: Sequence[np.ndarray], options: SearchOptions, begun: int) -> list[int]:
        """The length limit of each output, EOS included."""
        lengths = np.array([len(source) for source in sources], dtype=np.float32)
        limits = np.ceil(lengths * np.float32(self.length_ratio)) + self.length_offset
        if options.maximum_length is not None:
            limits = limits.clip(None, options.maximum_length)
        found = [int(limit) for limit in limits.clip(max(options.minimum_length, begun) + 1, None)]
        if max([0, *found, *map(len, sources)]) > self.longest:
            raise SeqloomError(
                f"a source of {max(map(len, sources)):,} tokens: it or its output may exceed the "
                f"{self.longest:,} positions of an export to ctranslate2; {NATIVE}"
            )
        return found

    def translate(
        self, sources: list[Names], prefix: Names, limit: int, options: dict[str, Any]
    ) -> list[list[Hypothesis]]:
        """Hypotheses with EOS at the end; those without it reached the limit."""
        if limit < 2:  # only EOS fits
            return [[Hypothesis([], 0.0, [])] for _ in sources]
        results = self.translator.translate_batch(
            sources,
            [prefix] * len(sources) if prefix else None,
            max_decoding_length=limit - 1,
            max_input_length=0,
            return_end_token=True,
            return_scores=True,
            **options,
        )
        found = []
        for source, result in zip(sources, results):
            looks = result.attention or [None] * len(result.hypotheses)
            found.append(
                [
                    Hypothesis(list(map(int, symbols)), score, [], look and [row[: len(source)] for row in look])
                    for symbols, score, look in zip(result.hypotheses, result.scores, looks)
                ]
            )
        return found

    def with_eos(
        self, sources: list[Names], found: list[list[Hypothesis]], begun: int, penalty: float
    ) -> list[list[Hypothesis]]:
        """All with EOS at the end: added, with its score, to those that reached the limit."""
        cut = [(row, each) for row, hypotheses in enumerate(found) for each in hypotheses if not self.ended(each)]
        log_probs = iter(self.log_probs([sources[row] for row, _ in cut], [each.tokens for _, each in cut]))

        def close(each: Hypothesis) -> Hypothesis:
            if self.ended(each):
                return each
            tokens = [*each.tokens, self.eos]
            return replace(each, tokens=tokens, score=sum(next(log_probs)[begun:]) / len(tokens) ** penalty)

        return [[close(each) for each in hypotheses] for hypotheses in found]

    def rescored(
        self, sources: list[Names], found: list[list[Hypothesis]], begun: int, penalty: float
    ) -> list[list[Hypothesis]]:
        """With the model's own log-probabilities, and scores computed from them."""
        flat = [(row, each.tokens[:-1]) for row, hypotheses in enumerate(found) for each in hypotheses]
        log_probs = iter(self.log_probs([sources[row] for row, _ in flat], [body for _, body in flat]))

        def read(each: Hypothesis) -> Hypothesis:
            own = next(log_probs)[begun:]
            return replace(each, score=sum(own) / len(each.tokens) ** penalty, log_probs=own)

        return [[read(each) for each in hypotheses] for hypotheses in found]

    def cut(self, hypothesis: Hypothesis, limit: int) -> Hypothesis:
        """Cut to leave room for EOS at the limit."""
        if self.length(hypothesis) <= limit:
            return hypothesis
        look = hypothesis.attention and hypothesis.attention[: limit - 1]
        return replace(hypothesis, tokens=hypothesis.tokens[: limit - 1], attention=look)

    def length(self, hypothesis: Hypothesis) -> int:
        """In tokens, EOS counted whether it is there or must follow."""
        return len(hypothesis.tokens) + (not self.ended(hypothesis))

    def ended(self, hypothesis: Hypothesis) -> bool:
        return hypothesis.tokens[-1:] == [self.eos]

    def log_probs(self, sources: list[Names], targets: list[list[int]]) -> list[list[float]]:
        """Of each token of given targets, and of EOS."""
        if not sources:
            return []
        scored = self.translator.score_batch(sources, [names(target) for target in targets], max_input_length=0)
        return [list(each.log_probs) for each in scored]


def best_first(found: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
    return [sorted(each, key=lambda one: -one.score) for each in found]


def supported(search: Search) -> BeamSearch | Sampling:
    """The search, unless it is one that CTranslate2 cannot do."""
    if isinstance(search, BeamSearch):
        refuse(search.normalisation != "length", f'normalisation = "{search.normalisation}"')
        refuse(search.coverage_penalty, f"coverage_penalty = {search.coverage_penalty}")
        refuse(search.rank_by != "sum", f'rank_by = "{search.rank_by}"')
        return search
    if isinstance(search, Sampling):
        refuse(search.argmax_every, f"argmax_every = {search.argmax_every}")
        refuse(search.seed is not None, f"seed = {search.seed}")  # CTranslate2 seeds once per process
        refuse(search.top_p < 1 and search.temperature != 1, "top_p and temperature together")
        return search
    raise unsupported(f"the search {type(search).__name__}")


def search_options(search: BeamSearch | Sampling) -> dict[str, Any]:
    """The settings of a search as CTranslate2 calls them."""
    options = {"min_decoding_length": search.options.minimum_length, "no_repeat_ngram_size": search.options.no_repeat}
    if isinstance(search, BeamSearch):
        return options | {
            "beam_size": search.beam_size,
            "num_hypotheses": search.beam_size,
            "patience": PATIENCE if search.beam_size > 1 else 1.0,
            "length_penalty": search.length_penalty,
        }
    return options | {
        "beam_size": 1,
        "num_hypotheses": search.n_best,
        "sampling_topk": search.top_k,
        "sampling_topp": search.top_p,
        "sampling_temperature": search.temperature,
    }


def suppressed(constraints: Iterable[Constraint]) -> list[Names]:
    """The banned phrases."""
    phrases: list[Names] = []
    for each in constraints:
        if not isinstance(each, Banned):
            raise unsupported(f"the constraint {type(each).__name__}")
        phrases += [names([token]) for token in each.tokens] + [names(phrase) for phrase in each.phrases]
    return phrases


def refuse(cannot: object, what: str) -> None:
    if cannot:
        raise unsupported(what)


def unsupported(what: str) -> SeqloomError:
    return SeqloomError(f"{what}: CTranslate2 cannot do that; leave it out, or {NATIVE}")


def names(symbols: Iterable[Any]) -> Names:
    return [str(int(symbol)) for symbol in symbols]
