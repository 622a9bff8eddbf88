"""An explanation in the terminal: nothing is wider than the terminal, and nothing can steer it."""

import re
from dataclasses import replace
from math import exp, inf

import pytest
from rich.cells import cell_len

from seqloom.errors import SeqloomError
from seqloom.explain.record import ExplainedHypothesis, Explanation
from seqloom.explain.terminal import render
from tests.explain.examples import (
    EXAMPLES,
    adaptive,
    copying,
    drawing,
    each,
    explanation,
    letters,
    mixture,
    parsing,
    picture,
)


@each
@pytest.mark.parametrize("width", [24, 40, 80, 100])
def test_no_line_is_wider_than_the_terminal(name: str, width: int):
    assert max(map(cell_len, render(EXAMPLES[name], width=width).splitlines())) <= width


def test_a_terminal_too_narrow_is_refused():
    with pytest.raises(SeqloomError, match="24 columns"):
        render(EXAMPLES["date"], width=10)


def test_the_terminal_view_shows_output_probabilities_and_differences():
    text = render(EXAMPLES["translation"])
    best, second = EXAMPLES["translation"].hypotheses[:2]
    assert best.text in text
    assert f"{exp(best.log_probs[0]):.1%}" in text
    assert f"{second.score - best.score:+.3f}" in text
    rival, share = best.runners_up[0][1]
    assert f"{rival} {share:.1%}" in text


def heat_map(text: str) -> list[str]:
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("alignment"))
    return lines[first + 1 : lines.index("", first)]


def test_the_darkest_cell_is_below_the_token_with_most_attention():
    tokens, source = ["糸", "cloth"], ["thread", "布"]
    found = ExplainedHypothesis(
        "糸 cloth", -0.1, tokens, [-0.1, -0.1], [[("糸", 0.9)], [("cloth", 0.9)]], [[0.9, 0.1], [0.1, 0.9]]
    )
    header, first, second = heat_map(render(Explanation(source, "thread 布", [found])))
    assert header == "      thread 布"
    assert first == "糸    ███████"
    assert second == "cloth        ███████"
    column = cell_len(header[: header.index("布")])
    assert column == cell_len(second[: second.index("█")])


def test_a_long_source_continues_in_further_panels():
    text = render(EXAMPLES["sixty"], width=60)
    assert all(text.count(f" word{number} ") >= 1 or f" word{number}\n" in text for number in range(60))


def test_a_model_without_attention_has_no_alignment_in_the_terminal():
    assert "alignment" not in render(EXAMPLES["language model"])
    assert "alignment" in render(EXAMPLES["date"])


def test_colour_adds_escapes_and_changes_no_letter(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    plain, coloured = render(EXAMPLES["date"]), render(EXAMPLES["date"], colour=True)
    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_hostile_text_cannot_steer_the_terminal():
    text = render(EXAMPLES["hostile"])
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ud800-\udfff]", text)
    assert "␛[31m" in text


def test_steps_are_below_their_tokens_and_the_most_are_darkest():
    lines = render(adaptive()).splitlines()
    titles = [number for number, line in enumerate(lines) if line.startswith("steps:")]
    assert [lines[number + 1].split() for number in titles] == [["a", "b"], ["x", "y", "z", "<eos>"]]
    assert [lines[number + 2].split() for number in titles] == [["1", "4"], ["1", "2", "6", "3"]]
    column = lines[titles[1] + 1].index("z")
    assert lines[titles[1] + 3][column] == "█"
    assert not any(line.startswith("steps:") for line in render(EXAMPLES["date"]).splitlines())


def test_experts_are_beside_their_tokens_layer_by_layer():
    lines = render(mixture()).splitlines()
    titles = [number for number, line in enumerate(lines) if line.startswith("experts:")]
    assert [line.split() for line in lines[titles[0] + 1 : titles[0] + 4]] == [
        ["layers.0", "layers.1"],
        ["a", "1", "0", "0", "1"],
        ["b", "2", "3", "3", "1"],
    ]
    assert [line.split()[1:] for line in lines[titles[1] + 2 : titles[1] + 6]] == [
        ["3", "0"],
        ["1", "2"],
        ["12", "0"],
        ["0", "1"],
    ]
    assert not any(line.startswith("experts:") for line in render(EXAMPLES["date"]).splitlines())


def test_shares_of_copying_are_below_their_tokens():
    lines = render(copying()).splitlines()
    title = next(number for number, line in enumerate(lines) if line.startswith("copying:"))
    assert lines[title + 1].split() == ["x", "y", "z", "<eos>"]
    assert lines[title + 2].split() == ["2%", "50%", "100%", "0%"]
    assert lines[title + 3][lines[title + 1].index("z")] == "█"
    assert "copying:" not in render(adaptive())


def test_line_breaks_are_seen():
    assert "output  ab␊c\n" in render(explanation([], "", letters("ab\nc")))


def test_a_parse_tree_is_drawn_with_one_line_per_node():
    text = render(parsing())
    assert (
        """
S
├─ NP
│  ├─ DT the
│  └─ NN loom
└─ VP
   └─ VBZ weaves
"""
        in text
    )
    second = parsing()
    second = replace(second, hypotheses=second.hypotheses[1:])
    assert "\nS\n└─ the\n" in render(second)
    assert max(map(cell_len, render(parsing(), width=24).splitlines())) <= 24


def test_a_picture_has_a_map_of_its_grid_for_each_token():
    plain = picture()
    weights = [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.25, 0.25, 0.5, 0.0, 0.0], [1 / 6] * 6]
    record = replace(plain, hypotheses=[replace(plain.hypotheses[0], alignment=weights)])
    lines = render(record).splitlines()
    assert not any(line.startswith("alignment") for line in lines)
    first = lines.index("attention over the picture, a map for each token: darker is more") + 1
    assert lines[first].split() == ["a", "b", "<eos>"]
    assert lines[first + 1] == "    ██    ▒▒▒▒  ██████"
    assert lines[first + 2] == "        ██      ██████"


def test_pixels_are_drawn_with_their_cost_and_what_one_depends_on():
    shown = drawing()
    lines = render(shown, width=40).splitlines()
    start = lines.index("the output") + 1
    shades = [" ", "▒", "█"]  # of three levels
    expected = [
        "".join(shades[value] * 2 for value in shown.pixels.values[row : row + 4]).rstrip() for row in (0, 4, 8)
    ]
    assert lines[start : start + 3] == expected
    assert any(line.startswith("cost of each pixel: ") for line in lines)
    title = next(line for line in lines if "depends on" in line)
    assert title.startswith("what value 7 of 12 depends on")
    assert lines[lines.index(title) + 2].count("+") == 2
    assert "n-best" not in "".join(lines)


def test_a_pixel_that_was_impossible_is_the_darkest():
    shown = drawing()
    pixels = replace(shown.pixels, log_probs=[-inf, *shown.pixels.log_probs[1:]])
    lines = render(replace(shown, pixels=pixels), width=40).splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("cost of each pixel"))
    assert lines[start + 1].startswith("██")
