"""Text made safe to show."""

from __future__ import annotations

import pytest

from seqloom.errors import SeqloomError, one_line, printable, show, shown, steers, under

STEERING = [*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), *"\u2028\u2029\ud800\udfff",
            *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]  # fmt: skip


@pytest.mark.parametrize("character", STEERING, ids=lambda each: f"{ord(each):04x}")
def test_what_steers_a_terminal_is_written_as_an_escape_everywhere(character: str) -> None:
    escaped = f"\\u{ord(character):04x}"
    assert printable(f"a{character}b") == f"a{escaped}b"
    for text in (
        str(SeqloomError(f"file: a{character}b")),
        show(f"a{character}b"),
        shown(f"a{character}b"),
        one_line(ValueError(f"a{character}b")),
        under("train", f"a{character}b"),
    ):
        assert not any(map(steers, text))


@pytest.mark.parametrize(
    "text", ["", "plain", "Ω ü ß 漢字 עברית \u200f", "👩\u200d🔬", "می\u200cخواهم", "a\u00a0b\u3000c"]
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_the_message_of_a_mistake_is_one_line() -> None:
    assert str(SeqloomError("a\n  b\r\n\tc")) == "a b c"


def test_values_that_cannot_be_printed_are_described() -> None:
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    for value in (10**5000, deep):
        assert len(show(value)) <= 60
        assert len(shown(value)) <= 60
