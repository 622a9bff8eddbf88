"""The Neural Transducer against all of its alignments, written down one by one."""

from dataclasses import replace
from functools import partial
from itertools import product

import pytest
import torch

from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.errors import SeqloomError
from seqloom.nn.attention.dot import Dot
from seqloom.nn.attention.multihead import MultiHead
from seqloom.nn.cells.elman import Elman
from seqloom.nn.decoders.neural_transducer import NeuralTransducer
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.model import Model
from seqloom.nn.ops.alignment import even_alignment
from seqloom.objectives.alignment import Alignment
from seqloom.types import Batch, Memory, Padded, select

VOCABULARY, PAD, BOS, EOS = 6, 0, 2, 3
KINDS = {
    "as published": {},
    "one pass": {"input_feeding": False},
    "two layers and the block before": {"previous": 1, "layers": 2, "input_feeding": False},
    "dot, two blocks before": {"attention": Dot, "previous": 2},
    "multi-head": {"attention": partial(MultiHead, heads=2), "input_feeding": False},
}
kinds = pytest.mark.parametrize("kind", KINDS)


def transducer(kind="as published", seed=1, **settings):
    torch.manual_seed(seed)
    sizes = {"vocabulary": VOCABULARY, "memory_size": 4, "embedding_size": 4, "size": 4}
    own = {"block": 2, "symbols_per_block": 3, "cell": Elman, **KINDS[kind], **settings}
    decoder = NeuralTransducer(**sizes, bos=BOS, eos=EOS, blank=PAD, **own).double().eval()
    for parameter in decoder.parameters():
        torch.nn.init.uniform_(parameter, -1.5, 1.5)
    return decoder


def stateless(seed=1):
    """What it says depends on the last token and the block alone."""
    decoder = transducer("one pass", seed)
    for cell in decoder.writer.stack.cells:
        torch.nn.init.zeros_(cell.kernel.weight_hh_l0)
    return decoder


def memory_of(*lengths, seed=0, size=4):
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(len(lengths), max(lengths), size, generator=generator, dtype=torch.float64)
    return Memory(states, torch.tensor(lengths))


def targets_of(*outputs):
    return Padded.stack([torch.tensor([*output, EOS]) for output in outputs])


def alignments(symbols, blocks, longest):
    """All ways to deal tokens to blocks."""
    return [each for each in product(range(longest + 1), repeat=blocks) if sum(each) == symbols]


def path_of(output, counts):
    path, rest = [], list(output)
    for count in counts:
        path += [*rest[:count], PAD]
        rest = rest[count:]
    return [*path, EOS]


def log_prob(decoder, memory, path):
    """Of one path of one source, by stepping."""
    state, token, total = decoder.start(memory), torch.tensor([BOS]), memory.states.new_zeros(())
    for symbol in path:
        scores, state = decoder.step(token, state, memory)
        total = total + scores[0, symbol]
        token = torch.tensor([symbol])
    return total


def best_of_all(decoder, memory, output):
    blocks = int(decoder.block_count(memory)[0])
    paths = [path_of(output, each) for each in alignments(len(output), blocks, decoder.symbols_per_block)]
    return max((log_prob(decoder, memory, path).item(), path) for path in paths)


def test_three_symbols_fall_into_three_blocks_in_ten_ways():
    assert len(alignments(3, 3, 3)) == 10
    assert len(alignments(3, 3, 2)) == 7


@kinds
def test_the_probabilities_of_all_paths_sum_to_one(kind):
    decoder, memory = transducer(kind, symbols_per_block=2), memory_of(3)
    symbols = [symbol for symbol in range(VOCABULARY) if symbol not in (PAD, BOS, EOS)]
    bodies = [body for count in range(3) for body in product(symbols, repeat=count)]
    paths = [[*first, PAD, *second, PAD, EOS] for first in bodies for second in bodies]
    total = sum(log_prob(decoder, memory, path).exp().item() for path in paths)
    assert total == pytest.approx(1, abs=1e-12)


@kinds
def test_one_pass_over_paths_of_any_length_is_stepping(kind):
    decoder, memory = transducer(kind), memory_of(6, 3, 1)
    paths = [[4, PAD, 5, 4, PAD, PAD, EOS], [PAD, 5, PAD, EOS], [4, 4, 4, PAD, EOS]]
    inputs = Padded.stack([torch.tensor([BOS, *path[:-1]]) for path in paths])
    output = decoder(memory, inputs)
    assert output.hidden.shape[-1] == decoder.hidden_size
    for row, path in enumerate(paths):
        ours = memory.select(torch.tensor([row]))
        state = decoder.start(ours)
        for place, token in enumerate([BOS, *path[:-1]]):
            scores, state = decoder.step(torch.tensor([token]), state, ours)
            torch.testing.assert_close(output.scores[row, place], scores[0])
        ended = select(output.state, torch.tensor([row]))
        for ours_at_end, theirs in ((ended["frame"], state["frame"]), (ended["written"], state["written"])):
            assert torch.equal(ours_at_end, theirs)
        again = [decoder.step(torch.tensor([4]), each, ours)[0] for each in (ended, state)]
        torch.testing.assert_close(*again)


@kinds
def test_going_on_from_a_state_is_as_if_never_interrupted(kind):
    decoder, memory = transducer(kind), memory_of(6)
    path = torch.tensor([[BOS, 4, 5, PAD, 4, PAD, PAD]])
    whole = decoder(memory, Padded(path, torch.tensor([7])))
    first = decoder(memory, Padded(path[:, :3], torch.tensor([3])))
    second = decoder(memory, Padded(path[:, 3:], torch.tensor([4])), first.state)
    torch.testing.assert_close(torch.cat([first.scores, second.scores], 1), whole.scores)


@kinds
def test_several_rows_a_source_are_as_if_the_memory_were_repeated(kind):
    decoder, memory = transducer(kind), memory_of(5, 3)
    tokens = torch.tensor([4, PAD, 5, 5])  # rows of the first source stand in different blocks
    state = decoder.start_rows(memory, 4)
    for _ in range(2):
        repeated = memory.select(memory.owner(4))
        scores, after = decoder.step(tokens, state, memory)
        torch.testing.assert_close(scores, decoder.step(tokens, state, repeated)[0])
        state = after


@kinds
def test_a_step_sees_its_block_and_those_before_that_are_allowed(kind):
    decoder, memory = transducer(kind), memory_of(8)
    states = memory.states.requires_grad_()
    inputs = Padded(torch.tensor([[BOS, PAD, PAD, PAD]]), torch.tensor([4]))
    output = decoder(memory, inputs, attention=True)
    for step in range(4):
        (gradient,) = torch.autograd.grad(output.scores[0, step, 4], states, retain_graph=True)
        seen = gradient[0].abs().sum(1) > 0
        if not decoder.writer.fed_size:  # what is fed back has seen earlier blocks
            first = max(step - decoder.previous, 0) * 2
            assert seen.tolist() == [first <= place < 2 * step + 2 for place in range(8)]
        assert not seen[2 * step + 2 :].any()
        looked = output.attention["source"][0, 0, :, step]
        torch.testing.assert_close(looked.sum(-1), torch.ones_like(looked[:, 0]))
        assert not looked[:, : max(step - decoder.previous, 0) * 2].any()
        assert not looked[:, 2 * step + 2 :].any()


def test_a_full_block_must_end_and_after_the_last_comes_the_end_of_the_output():
    decoder, memory = transducer(), memory_of(3)
    inputs = torch.tensor([[BOS, 4, 5, 4, PAD, 4, PAD]])
    scores = decoder(memory, Padded(inputs, torch.tensor([7]))).scores[0]
    for place in (0, 1, 2, 4, 5):
        assert scores[place, [BOS, EOS]].tolist() == [float("-inf")] * 2
        assert scores[place, [PAD, 1, 4, 5]].isfinite().all()
    for place, certain in ((3, PAD), (6, EOS)):
        assert scores[place].exp().tolist() == [float(symbol == certain) for symbol in range(VOCABULARY)]


@kinds
def test_a_source_that_grows_gives_what_it_gives_whole_and_a_block_is_waited_for(kind):
    decoder, memory = transducer(kind), memory_of(5)
    path = [BOS, 4, PAD, 5, PAD, PAD]
    whole = decoder(memory, Padded(torch.tensor([path]), torch.tensor([6]))).scores[0]
    length, forgotten = 0, 0
    grown = replace(memory, states=memory.states[:, :0], lengths=torch.tensor([0]), closed=False)
    state = decoder.start(grown)
    for place, token in enumerate(path):
        scores, after = decoder.step(torch.tensor([token]), state, grown)
        while bool((scores == float("-inf")).all()):
            assert length < 5
            length += 1
            chunk = Memory(memory.states[:, length - 1 : length], torch.tensor([1]), closed=length == 5)
            grown = grown.append(chunk)
            scores, after = decoder.step(torch.tensor([token]), state, grown)
        torch.testing.assert_close(scores[0], whole[place])
        assert length == min(2 * (path[1 : place + 1].count(PAD) + 1), 5)
        state = after
        grown, forgotten = grown.forget(decoder.first_needed(state) - forgotten), decoder.first_needed(state)
    assert forgotten == max(5 - 2 * decoder.previous, 0)


# -- alignments


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("length", [6, 5, 3, 1])
def test_without_a_state_dynamic_programming_finds_the_best_of_all_alignments(seed, length):
    decoder, memory = stateless(seed), memory_of(length, seed=seed)
    for output in ((4, 5, 4), (5, 5), ()):
        best, path = best_of_all(decoder, memory, output)
        aligned = decoder.align(memory, targets_of(output))
        assert aligned.targets.values[0].tolist() == path
        assert decoder.log_prob(memory, None, targets_of(output)).item() == pytest.approx(best, abs=1e-10)


def test_with_a_state_it_finds_an_alignment_that_is_seldom_not_the_best():
    gaps = []
    for seed in range(30):
        decoder, memory = transducer(seed=seed), memory_of(6, seed=seed)
        best, _ = best_of_all(decoder, memory, (4, 5, 4))
        path = decoder.align(memory, targets_of((4, 5, 4))).targets.values[0].tolist()
        found = decoder.log_prob(memory, None, targets_of((4, 5, 4))).item()
        assert found == pytest.approx(log_prob(decoder, memory, path).item(), abs=1e-10)
        gaps.append(best - found)
    assert min(gaps) > -1e-10
    assert sum(gap < 1e-10 for gap in gaps) >= 20
    assert max(gaps) > 1e-3  # else nothing was approximate


@kinds
def test_a_batch_is_aligned_as_its_rows_are_alone(kind):
    decoder, memory = transducer(kind), memory_of(7, 4, 2, 5)
    outputs = ((4, 5, 4, 4), (5,), (), (5, 4, 5))
    together = decoder.align(memory, targets_of(*outputs))
    log_probs = decoder.log_prob(memory, None, targets_of(*outputs))
    for row, output in enumerate(outputs):
        states = memory.states[row : row + 1, : int(memory.lengths[row])]
        ours = Memory(states, memory.lengths[row : row + 1])
        alone = decoder.align(ours, targets_of(output))
        length = int(together.targets.lengths[row])
        assert together.targets.values[row, :length].tolist() == alone.targets.values[0].tolist()
        assert together.inputs.values[row, :length].tolist() == [BOS, *alone.targets.values[0, :-1].tolist()]
        torch.testing.assert_close(log_probs[row : row + 1], decoder.log_prob(ours, None, targets_of(output)))


def test_all_symbols_stand_before_the_end_of_the_last_block():
    decoder, memory = transducer(), memory_of(7, 4)
    outputs = ((4, 5, 4, 4), (5, 5))
    for even in (True, False):
        aligned = decoder.align(memory, targets_of(*outputs), even=even)
        for row, blocks in enumerate((4, 2)):
            path = aligned.targets.values[row, : int(aligned.targets.lengths[row])].tolist()
            assert [symbol for symbol in path if symbol != PAD] == [*outputs[row], EOS]
            assert path.count(PAD) == blocks
            assert path[-2:] == [PAD, EOS]


def test_symbols_are_spread_evenly():
    targets = targets_of((4,) * 5, (4,) * 2, (4,) * 4, ())
    counts = even_alignment(targets, torch.tensor([3, 4, 2, 1]))
    assert counts.tolist() == [[1, 2, 2, 0], [0, 1, 0, 1], [2, 2, 0, 0], [0, 0, 0, 0]]


def test_a_wide_beam_finds_what_dynamic_programming_finds_and_a_narrow_one_puts_symbols_off():
    narrow_is_worse = 0
    for seed in range(10):
        decoder, memory = stateless(seed), memory_of(8, 6, seed=seed)
        targets = targets_of((4, 5, 4), (5, 5))
        dynamic, wide, narrow = (decoder.align(memory, targets, beam_size=size) for size in (0, 4, 1))
        assert torch.equal(dynamic.targets.values, wide.targets.values)
        for row in range(2):
            ours = memory.select(torch.tensor([row]))
            best, found = (
                log_prob(decoder, ours, each.targets.values[row, : int(each.targets.lengths[row])].tolist())
                for each in (dynamic, narrow)
            )
            assert found <= best + 1e-10
            narrow_is_worse += bool(found < best - 1e-6)
    assert narrow_is_worse >= 5


# -- the objective


def model_of(decoder):
    torch.manual_seed(3)
    return Model(RecurrentEncoder(vocabulary=VOCABULARY, embedding_size=3, size=4), decoder).double().train()


def batch_of(*outputs, lengths=(6, 3, 2)):
    source = Padded.stack([torch.tensor([4, 5, 5, 4, 5, 4][:length]) for length in lengths[: len(outputs)]])
    inputs = Padded.stack([torch.tensor([BOS, *output]) for output in outputs])
    return Batch(source, inputs, targets_of(*outputs))


@kinds
def test_the_loss_is_that_of_the_best_alignment_and_its_gradient_is_right(kind):
    model, batch = model_of(transducer(kind)), batch_of((4, 5, 4), (5,))
    objective = Alignment(even=0.0)
    loss = objective(model, batch, 0.5)
    memory = model.encode(batch.source)
    torch.testing.assert_close(loss.total, -model.decoder.log_prob(memory, batch.inputs, batch.targets).sum())
    assert loss.count == 6
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss.total, parameters)
    assert all(gradient.abs().max() > 0 for gradient in gradients)
    for parameter, gradient in zip(parameters, gradients):
        place = int(gradient.abs().argmax())
        values = []
        for change in (1e-6, -1e-6):
            with torch.no_grad():
                parameter.view(-1)[place] += change
                values.append(objective(model, batch, 0.5).total.item())
                parameter.view(-1)[place] -= change
        assert (values[0] - values[1]) / 2e-6 == pytest.approx(gradient.flatten()[place].item(), rel=1e-5)


def test_it_begins_with_an_even_alignment_and_validates_with_the_best():
    model, batch = model_of(transducer()), batch_of((4, 5, 4), (5,))
    objective = Alignment(even=0.5)
    memory = model.encode(batch.source)
    aligned = model.decoder.align(memory, batch.targets, even=True)
    scores = model.decoder(memory, aligned.inputs).scores.log_softmax(-1)
    chosen = scores.gather(2, aligned.targets.values[:, :, None])[:, :, 0].masked_fill(~aligned.targets.mask, 0)
    torch.testing.assert_close(objective(model, batch, 0.4).total, -chosen.sum())
    best = -model.decoder.log_prob(memory, batch.inputs, batch.targets).sum()
    torch.testing.assert_close(objective(model, batch, 0.5).total, best)
    torch.testing.assert_close(objective.eval()(model, batch, 0.4).total, best)
    assert best < -chosen.sum()


def test_a_target_that_does_not_fit_into_its_blocks_is_counted_and_left_out():
    model = model_of(transducer(symbols_per_block=2))
    objective = Alignment(even=0.5)
    for progress in (0.0, 1.0):
        with_it = objective(model, batch_of((4, 5, 4), (5,), (4, 4, 4)), progress)
        without = objective(model, batch_of((4, 5, 4), (5,)), progress)
        torch.testing.assert_close(with_it.total, without.total)
        assert with_it.count == without.count == 6
        assert [loss.logs["impossible"].item() for loss in (with_it, without)] == [1, 0]
        none = objective(model, batch_of((4,) * 7), progress)
        assert none.total.item() == none.count == 0
        gradients = torch.autograd.grad(none.total, list(model.parameters()))
        assert not any(gradient.any() for gradient in gradients)
    memory = memory_of(2)
    assert model.decoder.log_prob(memory, None, targets_of((4, 4, 4))).item() == float("-inf")


def test_there_is_nothing_to_remember_between_updates():
    model, batch = model_of(transducer()), batch_of((4, 5, 4), (5,))
    objective = Alignment()
    before = objective(model, batch, 0.7).total.item()
    objective(model, batch_of((5, 5), (4, 4), (5,)), 0.9)
    assert objective.state_dict() == {}
    assert Alignment()(model, batch, 0.7).total.item() == before


def test_settings_that_mean_nothing_are_refused():
    for settings, word in (({"block": 0}, "block"), ({"previous": -1}, "previous"), ({"memory_size": 0}, "encoder")):
        sizes = {"vocabulary": VOCABULARY, "memory_size": 4, "bos": BOS, "eos": EOS, "blank": PAD}
        with pytest.raises(ValueError, match=word):
            NeuralTransducer(**{**sizes, **settings})
    with pytest.raises(ValueError, match="beam_size"):
        Alignment(search="beam", beam_size=0)
    with pytest.raises(ValueError, match="even"):
        Alignment(even=1.5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ["decoder.type=neural_transducer"],
            'objective.type = "emission": cannot train this decoder; take objective.type = "alignment"',
        ),
        (["decoder.type=recurrent"], 'objective.type = "emission": trains decoders of type "emission" only'),
        (["search.type=beam"], 'search.type = "beam": cannot search a decoder with blanks; take "prefix_beam"'),
    ],
)
def test_a_recipe_whose_objective_or_search_does_not_suit_the_decoder_is_refused(settings, words):
    full = complete(override(read_recipe("delayed-copy"), settings), "delayed-copy")
    with pytest.raises(SeqloomError) as caught:
        check_recipe(full)
    assert str(caught.value) == words
