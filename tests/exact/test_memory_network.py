"""Memory networks against their equations, written out with loops."""

import math
from dataclasses import replace

import pytest
import torch

from seqloom.config.build import build_model, build_task
from seqloom.config.complete import complete
from seqloom.config.recipes import read_recipe
from seqloom.nn.encoders.memory_network import MemoryNetwork, word_weights
from seqloom.nn.heads.word import Word
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.train.training import Training
from seqloom.types import Batch, Padded

VOCABULARY, SIZE, HOPS, AGES = 9, 5, 3, 3
STORIES = [  # the last sentence is the question
    [[4, 5, 6], [7, 8], [5], [4, 4, 8, 6], [6, 7]],
    [[8, 7, 5], [4]],
    [[5, 6]],
]


def network(**settings):
    torch.manual_seed(1)
    made = MemoryNetwork(
        vocabulary=VOCABULARY, pad=0, **{"size": SIZE, "hops": HOPS, "ages": AGES, "empty": 0.0, **settings}
    )
    for parameter in made.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)
    return made.double().eval()


def stories(rows=STORIES, width=4, length=5):
    values = torch.zeros(len(rows), length, width, dtype=torch.long)
    for row, story in enumerate(rows):
        for index, words in enumerate(story):
            values[row, index, : len(words)] = torch.tensor(words)
    return Padded(values, torch.tensor([len(story) for story in rows]))


@torch.no_grad()
def by_formulas(encoder, story, linear=False):
    """u after the last hop, computed with loops."""
    tables = [*(each.weight for each in encoder.tables), encoder.embedding.weight]

    def sentence(words, hop):
        total = [0.0] * SIZE
        for j, word in enumerate(words, start=1):
            for k in range(1, SIZE + 1):
                share = (1 - j / len(words)) - (k / SIZE) * (1 - 2 * j / len(words))
                total[k - 1] += (share if encoder.positions else 1) * tables[hop][word, k - 1].item()
        return torch.tensor(total, dtype=torch.float64)

    def fact(index, hop):
        vector = sentence(story[index], hop)
        if encoder.age is None:
            return vector
        age = min(len(story) - 2 - index, AGES - 1)
        return vector + encoder.age.weight[age, hop * SIZE : (hop + 1) * SIZE]

    question = sentence(story[-1], 0)
    for hop in range(encoder.hops):
        scores = [question @ fact(index, hop) for index in range(len(story) - 1)]
        total = sum(math.exp(score) for score in scores)
        weights = scores if linear else [math.exp(score) / total for score in scores]
        question = question + sum(weight * fact(index, hop + 1) for index, weight in enumerate(weights))
    return question


@pytest.mark.parametrize("settings", [{}, {"positions": False}, {"ages": 0}], ids=["plain", "bag of words", "no time"])
def test_hops_follow_the_equations_of_the_paper(settings):
    encoder = network(**settings)
    found = encoder(stories()).final["summary"]
    for row, story in enumerate(STORIES):
        torch.testing.assert_close(found[row], by_formulas(encoder, story))


def test_the_output_layer_is_the_table_of_the_last_hop():
    encoder = network()
    head = Word(vocabulary=VOCABULARY, memory_size=SIZE, pad=0).double()
    memory = Model(encoder, head, share_embeddings=True).encode(stories())
    scores = head(memory, Padded(torch.full((3, 1), 2), torch.ones(3, dtype=torch.long))).scores[:, 0]
    expected = memory.final["summary"] @ encoder.embedding.weight.T
    torch.testing.assert_close(scores[:, 1:], expected[:, 1:])
    assert scores[:, 0].tolist() == [-math.inf] * 3  # padding cannot be the answer
    assert torch.equal(head.answer(memory).values[:, 0], expected[:, 1:].argmax(-1) + 1)


def test_words_are_weighted_by_their_positions():
    weights = word_weights(torch.tensor([[[True, True, True, False]]]), 2, torch.float64)[0, 0]
    by_hand = [[(1 - j / 3) - (k / 2) * (1 - 2 * j / 3) for k in (1, 2)] for j in (1, 2, 3)] + [[0.0, 0.0]]
    torch.testing.assert_close(weights, torch.tensor(by_hand, dtype=torch.float64))


def test_ages_count_backwards_from_the_question():
    encoder = network(ages=50)
    facts = torch.tensor([[True, True, True, False, False], [True, False, False, False, False]])
    assert encoder.sentence_ages(facts)[0, :3].tolist() == [2, 1, 0]
    assert encoder.sentence_ages(facts)[1, :1].tolist() == [0]
    assert network(ages=2).sentence_ages(facts)[0, :3].tolist() == [1, 1, 0]  # the oldest share one age


def test_padding_of_sentences_and_of_stories_changes_nothing():
    encoder = network()
    with torch.no_grad():  # would show if it were read
        encoder.embedding.weight[0] = 7.0
    expected, wide = encoder(stories(), attention=True), encoder(stories(width=7, length=9), attention=True)
    torch.testing.assert_close(wide.final, expected.final)
    torch.testing.assert_close(wide.extra["hops"][..., :5], expected.extra["hops"])
    assert not wide.extra["hops"][..., 5:].any()


def test_only_the_sentences_before_the_question_have_weights():
    weights = network()(stories(), attention=True).extra["hops"][:, :, 0, 0]  # (B, hops, T)
    torch.testing.assert_close(weights.sum(-1), torch.tensor([[1.0] * 3, [1.0] * 3, [0.0] * 3], dtype=torch.float64))
    assert not weights[0, :, 4].any()
    assert not weights[1, :, 1:].any()


class TestLinearStart:
    def test_without_softmax_a_hop_is_a_product(self):
        encoder = network(linear_start=0.5)
        for mode in (True, False):  # validation measures the same model as training
            found = encoder.train(mode)(replace(stories(), first_phase=True)).final["summary"]
            for row, story in enumerate(STORIES):
                torch.testing.assert_close(found[row], by_formulas(encoder, story, linear=True))

    def test_one_hop_is_linear_in_its_question(self):
        encoder = network(hops=1, positions=False, linear_start=0.5).train()
        facts = STORIES[0][:-1]
        one, other, both = (
            encoder(replace(stories([[*facts, question]]), first_phase=True)).final["summary"]
            for question in ([4, 5], [6, 7], [4, 5, 6, 7])
        )
        torch.testing.assert_close(one + other, both)

    @pytest.mark.parametrize("progress", [0.0, 1.0])
    def test_after_the_first_phase_there_is_a_softmax(self, progress):
        encoder = network(linear_start=0.5).train()
        found = encoder(replace(stories(), progress=progress)).final["summary"]
        torch.testing.assert_close(found[0], by_formulas(encoder, STORIES[0]))

    def test_the_phase_of_the_training_reaches_the_encoder(self):
        model = Model(network(linear_start=0.5).float(), Word(vocabulary=VOCABULARY, memory_size=SIZE, pad=0))
        training = Training(model, CrossEntropy()).train()
        with_softmax = training(batch().to("cpu"), 0.1).total.item()
        training.first_phase = True
        assert training(batch().to("cpu"), 0.1).total.item() != with_softmax


def batch():
    ones = torch.ones(3, dtype=torch.long)
    return Batch(stories(), Padded(2 * ones[:, None], ones), Padded(torch.tensor([[5], [6], [7]]), ones))


def test_empty_sentences_are_inserted_in_training_only_and_make_others_older():
    encoder = network(ages=50, empty=0.5)
    facts = torch.ones(200, 10, dtype=torch.bool)
    assert torch.equal(encoder.sentence_ages(facts), torch.arange(9, -1, -1).expand(200, -1))
    torch.manual_seed(1)
    ages = encoder.train().sentence_ages(facts)
    gaps = ages[:, :-1] - ages[:, 1:]
    assert set(gaps.unique().tolist()) == {1, 2}  # one sentence later, or one and an empty one
    assert 0.45 < (gaps == 2).double().mean() < 0.55
    assert 0.4 < (ages[:, -1] == 1).double().mean() < 0.6  # there may be one right before the question, too


def test_the_vector_of_padding_stays_zero():
    torch.manual_seed(1)
    encoder = MemoryNetwork(vocabulary=VOCABULARY, pad=0, size=SIZE)
    model = Model(encoder, Word(vocabulary=VOCABULARY, memory_size=SIZE, pad=0), share_embeddings=True)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    before = encoder.embedding.weight.detach().clone()
    for _ in range(5):
        optimiser.zero_grad()
        CrossEntropy()(model, batch(), 1.0).total.backward()
        optimiser.step()
    for table in (*encoder.tables, encoder.embedding):
        assert not table.weight[0].any()
    assert (encoder.embedding.weight[1:] != before[1:]).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hops": 0}, "hops = 0"),
        ({"empty": 1.0}, "empty = 1.0"),
        ({"linear_start": -0.1}, "linear_start = -0.1"),
        ({"linear_rate": 0.0}, "linear_rate = 0.0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        MemoryNetwork(vocabulary=VOCABULARY, pad=0, **settings)


def test_the_recipe_shares_the_tables_as_the_paper_does():
    recipe = complete(read_recipe("babi"), "babi")
    task = build_task(recipe)
    task.target.fit(["Mary went home. Where is Mary?", "home"])
    model = build_model(recipe, task.source, task.target)
    assert model.decoder.embedding is model.encoder.embedding
    assert task.source is task.target
