"""Explanations of many kinds: dates, translations, other scripts, one token, sixty tokens, hostile text."""

from dataclasses import replace
from math import exp, log
from random import Random

import pytest

from seqloom.explain.record import Branch, ExplainedHypothesis, Explanation, Image, Matrix, PixelByPixel, TreeNode

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
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


def drawing(channels: int = 1, frames: int = 1) -> Explanation:
    """A picture of 3 x 4 pixels in three levels, or a film; some values were measured."""
    random, count = Random(9), 12 * channels * frames
    pixels = PixelByPixel(
        height=3,
        width=4,
        channels=channels,
        frames=frames,
        film=frames > 1,
        levels=3,
        values=[random.randrange(3) for _ in range(count)],
        log_probs=[log(random.uniform(0.1, 1)) for _ in range(count)],
        chances=[[0.2, 0.3, 0.5] for _ in range(count)],
        together=1,
        first=((frames // 2 * 3 + 1) * 4 + 2) * channels,
        fields={place: [random.choice([0, 60, 255]) for _ in range(place)] for place in range(0, count, 3)},
    )
    name = "(a picture of 4 x 3 pixels)"
    return Explanation([], "", [ExplainedHypothesis(name, sum(pixels.log_probs), [], [], [])], pixels=pixels)


def picture() -> Explanation:
    """A picture of two rows and three columns, and its caption."""
    image = Image(PIXEL, 2, 3)
    return replace(explanation(image.places, "", letters("ab", "ac"), layers=1, heads=1), image=image)


EXAMPLES = {
    "date": explanation(list("14 March 2019"), "14 March 2019", letters("2019-03-14", "2019-03-04", "2019-05-14")),
    "translation": explanation(ENGLISH.split(), ENGLISH, words(*GERMAN), layers=3, heads=4),
    "language model": explanation([], "", words("once upon a time there was a loom"), layers=2, heads=2),
    "arabic": explanation(ARABIC.split(), ARABIC,
                          words("the old loom turns thread into cloth", "the ancient loom turns thread into cloth"),
                          layers=1, heads=2),
    "japanese": explanation(ENGLISH.split(), ENGLISH, letters("古い織機は糸を布に変える", "織機は糸を布にする")),
    "one": explanation(["a"], "a", letters("b")),
    "picture": picture(),
    "pixels": drawing(),
    "film in colour": drawing(channels=3, frames=2),
    "sixty": explanation([f"word{i}" for i in range(60)], "sixty words", [([f"wort{i}" for i in range(59)], "sechzig")],
                         layers=2, heads=2),
    "hostile": explanation([HOSTILE, "{{", "<b>"], HOSTILE, [([HOSTILE, "<!-- explanation -->"], HOSTILE)]),
}  # fmt: skip


def adaptive() -> Explanation:
    """A model that decides how many steps it computes: most at the third letter of the output."""
    plain = explanation(list("ab"), "ab", letters("xyz"))
    first = replace(plain.hypotheses[0], steps=[1.0, 2.0, 6.0, 3.0])
    return replace(plain, hypotheses=[first], steps=[1.0, 4.0])


def mixture() -> Explanation:
    """A model with experts in two layers of its encoder and one of its decoder."""
    plain = explanation(list("ab"), "ab", letters("xyz"))
    first = replace(plain.hypotheses[0], experts={"layers.1": [[3, 0], [1, 2], [12, 0], [0, 1]]})
    return replace(plain, hypotheses=[first], experts={"layers.0": [[1, 0], [2, 3]], "layers.1": [[0, 1], [3, 1]]})


def parsing() -> Explanation:
    """A tree whose second hypothesis is ill-formed, without tags."""
    tokens = ["(S", "(NP", "DT", "NN", ")NP", "(VP", "VBZ", ")VP", ")S"]
    plain = explanation(["the", "loom", "weaves"], "the loom weaves", [(tokens, "tree"), (["(S", "XX"], "ill-formed")])
    nodes = [
        Branch("S", -1, 0, 8),
        Branch("NP", 0, 1, 4),
        Branch("DT", 1, 2, 2, "the"),
        Branch("NN", 1, 3, 3, "loom"),
        Branch("VP", 0, 5, 7),
        Branch("VBZ", 4, 6, 6, "weaves"),
    ]
    trees = [nodes, [Branch("S", -1, 0, 1), Branch("", 0, 1, 1, "the")]]
    return replace(plain, hypotheses=[replace(one, parse=tree) for one, tree in zip(plain.hypotheses, trees)])


def copying() -> Explanation:
    plain = explanation(list("ab"), "ab", letters("xyz"))
    return replace(plain, hypotheses=[replace(plain.hypotheses[0], copied=[0.02, 0.5, 1.0, 0.0])])


each = pytest.mark.parametrize("name", EXAMPLES)
