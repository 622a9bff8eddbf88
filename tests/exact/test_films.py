"""Films pixel by pixel: what a pixel may see, likelihoods that sum to 1, drawing step by step; the codec; sprites."""

import math
from itertools import product

import numpy as np
import pytest
import torch

from seqloom.data.codecs.frames import Frames
from seqloom.data.codecs.pixels import FIRST
from seqloom.data.codecs.video import Video
from seqloom.data.generators import sprites as generator
from seqloom.data.special_tokens import BOS
from seqloom.errors import SeqloomError, UnreadableError
from seqloom.nn.decoders.video_pixels import VideoPixels
from seqloom.nn.layers.film_memory import ConvolutionalLSTM
from seqloom.nn.layers.frame_network import MultiplicativeUnit
from seqloom.search.sample import Sampling
from seqloom.types import Memory, Padded, flatten

SIZES = {"size": 6, "layers": 2, "drawing_layers": 2, "first_kernel": 3, "embedding_size": 3, "hidden": 6, "width": 5}
KINDS = {
    "gated": {},
    "plain": {"style": "plain"},
    "row": {"style": "row"},
    "diagonal": {"style": "diagonal"},
    "independent": {"style": "independent"},
    "without layers": {"style": "independent", "layers": 0},
    "vector": {"style": "independent", "memory": "vector"},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def decoder(kind: str, canvas=(3, 2, 1), frames: int = 3, levels: int = 3, **changes) -> VideoPixels:
    torch.manual_seed(1)
    settings = {"vocabulary": FIRST + levels, "memory_size": 0, "bos": BOS, "eos": None, **SIZES, **KINDS[kind]}
    made = VideoPixels(canvas=canvas, frames=frames, **{**settings, **changes}).double().eval()
    for parameter in made.parameters():
        torch.nn.init.uniform_(parameter, -0.6, 0.6)
    torch.nn.init.uniform_(made.drawing.last.linear.bias, 2, 3)  # no unit is dead
    return made


def films(count: int, made: VideoPixels, levels: int = 3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(FIRST, FIRST + levels, (count, made.frames * made.pixels), generator=generator)


def shifted(every: torch.Tensor) -> Padded:
    """BOS and all pixels but the last."""
    start = torch.full((len(every), 1), BOS)
    return Padded(torch.cat([start, every[:, :-1]], dim=1), torch.full((len(every),), every.shape[1]))


def seen(made: VideoPixels) -> np.ndarray:
    """Which tokens the distribution of each depends on, by exchanging one at a time.  bool (n, n)"""
    count = made.frames * made.pixels
    found = np.zeros((count, count), dtype=bool)
    with torch.no_grad():
        for every in films(8, made):
            changed = every.repeat(count, 1)
            changed[range(count), range(count)] = FIRST + (every - FIRST + 1) % 3
            before = made(Memory.empty(1), shifted(every[None])).hidden[0]
            after = made(Memory.empty(count), shifted(changed)).hidden
            found |= ((after - before).abs().amax(-1) > 1e-13).numpy().T
    return found


# -- what a pixel may see


@pytest.mark.parametrize("canvas", [(3, 2, 1), (2, 2, 3)])
@each_kind
def test_no_pixel_sees_itself_or_a_later_one_or_a_later_frame(kind, canvas):
    assert not np.triu(seen(decoder(kind, canvas))).any()


@pytest.mark.parametrize("kind", ["gated", "diagonal"])
def test_every_pixel_sees_all_frames_before_it_and_all_of_its_own_frame_so_far(kind):
    found = seen(decoder(kind, drawing_layers=3))
    assert np.array_equal(found, np.tri(len(found), k=-1, dtype=bool))


@pytest.mark.parametrize("kind", ["independent", "without layers", "vector"])
def test_independent_pixels_see_whole_frames_and_nothing_of_their_own(kind):
    made = decoder(kind)
    frame = np.arange(made.frames * made.pixels) // made.pixels
    assert np.array_equal(seen(made), frame[:, None] > frame)


# -- likelihoods


@each_kind
@torch.no_grad()
def test_the_probabilities_of_all_films_sum_to_one(kind):
    made = decoder(kind, (2, 2, 1), frames=2, levels=2)
    every = torch.tensor([[FIRST + each for each in bits] for bits in product((0, 1), repeat=8)])  # (256, 8)
    found = made.log_prob(Memory.empty(256), shifted(every), Padded(every, torch.full((256,), 8)))
    assert found.exp().sum() == pytest.approx(1, abs=1e-12)
    assert found.exp().std() > 1e-5


@torch.no_grad()
def test_a_film_of_one_frame_is_a_picture_with_a_condition():
    made = decoder("gated", frames=1)
    every = films(2, made)
    maps = made.memory.maps(made.memory.start(2, 3, 2), 3, 2)
    pixels = made.drawing.canvas(made.drawing.embed(every[:, :-1]))
    expected = made.drawing(pixels, maps)[0]
    assert torch.allclose(made(Memory.empty(2), shifted(every)).hidden, expected, atol=1e-12)


# -- pixel by pixel


@pytest.mark.parametrize("canvas", [(3, 2, 1), (1, 3, 3)])
@each_kind
@torch.no_grad()
def test_steps_are_the_whole_network(kind, canvas):
    made = decoder(kind, canvas)
    every, memory = films(3, made), Memory.empty(3)
    inputs = shifted(every)
    expected, state = made(memory, inputs).scores, made.start(memory)
    sizes = set()
    for place, token in enumerate(inputs.values.unbind(1)):
        scores, state = made.step(token, state, memory)
        assert torch.allclose(scores[:, FIRST:], expected[:, place, FIRST:], atol=1e-10)
        sizes.add(sum(each.numel() for each in flatten(state).values()))
    assert len(sizes) == 1  # the state does not grow
    scores, _ = made.step(every[:, -1], state, memory)  # beyond its end it does not fail
    assert scores[:, FIRST:].isfinite().all()


@each_kind
@torch.no_grad()
def test_rows_in_different_frames_step_as_each_does_alone(kind):
    made = decoder(kind)
    every, memory = films(6, made), Memory.empty(6)
    inputs, count = shifted(every), made.frames * made.pixels
    expected = made(memory, inputs).scores
    lengths = torch.tensor([1, 5, 6, 7, 12, count - 3])
    state = made(memory, Padded(inputs.values, lengths)).state
    rows = torch.arange(6)
    for _ in range(3):
        scores, state = made.step(inputs.values[rows, lengths], state, memory)
        assert torch.allclose(scores[:, FIRST:], expected[rows, lengths][:, FIRST:], atol=1e-10)
        lengths = lengths + 1


@torch.no_grad()
def test_a_sample_that_goes_on_after_some_frames_has_the_probability_of_the_rest():
    made = decoder("gated", (2, 2, 1), frames=2, levels=2)
    every = torch.tensor([[FIRST + each for each in bits] for bits in product((0, 1), repeat=8)])
    scores = made.log_prob(Memory.empty(256), shifted(every), Padded(every, torch.full((256,), 8)))
    begun = Padded(every[5:6, :4].expand(20, 4), torch.full((20,), 4))
    given = scores[(every[:, :4] == every[5, :4]).all(1)].logsumexp(0)
    for (one,) in Sampling(seed=3)(made, Memory.empty(20), begun):
        row = int((every == torch.tensor(one.tokens)).all(1).nonzero())
        assert one.score == pytest.approx(float(scores[row] - given), abs=1e-10)


@torch.no_grad()
def test_a_source_tells_every_frame_something():
    made = decoder("gated", memory_size=4)
    summary = torch.randn(2, 4, generator=torch.Generator().manual_seed(5)).double()
    memory = Memory(torch.zeros(2, 1, 4).double(), torch.ones(2, dtype=torch.long), {"summary": summary})
    every = films(1, made).expand(4, -1)
    scores = made(memory, shifted(every)).scores[..., FIRST:]
    assert torch.equal(scores[0], scores[1])  # two rows of one source
    assert ((scores[0] - scores[2]).abs().amax(-1) > 1e-7).all()


# -- layers


@torch.no_grad()
def test_a_multiplicative_unit_is_the_published_one():
    torch.manual_seed(1)
    unit, values = MultiplicativeUnit(2, 3, 2).double(), torch.randn(1, 2, 5, 4).double()
    parts = torch.nn.functional.conv2d(values, unit.gates.weight, unit.gates.bias, padding=2, dilation=2)
    first, second, third = parts[:, :2].sigmoid(), parts[:, 2:4].sigmoid(), parts[:, 4:6].sigmoid()
    expected = first * torch.tanh(second * values + third * parts[:, 6:].tanh())
    assert torch.allclose(unit(values), expected, atol=1e-12)


@torch.no_grad()
def test_a_convolutional_lstm_with_kernels_of_one_is_an_lstm_at_each_place():
    torch.manual_seed(1)
    layer = ConvolutionalLSTM(3, size=4, kernel=1, places=6, width=1).double()
    cell = torch.nn.LSTMCell(3, 4).double()
    order = torch.tensor([0, 1, 3, 2])[:, None] * 4 + torch.arange(4)  # torch has i f g o
    weight, bias = layer.gates.weight[order.flatten(), :, 0, 0], layer.gates.bias[order.flatten()]
    cell.weight_ih.copy_(weight[:, :3])
    cell.weight_hh.copy_(weight[:, 3:])
    cell.bias_ih.copy_(bias)
    cell.bias_hh.zero_()
    state, own = layer.start(2, 3, 2), (torch.zeros(12, 4).double(), torch.zeros(12, 4).double())
    for frame in torch.randn(4, 2, 3, 3, 2).double():
        state = layer.step(frame, state)
        own = cell(frame.permute(0, 2, 3, 1).reshape(12, 3), own)
        assert torch.allclose(state["hidden"].permute(0, 2, 3, 1).reshape(12, 4), own[0], atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"canvas": None}, 'task.target.type = "frames"'),
        ({"layers": -1}, "layers = -1: expected a number from 0"),
        ({"kernel": 2}, "kernel = 2: expected an odd number"),
        ({"drawing_layers": 0}, "drawing_layers = 0"),
        ({"width": 0}, "width = 0"),
        ({"hidden": 0}, "hidden = 0"),
        ({"embedding_size": 0}, "embedding_size = 0"),
        ({"size": 1}, "size = 1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, wrong):
    settings = {"vocabulary": 6, "canvas": (2, 2, 1), "frames": 2, "memory_size": 0, "bos": BOS, "eos": None}
    with pytest.raises(ValueError, match=wrong):
        VideoPixels(**{**settings, **changes})


# -- the codec


def test_a_film_comes_back_from_its_tokens_and_from_its_file(tmp_path):
    codec = Frames(frames=4, size=3, width=5, levels=2)
    film = np.random.default_rng(1).integers(0, 2, (4, 3, 5)).astype(np.uint8) * 255
    film[2] = film[1]  # Pillow writes equal frames once
    tokens = codec.encode(film)
    assert tokens.shape == (4 * 3 * 5,)
    assert set(tokens.tolist()) == {FIRST, FIRST + 1}
    assert np.array_equal(codec.decode(tokens), film)
    (tmp_path / "film.gif").write_bytes(codec.to_file(film))
    np.savez(tmp_path / "film.npz", frames=film)
    for path in (tmp_path / "film.gif", tmp_path / "film.npz"):
        assert np.array_equal(codec.encode(str(path)), tokens)
        assert codec.content(str(path)) == codec.content(film)
    assert np.array_equal(Video(size=3, width=5).encode(str(tmp_path / "film.gif"))[:1, :, :, 0], film[:1])
    half = codec.decode(tokens[:22])
    assert half.shape == (2, 3, 5)
    assert (half.reshape(-1)[22:] == 127).all()


def test_in_colour_a_pixel_is_three_tokens():
    codec = Frames(frames=2, size=2, levels=256, grey=False)
    film = np.random.default_rng(1).integers(0, 256, (2, 2, 2, 3)).astype(np.uint8)
    assert codec.encode(film).tolist() == (FIRST + film.reshape(-1).astype(int)).tolist()
    assert np.array_equal(codec.decode(codec.encode(film)), film)


def test_several_films_are_shown_side_by_side():
    codec = Frames(frames=2, size=2)
    first, second = np.zeros((2, 2, 2, 2), dtype=np.uint8) + np.array([0, 255], dtype=np.uint8)[:, None, None, None]
    both = codec.side_by_side([first, second])
    assert both.shape == (2, 2, 5)
    assert (both[:, :, :2] == 0).all()
    assert (both[:, :, 3:] == 255).all()


@pytest.mark.parametrize(
    ("film", "wrong"),
    [
        (np.zeros((5, 4, 4), dtype=np.uint8), r"the film has 5 frames; expected at most 3 \(task.target.frames\)"),
        (np.zeros((2, 4, 5), dtype=np.uint8), "the film has frames of 5 x 4 pixels; expected 4 x 4"),
        (np.zeros((0, 4, 4), dtype=np.uint8), "has no frames"),
        (np.zeros((4, 4)), "has frames of the shape"),
        ("missing.gif", "missing.gif"),
    ],
)
def test_films_that_do_not_fit_are_refused(film, wrong):
    with pytest.raises(UnreadableError, match=wrong):
        Frames(frames=3, size=4).encode(film)


def test_a_long_film_can_be_cut():
    codec = Frames(frames=3, size=4)
    film = np.random.default_rng(1).integers(0, 2, (5, 4, 4)).astype(np.uint8) * 255
    assert np.array_equal(codec.decode(codec.encode(codec.cut(film, 1000))), film[:3])


# -- sprites


def test_sprites_move_and_bounce_and_fewer_are_the_first():
    films = generator.sprites(20, noise=0.0)
    assert [each.source for each in generator.sprites(5, noise=0.0)] == [each.source for each in films[:5]]
    for example in films:
        frames = example.target["frames"] > 0
        assert frames.shape == (12, 16, 16)
        areas = frames.sum((1, 2))
        assert (areas == generator.drawn(example.source).sum()).all()  # never cut off
        corner = np.array([[np.argwhere(frame)[:, axis].min() for axis in (0, 1)] for frame in frames])
        steps = np.abs(np.diff(corner, axis=0))
        assert steps.min() >= 1
        assert steps.max() <= 3


def test_in_the_smallest_picture_sprites_of_any_speed_can_turn():
    for example in generator.sprites(50, size=11, noise=0.0):
        assert {int(frame.sum()) for frame in example.target["frames"] > 0} == {
            int(generator.drawn(example.source).sum())
        }
    with pytest.raises(SeqloomError, match="size is 10, expected 11"):
        generator.sprites(1, size=10)


def nats_of_films(noise: float, count: int = 200) -> np.ndarray:
    every = [generator.drawn(name) for name in generator.SHAPES]
    return np.array([generator.moving(every, (1, number), 12, 16, 3, noise)[2] for number in range(count)])


def test_the_nats_of_a_frame_are_those_of_all_that_may_follow():
    # Without noise a frame is certain, or one of three, or of nine at a corner; the first one may be anywhere.
    nats = nats_of_films(0.0)
    assert nats[:, 0] == pytest.approx(2 * math.log(11))
    later = {round(math.exp(each)) for each in nats[:, 1:].flatten()}
    assert later == {1, 3, 9}
    # With noise they are those of the flipped pixels too: on the average H W times the entropy of one.
    noisy = nats_of_films(0.1)[:, 1:].mean()
    entropy = -0.1 * math.log(0.1) - 0.9 * math.log(0.9)
    assert noisy == pytest.approx(256 * entropy + nats[:, 1:].mean(), abs=1.0)


def test_the_likelihoods_of_all_frames_that_may_follow_sum_to_one():
    # A sprite of one pixel in a picture of 2 x 2: all 16 frames, each from the same past, by their nats.
    sprite, total = np.ones((1, 1), dtype=bool), {}
    for seed in range(4000):
        film, nats = generator.bouncing(np.random.default_rng(seed), sprite, 1, 2, 1, 0.3)
        total[film.tobytes()] = math.exp(-nats[0])
    assert len(total) == 16
    assert sum(total.values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("fps", [8.0, 60.0])
@pytest.mark.parametrize("colour", [False, True])
def test_equal_frames_are_written_as_often_as_there_are(tmp_path, colour, fps):
    codec = Frames(frames=9, size=4, levels=256, grey=not colour, fps=fps)
    random = np.random.default_rng(1)
    first, second = random.integers(0, 3, (2, 4, 4, *([3] * colour))).astype(np.uint8) * 100
    for film in ([first] * 9, [first, first, second, second, first, second, second, second, second]):
        (tmp_path / "film.gif").write_bytes(codec.to_file(np.stack(film)))
        assert np.array_equal(codec.decode(codec.encode(str(tmp_path / "film.gif"))), np.stack(film))


def test_a_grey_film_is_no_film_in_colour():
    with pytest.raises(UnreadableError, match="the film is grey"):
        Frames(frames=3, size=4, grey=False).encode(np.zeros((2, 4, 4), dtype=np.uint8))


@pytest.mark.parametrize("content", [b"", b"GIF89a broken", b"a text"])
def test_what_is_no_film_gets_one_line(tmp_path, content):
    (tmp_path / "film.gif").write_bytes(content)
    with pytest.raises(UnreadableError, match="is not a readable film"):
        Frames(frames=3, size=4).encode(str(tmp_path / "film.gif"))
