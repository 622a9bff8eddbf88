"""The attention-sum reader against loops."""

import math

import pytest
import torch

from seqloom.nn.cells.gru import GRU
from seqloom.nn.encoders.reader import Reader as ReaderEncoder
from seqloom.nn.encoders.reader import compact
from seqloom.nn.heads.reader import Reader
from seqloom.types import Memory, Padded

VOCABULARY, SIZE = 9, 3
SPECIAL = [[4, 5, 4, 6, 7, 5, 4], [8, 4, 8, 0, 0, 0, 0]]
LENGTHS = [7, 3]


def memory():
    torch.manual_seed(1)
    words = Memory(torch.randn(2, 7, SIZE, dtype=torch.float64), torch.tensor(LENGTHS))
    summary = torch.randn(2, SIZE, dtype=torch.float64)
    parts = {"words": words, "tokens": Memory(torch.tensor(SPECIAL), words.lengths)}
    return Memory(torch.zeros(2, 2, SIZE), torch.tensor([2, 2]), {"summary": summary}, parts=parts)


def head(written=tuple(range(VOCABULARY)), **settings):
    return Reader(vocabulary=VOCABULARY, memory_size=SIZE, unk=1, written=written, **settings)


def probabilities(reader, found):
    ones = torch.ones(2, dtype=torch.long)
    return reader(found, Padded(2 * ones[:, None], ones)).scores[:, 0].softmax(-1)


def by_loop(found, row, pooling, candidates=range(4, VOCABULARY)):
    """P(w), word by word."""
    states, summary = found.parts["words"].states[row], found.final["summary"][row]
    positions = [position for position in range(LENGTHS[row]) if SPECIAL[row][position] in candidates]
    energies = {position: math.exp(sum((states[position] * summary).tolist())) for position in positions}
    shares = [0.0] * VOCABULARY
    for position in positions:
        share = energies[position] / sum(energies.values())
        before = shares[SPECIAL[row][position]]
        shares[SPECIAL[row][position]] = before + share if pooling == "sum" else max(before, share)
    return torch.tensor(shares, dtype=torch.float64) / sum(shares)


@pytest.mark.parametrize("pooling", ["sum", "max"])
def test_occurrences_of_a_word_are_summed_or_maximised(pooling):
    found = memory()
    merged = probabilities(head(pooling=pooling), found)
    for row in range(2):
        torch.testing.assert_close(merged[row], by_loop(found, row, pooling))


def test_sum_and_max_differ_where_a_word_comes_twice():
    found = memory()
    assert (probabilities(head(), found)[0] - probabilities(head(pooling="max"), found)[0]).abs().max() > 0.01


def test_only_words_of_the_target_vocabulary_are_candidates_and_share_all_probability():
    found, written = memory(), (0, 1, 2, 3, 5, 1, 4, 1, 1)  # 4 is written 5, and 6 is written 4
    merged, attention = probabilities(head(written), found)[0], head(written).read(found)[1][0]
    alone = by_loop(found, 0, "sum", candidates=(4, 6))
    torch.testing.assert_close(merged[[5, 4]], alone[[4, 6]])
    torch.testing.assert_close(merged.sum(), merged[[4, 5]].sum())
    assert attention.nonzero()[:, 0].tolist() == [0, 2, 3, 6]


def test_a_word_not_in_the_document_has_a_finite_loss():
    log_probs = head().read(memory())[0]
    assert log_probs.isfinite().all()
    assert log_probs[1, 7] < -80


def stories():
    values = torch.tensor(
        [
            [[4, 5, 0], [6, 7, 8], [5, 0, 0], [8, 6, 0]],
            [[7, 0, 0], [4, 4, 5], [0, 0, 0], [0, 0, 0]],
        ]
    )
    return Padded(values, torch.tensor([4, 2]))


def test_document_and_question_have_bidirectional_cells_of_their_own():
    torch.manual_seed(1)
    encoder = ReaderEncoder(vocabulary=VOCABULARY, pad=0, embedding_size=4, size=SIZE).double().eval()
    found = encoder(stories())
    documents, questions = [[4, 5, 6, 7, 8, 5], [7]], [[8, 6], [4, 4, 5]]

    def read(cells, tokens):
        """Outputs forward and backward, by torch's own network."""
        bidirectional = torch.nn.GRU(4, SIZE, batch_first=True, bidirectional=True).double()
        for cell, suffix in zip(cells, ("", "_reverse")):
            for name, value in cell.kernel.named_parameters():
                getattr(bidirectional, f"{name}{suffix}").data = value.data
        outputs, last = bidirectional(encoder.embedding(torch.tensor([tokens])))
        return outputs[0], last.flatten()

    assert isinstance(encoder.forwards, GRU)
    for row, (document, question) in enumerate(zip(documents, questions)):
        states, _ = read((encoder.forwards, encoder.backwards), document)
        _, summary = read((encoder.asking_forwards, encoder.asking_backwards), question)
        torch.testing.assert_close(found.parts["words"].states[row, : len(document)], states)
        assert found.parts["tokens"].states[row, : len(document)].tolist() == document
        torch.testing.assert_close(found.final["summary"][row], summary)
    assert found.parts["words"].lengths.tolist() == [6, 1]
    torch.testing.assert_close(found.states[0, 1], found.parts["words"].states[0, 4])  # of the last word of a sentence


def test_compact_closes_gaps():
    tokens = torch.tensor([[0, 4, 0, 5], [6, 0, 0, 0]])
    packed = compact(tokens, tokens > 0)
    assert packed.lengths.tolist() == [2, 1]
    assert packed.values[0].tolist() == [4, 5]
    assert packed.values[1, 0] == 6
