"""Well-formed trees: what the constraint allows is what a parser of its own accepts, of all sequences there are."""

from functools import cache
from itertools import product

import numpy as np
import pytest
import torch

from seqloom.data.codecs.text import Text
from seqloom.data.codecs.tree import FIRST, Tree
from seqloom.data.special_tokens import BOS, EOS
from seqloom.errors import SeqloomError
from seqloom.metrics.trees import read_tree, words_of
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.transformer import Transformer
from seqloom.search.beam import BeamSearch
from seqloom.search.constraints.tree import WellFormed
from seqloom.search.sample import Sampling
from seqloom.tasks.pairs import Pairs
from seqloom.types import Padded, select
from tests.building import build, memory_for

LABELS, TAGS = 2, 1
NAMES = ["(A", "(B", ")A", ")B", "x"]  # the tokens from FIRST on
LIMIT = 8  # tokens, the end included
LENGTHS = (2, 3, 1)


def accepts(names: list[str], words: int) -> bool:
    """Whether this is one tree of so many words, by recursive descent."""
    return constituent(names, 0) == len(names) and names.count("x") == words


def constituent(names: list[str], place: int) -> int:
    """Where the constituent that begins at a place ends; -1 if there is none."""
    if place >= len(names) or not names[place].startswith("("):
        return -1
    after = place + 1
    while (end := after + 1 if names[after : after + 1] == ["x"] else constituent(names, after)) > 0:
        after = end
    closed = names[after : after + 1] == [")" + names[place][1]]
    return after + 1 if closed and after > place + 1 else -1


@cache
def trees(words: int, limit: int = LIMIT) -> frozenset[tuple[int, ...]]:
    """The tokens of every tree of so many words that fits, without the end."""
    every = (each for length in range(1, limit) for each in product(range(len(NAMES)), repeat=length))
    return frozenset(
        tuple(FIRST + number for number in each) for each in every if accepts([NAMES[number] for number in each], words)
    )


def rule(*lengths: int, labels: int = LABELS, tags: int = TAGS) -> WellFormed:
    source = Padded(np.zeros((len(lengths), max(lengths)), dtype=np.int64), np.array(lengths))
    return WellFormed(source, FIRST, labels, tags, EOS)


def allowed(constraint: WellFormed, limit: int) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
    """Every prefix that the constraint allows for its one source, and every output that it allows to end."""
    state = constraint.step(np.array([BOS]), constraint.start(1, np.array([limit])))
    prefixes: list[tuple[int, ...]] = [()]
    seen, ended = {()}, set()
    for place in range(limit):
        scores = constraint.forbid(np.zeros((len(prefixes), FIRST + len(NAMES))), state)
        ended |= {prefixes[row] for row in np.flatnonzero(scores[:, EOS] == 0)}
        rows, tokens = (scores[:, FIRST:] == 0).nonzero()
        if place == limit - 1 or not len(rows):  # the last token can only be the end
            break
        prefixes = [(*prefixes[row], FIRST + token) for row, token in zip(rows.tolist(), tokens.tolist())]
        seen |= {*prefixes}
        state = constraint.step(FIRST + tokens, select(state, rows))
    return seen, ended


def test_the_parser_of_this_test_knows_trees():
    assert accepts(["(A", "x", ")A"], 1)
    assert accepts(["(A", "(B", "x", ")B", "x", ")A"], 2)
    for text in (
        "x",
        "(A )A",
        "(A x )B",
        "(A x )A (A x )A",
        "(A x )A x",
        "(A (B x )B",
        "(A x )A )A",
        "(A (B )B x )A",
        "",
    ):
        assert not accepts(text.split(), text.count("x"))
    assert len(trees(1)) == 2 + 4 + 8  # chains of one, two and three constituents


@pytest.mark.parametrize("words", [1, 2, 3, 4])
@pytest.mark.parametrize("limit", [7, 8])
def test_what_is_allowed_is_what_a_parser_accepts_and_every_beginning_can_be_completed(words, limit):
    seen, ended = allowed(rule(words), limit)
    assert ended == trees(words, limit)
    assert seen == {tree[:length] for tree in ended for length in range(len(tree) + 1)}


@pytest.mark.parametrize("words", [5, 6])
def test_an_output_needs_room_for_its_words_a_root_and_the_end(words):
    with pytest.raises(SeqloomError, match="maximum_length"):
        rule(1, words).start(2, np.array([30, words + 2]))
    seen, ended = allowed(rule(words), words + 3)
    assert ended == {(FIRST + label, *[FIRST + 4] * words, FIRST + 2 + label) for label in range(LABELS)}
    assert len(seen) == 1 + 2 * (words + 2)


@pytest.mark.parametrize(("labels", "tags"), [(1, 3), (3, 1), (2, 2)])
def test_any_tag_is_a_word(labels, tags):
    constraint = rule(1, labels=labels, tags=tags)
    state = constraint.step(np.array([BOS]), constraint.start(1, np.array([9])))
    state = constraint.step(np.array([FIRST]), state)
    scores = constraint.forbid(np.zeros((1, FIRST + 2 * labels + tags)), state)[0]
    assert (scores[FIRST:] == 0).tolist() == [True] * labels + [False] * labels + [True] * tags


@pytest.fixture(params=[Recurrent, Transformer], ids=["recurrent", "transformer"])
def decoder(request):
    made = build(request.param, length_ratio=0.0, length_offset=LIMIT)
    for parameter in made.parameters():
        parameter.data *= 3
    return made


def log_prob(decoder, memory, tokens):
    inputs = Padded(torch.tensor([[BOS, *tokens]]), torch.tensor([len(tokens) + 1]))
    log_probs = torch.log_softmax(decoder(memory, inputs).scores[0], dim=-1)
    return sum(float(log_probs[place, token]) for place, token in enumerate([*tokens, EOS]))


@torch.no_grad()
def test_a_beam_as_wide_as_all_trees_finds_them_all_best_first(decoder):
    memory = memory_for(decoder, LENGTHS)
    search = BeamSearch(beam_size=80, n_best=80, length_penalty=0.0)
    for row, (found, words) in enumerate(zip(search(decoder, memory, None, [rule(*LENGTHS)]), LENGTHS)):
        ours = memory.select(torch.tensor([row]))
        expected = sorted(((log_prob(decoder, ours, each), each) for each in trees(words)), reverse=True)
        assert [tuple(one.tokens) for one in found] == [each for _, each in expected]
        assert [one.score for one in found] == pytest.approx([score for score, _ in expected], abs=1e-9)


@torch.no_grad()
def test_even_narrow_beams_and_samples_write_trees(decoder):
    memory = memory_for(decoder, LENGTHS)
    for search in (BeamSearch(beam_size=1), BeamSearch(beam_size=2), Sampling(n_best=8, seed=1)):
        for found, words in zip(search(decoder, memory, None, [rule(*LENGTHS)]), LENGTHS):
            assert {tuple(one.tokens) for one in found} <= trees(words)
            assert found
    free = Sampling(n_best=20, seed=1)(decoder, memory)[0]
    assert not {tuple(one.tokens) for one in free} <= trees(LENGTHS[0])  # unconstrained outputs are not all trees


@torch.no_grad()
def test_a_beginning_counts_and_one_that_is_of_no_tree_leaves_no_output(decoder):
    begun = [[0, 1], [0, 4], [1, 2]]
    prefix = Padded.stack([torch.tensor(each) + FIRST for each in begun])
    found = BeamSearch(beam_size=80, n_best=80)(decoder, memory_for(decoder, LENGTHS), prefix, [rule(*LENGTHS)])
    for row, (beginning, words) in enumerate(zip(begun, LENGTHS)):
        starts = tuple(FIRST + number for number in beginning)
        assert {tuple(one.tokens) for one in found[row]} == {each for each in trees(words) if each[:2] == starts}
    assert found[0]
    assert found[1]
    assert found[2] == []


def test_a_model_that_only_opens_brackets_ends_within_its_limit():
    """The room forces words and closings just in time."""
    constraint, limit = rule(3), 40
    state = constraint.step(np.array([BOS]), constraint.start(1, np.array([limit])))
    preferred, written = np.zeros((1, FIRST + len(NAMES))), []
    preferred[0, FIRST] = 1.0
    while not written or written[-1] != EOS:
        written.append(int(constraint.forbid(preferred.copy(), state).argmax()))
        state = constraint.step(np.array(written[-1:]), state)
    assert len(written) <= limit
    assert accepts([NAMES[token - FIRST] for token in written[:-1]], 3)


def test_a_task_builds_the_constraint_of_its_codec():
    values = ["(S (NP (DT the) (NN loom)) (VP (VBZ weaves)))", "(S (X a))"]
    task = Pairs(source=Text(units="word").fit(["the loom weaves"]), target=Tree().fit(values), valid="tree")
    source = Padded.stack([task.source.encode("the loom weaves"), task.source.encode("loom")])
    (constraint,) = task.constraints(source)
    state = constraint.step(np.array([BOS, BOS]), constraint.start(2, np.array([14, 14])))
    chance, written = np.random.default_rng(1), []
    for _ in range(14):
        scores = constraint.forbid(chance.normal(size=(2, task.target.vocabulary)), state)
        written.append(np.where(np.isinf(scores).all(1), EOS, scores.argmax(1)))
        state = constraint.step(written[-1], state)
    for tokens, words in zip(np.array(written).T, ("the loom weaves", "loom")):
        assert words_of(read_tree(task.decode(tokens, words))) == words.split()
    assert Pairs(source=Text(units="word"), target=Tree()).constraints(source) == []
