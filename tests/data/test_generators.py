"""Data made on the spot: right, drawn as promised, never twice the same source, always the same for a seed."""

import re
from collections import Counter
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest

from seqloom.data.codecs.numbers import Numbers
from seqloom.data.codecs.piano_roll import PianoRoll
from seqloom.data.generators import catalogue, points, sampling
from seqloom.data.generators.adding import adding
from seqloom.data.generators.addition import addition
from seqloom.data.generators.arithmetic import arithmetic
from seqloom.data.generators.catalogue import as_lines, generators, make_examples
from seqloom.data.generators.chords import chords
from seqloom.data.generators.cipher import cipher
from seqloom.data.generators.copying import copying
from seqloom.data.generators.counting import counting
from seqloom.data.generators.delayed_copy import delayed_copy, delays, earliest
from seqloom.data.generators.expressions import expressions
from seqloom.data.generators.introductions import introductions
from seqloom.data.generators.parity import parity
from seqloom.data.generators.piecewise import piecewise
from seqloom.data.generators.slots import slots
from seqloom.data.generators.whereabouts import whereabouts
from seqloom.data.generators.xml import xml
from seqloom.errors import SeqloomError
from seqloom.types import Example

ALL = (
    adding,
    addition,
    arithmetic,
    chords,
    cipher,
    copying,
    counting,
    delayed_copy,
    expressions,
    introductions,
    slots,
    whereabouts,
    parity,
    piecewise,
    xml,
)


@pytest.mark.parametrize("generator", ALL)
def test_examples_are_a_function_of_the_seed_and_fewer_are_the_first(generator):
    many = generator(200, seed=3)
    assert len(many) == 200
    assert generator(200, seed=3) == many
    assert generator(70, seed=3) == many[:70]
    assert generator(200, seed=4) != many


@pytest.mark.parametrize(
    "generator", [adding, addition, arithmetic, cipher, copying, expressions, introductions, piecewise, slots]
)
def test_no_source_comes_twice(generator):
    examples = generator(5000)
    assert len({example.source for example in examples}) == 5000


def test_always_answering_one_has_an_error_of_a_sixth():
    targets = np.array([float(example.target) for example in adding(100_000, length=2)])
    assert np.mean(targets) == pytest.approx(1, abs=0.005)
    # Of n draws the mean has a standard error of sqrt(7/180 / n): 0.0006.
    assert np.mean((targets - 1) ** 2) == pytest.approx(1 / 6, abs=0.003)


@pytest.mark.parametrize("length", [2, 3, 11, 40])
def test_two_values_are_marked_one_in_each_half_and_the_target_is_their_sum(length):
    codec = Numbers().fit(["0,1"])
    places = []
    for example in adding(300, length=length):
        values, markers = codec.encode(example.source).astype(np.float64).T
        first, second = markers.nonzero()[0].tolist()
        assert first < length // 2 <= second < length
        places += [first, second]
        assert float(example.target) == pytest.approx(float(values[first] + values[second]), abs=1e-6)
        assert len(values) == length
        assert 0 <= values.min() <= values.max() <= 1
        assert markers.sum() == 2
    assert set(places) == set(range(length))


def test_sums_are_right_and_padded_to_one_width():
    examples = addition(3000)
    for example in examples:
        assert re.fullmatch(r"\d{1,3}\+\d{1,3} *", example.source)
        assert len(example.source) == 7
        first, second = map(int, example.source.split("+"))
        assert example.source.rstrip() == f"{first}+{second}"
        assert example.target == str(first + second)
    assert addition(3, padded=False)[0].source == examples[0].source.rstrip()
    # A length of 3 is drawn a third of the time, and nine tenths of such numbers have no zero in front.
    lengths = Counter(len(example.source.split("+")[0]) for example in addition(3000, seed=2))
    assert 0.25 <= lengths[3] / 3000 <= 0.36


def test_letters_mean_nothing():
    signs = Counter()
    for example in arithmetic(3000):
        plain = re.sub("[a-z]", "", example.source)
        first, sign, second = re.fullmatch(r"(\d{1,5})([+-])(\d{1,5})", plain).groups()
        assert example.target == str(int(first) + int(second) if sign == "+" else int(first) - int(second))
        assert max(map(len, re.findall("[a-z]*", example.source))) <= 3
        assert not example.source[0].isalpha()
        signs[sign] += 1
    assert 0.45 <= signs["+"] / 3000 <= 0.55
    assert any(example.target.startswith("-") for example in arithmetic(50))
    assert not re.search("[a-z]", "".join(example.source for example in arithmetic(50, letters=0)))
    letters = Counter("".join(re.findall("[a-z]", "".join(example.source for example in arithmetic(3000)))))
    assert len(letters) == 26


def test_as_many_b_as_a():
    numbers = Counter()
    for example in counting(3000, shortest=3, longest=9):
        assert example.source is None
        n = len(example.target) // 2
        assert example.target == "a" * n + "b" * n
        numbers[n] += 1
    assert set(numbers) == set(range(3, 10))
    assert max(numbers.values()) < 1.4 * min(numbers.values())


def test_parity_is_whether_ones_are_odd_and_as_many_components_are_not_0_as_asked():
    for easy in (False, True):
        vectors = [(list(map(int, each.source.split(","))), each.target) for each in parity(4000, size=6, easy=easy)]
        assert all(str(sum(part == 1 for part in vector) % 2) == target for vector, target in vectors)
        numbers = Counter(sum(part != 0 for part in vector) for vector, _ in vectors)
        assert set(numbers) == {1, 2, 3, 4, 5, 6}
        expected = 6 if easy else 1  # in proportion to 1/k, or all alike
        assert expected / 1.3 < numbers[1] / numbers[6] < expected * 1.3
        assert len({tuple(vector) for vector, _ in vectors if sum(map(abs, vector)) == 1}) == 12  # all there are
    found = parity(200, size=6, fewest=2, most=3)
    assert {sum(part != "0" for part in each.source.split(",")) for each in found} == {2, 3}


def test_copies_are_copies_and_reversals_reversals():
    for example in copying(500, symbols=3, shortest=4, longest=8):
        assert example.target == example.source
        assert re.fullmatch("[abc]{4,8}", example.source)
    forwards, backwards = copying(500), copying(500, reverse=True)
    assert [(one.source, one.source[::-1]) for one in forwards] == [(one.source, one.target) for one in backwards]
    assert {len(one.source) for one in forwards} == set(range(1, 11))


@pytest.mark.parametrize("back", [1, 2, 4])
def test_each_mark_asks_for_the_letter_so_many_places_before_it(back):
    lengths = Counter()
    for example in delayed_copy(800, symbols=4, back=back):
        assert re.fullmatch("[abcd!]{8,16}", example.source)
        marks = [place for place, each in enumerate(example.source) if each == "!"]
        assert marks
        assert all(after - before > back for before, after in zip([-1, *marks], marks))
        assert example.target == "".join(example.source[place - back] for place in marks)
        assert earliest(example.source) == [place + 1 for place in marks]
        lengths[len(example.source)] += 1
    assert set(lengths) == set(range(8, 17))


def test_a_delay_is_counted_from_the_mark_on_in_outputs_of_the_right_length():
    assert earliest("cad!bbc!e") == [4, 8]
    assert delays(["cad!bbc!e", "ab!c", "ab!d"], [[4, 9], [], [2]]) == [0, 1, -1]


def test_tags_are_those_of_the_tables_that_all_seeds_share():
    table: dict[tuple[str, str, str], str] = {}
    counts: Counter[str] = Counter()
    for seed in (1, 2):
        for example in piecewise(2000, seed, keys=3, size=5, tags=4, length=6):
            (key, row, *columns), (first, second, *tags) = example.source.split(), example.target.split()
            assert (first, second, len(tags)) == ("-", "-", 6)
            for column, tag in zip(columns, tags, strict=True):
                assert table.setdefault((key, row, column), tag) == tag
                counts[key] += 1
    assert len(table) == 3 * 5 * 5
    assert set(table.values()) == {"t0", "t1", "t2", "t3"}
    assert all(abs(count - 8000) < 600 for count in counts.values())
    assert piecewise(50, tables=2)[0].target != piecewise(50)[0].target


def test_a_letter_of_the_cipher_is_known_when_so_many_more_are():
    for ahead in (0, 2, 3):
        for example in cipher(300, symbols=6, shortest=2, longest=7, ahead=ahead):
            assert example.target.lower() == example.source
            for place, letter in enumerate(example.target):
                key = example.source[place + ahead] if place + ahead < len(example.source) else "a"
                assert letter.isupper() == (key in "abc")
    assert {len(example.source) for example in cipher(300)} == set(range(15, 26))


def test_whereabouts_are_where_the_story_says():
    """By reading each story again, sentence by sentence."""
    for facts in (1, 2):
        for example in whereabouts(300, facts=facts, longest=12):
            *story, question = example.source.replace("?", ".").split(". ")
            asked, places, carried = question.rstrip(".").split()[-1], {}, {}
            for person, deed, *_, what in (sentence.split() for sentence in story):
                if deed == "went":
                    held = [thing for thing, holder in carried.items() if holder == person]
                    places |= dict.fromkeys([person, *held], what)
                elif deed == "took":
                    carried[what], places[what] = person, places[person]
                else:
                    del carried[what]
            assert places[asked] == example.target
            assert (asked in ("mary", "john", "sandra", "daniel")) == (facts == 1)


def test_entities_have_new_names_in_every_story():
    examples = whereabouts(200, entities=20)
    assert {example.target for example in examples} == {f"e{number}" for number in range(20)}
    for example in examples:
        assert example.target in example.source.replace("?", ".").replace(".", " ").split()
        assert not {"mary", "garden", "milk"} & set(example.source.replace(".", " ").split())


def test_invented_words_are_copied_and_hardly_ever_repeat():
    words, copied = Counter(), Counter()
    for example in introductions(2000):
        source, target = example.source.split(), example.target.split()
        made_up = {word for word in source if word.isdigit() or (word[0].isupper() and word in target)} - {"In"}
        assert {word for word in source if word.isdigit()} <= set(target)
        assert 2 <= len(made_up) <= 3
        assert made_up <= set(target)
        assert source != target
        words.update(source)
        copied.update(made_up)
    assert len(set(words) - set(copied)) < 40
    assert sum(times for _, times in copied.most_common(200)) < 0.3 * copied.total()  # what a small vocabulary has


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: adding(0), "adding: count is 0, expected 1 or more"),
        (lambda: adding(1, length=1), "adding: length is 1, expected 2 or more"),
        (lambda: addition(2_500, digits=2), ""),
        (lambda: addition(2_501, digits=2), "addition: count is 2,501, expected 1 to 2,500"),
        (lambda: addition(1, digits=0), "addition: digits is 0, expected 1 to 18"),
        (lambda: arithmetic(26, digits=1), "arithmetic: count is 26, expected 1 to 25"),
        (lambda: arithmetic(1, letters=-1), "arithmetic: letters is -1, expected 0 or more"),
        (lambda: counting(1, shortest=5, longest=4), "counting: longest is 4, expected 5 or more"),
        (lambda: delayed_copy(1, back=8), "delayed_copy: shortest is 8, expected 9 or more"),
        (lambda: delayed_copy(33, symbols=2), "delayed_copy: count is 33, expected 1 to 32"),
        (lambda: piecewise(1, keys=1), "piecewise: keys is 1, expected 2 or more"),
        (lambda: piecewise(1, length=0), "piecewise: length is 0, expected 1 or more"),
        (lambda: cipher(1, ahead=-1), "cipher: ahead is -1, expected 0 or more"),
        (lambda: cipher(1, shortest=3, longest=2), "cipher: longest is 2, expected 3 or more"),
        (lambda: whereabouts(1, facts=3), "whereabouts: facts is 3, expected 1 to 2"),
        (lambda: whereabouts(1, entities=3), "whereabouts: entities is 3, expected 13 or more"),
        (lambda: introductions(0), "introductions: count is 0, expected 1 to 1,000,000"),
        (lambda: introductions(1, syllables=1), "introductions: syllables is 1, expected 2 to 6"),
        (lambda: parity(1, size=4, most=5), "parity: most is 5, expected 1 to 4"),
        (lambda: parity(1, size=4, fewest=3, most=2), "parity: most is 2, expected 3 to 4"),
        (lambda: copying(1, symbols=27), "copying: symbols is 27, expected 2 to 26"),
        (lambda: copying(4, symbols=2, shortest=1, longest=3), "copying: count is 4, expected 1 to 3"),
    ],
)
def test_settings_out_of_range_are_refused_in_one_line(call, words):
    if not words:
        assert call()
        return
    with pytest.raises(SeqloomError) as caught:
        call()
    assert str(caught.value) == f"{words}; ask for a number in that range"


def test_a_generator_is_a_file_with_a_function_of_its_name():
    shared = {module.__name__.rpartition(".")[2] for module in (sampling, points, catalogue)}
    assert set(generators()) == {file.name for file in iter_modules([str(Path(catalogue.__file__).parent)])} - shared
    assert {generator.__name__ for generator in ALL} <= set(generators())


def test_parts_of_one_seed_share_no_source():
    train = make_examples("addition", 300, 5, {"digits": 2})
    test = make_examples("addition", 200, 5, {"digits": 2}, skip=300)
    assert addition(500, 5, digits=2) == train + test
    assert not {one.source for one in train} & {one.source for one in test}


def test_lines_are_pairs_or_texts():
    assert as_lines([Example("1+2 ", "3"), Example("4", "5")]) == "1+2 \t3\n4\t5\n"
    assert as_lines([Example(None, "ab")]) == "ab\n"


def test_tags_close_in_order_and_are_as_many_and_as_deep_as_asked():
    for example in xml(200, tags=6, depth=3, longest=4):
        opened, deepest = [], 0
        for closing, name in re.findall(r"<(/?)([a-z]{2,4})>", example.target):
            if closing:
                assert opened.pop() == name
            else:
                opened.append(name)
                deepest = max(deepest, len(opened))
        assert not opened
        assert deepest <= 3
        assert example.target.count("</") == 6
        assert re.sub(r"</?[a-z]{2,4}>", "", example.target) == ""


def test_chords_are_pieces_of_the_asked_length_on_the_keyboard():
    for example in chords(50, length=10):
        notes = PianoRoll().normal(example.target)
        assert len(notes) == 10
        assert all(3 <= len(step) <= 4 for step in notes)
