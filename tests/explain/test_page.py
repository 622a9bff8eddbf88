"""What `seqloom explain` shows: nothing is lost, nothing breaks out of the page, nothing is wider than asked."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from math import exp, inf, log, nan
from random import Random

import pytest
from rich.cells import cell_len

from seqloom.errors import SeqloomError
from seqloom.explain.page import page
from seqloom.explain.record import ExplainedHypothesis, Explanation, Matrix, TreeNode
from seqloom.explain.terminal import render

HOSTILE = (
    "</script><script>alert(1)</script><!-- <script> --> \u2028\u2029 &amp; ]]> \x1b[31m \x00 \ud800 \u202e </noscript>"
)


def looks(rows: int, columns: int, focus: float, random: Random, causal: bool = False) -> Matrix:
    """Rows that sum to one and peak near the diagonal."""
    matrix = []
    for row in range(rows):
        centre = row * (columns - 1) / max(rows - 1, 1)
        raw = [exp(-focus * abs(column - centre)) * random.uniform(0.5, 1.5) for column in range(columns)]
        raw = [weight if not causal or column <= row else 0.0 for column, weight in enumerate(raw)]
        matrix.append([weight / sum(raw) for weight in raw])
    return matrix


def hypothesis(source: list[str], tokens: list[str], text: str, layers: int, heads: int, rank: int):
    random = Random(5 + rank)
    steps = [*tokens, "<eos>"]
    shares = [random.choice([0.99, 0.97, 0.9, 0.8, 0.55]) * 0.9**rank for _ in steps]
    others = sorted(set(source + tokens + list("abcde")))
    runners = []
    for token, share in zip(steps, shares):
        rest = random.sample([piece for piece in others if piece != token], 4)
        runners.append(
            [(token, share)] + [(piece, (1 - share) * part) for piece, part in zip(rest, (0.6, 0.2, 0.1, 0.05))]
        )
    size = len(steps)
    return ExplainedHypothesis(
        text=text,
        score=sum(map(log, shares)),
        tokens=steps,
        log_probs=[log(share) for share in shares],
        runners_up=runners,
        alignment=looks(size, len(source), 1.2, random) if source else [],
        source_attention=[
            [looks(size, len(source), random.uniform(0.1, 2), random) for _ in range(heads)] for _ in range(layers)
        ]
        if source
        else [],
        self_attention=[
            [looks(size, size, random.uniform(0.1, 2), random, causal=True) for _ in range(heads)]
            for _ in range(layers)
        ],
    )


def beam_tree(hypotheses: list[ExplainedHypothesis], others: list[str]) -> list[TreeNode]:
    """The prefixes of all hypotheses, and at every step of the best one a branch that came to nothing."""
    nodes: list[TreeNode] = []
    known: dict[tuple[str, ...], int] = {}
    for rank, found in enumerate(hypotheses):
        total = 0.0
        for step, token in enumerate(found.tokens):
            total += found.log_probs[step]
            prefix = tuple(found.tokens[: step + 1])
            if prefix in known:
                total = nodes[known[prefix]].score
                continue
            known[prefix] = len(nodes)
            last = step == len(found.tokens) - 1
            nodes.append(TreeNode(step, known.get(prefix[:-1], -1), token, total, finished=last, best=rank == 0))
    for node in [node for node in nodes if node.best and not node.finished]:
        stray = others[node.step % len(others)]
        nodes.append(TreeNode(node.step + 1, nodes.index(node), stray, node.score + log(0.05)))
    return nodes


def explanation(
    source: list[str], text: str, outputs: list[tuple[list[str], str]], layers: int = 0, heads: int = 0
) -> Explanation:
    random = Random(7)
    found = [hypothesis(source, tokens, out, layers, heads, rank) for rank, (tokens, out) in enumerate(outputs)]
    return Explanation(
        source=source,
        source_text=text,
        hypotheses=found,
        tree=beam_tree(found, source or ["the", "of"]),
        encoder_attention=[
            [looks(len(source), len(source), random.uniform(0.1, 2), random) for _ in range(heads)]
            for _ in range(layers)
        ]
        if source
        else [],
        model={"recipe": "demo", "parameters": "1.2 M", "search": "beam 5, length penalty 1.0"},
    )


def words(*texts: str) -> list[tuple[list[str], str]]:
    return [(text.split(), text) for text in texts]


def letters(*texts: str) -> list[tuple[list[str], str]]:
    return [(list(text), text) for text in texts]


ENGLISH = "the old weaver showed her how a loom turns thread into cloth"
GERMAN = (
    "die alte Weberin zeigte ihr , wie ein Webstuhl Faden zu Stoff macht",
    "die alte Weberin zeigte ihr , wie ein Webstuhl aus Faden Stoff macht",
    "der alte Weber zeigte ihr , wie ein Webstuhl Faden zu Stoff macht",
    "die alte Weberin zeigte , wie ein Webstuhl Faden in Stoff verwandelt",
)
ARABIC = "النول القديم يحول الخيط إلى قماش"
EXAMPLES = {
    "date": explanation(list("14 March 2019"), "14 March 2019", letters("2019-03-14", "2019-03-04", "2019-05-14")),
    "translation": explanation(ENGLISH.split(), ENGLISH, words(*GERMAN), layers=3, heads=4),
    "language model": explanation([], "", words("once upon a time there was a loom"), layers=2, heads=2),
    "arabic": explanation(ARABIC.split(), ARABIC,
                          words("the old loom turns thread into cloth", "the ancient loom turns thread into cloth"),
                          layers=1, heads=2),
    "japanese": explanation(ENGLISH.split(), ENGLISH, letters("古い織機は糸を布に変える", "織機は糸を布にする")),
    "one": explanation(["a"], "a", letters("b")),
    "sixty": explanation([f"word{i}" for i in range(60)], "sixty words", [([f"wort{i}" for i in range(59)], "sechzig")],
                         layers=2, heads=2),
    "hostile": explanation([HOSTILE, "{{", "<b>"], HOSTILE, [([HOSTILE, "<!-- explanation -->"], HOSTILE)]),
}  # fmt: skip
each = pytest.mark.parametrize("name", EXAMPLES)


class Elements(HTMLParser):
    """The page as a browser's parser sees it: its elements, and the text inside its scripts."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.plain = ""
        self.inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data
        if self.inside == "pre":
            self.plain += data


@each
def test_an_explanation_survives_json(name: str):
    written = json.dumps(EXAMPLES[name].to_json())
    assert Explanation.from_json(json.loads(written)) == EXAMPLES[name]


def test_a_zero_probability_survives_json_as_null():
    impossible = replace(EXAMPLES["one"].hypotheses[0], log_probs=[-inf, 0.0], score=-inf)
    record = replace(EXAMPLES["one"], hypotheses=[impossible])
    written = json.dumps(record.to_json(), allow_nan=False)
    assert json.loads(written)["hypotheses"][0]["log_probs"] == [None, 0.0]
    assert Explanation.from_json(json.loads(written)) == record
    assert "0.0%" in render(record)
    assert page(record)


def test_matrices_that_do_not_fit_are_refused_in_one_line():
    record = EXAMPLES["date"]
    best = record.hypotheses[0]
    wrong = {
        "alignment": replace(best, alignment=best.alignment[1:]),
        "source_attention": replace(best, source_attention=[[[[1.0]]]]),
    }
    for where, broken in wrong.items():
        with pytest.raises(SeqloomError, match=where) as caught:
            replace(record, hypotheses=[broken])
        assert "\n" not in str(caught.value)
    with pytest.raises(SeqloomError, match="finite"):
        replace(EXAMPLES["one"], encoder_attention=[[[[nan]]]])
    with pytest.raises(SeqloomError, match="log_probs"):
        replace(best, log_probs=[])
    with pytest.raises(SeqloomError, match="hypotheses"):
        replace(record, hypotheses=[])


@pytest.mark.parametrize("parent", [0, 5, -2])
def test_a_tree_whose_parents_are_not_earlier_nodes_is_refused(parent: int):
    with pytest.raises(SeqloomError, match=r"tree\[0\]"):
        replace(EXAMPLES["one"], tree=[TreeNode(0, parent, "a", 0.0)])


@pytest.mark.parametrize(("value", "where"), [({}, "source"), (3, "top level"), ({"source": 1}, "source")])
def test_json_that_is_no_explanation_is_refused_in_one_line(value: object, where: str):
    with pytest.raises(SeqloomError, match=where) as caught:
        Explanation.from_json(value)
    assert "\n" not in str(caught.value)


@each
def test_the_page_carries_the_whole_explanation(name: str):
    data, _ = Elements(page(EXAMPLES[name])).scripts
    carried, meant = json.loads(data), EXAMPLES[name].to_json()
    assert carried["source"] == meant["source"]
    assert [one["text"] for one in carried["hypotheses"]] == [one["text"] for one in meant["hypotheses"]]
    assert carried["hypotheses"][0]["score"] == pytest.approx(meant["hypotheses"][0]["score"], abs=1e-4)
    assert carried["tree"][-1]["token"] == meant["tree"][-1]["token"]


def test_hostile_text_adds_no_element_to_the_page():
    calm, hostile = Elements(page(EXAMPLES["one"])), Elements(page(EXAMPLES["hostile"]))
    assert hostile.tags == calm.tags
    assert hostile.scripts[1:] == calm.scripts[1:]
    assert json.loads(hostile.scripts[0])["source_text"] == HOSTILE
    assert "<b>" in hostile.plain
    page(EXAMPLES["hostile"]).encode("utf-8")


def test_nothing_in_the_embedded_data_could_end_its_script():
    data = Elements(page(EXAMPLES["hostile"])).scripts[0]
    assert not re.search(r"[<>&\u2028\u2029\x00\x1b]|[^\x00-\x7f]", data)


@each
def test_the_page_needs_no_network(name: str):
    html = page(EXAMPLES[name])
    elements = Elements(html)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(elements.tags)
    assert not {"src", "href", "srcset", "action", "onclick"} & {key for key, _ in elements.attributes}
    assert "default-src 'none'" in html
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|import\(", html)
    addresses = re.findall(r"https?://[^\"'\s]+", html.replace("http://www.w3.org/2000/svg", ""))
    assert addresses == []


def test_the_page_inserts_text_as_text_only():
    program = Elements(page(EXAMPLES["one"])).scripts[1]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", program)


def test_every_element_the_program_looks_for_is_on_the_page():
    seen = Elements(page(EXAMPLES["one"]))
    sought = set(re.findall(r'find\("#([a-z]+)', seen.scripts[1]))
    assert len(sought) >= 8
    assert sought <= {value for key, value in seen.attributes if key == "id"}


@each
def test_readers_without_scripts_see_the_terminal_view(name: str):
    seen = Elements(page(EXAMPLES[name]))
    assert "noscript" in seen.tags
    assert seen.plain == render(EXAMPLES[name])


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


def test_the_darkest_cell_stands_under_the_piece_looked_at():
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


def thoughtful() -> Explanation:
    """A model that decides how often it steps: longest at the third letter of the output."""
    plain = explanation(list("ab"), "ab", letters("xyz"))
    first = replace(plain.hypotheses[0], steps=[1.0, 2.0, 6.0, 3.0])
    return replace(plain, hypotheses=[first], steps=[1.0, 4.0])


def test_steps_stand_below_their_pieces_and_the_longest_thought_is_darkest():
    lines = render(thoughtful()).splitlines()
    titles = [number for number, line in enumerate(lines) if line.startswith("steps:")]
    assert [lines[number + 1].split() for number in titles] == [["a", "b"], ["x", "y", "z", "<eos>"]]
    assert [lines[number + 2].split() for number in titles] == [["1", "4"], ["1", "2", "6", "3"]]
    column = lines[titles[1] + 1].index("z")
    assert lines[titles[1] + 3][column] == "█"
    assert not any(line.startswith("steps:") for line in render(EXAMPLES["date"]).splitlines())


def test_steps_survive_json_and_must_fit_their_pieces():
    assert Explanation.from_json(json.loads(json.dumps(thoughtful().to_json()))) == thoughtful()
    for broken in ({"steps": [1.0]}, {"steps": [1.0, -1.0]}):
        with pytest.raises(SeqloomError, match="steps does not fit"):
            replace(thoughtful(), **broken)


def test_copies_stand_below_their_pieces():
    plain = explanation(list("ab"), "ab", letters("xyz"))
    copying = replace(plain, hypotheses=[replace(plain.hypotheses[0], copied=[0.02, 0.5, 1.0, 0.0])])
    lines = render(copying).splitlines()
    title = next(number for number, line in enumerate(lines) if line.startswith("copies:"))
    assert lines[title + 1].split() == ["x", "y", "z", "<eos>"]
    assert lines[title + 2].split() == ["2%", "50%", "100%", "0%"]
    assert lines[title + 3][lines[title + 1].index("z")] == "█"
    assert "copies:" not in render(plain)
    assert Explanation.from_json(json.loads(json.dumps(copying.to_json()))) == copying
    for broken in ([0.5], [0.5, 1.2, 0.0, 0.0]):
        with pytest.raises(SeqloomError, match="copied does not fit"):
            replace(copying.hypotheses[0], copied=broken)


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MEASURED = """<script>
const seen = (name) => [...document.querySelectorAll(name)];
const find = (name) => document.querySelector(name);
const picture = find("#alignment svg")?.getBoundingClientRect().top;
document.body.dataset.seen = JSON.stringify({
  header: find("header").offsetHeight,
  texts: seen("#input p, #output p, nav p, .ranking .text").map((each) => each.textContent),
  heights: seen(".ranking .text").map((each) => each.offsetHeight),
  leaning: seen("#alignment text[transform]").map((each) => each.getBoundingClientRect().top - picture),
});
</script></body>"""


BREAKS = ("\n" * 40, "\n" * 38 + "ab")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """What a browser makes of a page with line breaks and with labels that lean."""
    if BROWSER is None:
        pytest.skip("needs a browser")
    folder = tmp_path_factory.mktemp("browser")
    html = page(explanation(["<unk>", "a", "W"] * 6, "a\nb", letters(*BREAKS)))
    (folder / "page.html").write_text(html.replace("</body>", MEASURED), encoding="utf-8")
    options = ["--headless", "--no-sandbox", f"--user-data-dir={folder}", "--window-size=1200,900", "--dump-dom"]
    command = [BROWSER, *options, (folder / "page.html").as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    return json.loads(unescape(re.search(r'data-seen="([^"]*)"', shown)[1]))


def test_line_breaks_are_seen_and_take_no_room(seen: dict[str, list]):
    best, second = (text.replace("\n", "␊") for text in BREAKS)
    assert seen["texts"] == ["a␊b", best, best, best, second]
    assert f"output  {best}\n" in render(explanation([], "", letters(*BREAKS)))
    assert seen["header"] < 320
    assert min(seen["heights"]) > 10


def test_labels_that_lean_have_room_above_the_alignment(seen: dict[str, list]):
    assert len(seen["leaning"]) == 18
    assert min(seen["leaning"]) >= 4
