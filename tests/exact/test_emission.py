"""Stochastic emissions against all ways of writing an output, listed: expected reward, its gradient, what is forced."""

from dataclasses import replace
from itertools import combinations, product
from math import comb

import pytest
import torch

from seqloom.nn.cells.gru import GRU
from seqloom.nn.cells.lstm import LSTM
from seqloom.nn.decoders.emission import Emission, EmissionPath
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.model import Model
from seqloom.objectives import emission
from seqloom.types import Batch, Memory, Padded, select

VOCABULARY, PAD, BOS, EOS = 6, 0, 2, 3
STATES, OUTPUT = 5, (4, 5)


def decoder_of(seed=1, **settings):
    torch.manual_seed(seed)
    sizes = {"vocabulary": VOCABULARY, "memory_size": 4, "embedding_size": 3, "size": 4}
    decoder = Emission(**sizes, bos=BOS, eos=EOS, blank=PAD, **settings).double().eval()
    for parameter in decoder.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)
    return decoder


def model_of(seed=1, **settings):
    torch.manual_seed(seed)
    encoder = RecurrentEncoder(vocabulary=VOCABULARY, embedding_size=3, size=4)
    torch.nn.init.uniform_(encoder.embedding.weight, -1, 1)
    return Model(encoder, decoder_of(seed, **settings)).double().train()


def batch_of(*outputs, lengths=(STATES, 3, 4)):
    source = Padded.stack([torch.tensor([4, 5, 5, 4, 5][:length]) for length in lengths[: len(outputs)]])
    inputs = Padded.stack([torch.tensor([BOS, *output]) for output in outputs])
    return Batch(source, inputs, Padded.stack([torch.tensor([*output, EOS]) for output in outputs]))


def memory_of(*lengths, seed=0):
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(len(lengths), max(lengths), 4, generator=generator, dtype=torch.float64)
    return Memory(states, torch.tensor(lengths))


def targets_of(*outputs):
    return Padded.stack([torch.tensor([*output, EOS]) for output in outputs])


def ways():
    """Every choice of states at which the tokens are written."""
    return list(combinations(range(STATES), len(OUTPUT)))


def path_of(way, output=OUTPUT, states=STATES):
    symbols = iter(output)
    return [next(symbols) if place in way else PAD for place in range(states)]


def free_of(way, states=STATES):
    """Where the coin had a choice: some tokens were left, but fewer than states."""
    left = [sum(place >= start for place in way) for start in range(states)]
    return [0 < left[start] < states - start for start in range(states)]


def written_as(way, output=OUTPUT, states=STATES):
    path = path_of(way, output, states)
    length = torch.tensor([states + 1])
    return EmissionPath(
        Padded(torch.tensor([[BOS, *path]]), length),
        Padded(torch.tensor([[*path, EOS]]), length),
        torch.tensor([[*free_of(way, states), False]]),
        torch.tensor([True]),
    )


def followed(model, batch, way, bound=False):
    """The log-probability of the free choices and the reward, state by state, by stepping.

    With the bound, what the coin says of states without a choice is part of the reward.
    """
    memory = model.encode(batch.source)
    decoder, state, token = model.decoder, model.decoder.start(memory), torch.tensor([BOS])
    choice = reward = memory.states.new_zeros(())
    for symbol, free in zip(path_of(way), free_of(way)):
        scores, state = decoder.step(token, state, memory)
        silence = scores[0, PAD].exp()
        coin = scores[0, PAD] if symbol == PAD else (1 - silence).log()
        if free:
            choice = choice + coin
        elif bound:
            reward = reward + coin
        if symbol != PAD:
            reward = reward + scores[0, symbol] - (1 - silence).log()
        token = torch.tensor([symbol])
    return choice, reward


def gradients(total, module):
    parameters = list(module.parameters())
    found = torch.autograd.grad(total, parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found)]


def expectation(model, objective, batch, monkeypatch, progress=0.5):
    """The objective's gradient for each way of writing, weighted by its probability."""
    total = [torch.zeros_like(parameter) for parameter in model.parameters()]
    for way in ways():
        chance = followed(model, batch, way)[0].exp().detach()
        monkeypatch.setattr(model.decoder, "emission_path", lambda *_, **__: written_as(way))  # noqa: B023
        found = gradients(objective(model, batch, progress).total, model)
        total = [before + chance * each for before, each in zip(total, found)]
    monkeypatch.undo()
    return total


@pytest.mark.parametrize("bound", [True, False])
@pytest.mark.parametrize("settings", [{}, {"cell": GRU, "layers": 2}])
def test_the_expected_estimate_is_the_gradient_of_the_expected_reward(settings, bound, monkeypatch):
    model, batch = model_of(**settings), batch_of(OUTPUT)
    torch.manual_seed(5)
    objective = emission.EmissionPolicyGradient(hidden_size=5, samples=1, entropy=0.0, bound=bound).double()
    assert len(ways()) == comb(5, 2)
    chances, rewards = zip(*(followed(model, batch, way, bound) for way in ways()))
    assert torch.stack(chances).exp().sum().item() == pytest.approx(1, abs=1e-12)
    truth = gradients(-(torch.stack(chances).exp() * torch.stack(rewards)).sum(), model)
    ours = expectation(model, objective, batch, monkeypatch)
    assert max(each.abs().max() for each in truth) > 1e-2
    for one, other in zip(ours, truth):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


def test_the_expected_sum_with_the_bound_is_below_the_log_probability_of_the_output():
    for seed in range(5):
        model, batch = model_of(seed), batch_of(OUTPUT)
        chances, rewards = map(torch.stack, zip(*(followed(model, batch, way, bound=True) for way in ways())))
        whole = (chances + rewards).logsumexp(0)  # all ways to write it: every decision and every token
        memory = model.encode(batch.source)
        paths = torch.tensor([[*path_of(way), EOS] for way in ways()])
        inputs = torch.cat([torch.full((len(paths), 1), BOS), paths[:, :-1]], dim=1)
        scores = model.decoder(memory, Padded(inputs, torch.full((len(paths),), STATES + 1))).scores
        torch.testing.assert_close(whole, scores.gather(2, paths[:, :, None]).sum((1, 2)).logsumexp(0))
        assert (chances.exp() * rewards).sum() < whole
        greedy = model.decoder.log_prob(memory, batch.inputs, batch.targets)[0]
        assert greedy < whole


def test_what_is_drawn_is_drawn_as_often_as_it_should_be():
    model, batch = model_of(), batch_of(OUTPUT)
    count = 20_000
    memory = model.encode(batch.source)
    torch.manual_seed(1)
    repeated = Padded(batch.targets.values.repeat(count, 1), batch.targets.lengths.repeat(count))
    written = model.decoder.emission_path(memory, repeated, draw=True)
    assert torch.equal((written.targets.values != PAD).sum(1), torch.full((count,), 3))
    for way in ways():
        expected = written_as(way)
        same = (written.targets.values == expected.targets.values).all(1)
        chance = followed(model, batch, way)[0].exp().item()
        assert same.double().mean().item() == pytest.approx(chance, abs=4 * (chance / count) ** 0.5 + 1e-3)
        for ours, theirs in ((written.free, expected.free), (written.inputs.values, expected.inputs.values)):
            assert torch.equal(ours[same], theirs.expand_as(ours[same]))


@pytest.mark.parametrize("draw", [True, False])
def test_every_symbol_is_written_whatever_the_coins_say(draw):
    outputs = ((4, 5), (), (5, 5, 4), (4,), (4, 4, 4, 5, 4))
    lengths = (5, 4, 3, 1, 6)
    for bias in (-50.0, 0.0, 50.0):
        decoder = decoder_of()
        torch.nn.init.constant_(decoder.coin.bias, bias)
        written = decoder.emission_path(memory_of(*lengths), targets_of(*outputs), draw=draw)
        assert written.possible.all()
        for row, (output, length) in enumerate(zip(outputs, lengths)):
            path = written.targets.values[row, : length + 1].tolist()
            assert [symbol for symbol in path if symbol != PAD] == [*output, EOS]
            assert path[-1] == EOS
            assert written.inputs.values[row, : length + 1].tolist() == [BOS, *path[:-1]]
            way = [place for place, symbol in enumerate(path[:-1]) if symbol != PAD]
            assert written.free[row, : length + 1].tolist() == [*free_of(way, length), False]
            assert not written.free[row, length:].any()
            if bias:  # as late or as early as can be
                begin = length - len(output) if bias < 0 else 0
                assert way == list(range(begin, begin + len(output)))


def test_the_likelier_side_of_each_coin_is_taken_and_scored():
    model, batch = model_of(), batch_of(OUTPUT)
    memory = model.encode(batch.source)
    found = model.decoder.log_prob(memory, batch.inputs, batch.targets)
    path = model.decoder.emission_path(memory, batch.targets).targets.values[0].tolist()
    state, token, total = model.decoder.start(memory), torch.tensor([BOS]), 0.0
    way = [place for place, symbol in enumerate(path[:-1]) if symbol != PAD]
    for symbol, free in zip(path, [*free_of(way), False]):
        scores, state = model.decoder.step(token, state, memory)
        if free:
            assert (symbol == PAD) == (scores[0, PAD].exp().item() > 0.5)
        total = total + scores[0, symbol]
        token = torch.tensor([symbol])
    torch.testing.assert_close(found[0], total)
    objective = emission.EmissionPolicyGradient(hidden_size=5).double().eval()
    loss = objective(model, batch, 0.5)
    torch.testing.assert_close(loss.total, -found[0])
    assert loss.count == 3


def test_the_probabilities_of_all_outputs_by_all_ways_sum_to_one():
    decoder, memory = decoder_of(), memory_of(3)
    symbols = [symbol for symbol in range(VOCABULARY) if symbol not in (BOS, EOS)]
    paths = [torch.tensor([*path, EOS]) for path in product(symbols, repeat=3)]
    inputs = Padded.stack([torch.cat([torch.tensor([BOS]), path[:-1]]) for path in paths])
    scores = decoder(memory, inputs).scores
    chosen = scores.gather(2, torch.stack(paths)[:, :, None])[:, :, 0]
    assert chosen.sum(1).exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert scores[:, -1, EOS].tolist() == [0.0] * len(paths)
    assert (scores[:, :-1, [BOS, EOS]] == float("-inf")).all()


@pytest.mark.parametrize("settings", [{"cell": LSTM, "layers": 2}, {"cell": GRU}])
def test_one_pass_over_paths_of_any_length_is_stepping(settings):
    decoder, memory = decoder_of(**settings), memory_of(5, 3, 4)
    paths = [[4, PAD, PAD, 5, PAD, EOS], [PAD, 5, 5, EOS], [PAD]]
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
        assert torch.equal(ended["frame"], state["frame"])
        again = [decoder.step(torch.tensor([PAD]), each, ours)[0] for each in (ended, state)]
        torch.testing.assert_close(*again)


def test_a_source_that_grows_gives_what_it_gives_whole_and_each_state_is_waited_for():
    decoder, memory = decoder_of(), memory_of(4)
    path = [BOS, 4, PAD, 5, PAD]
    whole = decoder(memory, Padded(torch.tensor([path]), torch.tensor([5]))).scores[0]
    grown = replace(memory, states=memory.states[:, :0], lengths=torch.tensor([0]), closed=False)
    state, length, forgotten = decoder.start(grown), 0, 0
    for place, token in enumerate(path):
        scores, after = decoder.step(torch.tensor([token]), state, grown)
        while bool((scores == float("-inf")).all()):
            assert length == place < 5
            last = length == 4  # nothing more comes: only now can the end be known
            chunk = Memory(memory.states[:, length : length + 1], torch.tensor([0 if last else 1]), closed=last)
            grown, length = grown.append(chunk), length + 1
            scores, after = decoder.step(torch.tensor([token]), state, grown)
        torch.testing.assert_close(scores[0], whole[place])
        state = after
        grown, forgotten = grown.forget(decoder.first_needed(state) - forgotten), decoder.first_needed(state)
    assert forgotten == 4


def test_a_batch_is_what_its_rows_are_alone(monkeypatch):
    model = model_of()
    torch.manual_seed(5)
    objective = emission.EmissionPolicyGradient(hidden_size=5, samples=1, entropy=0.7).double()
    rows = [((4, 5), 5, (1, 3)), ((5,), 3, (1,)), ((4, 4, 5), 4, (0, 1, 3))]
    alone = 0.0
    for output, length, way in rows:
        monkeypatch.setattr(model.decoder, "emission_path", lambda *_, **__: written_as(way, output, length))  # noqa: B023
        alone = alone + objective(model, batch_of(output, lengths=(length,)), 0.5).total
    each = [written_as(way, output, length) for output, length, way in rows]
    together = EmissionPath(
        Padded.stack([one.inputs.values[0] for one in each]),
        Padded.stack([one.targets.values[0] for one in each]),
        Padded.stack([one.free[0] for one in each]).values,
        torch.tensor([True] * 3),
    )
    monkeypatch.setattr(model.decoder, "emission_path", lambda *_, **__: together)
    batch = batch_of(*(output for output, _, _ in rows), lengths=(5, 3, 4))
    loss = objective(model, batch, 0.5)
    torch.testing.assert_close(loss.total, alone)
    for ours, theirs in zip(gradients(loss.total, model), gradients(alone, model)):
        torch.testing.assert_close(ours, theirs)


def test_the_baseline_learns_what_is_still_to_come_and_leaves_the_model_alone(monkeypatch):
    model, batch, way = model_of(), batch_of(OUTPUT), (1, 3)
    objective = emission.EmissionPolicyGradient(hidden_size=5, samples=1, entropy=0.0, bound=False).double()
    monkeypatch.setattr(model.decoder, "emission_path", lambda *_, **__: written_as(way))
    ours = torch.autograd.grad(objective(model, batch, 0.5).total, objective.judge.weight)[0]
    memory, written = model.encode(batch.source), written_as(way)
    hidden = model.decoder(memory, written.inputs).hidden[0].detach()
    symbols = model.decoder.token_log_probs(hidden)
    rewards = [symbols[place, symbol] if symbol != PAD else 0.0 for place, symbol in enumerate(path_of(way))]
    wanted = 0.0
    for place, free in enumerate(free_of(way)):
        if free:
            wanted = wanted + (sum(rewards[place:]) - objective.judge(hidden[place])[0]) ** 2
    torch.testing.assert_close(ours, torch.autograd.grad(wanted, objective.judge.weight)[0])


def test_the_entropy_of_free_coins_is_added_less_and_less(monkeypatch):
    model, batch, way = model_of(), batch_of(OUTPUT), (1, 4)
    with_it, without = (
        emission.EmissionPolicyGradient(hidden_size=5, samples=1, entropy=share).double() for share in (0.8, 0.0)
    )
    without.load_state_dict(with_it.state_dict())
    monkeypatch.setattr(model.decoder, "emission_path", lambda *_, **__: written_as(way))
    output = model.decoder(model.encode(batch.source), written_as(way).inputs)
    silence = output.scores[0, :, PAD].exp()
    entropies = -(silence * silence.log() + (1 - silence) * (1 - silence).log())
    assert free_of(way) == [True, True, True, True, False]
    for progress, share in ((0.0, 0.8), (0.25, 0.6), (1.0, 0.0)):
        gap = without(model, batch, progress).total - with_it(model, batch, progress).total
        torch.testing.assert_close(gap, share * entropies[:4].sum(), atol=1e-12, rtol=1e-10)


def test_a_target_with_more_symbols_than_states_is_counted_and_left_out():
    model = model_of()
    objective = emission.EmissionPolicyGradient(hidden_size=5, samples=3).double()
    for mode in (True, False):
        objective.train(mode)
        loss = objective(model, batch_of((4,) * 6), 0.5)
        assert loss.total.item() == loss.count == 0
        assert loss.logs["impossible"] == 1
        assert not any(gradient.any() for gradient in gradients(loss.total, model))
    with_it = objective(model, batch_of((4, 5), (4,) * 4), 0.5)
    without = objective(model, batch_of((4, 5)), 0.5)
    torch.testing.assert_close(with_it.total, without.total)
    assert with_it.count == without.count == 3
    memory = memory_of(2)
    assert model.decoder.log_prob(memory, None, targets_of((4, 4, 4))).item() == float("-inf")


def test_several_ways_are_drawn_and_count_as_one():
    model, batch = model_of(), batch_of((4, 5), (5,))
    objective = emission.EmissionPolicyGradient(hidden_size=5, samples=500, entropy=0.0, bound=False).double()
    torch.manual_seed(1)
    loss = objective(model, batch, 0.5)
    assert loss.count == 5
    rewards = 0.0
    for row, one in enumerate((batch_of((4, 5)), batch_of((5,), lengths=(3,)))):
        memory = model.encode(one.source)
        for _ in range(300):
            path = model.decoder.emission_path(memory, one.targets, draw=True)
            symbols = model.decoder.token_log_probs(model.decoder(memory, path.inputs).hidden)[0]
            found = path.targets.values[0]
            emits = (found != PAD) & (found != EOS)
            rewards += symbols[emits].gather(1, found[emits][:, None]).sum().item() / 300
        assert int(emits.sum()) == 2 - row
    assert loss.logs["reward"].item() == pytest.approx(rewards, rel=0.05)


def test_drop_out_is_off_where_ways_are_drawn():
    model, batch = model_of(dropout=0.5), batch_of(OUTPUT)
    objective = emission.EmissionPolicyGradient(hidden_size=5).double()

    def total():
        torch.manual_seed(1)
        return objective(model, batch, 0.5).total.item()

    with_it = total()
    assert model.decoder.dropout.p == 0.5
    for module in model.modules():
        if hasattr(module, "p"):
            module.p = 0.0
    assert total() == with_it


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="encoder"):
        Emission(vocabulary=6, memory_size=0, bos=BOS, eos=EOS, blank=PAD)
    with pytest.raises(ValueError, match="samples"):
        emission.EmissionPolicyGradient(hidden_size=5, samples=0)
