"""The hierarchical encoder against turns read one by one, and HRED with one turn against a plain encoder-decoder."""

from functools import partial

import numpy as np
import pytest
import torch

from seqloom.data.special_tokens import BOS, EOS
from seqloom.nn.attention.bilinear import Bilinear
from seqloom.nn.cells.elman import Elman
from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.recurrent import Recurrent as Decoder
from seqloom.nn.encoders.hierarchical import WIDER, Hierarchical, groups
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.encoders.transformer import Transformer
from seqloom.nn.model import Model
from seqloom.types import Padded
from tests.building import source_for

VOCABULARY, EMBEDDING, WORDS, SIZE = 9, 3, 5, 4
TURNS = [[[4, 5, 6], [7, 8], [5], [4, 4, 8, 6, 6, 7, 5, 4, 8]], [[8, 7, 5], [4]], [[5, 6]]]  # of three dialogues
OF_WORDS = partial(Recurrent, cell=GRU, embedding_size=EMBEDDING, size=WORDS)


def in_float64(part):
    torch.manual_seed(1)
    for parameter in part.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)
    return part.double().eval()


def hierarchical(**settings):
    return in_float64(Hierarchical(vocabulary=VOCABULARY, eos=EOS, **{"encoder": OF_WORDS, "size": SIZE, **settings}))


def dialogues(rows=TURNS):
    return Padded.stack([torch.tensor([token for turn in turns for token in (*turn, EOS)]) for turns in rows])


def turn_by_turn(encoder, turns):
    """The states of a dialogue, each turn read alone and the cell stepped by hand."""
    state, states = encoder.turns.start(1), []
    for turn in turns:
        vector = encoder.encoder(Padded.stack([torch.tensor([*turn, EOS])])).final["summary"]
        output, state = encoder.turns.step(vector, state)
        states.append(output[0])
    return torch.stack(states), state


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"cell": LSTM, "layers": 2},
        {"encoder": partial(Recurrent, cell=LSTM, embedding_size=EMBEDDING, size=WORDS, bidirectional=True)},
        {"encoder": partial(Transformer, size=8, heads=2, hidden=6, layers=1, dropout=0.0)},
    ],
    ids=["gru", "lstm", "bidirectional", "transformer"],
)
def test_a_dialogue_is_its_turns_read_one_by_one(settings):
    encoder = hierarchical(**settings)
    memory = encoder(dialogues())
    assert memory.lengths.tolist() == [4, 2, 1]
    for row, turns in enumerate(TURNS):
        states, final = turn_by_turn(encoder, turns)
        torch.testing.assert_close(memory.states[row, : len(turns)], states, atol=1e-12, rtol=0)
        torch.testing.assert_close(memory.final["summary"][row], states[-1], atol=1e-12, rtol=0)
        for layer, state in final.items():
            for name, value in state.items():
                torch.testing.assert_close(memory.final["layers"][layer][name][row], value[0], atol=1e-12, rtol=0)


@pytest.mark.parametrize("feed_context", [False, True])
def test_with_one_turn_hred_is_a_plain_encoder_decoder_with_the_same_weights(feed_context):
    """The first step of an Elman network over turns is tanh(W u + b): the layer of the plain one's bridge."""
    shared = {"vocabulary": VOCABULARY, "bos": BOS, "eos": EOS, "embedding_size": EMBEDDING, "size": SIZE, "cell": GRU}
    hred = in_float64(
        Model(
            Hierarchical(vocabulary=VOCABULARY, eos=EOS, encoder=OF_WORDS, size=SIZE, cell=Elman),
            Decoder(**shared, memory_size=SIZE, bridge="copy", feed_context=feed_context),
        )
    )
    plain = in_float64(Model(OF_WORDS(vocabulary=VOCABULARY), Decoder(**shared, memory_size=WORDS)))
    kernel = hred.encoder.turns.cells[0].kernel
    plain.encoder.load_state_dict(hred.encoder.encoder.state_dict())
    weights = {name: value for name, value in hred.decoder.state_dict().items() if "bridging" not in name}
    if feed_context:  # the plain one has no place for it: the columns that read the context are zero
        name = "stack.cells.0.kernel.weight_ih_l0"
        weights[name][:, EMBEDDING:] = 0
        weights[name] = weights[name][:, :EMBEDDING]
    bridge = {"bridging.weight": kernel.weight_ih_l0, "bridging.bias": kernel.bias_ih_l0 + kernel.bias_hh_l0}
    plain.decoder.load_state_dict({**weights, **bridge})
    source = dialogues([[[4, 5, 6]], [[8]], [[5, 6, 7, 7, 4]]])
    inputs = Padded(torch.tensor([[BOS, 4, 5], [BOS, 8, 8], [BOS, 6, 4]]), torch.tensor([3, 3, 3]))
    scores = [model.decoder(model.encode(source, 3), inputs).scores for model in (hred, plain)]
    torch.testing.assert_close(*scores, atol=1e-10, rtol=0)


def test_a_turn_changes_the_context_from_itself_on_only():
    encoder = hierarchical()
    before = encoder(dialogues(TURNS[:1])).states[0]
    for place in range(4):
        turns = [list(turn) for turn in TURNS[0]]
        turns[place][-1] = 4 + (turns[place][-1] - 3) % 5  # another word
        after = encoder(dialogues([turns])).states[0]
        assert torch.equal(after[:place], before[:place])
        assert (after[place:] != before[place:]).any(1).all()


def test_the_words_of_a_turn_are_read_from_the_same_start():
    """Equal turns have equal vectors, wherever they stand; only the network over turns remembers."""
    encoder = hierarchical()
    vectors, counts = encoder.read_turns(dialogues([[[4, 5], [6], [4, 5]], [[7, 8, 8, 8], [4, 5]]]))
    assert counts.tolist() == [3, 2]
    torch.testing.assert_close(vectors[0], vectors[2], atol=1e-14, rtol=0)
    torch.testing.assert_close(vectors[0], vectors[4], atol=1e-14, rtol=0)
    assert not torch.allclose(vectors[0], vectors[3])


def test_a_last_turn_without_its_end_is_a_turn():
    encoder = hierarchical()
    cut = Padded(torch.tensor([[4, EOS, 5, 6]]), torch.tensor([4]))
    assert encoder(cut).lengths.tolist() == [2]


def test_groups_of_turns_are_padded_to_less_than_twice_their_tokens():
    lengths = torch.from_numpy(np.random.default_rng(1).geometric(0.07, 500))
    found = list(groups(lengths))
    assert sorted(torch.cat(found).tolist()) == list(range(500))
    for rows in found:
        assert lengths[rows].max() <= WIDER * lengths[rows].min()
    read = sum(len(rows) * int(lengths[rows].max()) for rows in found)
    assert read < 1.5 * lengths.sum() < 0.35 * len(lengths) * lengths.max()


def test_attention_over_turns_has_a_weight_for_each_turn():
    encoder = hierarchical()
    decoder = in_float64(
        Decoder(
            vocabulary=VOCABULARY, memory_size=SIZE, bos=BOS, eos=EOS, embedding_size=3, size=SIZE, attention=Bilinear
        )
    )
    memory = decoder.prepare(encoder(dialogues()))
    output = decoder(memory, Padded(torch.tensor([[BOS, 4]] * 3), torch.tensor([2, 2, 2])), attention=True)
    weights = output.attention["source"][:, 0, 0]  # (B, U, turns)
    assert weights.shape == (3, 2, 4)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2).double())
    assert (weights[1, :, 2:] == 0).all()


def test_the_contract_is_checked_on_dialogues_of_several_turns():
    assert int((source_for(with_settings()).values == EOS).sum()) == 9


def with_settings():
    encoder = hierarchical()
    vars(encoder).update(checked_with_vectors=None)
    return encoder
