"""An explanation as plain text for a terminal."""

from io import StringIO
from math import exp

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from seqloom.errors import SeqloomError, steers
from seqloom.explain.parse import indented
from seqloom.explain.record import Experts, ExplainedHypothesis, Explanation, Points
from seqloom.explain.shades import pixel_views, shade

NARROWEST = 24
MAP_ROWS = 16  # of the map of points


def render(explanation: Explanation, width: int = 100, colour: bool = False) -> str:
    """Input, output and every view of the best hypothesis, then the n-best list. Lines are at most `width` cells."""
    if width < NARROWEST:
        raise SeqloomError(f"explain: width {width} is too narrow: expected {NARROWEST} columns or more; widen it")
    source, best, points = explanation.source, explanation.hypotheses[0], explanation.points
    lines = [*labelled("input", explanation.source_text, width), *labelled("output", best.text, width)]
    if points is not None:
        lines += labelled("truth", " ".join(map(str, points.truth)), width)
    facts = "  ".join(f"{name} {value}" for name, value in explanation.model.items())
    lines += labelled("score", f"{best.score:.3f}", width) + labelled("model", facts, width)
    for title, part in (
        ("tree: constituents, and the words below them", parse_tree(best, width)),
        ("points: those of the output are numbered", point_map(points, width)),
        (
            "tags: probability, and the likeliest alternatives"
            if explanation.per_token
            else "tokens: probability, and the likeliest alternatives",
            token_table(best, width, source if explanation.per_token else []),
        ),
        ("timing: how much of the input was read before each token", timing(explanation, best, width)),
        ("steps: computation steps at each input token", step_counts(source, explanation.steps, width)),
        ("steps: computation steps before each output token", step_counts(best.tokens, best.steps, width)),
        ("experts: those that each input token used, by layer", expert_numbers(source, explanation.experts, width)),
        ("experts: those that each output token used, by layer", expert_numbers(best.tokens, best.experts, width)),
        ("copying: how much of each token's probability comes from copying", copy_shares(best, width)),
        ("attention: sentences down, hops across, darker is more", story_attention(source, best, width)),
        ("attention over the picture, a map for each token: darker is more", image_maps(explanation, best, width)),
        ("alignment: input across, output down, darker is more attention", alignment(explanation, best, width)),
        *pixel_views(explanation.pixels, width),
        (
            "n-best: score, and difference from the first",
            n_best_list([] if explanation.pixels else explanation.hypotheses, width),
        ),
    ):
        if part:
            lines += [Text(), Text(title, style="bold"), *part]
    return to_string(lines, width, colour)


def labelled(label: str, value: str, width: int) -> list[Text]:
    """The value beside its label, wrapped where it is too long; no lines for an empty value."""
    rows = wrap(visible(value), width - 8)
    return [Text.assemble((f"{label if not row else '':8}", "dim"), text) for row, text in enumerate(rows) if value]


def token_table(hypothesis: ExplainedHypothesis, width: int, tagged: list[str]) -> list[Text]:
    """One row per token: its probability as a number and a bar, and its runners-up; of a tag, its word first."""
    column, word_column = (min(longest(tokens), width // 4) for tokens in (hypothesis.tokens, tagged))
    words = [Text.assemble(to_width(token_label(word), word_column), " ") for word in tagged]
    bar = 10 if width >= 60 else 0
    lines = []
    rows = zip(hypothesis.tokens, hypothesis.log_probs, hypothesis.runners_up, strict=True)
    for place, (token, log_prob, ranked) in enumerate(rows):
        probability = min(exp(log_prob), 1.0)
        others = "  ".join(f"{token_label(other)} {share:.1%}" for other, share in ranked if other != token)
        lines.append(
            Text.assemble(
                words[place] if words else "",
                to_width(token_label(token), column),
                (f" {probability:6.1%} ", "bold" if probability < 0.5 else ""),
                ("█" * round(probability * bar) + " " * (bar - round(probability * bar)), "blue"),
                (f"  {others}", "dim"),
            )
        )
    return [truncate(line, width) for line in lines]


def parse_tree(hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    """One row per node, below what it belongs to."""
    return [
        truncate(
            Text.assemble((stem, "dim"), (visible(label), "blue"), " " * bool(label and word), visible(word)), width
        )
        for stem, label, word in indented(hypothesis.parse)
    ]


def point_map(points: Points | None, width: int) -> list[Text]:
    """Points where they lie in the plane: as a number if the best output has them, else as a dot."""
    if points is None:
        return []
    columns = min(width, 2 * MAP_ROWS + MAP_ROWS // 2)
    low, high = ([extreme(axis) for axis in zip(*points.where)] for extreme in (min, max))
    rows = [[" "] * columns for _ in range(MAP_ROWS)]
    for place in sorted(range(len(points.where)), key=lambda place: place in points.outputs[0]):
        label = str(place) if place in points.outputs[0] else "·"
        x, y = ((value - least) / ((most - least) or 1) for value, least, most in zip(points.where[place], low, high))
        column = round(x * (columns - len(label)))
        rows[round((1 - y) * (MAP_ROWS - 1))][column : column + len(label)] = label
    return [Text("".join(row), style="blue") for row in rows]


def timing(explanation: Explanation, hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    """What an online model had read when it wrote each token: seconds of sound, or source tokens."""
    column = min(longest(hypothesis.tokens), width // 4)
    seconds, lines = explanation.seconds, []
    for token, time in zip(hypothesis.tokens, hypothesis.times):
        read = f"{time * seconds:7.2f} s" if seconds else " ".join(map(token_label, explanation.source[: int(time)]))
        lines.append(truncate(Text.assemble(to_width(token_label(token), column), "  ", (read, "blue")), width))
    return lines


def step_counts(tokens: list[str], steps: list[float], width: int) -> list[Text]:
    """How many steps an adaptive model took at each token."""
    least, most = min(steps, default=0), max(steps, default=0)
    shares = [(count - least) / (most - least or 1) for count in steps]
    return shaded_tokens(tokens, [f"{count:.0f}" for count in steps], shares, width, 1)


def expert_numbers(tokens: list[str], experts: Experts, width: int) -> list[Text]:
    """One row per token: in each layer the numbers of its experts, the one with the largest gate first."""
    if not experts:
        return []
    column = min(longest(tokens), width // 4)
    cells = {layer: [" ".join(map(str, each)) for each in used] for layer, used in experts.items()}
    widths = {layer: max(len(layer), *map(len, each)) for layer, each in cells.items()}
    head = "  ".join(f"{layer:{widths[layer]}}" for layer in cells)
    lines = [Text(f"{'':{column}}  {head}", style="dim")]
    for row, token in enumerate(tokens):
        numbers = "  ".join(f"{cells[layer][row]:{widths[layer]}}" for layer in cells)
        lines.append(Text.assemble(to_width(token_label(token), column), "  ", (numbers, "blue")))
    return [truncate(line, width) for line in lines]


def copy_shares(hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    """How much of each token's probability comes from copying."""
    shares = hypothesis.copied
    return shaded_tokens(hypothesis.tokens, [f"{share:.0%}" for share in shares], shares, width, 4)


def shaded_tokens(tokens: list[str], numbers: list[str], shares: list[float], width: int, least: int) -> list[Text]:
    """A number and a shade below each token, in columns of at least so many characters."""
    column = max(min(longest(tokens), 8), least) + 1
    panel = max(width // column, 1)
    lines: list[Text] = []
    for first in range(0, len(shares), panel):
        part = slice(first, first + panel)
        counts = "".join(f"{number:<{column}}" for number in numbers[part])
        shades = "".join(shade(share) * (column - 1) + " " for share in shares[part])
        lines += [*([Text()] if first else []), header(tokens[part], column)]
        lines += [Text(counts, style="dim"), Text(shades, style="blue")]
    return lines


def story_attention(source: list[str], hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    """The attention of a memory network: one row per sentence, one column per hop."""
    if not is_story(source, hypothesis):
        return []
    hops = [heads[0][0] for heads in hypothesis.source_attention]  # hops x sentences
    label = max(1, min(max(map(cell_len, source)), width - 4 * len(hops) - 1))
    lines = []
    for row, sentence in enumerate(source):
        cells = "".join(shade(weights[row]) * 3 + " " for weights in hops)
        lines.append(Text.assemble(to_width(visible(sentence), label), " ", (cells, "blue")))
    return lines


def is_story(source: list[str], hypothesis: ExplainedHypothesis) -> bool:
    """Whether the source is sentences and the output one answer."""
    return len(hypothesis.tokens) == 1 and bool(hypothesis.source_attention) and any(" " in token for token in source)


def image_maps(explanation: Explanation, hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    """For each token the grid of a picture, its attention shaded; as many beside each other as there is room for."""
    image = explanation.image
    if image is None or not hypothesis.alignment:
        return []
    column = max(2 * image.columns, min(longest(hypothesis.tokens), 12)) + 2
    panel = max(width // column, 1)
    lines: list[Text] = []
    for first in range(0, len(hypothesis.tokens), panel):
        part = slice(first, first + panel)
        lines += [*([Text()] if first else []), header(hypothesis.tokens[part], column)]
        for row in range(image.rows):
            places = slice(row * image.columns, (row + 1) * image.columns)
            maps = [
                "".join(shade(weight / (max(weights) or 1.0)) * 2 for weight in weights[places])
                for weights in hypothesis.alignment[part]
            ]
            lines.append(Text("".join(f"{each:{column}}" for each in maps), style="blue"))
    return [truncate(line, width) for line in lines]


def alignment(explanation: Explanation, hypothesis: ExplainedHypothesis, width: int) -> list[Text]:
    """A heat map; a source too long for one line continues in another panel below."""
    source = explanation.source
    if not hypothesis.alignment or not source or explanation.image or is_story(source, hypothesis):
        return []
    label = min(longest(hypothesis.tokens), width // 4)
    column = min(longest(source) + 1, 9, width - label - 1)
    panel = (width - label - 1) // column
    largest = max(max(row) for row in hypothesis.alignment) or 1.0
    lines: list[Text] = []
    for first in range(0, len(source), panel):
        part = slice(first, first + panel)
        lines += [*([Text()] if first else []), Text.assemble(" " * (label + 1), header(source[part], column))]
        for token, row in zip(hypothesis.tokens, hypothesis.alignment, strict=True):
            cells = "".join(shade(weight / largest) * column for weight in row[part])
            lines.append(Text.assemble(to_width(token_label(token), label), " ", (cells, "blue")))
    return lines


def n_best_list(hypotheses: list[ExplainedHypothesis], width: int) -> list[Text]:
    return [
        truncate(
            Text.assemble(
                (f"{rank:2} ", "dim"),
                f"{hypothesis.score:8.3f} ",
                (f"{hypothesis.score - hypotheses[0].score:+8.3f}  " if rank > 1 else " " * 10, "dim"),
                visible(hypothesis.text),
            ),
            width,
        )
        for rank, hypothesis in enumerate(hypotheses, start=1)
    ]


def visible(text: str) -> str:
    """Text that cannot steer a terminal: controls as pictures, what has no picture as a replacement character."""
    return "".join(picture(character) if steers(character) else character for character in text)


def picture(character: str) -> str:
    return chr(0x2400 + ord(character)) if ord(character) < 32 else "\ufffd"


def token_label(token: str) -> str:
    """A token on its own: a space must be seen."""
    return visible(token).replace(" ", "␣") or "∅"


def longest(tokens: list[str]) -> int:
    return max((cell_len(token_label(token)) for token in tokens), default=1)


def header(tokens: list[str], column: int) -> Text:
    """Tokens above columns of that many cells."""
    return Text().join(Text.assemble(to_width(token_label(token), column - 1), " ") for token in tokens)


def to_width(text: str, cells: int) -> Text:
    """Exactly that many cells wide."""
    cut = Text(text)
    cut.truncate(max(cells, 1), overflow="ellipsis", pad=True)
    return cut


def truncate(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line


def wrap(text: str, width: int) -> list[Text]:
    return list(Text(text).wrap(Console(width=width, file=StringIO()), width)) or [Text()]


def to_string(lines: list[Text], width: int, colour: bool) -> str:
    console = Console(  # every option is set: neither NO_COLOR nor a pipe may change the result
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
