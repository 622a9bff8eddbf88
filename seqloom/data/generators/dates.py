"""Dates as people write them in twelve languages -> ISO 8601: "Friday, March 7th, 2031" -> "2031-03-07".

The patterns and names are those of the Unicode CLDR, through Babel, and a few more that people write.
No string is ambiguous:

- all dates are in 1950-2049, so the two digits "31" are 2031 and "68" are 1968, and a year of two
  digits never comes first;
- a numeric date that could be read in another order begins with its locale: "[en-GB] 03/07/2031".
  A date with the year first, or with a day above 12 and a four-digit year, needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import islice
from random import Random
from typing import Any

from seqloom.data.generators.sampling import check_range, distinct
from seqloom.errors import SeqloomError
from seqloom.types import Example

FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)
MOST = 1_000_000  # distinct strings; there are several times as many
STANDARD = ("full", "long", "medium", "short")
SKELETONS = ("yMd", "yMEd", "yMMMd", "yMMMEd", "yMMMMEd")

# What people write besides the patterns of the CLDR, in its notation; # is the English st, nd, rd, th.
WRITTEN = {
    "en_US": ("MMMM d#, y", "EEEE, MMMM d#, y", "MMM d ''yy", "MM/dd/y", "MM-dd-y", "MM/dd/yy"),
    "en_GB": ("d# MMMM y", "EEEE d# 'of' MMMM y", "EEE d MMM ''yy", "dd-MMM-y", "dd/MM/yy", "y MMMM d"),
    "de": ("EEEE, 'den' d. MMMM y", "d. MMM yy", "d.M.yy"),
    "fr": ("'le' d MMMM y", "'le' EEEE d MMMM y", "d MMM yy", "dd/MM/yy"),
    "es": ("EEEE d 'de' MMMM 'del' y", "d-MMM-yy", "dd/MM/yy"),
    "it": ("'il' d MMMM y", "d MMM ''yy", "d/M/y"),
    "pt": ("d 'de' MMMM, y", "d MMM yy", "dd/MM/yy"),
    "nl": ("EEE d MMM ''yy", "d MMM yy", "dd-MM-yy"),
    "sv": ("'den' d MMMM y", "EEEE 'den' d MMMM y", "d MMM ''yy", "d/M y"),
    "pl": ("d MMMM y 'r.'", "d MMM yy", "dd.MM.yy"),
    "tr": ("d MMM yy", "dd.MM.yy", "dd/MM/y"),
    "fi": ("d. MMMM ''yy", "d.M.yy", "EEE d. MMMM yy"),
}
LOCALES = tuple(WRITTEN)


@dataclass(frozen=True)
class Format:
    """One way of writing a date in one locale."""

    locale: str
    pattern: str
    parsed: Any  # the pattern, parsed by Babel
    babel_locale: Any

    def ambiguous(self, day: date) -> bool:
        """Whether the numbers could be read in another order."""
        if "MMM" in self.pattern or self.pattern.index("y") < min(map(self.pattern.index, "dM")):
            return False
        return "yy" in self.pattern or (day.day <= 12 and day.day != day.month)

    def write(self, day: date, case: str = "") -> str:
        """The date as a string; case is "upper", "lower", or "" for that of the language."""
        text = self.parsed.apply(day, self.babel_locale).replace("#", ordinal(day.day))
        text = " ".join(text.split())  # non-breaking spaces become plain ones
        if case == "upper":
            text = (text.replace("i", "İ") if self.locale == "tr" else text).upper()
        elif case == "lower":
            text = text.lower()
        return f"[{self.locale.replace('_', '-')}] {text}" if self.ambiguous(day) else text


def ordinal(number: int) -> str:
    """The ending of an English ordinal: 1st, 2nd, 3rd, 4th, 11th."""
    return "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


@cache
def formats() -> dict[str, tuple[Format, ...]]:
    """The distinct formats of each locale."""
    try:
        from babel import Locale
        from babel.dates import parse_pattern
    except ImportError:
        message = 'the dates generator needs Babel, which is not installed: pip install "seqloom[demo]"'
        raise SeqloomError(message) from None
    found = {}
    for name, written in WRITTEN.items():
        locale = Locale.parse(name)
        patterns = [locale.date_formats[standard].pattern for standard in STANDARD]
        patterns += [
            locale.datetime_skeletons[skeleton].pattern
            for skeleton in SKELETONS
            if skeleton in locale.datetime_skeletons
        ]
        patterns = list(dict.fromkeys([*patterns, *written]))
        found[name] = tuple(Format(name, pattern, parse_pattern(pattern), locale) for pattern in patterns)
    return found


def draws(seed: int = 1) -> Iterator[Example]:
    """Dates without end, not all distinct."""
    known, random = formats(), Random(seed)
    days = (LAST - FIRST).days + 1
    while True:
        chosen = random.choice(known[random.choice(LOCALES)])
        day = FIRST + timedelta(days=random.randrange(days))
        case = random.choice(("", "", "", "lower", "upper"))
        yield Example(source=chosen.write(day, case), target=day.isoformat())


def dates(count: int, seed: int = 1) -> list[Example]:
    """`count` distinct dates; a smaller count gives the first of them."""
    check_range("dates", "count", count, 1, MOST)
    return list(islice(distinct(draws(seed)), count))
