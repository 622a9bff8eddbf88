"""Dates: rich, deterministic, and never with two meanings."""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from datetime import date, timedelta
from itertools import islice

import pytest
from babel import Locale
from babel.dates import format_date

from seqloom.data.generators.dates import FIRST, LAST, LOCALES, Format, dates, draws, formats
from seqloom.errors import SeqloomError
from seqloom.types import Example

TAG = re.compile(r"^\[[^]]+\] ")


def with_two_meanings(pairs: Iterable[tuple[str, str]]) -> list[str]:
    meanings = defaultdict(set)
    for source, target in pairs:
        meanings[source].add(target)
    return [source for source, targets in meanings.items() if len(targets) > 1]


def format_of(locale: str, pattern: str) -> Format:
    return next(form for form in formats()[locale] if form.pattern == pattern)


@pytest.fixture(scope="module")
def drawn() -> list[Example]:
    return list(islice(draws(seed=3), 50_000))


def test_no_source_has_two_targets(drawn: list[Example]) -> None:
    assert with_two_meanings((example.source, example.target) for example in drawn) == []


def test_no_format_of_one_locale_reads_as_another_date_in_any_other() -> None:
    # The years 2001-2012 are where day, month and a year of two digits can all be taken for each other.
    days = [date(2001, 1, 1) + timedelta(days=offset) for offset in range(0, 12 * 365, 7)]
    every = [form for forms in formats().values() for form in forms]
    pairs = [(form.write(day, "lower"), day.isoformat()) for form in every for day in days]
    assert with_two_meanings(pairs) == []


def test_without_the_locale_in_front_numeric_dates_would_have_two_meanings(drawn: list[Example]) -> None:
    assert with_two_meanings((TAG.sub("", example.source), example.target) for example in drawn)


def test_no_month_name_means_another_month_in_another_locale() -> None:
    months = defaultdict(set)
    for locale in LOCALES:
        for width in ("wide", "abbreviated"):
            for month, name in Locale.parse(locale).months["format"][width].items():
                months[name.lower().strip(".")].add(month)
    assert all(len(meanings) == 1 for meanings in months.values())


def test_a_number_that_could_be_day_or_month_says_its_locale() -> None:
    british = format_of("en_GB", "dd/MM/y")
    assert british.write(date(2031, 7, 3)) == "[en-GB] 03/07/2031"
    assert british.write(date(2031, 7, 13)) == "13/07/2031"
    assert british.write(date(2031, 7, 7)) == "07/07/2031"
    assert format_of("en_US", "M/d/yy").write(date(2031, 7, 13)) == "[en-US] 7/13/31"
    assert format_of("sv", "y-MM-dd").write(date(2031, 7, 3)) == "2031-07-03"


def test_dates_look_as_people_write_them() -> None:
    day = date(2031, 3, 3)
    assert format_of("en_US", "EEEE, MMMM d#, y").write(day) == "Monday, March 3rd, 2031"
    assert format_of("en_US", "MMM d ''yy").write(day) == "Mar 3 '31"
    assert format_of("fr", "'le' EEEE d MMMM y").write(day, "upper") == "LE LUNDI 3 MARS 2031"
    assert format_of("tr", "d MMMM y").write(date(2031, 4, 3), "upper") == "3 NİSAN 2031"


def test_the_formats_agree_with_babel_weekday_included() -> None:
    for locale, forms in formats().items():
        for standard in ("full", "long", "medium"):
            day = date(1987, 11, 24)
            expected = " ".join(format_date(day, standard, locale).split())
            assert expected in {form.write(day) for form in forms}


def test_english_ordinals_end_as_in_english() -> None:
    ordinals = format_of("en_GB", "d# MMMM y")
    written = [ordinals.write(date(2031, 1, day)).split()[0] for day in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 31)]
    assert written == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "23rd", "31st"]


def test_every_year_of_the_range_occurs_and_no_other(drawn: list[Example]) -> None:
    assert {int(example.target[:4]) for example in drawn} == set(range(FIRST.year, LAST.year + 1))
    assert (FIRST.year, LAST.year) == (1950, 2049)


def test_every_locale_has_many_formats_and_all_of_them_are_drawn(drawn: list[Example]) -> None:
    sources = {example.source for example in drawn}
    assert {TAG.match(source)[0][1:-2] for source in sources if TAG.match(source)} == {
        locale.replace("_", "-") for locale in LOCALES
    }
    assert len(LOCALES) >= 8
    by_day = defaultdict(set)
    for example in drawn:
        by_day[example.target].add(example.source)
    for forms in formats().values():
        assert len(forms) >= 8
        for form in forms:
            days = map(date.fromisoformat, by_day)
            assert any(form.write(day) in by_day[day.isoformat()] for day in days), form


def test_sources_are_short_and_typed_on_a_keyboard(drawn: list[Example]) -> None:
    lengths = sorted(len(example.source) for example in drawn)
    assert lengths[0] >= 8
    assert lengths[len(lengths) * 95 // 100] <= 30
    assert not any(re.search(r"[^\S ]|  |[#']{2}", example.source) for example in drawn)


def test_the_same_seed_gives_the_same_dates_and_fewer_are_the_first_of_more() -> None:
    assert dates(300, seed=5) == dates(1000, seed=5)[:300]
    assert dates(300, seed=5) != dates(300, seed=6)


def test_no_source_comes_twice() -> None:
    assert len({example.source for example in dates(5000)}) == 5000


@pytest.mark.parametrize("count", [0, -1, 10**9])
def test_an_impossible_count_is_refused(count: int) -> None:
    with pytest.raises(SeqloomError, match="expected 1 to"):
        dates(count)


def test_without_babel_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    formats.cache_clear()
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(SeqloomError, match=r'pip install "seqloom\[demo\]"'):
        dates(1)
