"""Questions about stories: bAbI."""

from __future__ import annotations

import random
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

from seqloom.studies.sources.files import data_set, write_file
from seqloom.studies.study import Splits

ENTITIES = 30  # names that a story may use
PEOPLE, THINGS = ("mary", "john", "sandra", "daniel"), ("apple", "football", "milk")
PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")


def babi(task: int, archive: str = "en") -> Callable[[Path], Splits]:
    """The questions of one task, each after all sentences of its story; training holds out a tenth for validation."""

    def find(folder: Path) -> Splits:
        made = []
        for part in ("train", "test"):
            lines = [f"{' '.join(sentences)}\t{answer}\n" for sentences, answer in read_questions(task, part, archive)]
            made.append(write_file(folder, f"babi-{archive}-{task}-{part}.tsv", "".join(lines)))
        return Splits(made[0], None, made[1])

    return find


def read_questions(task: int, part: str, archive: str) -> list[tuple[list[str], str]]:
    """Sentences, the question last, and the answer, which may be several words separated by commas."""
    with tarfile.open(data_set("babi-tasks", f"{archive}.tar.xz")) as files:
        name = next(name for name in files.getnames() if re.search(rf"/qa{task}_.*_{part}\.txt$", name))
        file = files.extractfile(name)
        assert file is not None
        lines = file.read().decode("ascii").splitlines()
    found: list[tuple[list[str], str]] = []
    story: list[str] = []
    for line in lines:
        number, _, text = line.partition(" ")
        story = [] if number == "1" else story
        sentence, *answer = (each.strip() for each in text.split("\t"))
        if answer:
            found.append(([*story, sentence], answer[0]))
        else:
            story.append(sentence)
    return found


def cloze(task: int, copies: int, archive: str = "en") -> Callable[[Path], Splits]:
    """Questions of bAbI with people, places and things renamed in every story: @3 took the @17 there.

    Each training question is repeated `copies` times with other names. Questions whose answer is not in the story are
    left out.
    """

    def make(folder: Path) -> Splits:
        made = []
        for part, times in (("train", copies), ("test", 1)):
            chance, lines = random.Random(f"{task} {part}"), []
            for sentences, answer in read_questions(task, part, archive):
                text = " ".join(sentences).lower()
                if not re.search(rf"\b{answer}\b", text):
                    continue
                for _ in range(times):
                    names = dict(zip((*PEOPLE, *PLACES, *THINGS), chance.sample(range(ENTITIES), 13)))
                    named = "".join(f"@{names[word]}" if word in names else word for word in re.split(r"\b", text))
                    lines.append(f"{named}\t@{names[answer]}\n")
            made.append(write_file(folder, f"cloze-{archive}-{task}-{part}.tsv", "".join(lines)))
        return Splits(made[0], None, made[1])

    return make
