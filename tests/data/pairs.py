"""Small data sets for the tests of preparing and caching."""

from seqloom.data.codecs.text import Text
from seqloom.data.dataset import prepare


class Counting(Text):
    """A text codec that counts what it encodes and keeps what it is fitted on."""

    def __init__(self, **options):
        super().__init__(**options)
        self.encoded, self.seen = 0, []

    def fit(self, values):
        self.seen = list(values)
        return super().fit(self.seen)

    def encode_many(self, values):
        self.encoded += len(values)
        return super().encode_many(values)


def pairs(count, each=1):
    return [(f"source {number // each}", f"target {number}") for number in range(count)]


def written(path, rows):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    return path


def prepared(train, cache, valid=None, **options):
    options = {"source": Text(units="char"), "target": Text(units="char"), "seed": 1} | options
    return prepare(train, valid, cache=cache / "cache", **options)
