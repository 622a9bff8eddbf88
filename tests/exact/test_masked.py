"""Masked words: what is read, what is to be found and how it is drawn; the loss of what counts, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from seqloom.data.codecs.text import Text
from seqloom.data.segments import ALONE, ELSEWHERE, FOLLOWS, cut, documents_of, segments
from seqloom.data.special_tokens import BOS, EOS, PAD, SPECIAL
from seqloom.errors import SeqloomError
from seqloom.inference.filling import Lines, evaluate_masked, fill
from seqloom.inference.system import System
from seqloom.nn.encoders.transformer import Transformer
from seqloom.nn.heads.masked import Masked as Head
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.tasks.masked import Masked
from seqloom.types import COUNTED, Batch, Example, Padded

WORDS = [f"w{number}" for number in range(200)]
BERT = {"norm": "post", "activation": "gelu", "positions": "learned", "normalised": True, "segments": 2}


def documents(count: int = 12, seed: int = 1) -> list[str]:
    """Lines of words, an empty one between documents; the words of a document are its own ten."""
    random = np.random.default_rng(seed)
    lines: list[str] = []
    for number in range(count):
        own = WORDS[10 * number : 10 * number + 10]
        lines += [" ".join(random.choice(own, random.integers(3, 12))) for _ in range(random.integers(5, 15))] + [""]
    return lines


CODEC = Text(units="word", size=300, mask=True).fit([line for line in documents() if line])
MASK = CODEC.vocabulary - 1
TEXT = Lines.of(Masked(source=CODEC), documents())


def texts(task: Masked, epochs: int = 1) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
    """What is read, what should have been, what is to be found, and whether the second segment follows."""
    rows = [row for epoch in range(epochs) for row in task.rows(TEXT.lengths, 1, epoch).tolist()]
    return [(*task.text(TEXT, row), row[4]) for row in rows]


# -- segments


def test_documents_are_the_lines_between_empty_ones_and_long_lines_come_in_parts():
    lengths = np.array([3, 4, 1, 1, 8, 2, 1])  # each with its end
    assert documents_of(lengths, 100) == [[(0, 2), (3, 6)], [(9, 16), (17, 18)]]
    assert documents_of(lengths, 3) == [[(0, 2), (3, 6)], [(9, 12), (12, 15), (15, 16), (17, 18)]]


def test_a_second_segment_follows_the_first_or_is_from_another_document_half_of_the_time():
    kinds = []
    for epoch in range(20):
        rows = segments(TEXT.lengths[:, 1], 40, True, np.random.default_rng(epoch))
        whole = documents_of(TEXT.lengths[:, 1], 20)
        where = {token: number for number, lines in enumerate(whole) for line in lines for token in range(*line)}
        for begin, end, other, last, follows, _ in rows.tolist():
            assert where[begin] == where[end - 1]
            assert where[other] == where[last - 1]
            if follows == FOLLOWS:
                assert where[other] == where[begin]
                assert other in (end, end + 1)  # the end of a line between, or a long line in parts
            else:
                assert where[other] != where[begin]
            kinds.append(follows)
    assert set(kinds) == {FOLLOWS, ELSEWHERE}
    assert abs(np.mean(kinds) - 0.5) < 4 * 0.5 / math.sqrt(len(kinds)) + 0.05  # last lines alone have no follower


def test_every_token_is_read_in_every_epoch_where_segments_are_alone():
    rows = segments(TEXT.lengths[:, 1], 30, False, np.random.default_rng(1))
    assert set(rows[:, 4].tolist()) == {ALONE}
    read = {token for begin, end, *_ in rows.tolist() for token in range(begin, end)}
    assert read >= {token for lines in documents_of(TEXT.lengths[:, 1], 30) for line in lines for token in range(*line)}


def test_pairs_need_two_documents_and_without_them_it_is_said():
    one = [line for line in documents() if line]
    lengths = Lines.of(Masked(source=CODEC), one).lengths
    assert set(segments(lengths[:, 1], 30, True, np.random.default_rng(1))[:, 4].tolist()) == {ALONE}
    assert "one document" in Masked(source=CODEC).notes(lengths)[0]
    assert Masked(source=CODEC).notes(TEXT.lengths) == []
    assert Masked(source=CODEC, pairs=False).notes(lengths) == []


def test_the_longer_segment_is_cut_at_its_ends():
    random = np.random.default_rng(1)
    first, second = cut(list(range(10)), list(range(3)), 8, random)
    assert len(first) + len(second) == 8
    assert first == list(range(first[0], first[0] + len(first)))
    assert second == [0, 1, 2]


# -- what is read and what is to be found


@pytest.mark.parametrize("pairs", [True, False])
def test_a_text_is_framed_and_no_longer_than_the_window(pairs):
    task = Masked(source=CODEC, window=32, pairs=pairs)
    for read, target, chosen, follows in texts(task):
        assert len(read) == len(target) == len(chosen) <= 32
        assert read[0] == BOS
        assert read[-1] == target[-1] == EOS
        assert (read == EOS).sum() == (2 if pairs else 1)
        assert not chosen[(target == EOS) | (np.arange(len(read)) == 0)].any()
        assert np.array_equal(read[~chosen][1:], target[~chosen][1:])
        assert target[0] == ({FOLLOWS: EOS, ELSEWHERE: BOS}[follows] if pairs else BOS)


def test_masks_have_the_published_shares():
    found, exchanged, lengths = 0, {"masked": 0, "other": 0, "same": 0}, 0
    others: list[int] = []
    for read, target, chosen, _ in texts(Masked(source=CODEC, window=64), epochs=60):
        found, lengths = found + int(chosen.sum()), lengths + len(read)
        assert chosen.sum() == max(1, round(0.15 * len(read)))
        own, true = read[chosen], target[chosen]
        exchanged["masked"] += int((own == MASK).sum())
        exchanged["same"] += int((own == true).sum())
        exchanged["other"] += int(((own != MASK) & (own != true)).sum())
        others += own[(own != MASK) & (own != true)].tolist()
    assert 0.14 < found / lengths < 0.16
    kinds = CODEC.vocabulary - len(SPECIAL) - 1
    shares = {"masked": 0.8, "other": 0.1 * (1 - 1 / kinds), "same": 0.1 + 0.1 / kinds}
    squared = sum((exchanged[name] - found * share) ** 2 / (found * share) for name, share in shares.items())
    assert squared < 13.8  # chi-square with two degrees of freedom, p = 0.001
    counts = np.bincount(others, minlength=CODEC.vocabulary)[len(SPECIAL) : -1]
    expected = len(others) / kinds
    assert ((counts - expected) ** 2 / expected).sum() < kinds + 4 * math.sqrt(2 * kinds)  # any word is as likely
    assert not set(others) & {*range(len(SPECIAL)), MASK}


def test_everything_is_drawn_anew_in_each_epoch_and_again_by_the_same_seed():
    task = Masked(source=CODEC, window=32)
    plans = [task.plan(TEXT.lengths, 256, seed, epoch) for seed, epoch in ((1, 0), (1, 0), (1, 1), (2, 0))]
    first, again, later, other = (
        [task.collate(TEXT, plan[number]).source.values.tolist() for number in range(len(plan))] for plan in plans
    )
    assert first == again
    assert first != later
    assert first != other
    valid = [task.in_order(TEXT.lengths, 256) for _ in range(2)]
    assert np.array_equal(valid[0].rows, valid[1].rows)


def test_whole_words_are_hidden_with_all_their_pieces():
    codec = Text(units="wordpiece", size=60, mask=True).fit([" ".join(WORDS)])
    task = Masked(source=codec, window=64, whole_words=True)
    lines = Lines.of(task, documents())
    begins, several = codec.begins_word, 0
    for row in task.rows(lines.lengths, 1, 0).tolist():
        _, target, chosen = task.text(lines, row)
        inner = np.flatnonzero(~begins[target])[1:]  # a segment may begin within a word
        joined = [place for place in inner.tolist() if target[place - 1] >= len(SPECIAL)]
        assert all(chosen[place] == chosen[place - 1] for place in joined)
        several += len(joined)
    assert several > 100


def test_a_text_without_a_masked_token_and_settings_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"task\.source\.mask = true"):
        Masked(source=Text(units="word"))
    for settings in ({"window": 4}, {"share": 0.0}, {"share": 1.0}):
        with pytest.raises(ValueError, match=r"window|share"):
            Masked(source=CODEC, **settings)


# -- the model


def model(seed: int = 1, **settings) -> Model:
    torch.manual_seed(seed)
    sizes = {"size": 16, "layers": 2, "heads": 2, "hidden": 32, "longest": 64, "dropout": 0.0}
    encoder = Transformer(vocabulary=CODEC.vocabulary, **{**sizes, **BERT, **settings})
    head = Head(vocabulary=CODEC.vocabulary, memory_size=16, bos=BOS)
    made = Model(encoder, head, share_embeddings=True).double().eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made


def a_batch(task: Masked) -> Batch:
    return task.collate(TEXT, task.in_order(TEXT.lengths, 600)[0])


@torch.no_grad()
def test_the_head_is_the_formula_with_the_encoders_table():
    made, batch = model(), a_batch(Masked(source=CODEC, window=32))
    assert made.decoder.embedding is made.encoder.embedding
    states = made.encode(batch.source).states
    inner = torch.nn.functional.gelu(states @ made.decoder.transform.weight.T + made.decoder.transform.bias)
    expected = made.decoder.norm(inner) @ made.encoder.embedding.weight.T + made.decoder.bias
    found = made(batch).scores
    torch.testing.assert_close(found[batch.source.mask], expected[batch.source.mask])


def test_only_what_is_to_be_found_counts_and_both_losses_weigh_the_same():
    made, batch = model(), a_batch(Masked(source=CODEC, window=32))
    loss = CrossEntropy()(made, batch, 0.0)
    log_probs = made(batch).scores.log_softmax(-1).gather(-1, batch.targets.values[:, :, None])[:, :, 0]
    chosen = torch.as_tensor(batch.extra[COUNTED]) > 0
    pairs, words = chosen[:, 0], chosen.clone()
    words[:, 0] = False
    assert pairs.all()
    expected = -(log_probs[words].mean() + log_probs[:, 0].mean()) / 2
    torch.testing.assert_close(loss.total / loss.count, expected, rtol=1e-6, atol=0)
    other = batch.targets.values.clone()
    other[~chosen & batch.targets.mask] = 7  # not to be found
    changed = replace(batch, targets=Padded(other, batch.targets.lengths))
    torch.testing.assert_close(CrossEntropy()(made, changed, 0.0).total, loss.total)


@torch.no_grad()
def test_padding_and_other_texts_of_a_batch_change_nothing():
    made, batch = model(), a_batch(Masked(source=CODEC, window=48))
    scores = made(batch).scores
    for row, length in enumerate(batch.source.lengths.tolist()):
        alone = Padded(batch.source.values[row : row + 1, :length], batch.source.lengths[row : row + 1])
        found = made.decoder(made.encode(alone), alone).scores
        torch.testing.assert_close(found[0], scores[row, :length])


@torch.no_grad()
def test_segments_matter():
    task, made = Masked(source=CODEC), model()
    tokens = task.framed([8, 9], [10, 11])
    swapped = Padded.stack([np.array([BOS, 10, 11, EOS, 8, 9, EOS])])
    plain = Padded.stack([tokens])
    plain, swapped = plain.to("cpu"), swapped.to("cpu")
    permuted = model(segments=0, positions="sinusoidal")
    for each in (made, permuted):
        assert not torch.allclose(each.encode(plain).states[0, 1], each.encode(swapped).states[0, 4])
    one = Padded.stack([np.array([BOS, 8, 9, 10, 11, EOS])]).to("cpu")
    assert made.encode(plain).states.shape[1] == 7
    table = made.encoder.segments.weight
    before = made.encode(one).states.clone()
    table[1] += 1  # of a second segment, which this text does not have
    torch.testing.assert_close(made.encode(one).states, before)
    assert not torch.allclose(made.encode(plain).states[0, 5], before[0, 3])


# -- filling and measuring


def system(made: Model | None = None, **settings) -> System:
    return System(made or model(), Masked(source=CODEC, window=48, **settings), {"search": {"type": "beam"}})


@torch.no_grad()
def test_words_are_found_by_the_softmax_over_words():
    ours = system()
    found = fill(ours, "w1 [MASK] w3 [MASK] w5", n_best=3)
    tokens = ours.task.framed([*CODEC.encode("w1"), MASK, *CODEC.encode("w3"), MASK, *CODEC.encode("w5")])
    source = Padded.stack([tokens]).to("cpu")
    scores = ours.model.decoder(ours.model.encode(source), source).scores[0, :, len(SPECIAL) : MASK].float()
    for place, candidates in zip((2, 4), found.candidates):
        values, ids = scores[place].softmax(-1).topk(3)
        assert [word for word, _ in candidates] == CODEC.pieces(ids + len(SPECIAL))
        assert [share for _, share in candidates] == pytest.approx(values.tolist(), rel=1e-5)
    first, second = (candidates[0][0] for candidates in found.candidates)
    assert found.text == f"w1 {first} w3 {second} w5"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("w1 w2", r"has no \[MASK\]"), (3, r"has no \[MASK\]"), ("[MASK] " + "w1 " * 60, "expected at most 48")],
)
def test_texts_that_cannot_be_filled_are_refused(text, wrong):
    with pytest.raises(SeqloomError, match=wrong):
        fill(system(), text)


def test_n_best_is_a_number_of_words():
    assert len(fill(system(), "[MASK]", n_best=1_000).candidates[0]) == CODEC.vocabulary - len(SPECIAL) - 1
    for number in (0, 1_001):
        with pytest.raises(SeqloomError, match="n_best"):
            fill(system(), "[MASK]", n_best=number)


def test_what_is_found_is_counted():
    class Knows(torch.nn.Module):
        """Finds every word and takes all second segments for followers."""

        device = torch.device("cpu")

        def forward(self, batch):
            scores = 9.0 * torch.nn.functional.one_hot(batch.targets.values, CODEC.vocabulary).double()
            scores[:, 0] = 9.0 * torch.nn.functional.one_hot(torch.tensor(EOS), CODEC.vocabulary)
            return SimpleNamespace(scores=scores)

    examples = [Example(None, line) for line in documents()]
    found = evaluate_masked(system(Knows()), examples)
    assert found["masked_accuracy"] == 100
    task = Masked(source=CODEC, window=48)
    rows = task.rows(TEXT.lengths, 2**31, 0)
    assert found["pair_accuracy"] == pytest.approx(100 * float((rows[:, 4] == FOLLOWS).mean()))
    own = math.log1p((CODEC.vocabulary - 1) * math.exp(-9))
    assert found["masked_perplexity"] == pytest.approx(math.exp(own), rel=1e-5)
    alone = evaluate_masked(system(Knows(), pairs=False), examples)
    assert set(alone) == {"masked_accuracy", "masked_perplexity"}
    with pytest.raises(SeqloomError, match="no words"):
        evaluate_masked(system(Knows()), [Example(None, "")])


def test_a_masked_token_is_no_text():
    assert CODEC.encode("[MASK]").tolist() != [MASK]
    assert CODEC.pieces([MASK]) == ["[MASK]"]
    assert CODEC.vocabulary == MASK + 1
    assert Text(units="byte", mask=True).vocabulary == Text(units="byte").vocabulary + 1
    assert Text(units="byte", mask=True).fingerprint() != Text(units="byte").fingerprint()
    assert PAD not in CODEC.encode(" ".join(WORDS))
