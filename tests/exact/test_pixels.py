"""Pictures pixel by pixel: what each pixel may see, likelihoods that sum to 1, samples from what is kept of lines."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from seqloom.data.codecs.pixels import FIRST
from seqloom.data.codecs.pixels import Pixels as Codec
from seqloom.data.special_tokens import BOS
from seqloom.explain.pixels import looked_at
from seqloom.inference.system import System
from seqloom.nn.decoders.pixels import Pixels
from seqloom.nn.layers.pixel_rnn import Diagonal, skew, unskew
from seqloom.nn.model import Model
from seqloom.search.beam import BeamSearch
from seqloom.search.sample import Sampling
from seqloom.tasks.series import Series
from seqloom.types import Memory, Padded, flatten

GATED = {"style": "gated", "size": 12, "layers": 3, "first_kernel": 5, "embedding_size": 3, "hidden": 24}
PLAIN = {**GATED, "style": "plain", "size": 24}
ROW = {**PLAIN, "style": "row", "layers": 2}
STYLES = {"gated": GATED, "plain": PLAIN, "row": ROW, "diagonal": {**ROW, "style": "diagonal"}}
CANVASES = [(4, 5, 1), (3, 2, 3), (1, 6, 1), (5, 1, 1)]
each_style = pytest.mark.parametrize("style", STYLES)


def decoder(style: str, canvas: tuple[int, int, int], levels: int = 3, seed: int = 1, **changes) -> Pixels:
    torch.manual_seed(seed)
    settings = {"vocabulary": FIRST + levels, "memory_size": 0, "bos": BOS, "eos": None, **STYLES[style], **changes}
    made = Pixels(canvas=canvas, **settings).double().eval()
    for parameter in made.parameters():  # no unit is dead, and nothing is zero
        torch.nn.init.uniform_(parameter, -0.6, 0.6)
    return made


def shifted(pictures: torch.Tensor) -> Padded:
    """BOS and all pixels but the last."""
    start = torch.full((len(pictures), 1), BOS)
    lengths = torch.full((len(pictures),), pictures.shape[1])
    return Padded(torch.cat([start, pictures[:, :-1]], dim=1), lengths)


def random_pictures(count: int, canvas: tuple[int, int, int], levels: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(FIRST, FIRST + levels, (count, math.prod(canvas)), generator=generator)


def seen(made: Pixels, canvas: tuple[int, int, int]) -> np.ndarray:
    """Which pixels the features of each depend on, by gradients through the whole network.  bool (n, n)"""
    count = math.prod(canvas)
    height, width, channels = canvas
    found = np.zeros((count, count), dtype=bool)
    for seed in range(4):  # a ReLU may hide something at one point
        generator = torch.Generator().manual_seed(seed)
        pixels = torch.randn(1, channels * made.drawing.embedding_size, height, width, generator=generator).double()
        pixels.requires_grad_()
        features, _ = made.drawing.network(pixels, None)
        hidden = made.drawing.last(features)[0].view(channels, -1, height, width)
        for place in range(count):
            line, column, channel = place // (width * channels), place // channels % width, place % channels
            (gradient,) = torch.autograd.grad(hidden[channel, :, line, column].sum(), pixels, retain_graph=True)
            reached = gradient[0].view(channels, made.drawing.embedding_size, height, width).abs().sum(1)
            found[place] |= (reached.permute(1, 2, 0).flatten() > 0).numpy()
    return found


# -- what each pixel may see


@pytest.mark.parametrize("canvas", [(4, 5, 1), (3, 2, 3)])
@each_style
def test_no_pixel_sees_itself_or_a_later_one(style, canvas):
    assert not np.triu(seen(decoder(style, canvas), canvas)).any()


@pytest.mark.parametrize("canvas", [(6, 7, 1), (3, 2, 3), (1, 5, 1), (5, 1, 1)])
@pytest.mark.parametrize(("style", "layers"), [("gated", 5), ("diagonal", 1)])
def test_a_gated_network_that_is_deep_enough_and_diagonals_see_every_pixel_before(style, layers, canvas):
    found = seen(decoder(style, canvas, layers=layers), canvas)
    assert np.array_equal(found, np.tri(len(found), k=-1, dtype=bool))


def test_skewed_lines_come_back_and_lie_one_further_to_the_right():
    values = torch.arange(24.0).view(1, 2, 3, 4)
    skewed = skew(values)
    assert skewed.shape == (1, 2, 3, 6)
    assert skewed[0, 0].tolist() == [[0, 1, 2, 3, 0, 0], [0, 4, 5, 6, 7, 0], [0, 0, 8, 9, 10, 11]]
    assert torch.equal(unskew(skewed, 4), values)


@torch.no_grad()
def test_a_diagonal_of_states_is_an_lstm_place_by_place():
    torch.manual_seed(3)
    layer, read = Diagonal(3).double(), torch.randn(2, 12, 4, 5).double()
    hidden, cell = layer(read)
    nothing = torch.zeros(2, 3).double()
    for line, column in product(range(4), range(5)):
        above = hidden[:, :, line - 1, column] if line else nothing
        left, before = (each[:, :, line, column - 1] if column else nothing for each in (hidden, cell))
        alone = layer.step(read[:, :, line, column], above, left, before)
        assert torch.allclose(hidden[:, :, line, column], alone[0], atol=1e-12)
        assert torch.allclose(cell[:, :, line, column], alone[1], atol=1e-12)


def test_rows_see_a_triangle():
    canvas = (5, 9, 1)
    found = seen(decoder("row", canvas, layers=1, first_kernel=3), canvas)
    height, width, _ = canvas
    for line, column, other, place in product(range(height), range(width), range(height), range(width)):
        # two columns to the left by the first convolution and the layer, then one for each line above, on both sides
        up = line - other
        beside = up == 0 and column - 2 <= place < column
        within = up > 0 and column - up - 2 <= place <= column + up
        assert found[line * width + column, other * width + place] == (beside or within), (line, column, other, place)


def blind_spot(canvas: tuple[int, int, int], first: int, others: int, layers: int) -> np.ndarray:
    """What plain layers see: moves of one kernel per layer, up and to both sides or within the line to the left."""
    height, width, _ = canvas
    places = [(line, column) for line in range(height) for column in range(width)]
    found = np.zeros((len(places), len(places)), dtype=bool)
    for start, place in enumerate(places):
        reached = {place}
        for layer in reversed(range(layers)):
            reach, now = (first if layer == 0 else others) // 2, set()
            for line, column in reached:
                above = product(range(line - reach, line), range(column - reach, column + reach + 1))
                beside = [(line, column - step) for step in range(layer == 0, reach + 1)]
                now |= {each for each in [*above, *beside] if each in places}
            reached = now
        for each in reached:
            found[start, places.index(each)] = True
    return found


def test_the_blind_spot_of_a_plain_network_is_the_predicted_one():
    canvas = (6, 9, 1)
    found, expected = seen(decoder("plain", canvas, layers=4), canvas), blind_spot(canvas, 5, 3, 4)
    assert np.array_equal(found, expected)
    before = np.tri(len(found), k=-1, dtype=bool)
    assert (before & ~expected).any()  # there is one


@pytest.mark.parametrize("style", ["plain", "gated", "row", "diagonal"])
def test_an_explanation_measures_exactly_what_each_pixel_sees(style):
    canvas = (6, 9, 1)
    made = decoder(style, canvas, levels=2, layers=2)
    task = Series(target=Codec(size=6, width=9, levels=2))
    tokens = random_pictures(1, canvas, levels=2)[0].numpy()
    log_probs, fields = looked_at(System(Model(None, made), task, {}), Memory.empty(1), tokens, 30)
    assert sorted(fields) == list(range(54))
    assert log_probs.exp().sum(1).tolist() == pytest.approx([1] * 54)
    found = seen(made, canvas)
    for place, field in fields.items():
        depends = np.array(field, dtype=int) > 0
        assert len(field) == place
        assert not (depends & ~found[place, :place]).any()  # a ReLU may hide something, never show it
        assert depends.sum() >= 0.5 * found[place, :place].sum()
        assert max(field, default=255) == 255


# -- likelihoods


@each_style
@torch.no_grad()
def test_the_probabilities_of_all_pictures_sum_to_one(style):
    canvas = (3, 3, 1)
    every = torch.tensor([[FIRST + each for each in bits] for bits in product((0, 1), repeat=9)])  # (512, 9)
    made = decoder(style, canvas, levels=2)
    found = made.log_prob(Memory.empty(512), shifted(every), Padded(every, torch.full((512,), 9)))
    assert found.exp().sum() == pytest.approx(1, abs=1e-12)
    assert found.exp().std() > 1e-4
    in_colour = decoder(style, (1, 2, 3), levels=2)
    few = torch.tensor([[FIRST + each for each in bits] for bits in product((0, 1), repeat=6)])
    found = in_colour.log_prob(Memory.empty(64), shifted(few), Padded(few, torch.full((64,), 6)))
    assert found.exp().sum() == pytest.approx(1, abs=1e-12)


@each_style
@torch.no_grad()
def test_special_tokens_are_never_pixels(style):
    made, pictures = decoder(style, (2, 2, 1)), random_pictures(3, (2, 2, 1))
    scores = made(Memory.empty(3), shifted(pictures)).scores
    assert (scores[..., :FIRST] == -math.inf).all()
    assert scores[..., FIRST:].isfinite().all()


# -- pixel by pixel


@pytest.mark.parametrize("canvas", CANVASES)
@each_style
@torch.no_grad()
def test_steps_with_what_is_kept_of_the_lines_are_the_whole_network(style, canvas):
    made, pictures = decoder(style, canvas), random_pictures(3, canvas)
    inputs, memory = shifted(pictures), Memory.empty(3)
    expected, state = made(memory, inputs).scores, made.start(memory)
    for place, token in enumerate(inputs.values.unbind(1)):
        scores, state = made.step(token, state, memory)
        assert torch.allclose(scores[:, FIRST:], expected[:, place, FIRST:], atol=1e-10)
    scores, _ = made.step(pictures[:, -1], state, memory)  # beyond its end it does not fail
    assert scores[:, FIRST:].isfinite().all()


@pytest.mark.parametrize("canvas", CANVASES)
@each_style
@torch.no_grad()
def test_rows_at_different_pixels_step_as_each_does_alone(style, canvas):
    made, pictures = decoder(style, canvas), random_pictures(4, canvas)
    inputs, memory, count = shifted(pictures), Memory.empty(4), math.prod(canvas)
    expected = made(memory, inputs).scores
    lengths = torch.tensor([1, count // 3 + 1, count // 2, count - 2])
    state = made(memory, Padded(inputs.values, lengths)).state
    for _ in range(2):
        tokens = inputs.values[torch.arange(4), lengths]
        scores, state = made.step(tokens, state, memory)
        wanted = expected[torch.arange(4), lengths]
        assert torch.allclose(scores[:, FIRST:], wanted[:, FIRST:], atol=1e-10)
        lengths = lengths + 1


@each_style
@torch.no_grad()
def test_the_state_does_not_grow(style):
    made = decoder(style, (6, 5, 1))
    memory = Memory.empty(2)
    state, sizes = made.start(memory), []
    for token in shifted(random_pictures(2, (6, 5, 1))).values.unbind(1):
        _, state = made.step(token, state, memory)
        sizes.append(sum(each.numel() for each in flatten(state).values()))
    assert len({*sizes}) == 1


# -- search


@each_style
@torch.no_grad()
def test_a_completion_is_a_sample_with_that_prefix_and_a_beam_finds_the_likeliest_picture(style):
    canvas, made = (2, 3, 1), decoder(style, (2, 3, 1), levels=2)
    every = torch.tensor([[FIRST + each for each in bits] for bits in product((0, 1), repeat=6)])
    scores = made.log_prob(Memory.empty(64), shifted(every), Padded(every, torch.full((64,), 6)))
    (best,) = BeamSearch(beam_size=64, length_penalty=0.0)(made, Memory.empty(1))
    assert list(best[0].tokens) == every[scores.argmax()].tolist()
    assert best[0].score == pytest.approx(float(scores.max()), abs=1e-10)
    begun = Padded(every[5:6, :3].expand(50, 3), torch.full((50,), 3))
    for (one,) in Sampling(seed=3)(made, Memory.empty(50), begun):
        assert len(one.tokens) == math.prod(canvas)
        assert list(one.tokens[:3]) == every[5, :3].tolist()
        row = int((every == torch.tensor(one.tokens)).all(1).nonzero())
        given = scores[(every[:, :3] == every[5, :3]).all(1)].logsumexp(0)  # of the prefix
        assert one.score == pytest.approx(float(scores[row] - given), abs=1e-10)


@torch.no_grad()
def test_samples_have_the_probabilities_of_the_model():
    made = decoder("gated", (1, 3, 1), levels=2)
    every = torch.tensor([[FIRST + each for each in bits] for bits in product((0, 1), repeat=3)])
    expected = made.log_prob(Memory.empty(8), shifted(every), Padded(every, torch.full((8,), 3))).exp()
    drawn = [tuple(one.tokens) for (one,) in Sampling(seed=1)(made, Memory.empty(4000))]
    shares = torch.tensor([drawn.count(tuple(each)) / 4000 for each in every.tolist()])
    assert (shares - expected).abs().max() < 0.04


# -- conditions


@each_style
@torch.no_grad()
def test_a_summary_changes_every_pixel_and_each_row_has_its_own(style):
    made = decoder(style, (3, 3, 1), memory_size=4)
    generator = torch.Generator().manual_seed(5)
    summary = torch.randn(2, 4, generator=generator).double()
    memory = Memory(torch.zeros(2, 1, 4).double(), torch.ones(2, dtype=torch.long), {"summary": summary})
    pictures = random_pictures(1, (3, 3, 1)).expand(4, -1)
    scores = made(memory, shifted(pictures)).scores[..., FIRST:]
    assert torch.equal(scores[0], scores[1])  # two rows of one source
    assert ((scores[0] - scores[2]).abs().amax(-1) > 1e-6).all()
    alone = made(memory.select(torch.tensor([1])), shifted(pictures[:1])).scores[..., FIRST:]
    assert torch.allclose(alone[0], scores[2], atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"kernel": 2}, "kernel = 2"),
        ({"first_kernel": 1}, "first_kernel = 1"),
        ({"layers": 0}, "layers = 0"),
        ({"canvas": None}, 'task.target.type = "pixels"'),
        ({"canvas": (2, 2, 3), "size": 5}, "size = 5: expected 6 or more"),
        ({"style": "plain", "kernel": 1}, "kernel = 1: expected an odd number, 3 or more"),
        ({"hidden": 0}, "hidden = 0"),
        ({"embedding_size": 0}, "embedding_size = 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, wrong):
    settings = {"vocabulary": 6, "canvas": (2, 2, 1), "memory_size": 0, "bos": BOS, "eos": None}
    with pytest.raises(ValueError, match=wrong):
        Pixels(**{**settings, **changes})
