"""The data of the studies: sets under $SEQLOOM_DATA, and what the package generates."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import re
import tarfile
import wave
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.errors import SeqloomError
from seqloom.storage.files import replace_file
from seqloom.studies.study import Data

# What data is called, where several studies have it
G2P = "CMUdict letters to phonemes; WER is 100 - exact, any listed pronunciation counts"
MULTI30K = "Multi30k English to German, test 2016"
SHAKESPEARE = "Tiny Shakespeare by characters, the last tenth, which also chose the checkpoint"


def shared(*names: str) -> Path:
    """A file under $SEQLOOM_DATA."""
    root = os.environ.get("SEQLOOM_DATA")
    if not root:
        raise SeqloomError("SEQLOOM_DATA is not set: it names the folder that holds the data sets")
    path = Path(root).joinpath(*names)
    if not path.exists():
        raise SeqloomError(f"{path} is missing: this result needs the data set {names[0]} under SEQLOOM_DATA")
    return path


def written(folder: Path, name: str, text: str) -> list[str]:
    """A file made for a study."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    replace_file(path, text.encode())
    return [str(path)]


def multi30k(folder: Path) -> Data:
    def pair(split: str) -> list[str]:
        return [str(shared("multi30k", f"{split}.{language}.gz")) for language in ("en", "de")]

    return Data(pair("train"), pair("val"), pair("test_2016_flickr"))


def cmudict(folder: Path) -> Data:
    """WORD<two spaces>PH PH PH as TSV."""
    made = []
    for split in ("train", "dev", "test"):
        with gzip.open(shared("cmudict-g2p", f"cmudict-0.7b.{split}.gz"), "rt", encoding="ascii") as lines:
            text = "".join(line.replace("  ", "\t", 1) for line in lines)
        made.append(written(folder, f"cmudict-{split}.tsv", text))
    return Data(*made)


def tenth_of_cmudict(folder: Path) -> Data:
    """Every tenth pair to train on."""
    whole = cmudict(folder)
    lines = Path(whole.train[0]).read_text(encoding="ascii").splitlines(keepends=True)
    return replace(whole, train=written(folder, "cmudict-tenth.tsv", "".join(lines[::10])))


def swapped(source: Callable[[Path], Data]) -> Callable[[Path], Data]:
    """Pairs the other way round."""
    return rewritten(source, "-swapped.tsv", lambda one, other: f"{other}\t{one}")


def targets(source: Callable[[Path], Data]) -> Callable[[Path], Data]:
    """The targets of pairs, for a language model."""
    return rewritten(source, ".txt", lambda one, other: other)


def rewritten(source: Callable[[Path], Data], suffix: str, line: Callable[[str, str], str]) -> Callable[[Path], Data]:
    """Files of pairs as files of other lines, named alike."""

    def make(folder: Path) -> Data:
        found, made = source(folder), []
        for (path,) in (found.train, found.valid or [], found.test):
            pairs = [each.split("\t") for each in Path(path).read_text(encoding="utf-8").splitlines()]
            text = "".join(line(*pair) + "\n" for pair in pairs)
            made.append(written(folder, Path(path).stem + suffix, text))
        return Data(*made)

    return make


def tiny_shakespeare(folder: Path) -> Data:
    """The first nine tenths of the characters to train on, the rest to measure with."""
    with gzip.open(shared("tinyshakespeare", "input.txt.gz"), "rt", encoding="ascii") as file:
        text = file.read()
    cut = int(len(text) * 0.9)
    test = written(folder, "shakespeare-test.txt", text[cut:])
    return Data(written(folder, "shakespeare-train.txt", text[:cut]), test, test)


def penn_treebank(folder: Path) -> Data:
    train, valid, test = ([str(shared("ptb", f"ptb.{split}.txt.gz"))] for split in ("train", "valid", "test"))
    return Data(train, valid, test)


COMMON = 2000  # words of French that tatoeba_copies takes for known
WORDS = {
    "en": r"\w+|'\w+|[^\w\s]",
    "fr": r"\w+'|\w+|[^\w\s]",
}  # the French leave a letter out before, the English after


def tatoeba_copies(folder: Path) -> Data:
    """English and French sentences, a word or mark between spaces, of which every fourth or fifth has words to copy.

    Those are all pairs in which a word of the target that is not common stands in the source; to them come, four times
    as many, pairs whose target is of common words alone. A sentence of English is in one of the sets, by its hash.
    """
    with gzip.open(shared("tatoeba-eng-fra", "fra.txt.gz"), "rt", encoding="utf-8") as lines:
        given = [line.rstrip("\n").replace("’", "'").split("\t") for line in lines]
    pairs = [(re.findall(WORDS["en"], one), re.findall(WORDS["fr"], other)) for one, other in given]
    counts = Counter(word for _, target in pairs for word in target)
    common = set(sorted(counts, key=lambda word: (-counts[word], word))[:COMMON])
    copies = [pair for pair in pairs if not common.issuperset(pair[1]) and (set(pair[1]) - common) & set(pair[0])]
    others = [pair for pair in pairs if common.issuperset(pair[1])]
    sets: dict[str, list[str]] = {"train": [], "valid": [], "test": []}
    for source, target in copies + others[:: len(others) // (4 * len(copies))]:
        line = f"{' '.join(source)}\t{' '.join(target)}\n"
        tenth = int(hashlib.sha1(" ".join(source).encode()).hexdigest(), 16) % 10
        sets[{0: "test", 1: "valid"}.get(tenth, "train")].append(line)
    return Data(*(written(folder, f"tatoeba-copies-{name}.tsv", "".join(made)) for name, made in sets.items()))


def django(folder: Path) -> Data:
    """English and the line of Python it stands for, in the order of the files: 16,000, 1,000 and 1,805 pairs.

    What stands in quotes is cut at spaces on both sides; the English is cut at marks elsewhere, as the code is already.
    """
    sides = []
    for name in ("anno", "code"):
        with gzip.open(shared("django-code", f"all.{name}.gz"), "rt", encoding="utf-8") as file:
            sides.append(file.read().splitlines())
    quoted = r"""(?<!\w)"(?:[^"\\]|\\.)*"|(?<!\w)'(?:[^'\\]|\\.)*'"""
    english = (" ".join(re.findall(rf"{quoted}|\w+|[^\w\s]", line)) for line in sides[0])
    lines = [f"{' '.join(one.split())}\t{' '.join(other.split())}\n" for one, other in zip(english, sides[1])]
    sets = {"train": lines[:16_000], "valid": lines[16_000:17_000], "test": lines[17_000:]}
    return Data(*(written(folder, f"django-{name}.tsv", "".join(made)) for name, made in sets.items()))


def scan(split: str) -> Callable[[Path], Data]:
    """Commands and actions; a tenth of the training set is held out by the program."""

    def find(folder: Path) -> Data:
        made = []
        for part in ("train", "test"):
            with gzip.open(shared("scan", f"tasks_{part}_{split}.txt.gz"), "rt", encoding="ascii") as lines:
                text = "".join(line.removeprefix("IN: ").replace(" OUT: ", "\t", 1) for line in lines)
            made.append(written(folder, f"scan-{split}-{part}.tsv", text))
        return Data(made[0], None, made[1])

    return find


def sigmorphon(language: str) -> Callable[[Path], Data]:
    """Words and their phonemes."""

    def find(folder: Path) -> Data:
        files = (shared("sigmorphon2020-g2p", f"{language}_{split}.tsv.gz") for split in ("train", "dev", "test"))
        return Data(*([str(path)] for path in files))

    return find


def shuffled_captions(longest: int) -> Callable[[Path], Data]:
    """The words of English captions in another order, and as they were. To test with: those of known words only."""

    def make(folder: Path) -> Data:
        known: set[str] = set()
        made = []
        for name, splits in {
            "train": ["train"],
            "valid": ["val"],
            "test": ["test_2016_flickr", "test_2017_flickr"],
        }.items():
            captions = [words for split in splits for words in captions_of(shared("multi30k", f"{split}.en.gz"))]
            chosen = [words for words in captions if len(words) <= longest and (name == "train" or known >= {*words})]
            known |= {word for words in chosen for word in words}
            chance = random.Random(name)
            lines = [f"{' '.join(chance.sample(words, len(words)))}\t{' '.join(words)}\n" for words in chosen]
            made.append(written(folder, f"captions-{longest}-{name}.tsv", "".join(lines)))
        return Data(*made)

    return make


def captions_of(path: Path) -> list[list[str]]:
    """Their words, in small letters and without punctuation."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [re.findall(r"[\w'-]+", line.lower()) for line in lines]
    return [words for words in found if words]


def babi(task: int, archive: str = "en") -> Callable[[Path], Data]:
    """Questions of one task, each after all sentences of its story so far; a tenth is held out by the program."""

    def find(folder: Path) -> Data:
        made = []
        for part in ("train", "test"):
            lines = [f"{' '.join(sentences)}\t{answer}\n" for sentences, answer in questions_of(task, part, archive)]
            made.append(written(folder, f"babi-{archive}-{task}-{part}.tsv", "".join(lines)))
        return Data(made[0], None, made[1])

    return find


def questions_of(task: int, part: str, archive: str) -> list[tuple[list[str], str]]:
    """Sentences, the question last, and the answer, which may be several words with commas between."""
    with tarfile.open(shared("babi-tasks", f"{archive}.tar.xz")) as files:
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


ENTITIES = 30  # names that a story may use
PEOPLE, THINGS = ("mary", "john", "sandra", "daniel"), ("apple", "football", "milk")
PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")


def cloze(task: int, copies: int, archive: str = "en") -> Callable[[Path], Data]:
    """Questions of bAbI whose people, places and things have other names in every story: @3 took the @17 there.

    Each training question comes so many times, named anew. An answer that is no entity, or not in its story, is none.
    """

    def make(folder: Path) -> Data:
        made = []
        for part, times in (("train", copies), ("test", 1)):
            chance, lines = random.Random(f"{task} {part}"), []
            for sentences, answer in questions_of(task, part, archive):
                text = " ".join(sentences).lower()
                if not re.search(rf"\b{answer}\b", text):
                    continue
                for _ in range(times):
                    names = dict(zip((*PEOPLE, *PLACES, *THINGS), chance.sample(range(ENTITIES), 13)))
                    named = "".join(f"@{names[word]}" if word in names else word for word in re.split(r"\b", text))
                    lines.append(f"{named}\t@{names[answer]}\n")
            made.append(written(folder, f"cloze-{archive}-{task}-{part}.tsv", "".join(lines)))
        return Data(made[0], None, made[1])

    return make


DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIGIT_STRINGS = {  # how many, of takes of which numbers: 0 to 4 are the test of the data set's own split
    "train": (6000, range(8, 50)),
    "valid": (500, range(5, 8)),
    "test": (500, range(5)),
}
Takes = dict[tuple[str, int, int], np.ndarray]  # by speaker, digit and number


def spoken_digits(folder: Path) -> Data:
    """Strings of three to five digits, each by one speaker, as one would dictate them. No take is in two of the sets.

    A table is written after its recordings, so that one that is there has all of them.
    """
    home = folder / "spoken-digits"
    takes: Takes = {}
    made = []
    for seed, (name, (count, numbers)) in enumerate(DIGIT_STRINGS.items()):
        table = home / f"{name}.tsv"
        if not table.exists():
            takes = takes or digit_takes(shared("fsdd", "recordings.tar.xz"))
            (home / name).mkdir(parents=True, exist_ok=True)
            chance, lines = np.random.default_rng(seed), []
            for number in range(count):
                digits, samples = digit_string(takes, numbers, chance)
                write_wave(home / name / f"{number:05}.wav", samples)
                lines.append(f"{name}/{number:05}.wav\t{' '.join(DIGITS[digit] for digit in digits)}\n")
            written(home, table.name, "".join(lines))
        made.append([str(table)])
    return Data(*made)


def digit_takes(path: Path) -> Takes:
    """The recordings of single digits, 16 bit at 8 kHz, as digit_speaker_number.wav."""
    takes: Takes = {}
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.name.endswith(".wav"):
                continue
            file = archive.extractfile(member)
            assert file is not None
            with wave.open(file) as recording:
                samples = np.frombuffer(recording.readframes(recording.getnframes()), dtype="<i2")
            digit, speaker, number = Path(member.name).stem.split("_")
            takes[speaker, int(digit), int(number)] = samples
    return takes


def digit_string(takes: Takes, numbers: range, chance: np.random.Generator) -> tuple[list[int], np.ndarray]:
    """The digits of a string and its samples: takes of one speaker with up to 100 ms of faint noise around each."""
    speaker = str(chance.choice(sorted({speaker for speaker, _, _ in takes})))
    digits = chance.integers(0, 10, chance.integers(3, 6)).tolist()
    parts = [faint_noise(chance)]
    for digit in digits:
        parts += [takes[speaker, digit, int(chance.choice(numbers))], faint_noise(chance)]
    return digits, np.concatenate(parts)


def faint_noise(chance: np.random.Generator) -> np.ndarray:
    return chance.normal(0, 4, chance.integers(0, 801)).round().astype("<i2")


def write_wave(path: Path, samples: np.ndarray) -> None:
    with wave.open(str(path), "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(8000)
        recording.writeframes(samples.tobytes())


def published_hulls(folder: Path) -> list[str]:
    """The test file of Vinyals et al. 2015 for five points: x1 y1 ... x5 y5 output i j k i, places from 1 on."""
    lines = []
    with gzip.open(shared("ptrnet-convex-hull", "convex_hull_5_test.txt.gz"), "rt", encoding="ascii") as file:
        for line in file:
            numbers, _, places = line.partition(" output ")
            words = numbers.split()
            points = " ".join(map(",".join, zip(words[::2], words[1::2])))
            lines.append(f"{points}\t{' '.join(str(int(place) - 1) for place in places.split())}\n")
    return written(folder, "published-hulls.tsv", "".join(lines))


def two_modes(folder: Path) -> Data:
    """One source with two targets that share no token, the one in 60 % of the examples, the other in 40 %."""
    lines = "".join(f"go\t{' '.join(symbol * 6)}\n" for symbol in "aaabb") * 20
    return Data(*[written(folder, "two-modes.tsv", lines)] * 3)


def made(
    name: str, train: int, test: int, unseen: dict[str, Any] | None = None, called: str = "", **settings: Any
) -> Any:
    """Examples of a generator, as many to train on and others to test with; `unseen` are settings of the latter.

    Files are named after the generator, or as they are `called`.
    """

    @cache  # several runs may ask for it
    def make(folder: Path) -> Data:
        from seqloom.data.generators.catalogue import as_lines, make_examples

        drawn = make_examples(name, train if unseen else train + test, 1, settings)
        known, others = drawn[:train], drawn[train:]
        if unseen:
            others = make_examples(name, test, 2, {**settings, **unseen})
        return Data(
            written(folder, f"{called or name}-train.tsv", as_lines(known)),
            None,
            written(folder, f"{called or name}-test.tsv", as_lines(others)),
        )

    return make


dates = made("dates", 30_000, 2_000)  # test strings stand in neither of the others
