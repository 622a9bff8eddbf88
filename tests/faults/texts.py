"""Random damage to the bytes of a text: characters that formats give a meaning, numbers, depth, cuts, repeats."""

from __future__ import annotations

from random import Random

FRAGMENTS: list[bytes] = [
    *(b'"', b'""', b"'", b"\t", b"\t\t", b",", b";", b"\n", b"\n\n\n", b"\r", b"\r\n\r\n", b" ", b"\\", b"#", b"="),
    *(b"\x00", b"\x1b[2J", b"\x85", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf"),
    *(each.encode() for each in ("\u2028", "\u202e", "\u0301", "語", "🙂", "𝟙", "\ufeff", "ſ", "İ")),
    *(
        b"null",
        b"true",
        b"{}",
        b"[]",
        b"{",
        b"}",
        b"[",
        b"]",
        b'{"source": 1}',
        b'{"type": "x"}',
        b'"\\ud800"',
        b"\\u0000",
    ),
    *(b"0", b"-1", b"1e999", b"NaN", b"-Infinity", b"nan", b"inf", b"9" * 30, b"9" * 5000, b"0x" + b"f" * 5000),
    *(b"[" * 5000, b'{"a":' * 3000, b"[[" * 400 + b"]]" * 400, b"a." * 3000, b"x" * 30_000, b" " * 30_000),
]


def damaged(content: bytes, chance: Random) -> bytes:
    """The content with one to four changes."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        content = chance.choice(CHANGES)(content, chance)
    return content


def place_in(content: bytes, chance: Random) -> int:
    return chance.randrange(len(content) + 1)


def flip(content: bytes, chance: Random) -> bytes:
    place = place_in(content, chance)
    return (
        content[:place]
        + bytes(byte ^ 1 << chance.randrange(8) for byte in content[place : place + 1])
        + content[place + 1 :]
    )


def insert(content: bytes, chance: Random) -> bytes:
    place = place_in(content, chance)
    return content[:place] + chance.choice(FRAGMENTS) + content[place:]


def replace(content: bytes, chance: Random) -> bytes:
    place = place_in(content, chance)
    return content[:place] + chance.choice(FRAGMENTS) + content[place + chance.randint(1, 12) :]


def cut(content: bytes, chance: Random) -> bytes:
    return content[: place_in(content, chance)]


def remove(content: bytes, chance: Random) -> bytes:
    place = place_in(content, chance)
    return content[:place] + content[place + chance.randint(1, 40) :]


def repeat(content: bytes, chance: Random) -> bytes:
    place = place_in(content, chance)
    return (
        content[:place] + content[place : place + chance.randint(1, 40)] * chance.choice((2, 3, 50)) + content[place:]
    )


def swap_lines(content: bytes, chance: Random) -> bytes:
    lines = content.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def double_line(content: bytes, chance: Random) -> bytes:
    lines = content.split(b"\n")
    place = chance.randrange(len(lines))
    return b"\n".join([*lines[:place], *lines[place : place + 1] * 2, *lines[place + 1 :]])


def noise(content: bytes, chance: Random) -> bytes:
    place = place_in(content, chance)
    return content[:place] + chance.randbytes(chance.randint(1, 30)) + content[place:]


CHANGES = (flip, flip, insert, insert, insert, replace, replace, cut, remove, repeat, swap_lines, double_line, noise)
