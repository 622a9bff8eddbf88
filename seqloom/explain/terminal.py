"""An explanation as plain text: what was read and written, how sure of it, and where the model looked."""

from io import StringIO
from math import exp
from unicodedata import category

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from seqloom.errors import SeqloomError
from seqloom.explain.record import ExplainedHypothesis, Explanation, Points

SHADES = " ░▒▓█"
NARROWEST = 24
MAP_ROWS = 16  # of a map of points
REORDERING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # would turn around the rest of a line


def render(explanation: Explanation, width: int = 100, colour: bool = False) -> str:
    """Input, output, a row a token, the alignment and the n-best list. No line is wider than `width` cells."""
    if width < NARROWEST:
        raise SeqloomError(f"explain: width {width} is too narrow: expected {NARROWEST} columns or more; widen it")
    best = explanation.hypotheses[0]
    lines = [*labelled("input", explanation.source_text, width), *labelled("output", best.text, width)]
    if explanation.points is not None:
        lines += labelled("truth", " ".join(map(str, explanation.points.truth)), width)
    facts = "  ".join(f"{name} {value}" for name, value in explanation.model.items())
    lines += labelled("score", f"{best.score:.3f}", width) + labelled("model", facts, width)
    for title, part in (
        ("points: those of the output by their places", scattered(explanation.points, width)),
        ("tokens: probability, and what else was likely", token_table(best, width)),
        ("written: when so much had been read", moments(explanation, best, width)),
        (
            "steps: how long each piece of the input was thought over",
            steps(explanation.source, explanation.steps, width),
        ),
        ("steps: how long each piece of the output was thought over", steps(best.tokens, best.steps, width)),
        ("copies: how likely each piece was to be copied rather than written", copies(best, width)),
        ("hops: sentences down, hops across, darker is more", hops(explanation.source, best, width)),
        ("alignment: input across, output down, darker is more", alignment(explanation.source, best, width)),
        ("n-best: score, and difference to the first", n_best(explanation.hypotheses, width)),
    ):
        if part:
            lines += [Text(), Text(title, style="bold"), *part]
    return printed(lines, width, colour)


def labelled(label: str, value: str, width: int) -> list[Text]:
    """The value beside its label, folded where it is too long; nothing for nothing."""
    rows = folded(visible(value), width - 8)
    return [Text.assemble((f"{label if not row else '':8}", "dim"), text) for row, text in enumerate(rows) if value]


def token_table(hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    column = min(longest(hypothesis.tokens), width // 4)
    bar = 10 if width >= 60 else 0
    lines = []
    for token, log_prob, ranked in zip(hypothesis.tokens, hypothesis.log_probs, hypothesis.runners_up, strict=True):
        probability = min(exp(log_prob), 1.0)
        others = "  ".join(f"{shown(piece)} {share:.1%}" for piece, share in ranked if piece != token)
        lines.append(
            Text.assemble(
                fitted(shown(token), column),
                (f" {probability:6.1%} ", "bold" if probability < 0.5 else ""),
                ("█" * round(probability * bar) + " " * (bar - round(probability * bar)), "blue"),
                (f"  {others}", "dim"),
            )
        )
    return [cut(line, width) for line in lines]


def scattered(points: Points | None, width: int) -> list[Text]:
    """Points of the plane where they lie: a number where the best output goes, a dot elsewhere."""
    if points is None:
        return []
    columns = min(width, 2 * MAP_ROWS + MAP_ROWS // 2)
    low, high = ([way(axis) for axis in zip(*points.where)] for way in (min, max))
    rows = [[" "] * columns for _ in range(MAP_ROWS)]
    for place in sorted(range(len(points.where)), key=lambda place: place in points.outputs[0]):
        label = str(place) if place in points.outputs[0] else "·"
        x, y = ((value - least) / ((most - least) or 1) for value, least, most in zip(points.where[place], low, high))
        column = round(x * (columns - len(label)))
        rows[round((1 - y) * (MAP_ROWS - 1))][column : column + len(label)] = label
    return [Text("".join(row), style="blue") for row in rows]


def moments(explanation: Explanation, hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    """When each piece was written, of a model that writes before it has read all."""
    column = min(longest(hypothesis.tokens), width // 4)
    seconds, lines = explanation.seconds, []
    for token, time in zip(hypothesis.tokens, hypothesis.times):
        read = f"{time * seconds:7.2f} s" if seconds else " ".join(map(shown, explanation.source[: int(time)]))
        lines.append(cut(Text.assemble(fitted(shown(token), column), "  ", (read, "blue")), width))
    return lines


def steps(pieces: list[str], taken: list[float], width: int) -> list[Text]:
    """How often a model that decides so itself stepped at each piece: a number and a shade below it."""
    least, most = min(taken, default=0), max(taken, default=0)
    shares = [(count - least) / (most - least or 1) for count in taken]
    return strengths(pieces, [f"{count:.0f}" for count in taken], shares, width, 1)


def copies(hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    """How much of the probability at each piece was that of copies: a percentage and a shade below it."""
    shares = hypothesis.copied
    return strengths(hypothesis.tokens, [f"{share:.0%}" for share in shares], shares, width, 4)


def strengths(pieces: list[str], numbers: list[str], shares: list[float], width: int, least: int) -> list[Text]:
    """A number and a shade below each piece, in columns of at least so many characters."""
    column = max(min(longest(pieces), 8), least) + 1
    panel = max(width // column, 1)
    lines: list[Text] = []
    for first in range(0, len(shares), panel):
        chosen = slice(first, first + panel)
        counts = "".join(f"{number:<{column}}" for number in numbers[chosen])
        shades = (shade(share) * (column - 1) + " " for share in shares[chosen])
        heads = Text().join(Text.assemble(fitted(shown(piece), column - 1), " ") for piece in pieces[chosen])
        lines += [*([Text()] if first else []), heads, Text(counts, style="dim"), Text("".join(shades), style="blue")]
    return lines


def hops(source: list[str], hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    """What an answer of one token read of a story: a row a sentence, a column a hop."""
    if not is_story(source, hypothesis):
        return []
    looks = [heads[0][0] for heads in hypothesis.source_attention]  # hops x sentences
    label = max(1, min(max(map(cell_len, source)), width - 4 * len(looks) - 1))
    return [
        Text.assemble(
            fitted(visible(sentence), label), " ", ("".join(shade(look[row]) * 3 + " " for look in looks), "blue")
        )
        for row, sentence in enumerate(source)
    ]


def is_story(source: list[str], hypothesis: ExplainedHypothesis) -> bool:
    """Whether pieces of the source are sentences, read hop by hop before one answer."""
    return len(hypothesis.tokens) == 1 and bool(hypothesis.source_attention) and any(" " in piece for piece in source)


def alignment(source: list[str], hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    """A heat map; a source too long for one line continues in a further panel below."""
    if not hypothesis.alignment or not source or is_story(source, hypothesis):
        return []
    label = min(longest(hypothesis.tokens), width // 4)
    column = min(longest(source) + 1, 9, width - label - 1)
    panel = (width - label - 1) // column
    largest = max(max(row) for row in hypothesis.alignment) or 1.0
    lines: list[Text] = []
    for first in range(0, len(source), panel):
        chosen = slice(first, first + panel)
        if first:
            lines.append(Text())
        heads = Text().join(Text.assemble(fitted(shown(piece), column - 1), " ") for piece in source[chosen])
        lines.append(Text.assemble(" " * (label + 1), heads))
        for token, row in zip(hypothesis.tokens, hypothesis.alignment, strict=True):
            cells = "".join(shade(weight / largest) * column for weight in row[chosen])
            lines.append(Text.assemble(fitted(shown(token), label), " ", (cells, "blue")))
    return lines


def shade(weight: float) -> str:
    return SHADES[min(int(max(weight, 0.0) * len(SHADES)), len(SHADES) - 1)]


def n_best(hypotheses: list[ExplainedHypothesis], width: int) -> list[Text]:
    best = hypotheses[0].score
    return [
        cut(
            Text.assemble(
                (f"{rank:2} ", "dim"),
                f"{hypothesis.score:8.3f} ",
                (f"{hypothesis.score - best:+8.3f}  " if rank > 1 else " " * 10, "dim"),
                visible(hypothesis.text),
            ),
            width,
        )
        for rank, hypothesis in enumerate(hypotheses, start=1)
    ]


def visible(text: str) -> str:
    """Text that cannot steer a terminal: controls as pictures, what has no picture as a replacement character."""
    return "".join(picture(character) for character in text)


def picture(character: str) -> str:
    kind = category(character)
    if kind == "Cc":
        return chr(0x2400 + ord(character)) if ord(character) < 32 else "\ufffd"
    return "\ufffd" if kind in ("Cs", "Zl", "Zp") or character in REORDERING else character


def shown(piece: str) -> str:
    """A piece on its own: a space must be seen."""
    return visible(piece).replace(" ", "␣") or "∅"


def longest(pieces: list[str]) -> int:
    return max((cell_len(shown(piece)) for piece in pieces), default=1)


def fitted(text: str, cells: int) -> Text:
    """Exactly so many cells wide."""
    fit = Text(text)
    fit.truncate(max(cells, 1), overflow="ellipsis", pad=True)
    return fit


def cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line


def folded(text: str, width: int) -> list[Text]:
    return list(Text(text).wrap(Console(width=width, file=StringIO()), width)) or [Text()]


def printed(lines: list[Text], width: int, colour: bool) -> str:
    # everything is said here, so that neither NO_COLOR nor a pipe changes what the caller asked for
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        highlight=False,
    )
    for line in lines:
        line.rstrip()
        console.print(line, no_wrap=True, overflow="crop", crop=True)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()
