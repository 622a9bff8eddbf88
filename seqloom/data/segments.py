"""Segments of documents, one or two at a time, as BERT reads them (Devlin et al. 2019, appendix A.2).

A text is the lines of documents, which an empty line separates. Two segments follow each other in a document, or the
second begins anywhere in another one.
"""

from __future__ import annotations

import numpy as np

SHORT = 0.1  # of the pairs, which are shorter, as later texts may be
FOLLOWS, ELSEWHERE, ALONE = 1, 0, -1  # what a second segment is
Span = tuple[int, int]  # of tokens [begin, end)


def documents_of(lengths: np.ndarray, longest: int) -> list[list[Span]]:
    """The lines of each document without their ends, long ones in parts. `lengths` (N,) include the ends of lines."""
    ends = np.cumsum(lengths)
    found: list[list[Span]] = [[]]
    for end, length in zip(ends.tolist(), lengths.tolist()):
        if length <= 1:
            found.append([])
        else:
            begin, last = end - length, end - 1
            found[-1] += [(first, min(first + longest, last)) for first in range(begin, last, longest)]
    return [lines for lines in found if lines]


def segments(lengths: np.ndarray, room: int, pairs: bool, random: np.random.Generator) -> np.ndarray:
    """All segments of an epoch: of the first and the second its begin and end; 1 if the second follows the first, 0 if
    it is from elsewhere, -1 if there is none; and a number from which to draw masks.  int64 (n, 6)

    There are no pairs of one document alone, for nothing is elsewhere. Together they have at most `room` tokens, line
    ends within them not counted, once `cut` has cut them.
    """
    documents = documents_of(lengths, max(room // 2, 1) if pairs else room)
    pairs = pairs and len(documents) > 1
    found = []
    for number, lines in enumerate(documents):
        place = 0
        while place < len(lines):
            target = room if random.random() >= SHORT else int(random.integers(2, max(room, 2), endpoint=True))
            chunk = fill(lines, place, target)
            place += len(chunk)
            if not pairs:
                found.append((*span(chunk), 0, 0, ALONE))
                continue
            first = int(random.integers(1, len(chunk))) if len(chunk) > 1 else 1
            others = len(chunk) == 1 or random.random() < 0.5
            if others:
                place -= len(chunk) - first  # what is not used is read again
                other = int(random.integers(len(documents) - 1))
                theirs = documents[other + (other >= number)]
                used = sum(end - begin for begin, end in chunk[:first])
                second = fill(theirs, int(random.integers(len(theirs))), max(target - used, 1))
                found.append((*span(chunk[:first]), *span(second), ELSEWHERE))
            else:
                found.append((*span(chunk[:first]), *span(chunk[first:]), FOLLOWS))
    rows = np.array(found, dtype=np.int64).reshape(-1, 5)
    return np.concatenate([rows, random.integers(2**62, size=(len(rows), 1))], axis=1)


def fill(lines: list[Span], place: int, target: int) -> list[Span]:
    """Lines from a place on until there are so many tokens; at least one."""
    chunk, count = [], 0
    while place < len(lines) and count < target:
        chunk.append(lines[place])
        count += lines[place][1] - lines[place][0]
        place += 1
    return chunk


def span(chunk: list[Span]) -> Span:
    return chunk[0][0], chunk[-1][1]


def cut(first: list[int], second: list[int], room: int, random: np.random.Generator) -> tuple[list[int], list[int]]:
    """Tokens dropped from the longer segment, at its beginning or its end, until both fit."""
    while len(first) + len(second) > room:
        longer = first if len(first) > len(second) else second
        longer.pop(0 if random.random() < 0.5 else -1)
    return first, second
