"""Captions of pictures: three ways from a picture to its first word, by hand; nothing but its own picture counts."""

from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional

from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.data.special_tokens import BOS, EOS
from seqloom.errors import SeqloomError
from seqloom.nn.attention.additive import Additive
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.encoders.image import SCALE, Image
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.search.beam import BeamSearch
from seqloom.types import Batch, Padded

SHAPE, WORDS = (12, 8, 3), 9
WAYS = {
    "start": {"bridge": "dense"},
    "first": {"bridge": "first"},
    "attention": {"attention": partial(Additive, size=5)},
    "attention before the step": {"attention": partial(Additive, size=5), "order": "bahdanau", "bridge": "zero"},
}
each_way = pytest.mark.parametrize("way", WAYS)


def captioner(way: str) -> Model:
    torch.manual_seed(3)
    encoder = Image(shape=SHAPE, size=8, patch=2, stages=2)
    sizes = {"embedding_size": 4, "size": 6, "length_ratio": 0.5, "length_offset": 3}
    decoder = Recurrent(vocabulary=WORDS, memory_size=8, bos=BOS, eos=EOS, **sizes, **WAYS[way])
    model = Model(encoder, decoder).double().eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.9, 0.9)
    return model


def pictures(count: int) -> list[np.ndarray]:
    return list(np.random.default_rng(1).integers(0, 256, (count, *SHAPE), dtype=np.uint8))


def batch_of(values: list[np.ndarray]) -> Batch:
    targets = [[4, 5, 6], [7, 8], [5, 5, 4, 8]][: len(values)]
    return Batch(
        source=Padded.stack(values),
        inputs=Padded.stack([np.array([BOS, *target]) for target in targets]),
        targets=Padded.stack([np.array([*target, EOS]) for target in targets]),
    ).to("cpu")


@each_way
def test_the_gradient_reaches_every_pixel(way):
    model, batch = captioner(way), batch_of(pictures(2))
    values = batch.source.values.double().requires_grad_()
    moved = Batch(Padded(values, batch.source.lengths), batch.inputs, batch.targets)
    CrossEntropy()(model, moved, 0.0).total.backward()
    assert (values.grad != 0).all()


@each_way
def test_a_caption_depends_on_no_other_picture(way):
    model, given = captioner(way), pictures(6)
    search = BeamSearch(beam_size=3)
    together = [found[0] for found in model.find([[each] for each in given], search)]
    alone = [model.find([[each]], search)[0][0] for each in given]
    swapped = [found[0] for found in model.find([[given[place]] for place in (1, 0, 2, 3, 4, 5)], search)]
    assert [one.tokens for one in together] == [one.tokens for one in alone]
    assert [one.score for one in together] == pytest.approx([one.score for one in alone], rel=1e-9)
    assert [swapped[place].score for place in (1, 0, 2)] == pytest.approx([one.score for one in together[:3]], rel=1e-9)
    assert len({round(one.score, 9) for one in together}) == 6  # and on its own it does


@each_way
def test_pixels_are_scaled_in_the_encoder(way):
    model, batch = captioner(way), batch_of(pictures(2))
    assert batch.source.values.dtype == torch.uint8
    floats = Padded(batch.source.values.double(), batch.source.lengths)
    assert torch.equal(model.encode(batch.source).states, model.encode(floats).states)


def test_the_summary_as_first_input_is_a_step_before_bos_by_hand():
    model, batch = captioner("first"), batch_of(pictures(3))
    decoder = model.decoder
    memory = model.encode(batch.source)
    cell, bridge = decoder.stack.cells[0], decoder.bridging
    inputs = torch.cat(
        [
            (memory.final["summary"] @ bridge.weight.T + bridge.bias)[:, None],
            decoder.embedding.weight[batch.inputs.values],
        ],
        dim=1,
    )
    reference = torch.nn.LSTMCell(4, 6).double()
    reference.load_state_dict({name.removesuffix("_l0"): each for name, each in cell.kernel.state_dict().items()})
    state, outputs = (torch.zeros(3, 6).double(), torch.zeros(3, 6).double()), []
    for step in inputs.unbind(1):
        state = reference(step, state)
        outputs.append(state[0])
    by_hand = torch.stack(outputs[1:], dim=1) @ decoder.output.weight.T + decoder.output.bias
    found = decoder(memory, batch.inputs).scores
    for row, length in enumerate(batch.inputs.lengths.tolist()):
        torch.testing.assert_close(found[row, :length], by_hand[row, :length])


def test_the_encoder_is_a_residual_network_as_torch_computes_it():
    model, source = captioner("start"), batch_of(pictures(2)).source
    weights = dict(model.encoder.named_parameters())

    def normed(values, name):
        return functional.group_norm(values, 1, weights[f"{name}.weight"], weights[f"{name}.bias"]).relu()

    values = source.values.double().permute(0, 3, 1, 2) / SCALE - 1
    values = functional.conv2d(values, weights["patches.weight"], weights["patches.bias"], stride=2, padding=1)
    for block, stride in ((0, 1), (1, 2)):
        change = functional.conv2d(
            normed(values, f"blocks.{block}.norms.0"), weights[f"blocks.{block}.first.weight"], stride=stride, padding=1
        )
        change = functional.conv2d(
            normed(change, f"blocks.{block}.norms.1"), weights[f"blocks.{block}.second.weight"], padding=1
        )
        kept = values if block == 0 else functional.conv2d(values, weights["blocks.1.shortcut.weight"], stride=2)
        values = kept + change
    features = normed(values, "norm")  # (2, 8, 3, 2)
    memory = model.encoder(source)
    assert model.encoder.grid == (3, 2)
    for row in range(3):
        for column in range(2):
            expected = features[:, :, row, column] + weights["rows"][row] + weights["columns"][column]
            torch.testing.assert_close(memory.states[:, 2 * row + column], expected)
    dense = functional.linear(memory.states.flatten(1), weights["dense.weight"], weights["dense.bias"]).relu()
    torch.testing.assert_close(memory.final["summary"], dense)


def test_limits_count_the_rows_of_a_picture_not_the_places_of_its_grid():
    model = captioner("attention")
    memory = model.encode(batch_of(pictures(2)).source)
    assert memory.lengths.tolist() == [6, 6]
    assert model.decoder.limit(memory).tolist() == [9, 9]  # 0.5 * 12 rows + 3
    assert model.decoder.limit(memory.select(torch.tensor([1]))).tolist() == [9]


# -- what does not fit


@pytest.mark.parametrize(
    ("recipe", "settings", "wrong"),
    [
        ("captions-first", ['decoder={type="gnmt", bridge="first"}'], "reads the summary like a token"),
        (
            "captions-start",
            ["encoder.type=recurrent"],
            "works on tokens and vectors, but the codec of task.source has none",
        ),
        ("dates", ['encoder={type="image"}'], "works on pictures, but the codec of task.source has none"),
        ("captions-start", ["task.source.size=5"], "one state of 8 x 8 pixels, and pictures have 5 x 5"),
        ("captions-start", ["task.source.fit=zoom"], "crop"),
        ("captions-start", ['task.source={type="text"}', "task.metrics=[]"], "works on pictures"),
        ("captions-attention", ["task.copy=true"], "has no unknown words to copy"),
        ("captions-start", ['decoder={type="pointer"}', 'task.target={type="places"}'], "reads tokens or vectors"),
    ],
)
def test_parts_that_do_not_fit_pictures_say_so_in_one_line(recipe, settings, wrong):
    with pytest.raises(SeqloomError) as caught:
        check_recipe(complete(override(read_recipe(recipe), settings), recipe))
    assert wrong in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
