"""Sound sample by sample: the receptive field, conditions of the moment, levels that come back."""

import math
from itertools import product

import numpy as np
import pytest
import soundfile
import torch

from seqloom.data.codecs.wave import FIRST, Wave
from seqloom.data.special_tokens import BOS
from seqloom.errors import SeqloomError
from seqloom.nn.decoders.wave_net import WaveNet
from seqloom.studies.measures.waves import order_two
from seqloom.types import Memory, Padded, flatten

SMALL = {"size": 6, "skip": 5, "hidden": 7, "layers": 4, "dilations": (1, 2, 4)}


def decoder(levels: int = 3, **changes) -> WaveNet:
    torch.manual_seed(1)
    settings = {"vocabulary": FIRST + levels, "memory_size": 0, "bos": BOS, "eos": None, **SMALL, **changes}
    made = WaveNet(**settings).double().eval()
    for parameter in made.parameters():
        torch.nn.init.uniform_(parameter, -0.8, 0.8)
    return made


def shifted(tokens: torch.Tensor) -> Padded:
    start = torch.full((len(tokens), 1), BOS)
    return Padded(torch.cat([start, tokens[:, :-1]], dim=1), torch.full((len(tokens),), tokens.shape[1]))


@pytest.mark.parametrize(("kernel", "layers"), [(2, 4), (3, 3), (2, 7)])
def test_the_receptive_field_is_that_of_the_formula(kernel, layers):
    made = decoder(kernel=kernel, layers=layers)
    dilations = [made.stack.layers[layer].convolution.dilation for layer in range(layers)]
    field = 1 + sum((kernel - 1) * dilation for dilation in dilations)
    assert made.stack.receptive_field == field
    assert dilations == [(1, 2, 4)[layer % 3] for layer in range(layers)]
    inputs = torch.randn(1, 40, 6).double().requires_grad_()
    found, _ = made.stack.extend(
        Padded(inputs, torch.tensor([40])), made.stack.start(1), [None] * len(made.stack.layers)
    )
    (gradient,) = torch.autograd.grad(found[0, 35].sum(), inputs)
    reached = (gradient[0].abs().sum(-1) > 0).nonzero().flatten().tolist()
    assert reached == list(range(max(35 - field + 1, 0), 36))


@torch.no_grad()
def test_the_probabilities_of_all_sounds_sum_to_one_and_special_tokens_have_none():
    made = decoder()
    every = torch.tensor([[FIRST + each for each in values] for values in product(range(3), repeat=5)])  # (243, 5)
    found = made.log_prob(Memory.empty(243), shifted(every), Padded(every, torch.full((243,), 5)))
    assert found.exp().sum() == pytest.approx(1, abs=1e-12)
    assert (made(Memory.empty(243), shifted(every)).scores[..., :FIRST] == -math.inf).all()


@torch.no_grad()
def test_sample_by_sample_is_the_whole_and_the_state_does_not_grow():
    made = decoder()
    tokens = torch.randint(FIRST, FIRST + 3, (2, 30), generator=torch.Generator().manual_seed(2))
    expected, state, sizes = made(Memory.empty(2), shifted(tokens)).scores, made.start(Memory.empty(2)), set()
    for place, token in enumerate(shifted(tokens).values.unbind(1)):
        scores, state = made.step(token, state, Memory.empty(2))
        assert torch.allclose(scores[:, FIRST:], expected[:, place, FIRST:], atol=1e-12)
        sizes.add(sum(each.numel() for each in flatten(state).values()))
    assert len(sizes) == 1


def sources() -> Memory:
    generator = torch.Generator().manual_seed(3)
    states = torch.randn(2, 4, 5, generator=generator).double()
    summary = torch.randn(2, 5, generator=generator).double()
    return Memory(states, torch.tensor([4, 2]), {"summary": summary})


@torch.no_grad()
def test_a_source_conditions_all_samples_or_those_of_its_moment():
    tokens = torch.randint(FIRST, FIRST + 3, (2, 12), generator=torch.Generator().manual_seed(2))
    for hop in (0, 3):
        made = decoder(memory_size=5, hop=hop)
        scores = made(made.prepare(sources()), shifted(tokens)).scores[..., FIRST:]
        for changed in range(4):
            memory = sources()
            memory.states[:, changed] += 1.0
            other = made(made.prepare(memory), shifted(tokens)).scores[..., FIRST:]
            first_change = [(other[row] - scores[row]).abs().amax(-1).gt(1e-9).nonzero() for row in range(2)]
            if not hop:
                assert all(len(each) == 0 for each in first_change)  # only the summary counts
            else:
                assert int(first_change[0][0]) == changed * hop  # heard from its moment on
                assert (len(first_change[1]) == 0) == (changed >= 2)  # and beyond the end of a source never
        memory = sources()
        memory.final["summary"][0] += 1.0
        other = made(made.prepare(memory), shifted(tokens)).scores[..., FIRST:]
        assert bool((other[0] - scores[0]).abs().amax(-1).gt(1e-9).all()) == (hop == 0)
        assert torch.equal(other[1], scores[1])


# -- the codec


@pytest.mark.parametrize(("levels", "mu"), [(256, 255.0), (64, 63.0), (16, 255.0), (2, 10.0)])
def test_levels_come_back_and_are_finer_near_silence(levels, mu):
    codec = Wave(levels=levels, mu=mu)
    every = FIRST + np.arange(levels)
    samples = codec.decode(every)
    assert np.array_equal(codec.encode(samples), every)
    assert (np.diff(samples) > 0).all()
    assert np.allclose(samples, -samples[::-1])  # the same for both signs
    if levels > 4:
        assert np.diff(samples)[levels // 2 - 1] < np.diff(samples)[-1] / 4


def test_a_level_is_that_of_the_formula():
    codec = Wave(levels=256, mu=255.0)
    for sample in (-1.0, -0.3, -0.001, 0.0, 0.01, 0.5, 0.999, 1.0, 3.0):
        cut = min(max(sample, -1), 1)
        bent = math.copysign(math.log(1 + 255 * abs(cut)) / math.log(256), cut)
        expected = min(int((bent + 1) / 2 * 256), 255)
        assert codec.encode(np.array([sample], dtype=np.float32)).tolist() == [FIRST + expected]
    assert Wave(gain=2.0).encode(np.array([0.25], np.float32)) == Wave().encode(np.array([0.5], np.float32))


def test_a_sound_is_written_as_a_file_and_read_again(tmp_path):
    codec = Wave(rate=8000, levels=256)
    tokens = np.random.default_rng(1).integers(FIRST, FIRST + 256, 500)
    (tmp_path / "a.wav").write_bytes(codec.to_file(codec.decode(tokens)))
    samples, rate = soundfile.read(tmp_path / "a.wav")
    assert rate == 8000
    assert len(samples) == 500
    assert np.abs(codec.encode(str(tmp_path / "a.wav")) - tokens).max() <= 1  # 16 bits are fewer than float32
    for value, wrong in ((np.zeros(0, np.float32), "has no sample"), ("nowhere.wav", "no such file")):
        with pytest.raises(SeqloomError, match=wrong):
            codec.encode(value)
    with pytest.raises(ValueError, match="levels = 1"):
        Wave(levels=1)


def test_counts_of_three_neighbours_are_those_by_hand():
    train, test = [np.array([4, 5, 4, 5, 4])], [np.array([4, 5])]
    none = np.array([1, 1, 1, 1, 4, 3]) / 11
    after_start = (np.array([0, 0, 0, 0, 1, 0]) + 5 * none) / 6  # of one token
    first = (np.array([0, 0, 0, 0, 1, 0]) + 5 * after_start) / 6
    after_four = (np.array([0, 0, 0, 0, 0, 2]) + 5 * none) / 7
    second = (np.array([0, 0, 0, 0, 0, 1]) + 5 * after_four) / 6
    expected = -(math.log2(first[4]) + math.log2(second[5])) / 2
    assert order_two(train, test, 6) == pytest.approx(expected, abs=1e-12)
