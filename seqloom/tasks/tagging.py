"""Tagging: a tag for each token of the source."""

from __future__ import annotations

from seqloom.contracts import Codec
from seqloom.errors import UnreadableError, shown
from seqloom.tasks.answer import Answer
from seqloom.tasks.pairs import Pairs
from seqloom.types import Example


class Tagging(Answer):
    """Pairs whose target has as many tags as its source has tokens."""

    per_token = True

    def __init__(
        self,
        *,
        target: Codec,
        source: Codec,
        metrics: tuple[str, ...] = (),
        group_references: bool = False,
        rows: int = 0,
    ):
        for side, codec in (("source", source), ("target", target)):
            if codec.is_vectors or codec.elements("a") is None:
                raise ValueError(f'{side}: a tag belongs to one word; take type = "words", or text of units "word"')
        super().__init__(target=target, source=source, metrics=metrics, group_references=group_references, rows=rows)

    def check(self, example: Example) -> None:
        Pairs.check(self, example)
        assert self.source is not None
        tokens, tags = self.source.elements(example.source), self.target.elements(example.target)
        if tokens != tags:
            raise UnreadableError(
                f"the source {shown(example.source)} has {tokens} tokens, but its target {tags} tags; expected as many"
            )
