"""Labels and tags: pooling by hand, the random field against all sequences, words by their spelling."""

from itertools import product

import pytest
import torch

from seqloom.data.special_tokens import EOS, SPECIAL, UNK
from seqloom.errors import SeqloomError
from seqloom.nn.encoders.spelling import Spelling, ngram_hashes
from seqloom.nn.heads.label import Label
from seqloom.nn.heads.tags import Tags
from seqloom.objectives.cross_entropy import smoothed_cross_entropy
from seqloom.types import Padded
from tests.building import BOS, VOCABULARY, build, memory_for

TAGS = [UNK, *range(len(SPECIAL), VOCABULARY)]  # what may be scored
LENGTHS = (4, 3, 1)


def test_pooled_states_are_the_mean_and_the_maximum_of_the_real_ones():
    memory = memory_for(build(Label), LENGTHS)
    pooled, _ = build(Label).pool(memory)
    for row, length in enumerate(LENGTHS):
        states = memory.states[row, :length]
        torch.testing.assert_close(pooled[row], torch.cat([states.mean(0), states.max(0).values]))


def test_attention_pooling_is_a_weighted_mean_and_explain_sees_its_weights():
    head = build(Label, pooling="attention")
    memory = memory_for(head, LENGTHS)
    pooled, weights = head.pool(memory)
    for row, length in enumerate(LENGTHS):
        states = memory.states[row, :length]
        expected = torch.softmax(
            torch.tanh(states @ head.attention[0].weight.T + head.attention[0].bias) @ head.attention[2].weight[0], 0
        )
        torch.testing.assert_close(weights[row, :length], expected)
        assert not weights[row, length:].any()
        torch.testing.assert_close(pooled[row], expected @ states)
    inputs = Padded(torch.full((3, 1), BOS), torch.ones(3, dtype=torch.long))
    torch.testing.assert_close(head(memory, inputs, attention=True).attention["source"][:, 0, 0, 0], weights)


@pytest.mark.parametrize("head", [Label, Tags])
def test_special_tokens_are_never_answered_and_only_the_unknown_one_can_be_scored(head):
    made = build(head)
    with torch.no_grad():
        made.output.bias[: len(SPECIAL)] = 50.0
    memory = memory_for(made, LENGTHS)
    answer = made.answer(memory)
    assert (answer.values >= len(SPECIAL)).all()
    scores = made(memory, Padded(torch.full_like(answer.values, BOS), answer.lengths)).scores
    assert scores[..., UNK].isfinite().all()
    assert (scores[..., [0, BOS, EOS]] == -torch.inf).all()


# -- the random field


@pytest.fixture
def field():
    return build(Tags, crf=True)


def unnormalised(head, memory, row, tags):
    """sum_t A[y_t-1, y_t] + e_t(y_t), straight from the definition."""
    emissions = head.output(memory.states[row])
    before = [BOS, *tags[:-1]]
    return sum(head.transitions[one, tag] + emissions[place, tag] for place, (one, tag) in enumerate(zip(before, tags)))


def test_a_random_field_has_the_probabilities_of_brute_force(field):
    memory = memory_for(field, LENGTHS)
    generator = torch.Generator().manual_seed(0)
    for row, length in enumerate(LENGTHS):
        everything = list(product(TAGS, repeat=length))
        scores = torch.stack([unnormalised(field, memory, row, tags) for tags in everything])
        expected = scores.log_softmax(0)
        alone = memory.select(torch.tensor([row]))
        width = memory.states.shape[1]
        for number in torch.randint(len(everything), (5,), generator=generator).tolist():
            tags = torch.tensor([*everything[number], *[0] * (width - length)])[None]
            inputs = torch.cat([torch.tensor([[BOS]]), tags[:, :-1]], dim=1)
            lengths = torch.tensor([length])
            found = field.log_prob(alone, Padded(inputs, lengths), Padded(tags, lengths))
            torch.testing.assert_close(found[0], expected[number])
        best = max(everything, key=lambda tags: (UNK not in tags, unnormalised(field, memory, row, tags).item()))
        assert field.answer(memory).values[row, :length].tolist() == list(best)


def test_the_gradient_of_a_random_field_is_that_of_its_likelihood(field):
    memory, tags = memory_for(field, (3,)), (5, 7, 5)
    scores = torch.stack([unnormalised(field, memory, 0, each) for each in product(TAGS, repeat=3)])
    expected = torch.autograd.grad(scores.logsumexp(0) - unnormalised(field, memory, 0, tags), field.transitions)[0]
    inputs = Padded(torch.tensor([[BOS, *tags[:-1]]]), torch.tensor([3]))
    loss, *_ = smoothed_cross_entropy(field(memory, inputs).scores[0], torch.tensor(tags), 0.0)
    torch.testing.assert_close(torch.autograd.grad(loss, field.transitions)[0], expected)


def test_targets_of_another_length_than_the_source_are_refused(field):
    memory = memory_for(field, LENGTHS)
    with pytest.raises(SeqloomError, match="as many tags as its source words"):
        field(memory, Padded(torch.full((3, 4), BOS), torch.tensor([4, 2, 1])))


# -- spelling


def test_every_ngram_is_hashed_once_and_padding_never():
    letters = torch.tensor([[1, 104, 105, 2, 0, 0], [1, 104, 2, 0, 0, 0]])
    hashes = torch.cat(ngram_hashes(letters), dim=1)
    assert (hashes >= 0).sum(1).tolist() == [4 + 3 + 2 + 1, 3 + 2 + 1]
    real = [row[row >= 0].tolist() for row in hashes]
    assert len({*real[0]}) == 10
    assert {*real[0]} & {*real[1]} == {ngram(1), ngram(104), ngram(2), ngram(1, 104)}


def ngram(*letters):
    return int(ngram_hashes(torch.tensor([letters]))[-1][0, 0])


def test_a_word_is_its_vector_and_the_sum_of_its_ngrams():
    encoder = build(Spelling, buckets=11)
    values = torch.tensor([[[5, 1, 70, 2], [6, 1, 2, 0]]])
    vectors = encoder.embed(Padded(values, torch.tensor([2]))).values[0]
    for place, letters in enumerate([(1, 70, 2), (1, 2)]):
        spans = [letters[a:b] for a in range(len(letters)) for b in range(a + 1, len(letters) + 1)]
        total = torch.stack([encoder.ngrams.weight[ngram(*span) % 11] for span in spans]).sum(0)
        expected = torch.cat([encoder.embedding.weight[values[0, place, 0]], total / len(spans) ** 0.5])
        torch.testing.assert_close(vectors[place], expected)


def test_in_training_some_words_are_read_as_unknown_with_their_spelling():
    encoder = build(Spelling, unknown=0.5).train()
    values = torch.tensor([[[5, 1, 70, 2]] * 400])
    torch.manual_seed(0)
    vectors = encoder.embed(Padded(values, torch.tensor([400]))).values[0]
    known = (vectors[:, :8] == encoder.embedding.weight[5]).all(1)
    unknown = (vectors[:, :8] == encoder.embedding.weight[UNK]).all(1)
    assert (known ^ unknown).all()
    assert 150 < known.sum() < 250
    assert (vectors[:, 8:] == vectors[0, 8:]).all()
