"""Lip reading: windows of frames, an attention to each input, and inputs that are missing, by hand."""

from functools import partial

import numpy as np
import pytest
import torch

from seqloom.data.special_tokens import BOS, EOS
from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.several import Several as AttendToSeveral
from seqloom.nn.combine.ensemble import ensemble_of
from seqloom.nn.decoders.recurrent import Recurrent as Decoder
from seqloom.nn.encoders.image import Image
from seqloom.nn.encoders.recurrent import Recurrent
from seqloom.nn.encoders.several import Several
from seqloom.nn.encoders.video import Video, window_frames
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.search.beam import BeamSearch
from seqloom.types import Batch, Composite, Memory, Padded

SHAPE, FEATURES, SIZE, WORDS = (8, 4, 3), 5, 6, 9
RANDOM = np.random.default_rng(1)
FILMS = [RANDOM.integers(0, 256, (count, *SHAPE), dtype=np.uint8) for count in (7, 2, 4)]
SOUNDS = [RANDOM.normal(size=(count, FEATURES)) for count in (3, 5, 4)]
NO_FILM, NO_SOUND = FILMS[0][:0], SOUNDS[0][:0]
BOTH = [Composite(film, {"sound": sound}) for film, sound in zip(FILMS, SOUNDS)]
HALF = [BOTH[0], Composite(FILMS[1], {"sound": NO_SOUND}), Composite(NO_FILM, {"sound": SOUNDS[2]})]
TARGETS = [[4, 5, 6], [7, 8], [5, 5, 4, 8]]

IMAGE = partial(Image, size=4, patch=2, stages=2)
VECTORS = partial(Recurrent, embedding_size=4, size=SIZE)


def watcher(window: int = 5, **options) -> Video:
    torch.manual_seed(2)
    return Video(shape=SHAPE, window=window, image=IMAGE, encoder=partial(VECTORS, **options)).double().eval()


def model(seed: int = 3) -> Model:
    torch.manual_seed(seed)
    watch = partial(Video, window=3, image=IMAGE, encoder=partial(VECTORS, reverse=True))
    inputs = {"": {"shape": SHAPE}, "sound": {"features": FEATURES}}
    encoder = Several(inputs=inputs, encoder=watch, parts={"sound": partial(VECTORS, reverse=True)})
    attention = partial(AttendToSeveral, attention=partial(Additive, size=5))
    sizes = {"embedding_size": 4, "size": 6, "length_ratio": 0.5, "length_offset": 3}
    decoder = Decoder(vocabulary=WORDS, memory_size=SIZE, bos=BOS, eos=EOS, attention=attention, **sizes)
    made = Model(encoder, decoder).double().eval()
    for parameter in made.parameters():
        torch.nn.init.uniform_(parameter, -0.7, 0.7)
    return made


def batch_of(sources: list[Composite], targets: list[list[int]] = TARGETS) -> Batch:
    return Batch(
        source=Padded.stack(sources).to("cpu"),
        inputs=Padded.stack([np.array([BOS, *target]) for target in targets]).to("cpu"),
        targets=Padded.stack([np.array([*target, EOS]) for target in targets]).to("cpu"),
    )


# -- windows


def test_a_window_is_a_frame_and_those_before_it_with_the_first_one_repeated():
    assert window_frames(torch.arange(4), 3).tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 2], [1, 2, 3]]
    assert window_frames(torch.tensor([6]), 1).tolist() == [[6]]


@torch.no_grad()
def test_states_are_those_of_an_encoder_of_vectors_over_each_window_by_itself():
    encoder = watcher(window=3)
    memory = encoder(Padded.stack(FILMS).to("cpu"))
    for row, film in enumerate(FILMS):
        vectors = []
        for last in range(len(film)):
            frames = [film[max(last - back, 0)] for back in (2, 1, 0)]
            picture = torch.from_numpy(np.concatenate(frames, axis=-1))[None]  # oldest first, as channels
            vectors.append(encoder.image(Padded(picture, torch.tensor([SHAPE[0]]))).final["summary"])
        alone = encoder.encoder(Padded(torch.stack(vectors, dim=1), torch.tensor([len(film)])))
        assert torch.allclose(memory.states[row, : len(film)], alone.states[0], atol=1e-12)
        assert torch.allclose(memory.final["summary"][row], alone.final["summary"][0], atol=1e-12)


def test_a_frame_reaches_its_window_and_no_state_before_it():
    encoder, values = watcher(window=3), torch.from_numpy(FILMS[0]).double()[None].requires_grad_()
    vectors = encoder.read_windows(Padded(values, torch.tensor([7]))).values
    for place in range(7):
        (gradient,) = torch.autograd.grad(vectors[0, place].sum(), values, retain_graph=True)
        seen = gradient[0].abs().flatten(1).sum(1) > 0
        assert seen.nonzero().flatten().tolist() == [frame for frame in range(7) if place - 2 <= frame <= place]


@torch.no_grad()
def test_read_from_the_end_the_summary_has_seen_the_first_frame_last():
    forward, backward = watcher(), watcher(reverse=True)
    backward.load_state_dict(forward.state_dict())
    source = Padded.stack(FILMS).to("cpu")
    vectors = backward.read_windows(source)
    flipped = vectors.values.clone()
    for row, length in enumerate(vectors.lengths):
        flipped[row, :length] = vectors.values[row, :length].flip(0)
    expected = forward.encoder(Padded(flipped, vectors.lengths)).final["summary"]
    assert torch.allclose(backward(source).final["summary"], expected, atol=1e-12)


# -- an attention to each input


def memory_of(lengths: list[int], others: list[int]) -> Memory:
    generator = torch.Generator().manual_seed(4)
    states, sound = (torch.randn(3, 5, SIZE, generator=generator).double() for _ in range(2))
    return Memory(states, torch.tensor(lengths), parts={"sound": Memory(sound, torch.tensor(others))})


def attend(attention: AttendToSeveral, query: torch.Tensor, memory: Memory, weights: bool = False):
    prepared = attention.prepare(memory)
    return attention(query, prepared, attention.start(prepared), weights)


@torch.no_grad()
def test_the_context_is_that_of_two_attentions_side_by_side():
    torch.manual_seed(5)
    attention = AttendToSeveral(query_size=4, memory_size=SIZE, attention=partial(Additive, size=3)).double()
    query, memory = torch.randn(3, 2, 4).double(), memory_of([5, 1, 3], [2, 5, 4])
    context, _, weights = attend(attention, query, memory, weights=True)
    for column, (each, own) in enumerate(zip(attention.attentions.values(), (memory, memory.parts["sound"]))):
        alone = each.prepare(own)
        expected, _, own_weights = each(query, alone, each.start(alone), True)
        assert torch.allclose(context[..., column * SIZE : (column + 1) * SIZE], expected, atol=1e-12)
        assert column or torch.equal(weights, own_weights)  # shown are those of the source itself


@torch.no_grad()
def test_what_one_input_says_leaves_the_context_of_the_other_and_nothing_is_zero():
    attention = AttendToSeveral(query_size=4, memory_size=SIZE, attention=Additive).double()
    query, memory = torch.randn(3, 2, 4).double(), memory_of([5, 1, 3], [2, 5, 4])
    context = attend(attention, query, memory)[0]
    silent = Memory(memory.states, memory.lengths, parts={"sound": memory_of([1, 1, 1], [0, 0, 5]).parts["sound"]})
    found, _, weights = attend(attention, query, silent, weights=True)
    assert torch.equal(found[..., :SIZE], context[..., :SIZE])
    assert (found[:2, :, SIZE:] == 0).all()
    assert torch.isfinite(found).all()
    blind = Memory(memory.states, torch.tensor([0, 1, 0]), parts=memory.parts)
    found, _, weights = attend(attention, query, blind, weights=True)
    assert torch.equal(found[..., SIZE:], context[..., SIZE:])
    assert (found[[0, 2], :, :SIZE] == 0).all()
    assert (weights[[0, 2]] == 0).all()
    assert torch.allclose(weights[1].sum(-1), torch.ones(()).double())


# -- inputs that are missing


def test_an_input_that_is_missing_changes_nothing_and_gets_no_gradient():
    made = model()
    for missing, name in (
        ([Composite(NO_FILM, each.parts) for each in BOTH], "encoder.encoder."),
        ([Composite(each.values, {"sound": NO_SOUND}) for each in BOTH], "encoder.parts.sound."),
    ):
        made.zero_grad()
        loss = CrossEntropy()(made, batch_of(missing), 0.0)
        (loss.total / loss.count).backward()
        for parameter_name, parameter in made.named_parameters():
            gradient = 0.0 if parameter.grad is None else float(parameter.grad.abs().sum())
            assert np.isfinite(gradient)
            assert (gradient == 0) == parameter_name.startswith(name) or "attention" in parameter_name


@torch.no_grad()
def test_a_batch_with_missing_inputs_is_its_sources_one_by_one():
    made = model()
    together = made(batch_of(HALF))
    for row, each in enumerate(HALF):
        alone = made(batch_of([each], TARGETS[row : row + 1]))
        count = len(TARGETS[row]) + 1
        assert torch.allclose(together.scores[row, :count], alone.scores[0, :count], atol=1e-12)


@torch.no_grad()
def test_what_lies_beyond_the_end_of_an_input_changes_nothing():
    made, batch = model(), batch_of(HALF)
    expected = made(batch).scores
    for part in (batch.source, batch.source.parts["sound"]):
        part.values[~part.mask] = 77
    assert torch.equal(made(batch).scores, expected)


@torch.no_grad()
def test_both_inputs_count():
    made = model()
    expected = made(batch_of(BOTH)).scores
    for changed in (
        [Composite(255 - each.values, each.parts) for each in BOTH],
        [Composite(each.values, {"sound": -each.parts["sound"]}) for each in BOTH],
    ):
        assert (made(batch_of(changed)).scores - expected).abs().max() > 1e-3


# -- search, and ensembles


def test_a_search_finds_what_each_source_gives_alone_and_an_ensemble_averages():
    made, search = [model(seed).freeze() for seed in (3, 4)], BeamSearch(beam_size=3)
    for each in (made[0], ensemble_of(made)):
        found = each.find([[source] for source in HALF], search)
        for row, source in enumerate(HALF):
            (alone,) = each.find([[source]], search)
            assert [tuple(one.tokens) for one in alone] == [tuple(one.tokens) for one in found[row]]
    apart = ensemble_of(made).find([[source, source] for source in HALF], search)  # as if read by two codecs
    assert [tuple(each[0].tokens) for each in apart] == [tuple(each[0].tokens) for each in found]


@pytest.mark.parametrize(
    ("part", "settings", "wrong"),
    [
        (AttendToSeveral, {"parts": ()}, "parts = "),
        (AttendToSeveral, {"parts": ("source",)}, "parts = "),
        (Several, {"inputs": {"": {"shape": SHAPE}}, "parts": {"sound": VECTORS}}, "these parts: none"),
        (
            Several,
            {"inputs": {"": {"shape": (8, 8, 1)}, "sound": {"features": 5}}, "parts": {"sound": VECTORS}},
            "states of different sizes",
        ),
        (Video, {"shape": SHAPE, "window": 0}, "window = 0"),
        (Video, {"shape": SHAPE, "image": Recurrent}, "unexpected keyword"),
    ],
)
def test_parts_that_do_not_fit_are_refused(part, settings, wrong):
    given = {"query_size": 4, "memory_size": SIZE} if part is AttendToSeveral else {}
    with pytest.raises((ValueError, TypeError), match=wrong):
        part(**given, **settings)
