"""The page of an explanation: one file without network, nothing is lost, and no text breaks out of it."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html import unescape
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import seqloom.explain.page as folder
from seqloom.explain.page import bundle, embed, page, read
from seqloom.explain.record import Branch, ExplainedHypothesis, Explanation, Points
from seqloom.explain.terminal import render
from tests.explain.examples import EXAMPLES, HOSTILE, drawing, each, explanation, letters, picture


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
def test_the_page_carries_the_whole_explanation(name: str):
    data, _ = Elements(page(EXAMPLES[name])).scripts
    carried, meant = json.loads(data), EXAMPLES[name].to_json()
    assert carried["source"] == meant["source"]
    assert [one["text"] for one in carried["hypotheses"]] == [one["text"] for one in meant["hypotheses"]]
    assert carried["hypotheses"][0]["score"] == pytest.approx(meant["hypotheses"][0]["score"], abs=1e-4)
    assert [node["token"] for node in carried["tree"]] == [node["token"] for node in meant["tree"]]
    assert (carried["pixels"] or {}).get("values") == (meant["pixels"] or {}).get("values")


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


# -- the modules


def test_a_bundle_has_every_module_once_after_those_it_imports():
    modules = list(bundle("main.js"))
    assert sorted(modules) == sorted(path.name for path in Path(folder.__path__[0]).glob("*.js"))
    assert modules[-1] == "main.js"
    for number, name in enumerate(modules):
        assert set(re.findall(r'from "\./(.+)"', read(name))) <= set(modules[:number])


@pytest.mark.parametrize(
    ("module", "complaint"),
    [
        ('import { find, seek } from "./dom.js";\n', "dom.js does not export seek"),
        ('import dom from "./dom.js";\n', "cannot bundle 'import dom"),
        ("export default 3;\n", "cannot bundle 'export default"),
    ],
)
def test_a_module_that_cannot_be_bundled_is_refused(monkeypatch: pytest.MonkeyPatch, module: str, complaint: str):
    monkeypatch.setattr(folder, "read", lambda name: module if name == "new.js" else read(name))
    with pytest.raises(ImportError, match=complaint):
        bundle("new.js")


# -- in a browser


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
Browse = Callable[[str], str]


@pytest.fixture(scope="module")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Browse:
    """The document at an address, after its scripts have run."""
    if BROWSER is None:
        pytest.skip("needs a browser")
    profile = tmp_path_factory.mktemp("browser")
    options = ["--headless", "--no-sandbox", f"--user-data-dir={profile}", "--window-size=1200,900", "--dump-dom"]

    def document(address: str) -> str:
        command = [BROWSER, *options, address]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    return document


MEASURED = """<script>
const seen = (name) => [...document.querySelectorAll(name)];
const above = seen("#alignment svg")[0]?.getBoundingClientRect().top;
document.body.dataset.seen = JSON.stringify({
  header: seen("header")[0].offsetHeight,
  texts: seen("#input p, #output p, nav p, .ranking .text").map((each) => each.textContent),
  heights: seen(".ranking .text").map((each) => each.offsetHeight),
  leaning: seen("#alignment text[transform]").map((each) => each.getBoundingClientRect().top - above),
});
</script></body>"""
BREAKS = ("\n" * 40, "\n" * 38 + "ab")


@pytest.fixture(scope="module")
def seen(browse: Browse, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """Sizes and texts of a page with line breaks and with labels that lean."""
    file = tmp_path_factory.mktemp("page") / "page.html"
    html = page(explanation(["<unk>", "a", "W"] * 6, "a\nb", letters(*BREAKS)))
    file.write_text(html.replace("</body>", MEASURED), encoding="utf-8")
    return json.loads(unescape(re.search(r'data-seen="([^"]*)"', browse(file.as_uri()))[1]))


def test_line_breaks_are_seen_and_take_no_room(seen: dict[str, list]):
    best, second = (text.replace("\n", "␊") for text in BREAKS)
    assert seen["texts"] == ["a␊b", best, best, best, second]
    assert f"output  {best}\n" in render(explanation([], "", letters(*BREAKS)))
    assert seen["header"] < 320
    assert min(seen["heights"]) > 10


def test_labels_that_lean_have_room_above_the_alignment(seen: dict[str, list]):
    assert len(seen["leaning"]) == 18
    assert min(seen["leaning"]) >= 4


def everything() -> Explanation:
    """All that a page can show at once."""
    plain = explanation(list("abcd"), "abcd", letters("xy", "xz"), layers=1, heads=2)
    each: dict[str, Any] = {"times": [1.0, 2.0, 4.0], "steps": [1.0, 2.0, 3.0], "copied": [0.0, 0.5, 1.0]}
    each["parse"] = [Branch("S", -1, 0, 2), Branch("X", 0, 1, 1, "a")]
    shown = [replace(one, **each, experts={"layers.0": [[1], [0], [2]]}) for one in plain.hypotheses]
    points = Points([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]], [[0, 1], [0, 2]], [0, 1])
    return replace(
        plain, hypotheses=shown, steps=[1.0, 2.0, 3.0, 4.0], points=points, experts={"layers.0": [[0, 1]] * 4}
    )


def test_a_picture_is_seen_under_the_attention_of_each_word(browse: Browse, tmp_path: Path):
    file = tmp_path / "page.html"
    file.write_text(page(picture()), encoding="utf-8")
    shown = sections(browse(file.as_uri()))
    assert "alignment" not in shown
    seen, tokens = shown["image"], len(picture().hypotheses[0].tokens)
    assert seen.count("<image") == tokens + 1  # and one of them large
    assert seen.count('class="veil"') == 6 * (tokens + 1)
    assert "output → input" not in shown["attention"]

    plain = [replace(one, alignment=[], source_attention=[]) for one in picture().hypotheses]
    file.write_text(page(replace(picture(), hypotheses=plain)), encoding="utf-8")
    seen = sections(browse(file.as_uri()))["image"]
    assert seen.count("<image") == 1
    assert "no attention to its places" in seen


@pytest.mark.parametrize(("channels", "frames"), [(1, 1), (3, 2)])
def test_pixels_are_seen_with_their_cost_and_what_they_depend_on(
    browse: Browse, tmp_path: Path, channels: int, frames: int
):
    file = tmp_path / "page.html"
    file.write_text(page(drawing(channels, frames)), encoding="utf-8")
    shown = sections(browse(file.as_uri()))
    assert list(shown) == ["pixels"]
    assert shown["pixels"].count("<canvas") == 1 + 2 + 3
    assert shown["pixels"].count('class="here"') == 3
    assert len(re.findall(r'class="bar( chosen)?"', shown["pixels"])) == 3 * channels
    where = "row 2, column 3" if frames == 1 else "frame 2, row 2, column 3"
    assert f"Pixel {7 + 12 * (frames - 1)} of {12 * frames}, {where}: " in shown["pixels"]


def sections(document: str) -> dict[str, str]:
    """The sections that are shown, by id."""
    found = re.findall(r"<section ([^>]*)>(.*?)</section>", document, re.DOTALL)
    return {re.search(r'id="(\w+)"', head)[1]: body for head, body in found if "hidden" not in head}


def test_every_view_draws_what_it_has(browse: Browse, tmp_path: Path):
    file = tmp_path / "page.html"
    file.write_text(page(everything()), encoding="utf-8")
    shown = sections(browse(file.as_uri()))
    assert list(shown) == [
        "timing",
        "steps",
        "experts",
        "copying",
        "parse",
        "points",
        "alignment",
        "tokens",
        "attention",
        "nbest",
        "beam",
    ]
    for name in ("timing", "parse", "points", "alignment", "attention", "beam"):
        assert "<svg" in shown[name]
    assert shown["copying"].count('class="token shaded') == 3
    assert shown["steps"].count('class="token shaded') == 7
    assert shown["experts"].count('class="token shaded') == 7
    assert "<sub>0 1</sub>" in shown["experts"]
    assert shown["nbest"].count("<button") == 2
    assert re.findall(r"<text[^>]*>(.*?)</text>", shown["parse"]) == ["S", "X", "a"]
    assert shown["parse"].count('class="phrase') == 2

    weights = [[[[0.9, 0.1]]], [[[0.2, 0.8]]]]
    answer = ExplainedHypothesis("garden", -0.1, ["garden"], [-0.1], [[("garden", 0.9)]], [[0.5, 0.5]], weights)
    file.write_text(page(Explanation(["she is in the garden", "where is she"], "", [answer])), encoding="utf-8")
    shown = sections(browse(file.as_uri()))
    assert list(shown) == ["story", "tokens"]
    assert re.findall(r"<th>(.*?)</th>", shown["story"]) == ["", "hop 1", "hop 2"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


def test_the_modules_run_unbundled_from_a_server(browse: Browse, tmp_path: Path):
    file = tmp_path / "page.html"
    file.write_text(page(everything()), encoding="utf-8")
    shutil.copytree(folder.__path__[0], tmp_path / "served")
    html = re.sub(r"<meta http-equiv.*", "", read("page.html"))
    for mark, element in (
        ("style", '<link rel="stylesheet" href="style.css">'),
        ("program", '<script type="module" src="main.js"></script>'),
        ("explanation", f'<script type="application/json" id="explanation">{embed(everything().to_json())}</script>'),
    ):
        html = html.replace(f"<!-- {mark} -->", element)
    (tmp_path / "served" / "page.html").write_text(html, encoding="utf-8")
    handler = partial(Quiet, directory=tmp_path / "served")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        served = browse(f"http://127.0.0.1:{server.server_port}/page.html")
        server.shutdown()
    assert sections(served) == sections(browse(file.as_uri()))
