"""Simultaneous decoding: by the wait-k rule, and by an agent."""

from contextlib import contextmanager
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.errors import SeqloomError
from seqloom.nn.attention.additive import Additive
from seqloom.nn.combine.wait_k import WaitKDecoder
from seqloom.nn.decoders.agent import LAG_SCALE, Agent
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.model import Model
from seqloom.objectives import read_write
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.objectives.read_write import ReadWrite
from seqloom.objectives.wait_k import WaitK
from seqloom.search.beam import BeamSearch
from seqloom.search.prefix_beam import PrefixBeam
from seqloom.types import Batch, Padded
from tests.exact import toy
from tests.exact.toy import BOS, VOCABULARY, kinds

SOURCE = Padded.stack([torch.tensor(row) for row in ([4, 5, 5, 4, 5, 4], [5, 4, 4], [4])])
INPUTS = Padded.stack([torch.tensor(row) for row in ([BOS, 4, 5, 5], [BOS, 4], [BOS, 5, 5])])


def recurrent(**settings):
    """A model with a decoder of such settings."""
    torch.manual_seed(1)
    decoder = partial(Recurrent, vocabulary=VOCABULARY, memory_size=4, bos=BOS, eos=toy.EOS, embedding_size=4, size=4)
    model = Model(RecurrentEncoder(vocabulary=VOCABULARY, embedding_size=3, size=4), decoder(**settings))
    for parameter in model.double().parameters():
        torch.nn.init.uniform_(parameter, -0.7, 0.7)
    return model


@kinds
@pytest.mark.parametrize("ratio", [1.0, 0.5, 1.5])
def test_each_token_is_written_as_if_the_source_ended_with_what_was_read(kind, ratio):
    model, wait = toy.model(kind), 2
    for row, (length, width) in enumerate(zip(SOURCE.lengths.tolist(), INPUTS.lengths.tolist())):
        state = None
        waiting = WaitKDecoder.of(model, wait, ratio)
        memory = model.encode(Padded(SOURCE.values[row : row + 1, :length], torch.tensor([length])))
        found = waiting(memory, Padded(INPUTS.values[row : row + 1, :width], torch.tensor([width]))).scores[0]
        for place in range(width):
            seen = min(wait + int(place * ratio), length)
            part = model.encode(Padded(SOURCE.values[row : row + 1, :seen], torch.tensor([seen])))
            state = model.decoder.start(part) if state is None else state
            scores, state = model.decoder.step(INPUTS.values[row : row + 1, place], state, part)
            torch.testing.assert_close(found[place], scores[0])


@kinds
def test_all_tokens_at_once_are_those_written_one_by_one(kind):
    model = toy.model(kind)
    waiting, memory = WaitKDecoder.of(model, 2), model.encode(SOURCE)
    output = waiting(memory, INPUTS, attention=True)
    state = waiting.start(memory)
    again = waiting(memory, INPUTS, state, attention=True)
    for row, width in enumerate(INPUTS.lengths.tolist()):
        torch.testing.assert_close(again.scores[row, :width], output.scores[row, :width])
        weights = output.attention["source"][row, :, :, :width]
        torch.testing.assert_close(again.attention["source"][row, :, :, :width], weights)
    assert torch.equal(again.state["written"], output.state["written"])
    for place in range(INPUTS.values.shape[1]):
        scores, state = waiting.step(INPUTS.values[:, place], state, memory)
        live = INPUTS.lengths > place
        torch.testing.assert_close(scores[live], output.scores[live, place])


@kinds
def test_waiting_for_the_whole_source_changes_nothing(kind):
    model = toy.model(kind)
    memory = model.encode(SOURCE)
    usual, waited = model.decoder(memory, INPUTS), WaitKDecoder.of(model, 6)(memory, INPUTS)
    mask = INPUTS.mask
    torch.testing.assert_close(waited.scores[mask], usual.scores[mask])
    search = BeamSearch(beam_size=3, n_best=3, maximum_length=6)
    theirs, ours = search(model.decoder, memory), search(WaitKDecoder.of(model, 6), memory)
    assert [[one.tokens for one in each] for each in ours] == [[one.tokens for one in each] for each in theirs]


def test_times_are_those_of_the_rule():
    model, search = toy.model("recurrent"), BeamSearch(beam_size=4, n_best=4, maximum_length=9, minimum_length=3)
    for wait, ratio in ((1, 1.0), (3, 1.0), (2, 0.5), (2, 1.7)):
        found = search(WaitKDecoder.of(model, wait, ratio), model.encode(SOURCE))
        for each, length in zip(found, SOURCE.lengths.tolist()):
            for one in each:
                assert one.times == [min(wait + int(place * ratio), length) for place in range(len(one.tokens))]


@settings(max_examples=20, deadline=None)
@given(st.data())
@kinds
def test_a_source_in_pieces_has_the_output_of_the_whole_source(kind, data):
    model, wait = toy.model(kind).eval(), data.draw(st.integers(1, 4))
    source = data.draw(st.lists(st.sampled_from([4, 5]), min_size=1, max_size=7))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(source)), max_size=4)))
    search = BeamSearch(beam_size=data.draw(st.integers(1, 3)), maximum_length=8)
    waiting = WaitKDecoder.of(model, wait)
    with torch.no_grad():
        expected = search(waiting, model.encode(Padded.stack([torch.tensor(source)])))[0]
        state, memory, beam = model.encoder.start(1), None, None
        for begin, end in zip([0, *cuts], [*cuts, len(source)]):
            values = torch.tensor([source[begin:end]], dtype=torch.long)
            closed = end == len(source) and begin == [0, *cuts][-1]
            chunk, state = model.encoder.extend(Padded(values, torch.tensor([end - begin])), state, closed)
            prepared = waiting.prepare(chunk)
            memory = prepared if memory is None else memory.append(prepared)
            if memory.lengths[0]:
                beam = search.start(waiting, memory) if beam is None else beam
                beam = search.advance(waiting, memory, beam)
        if not memory.closed:
            empty = torch.zeros(1, 0, dtype=torch.long)
            chunk, state = model.encoder.extend(Padded(empty, torch.tensor([0])), state, True)
            memory = memory.append(waiting.prepare(chunk))
            beam = search.advance(waiting, memory, beam)
        found = search.finish(waiting, memory, beam)[0]
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    assert [one.times for one in found] == [one.times for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected])


def test_what_cannot_wait_is_refused_in_one_line():
    both_ways = Model(
        RecurrentEncoder(vocabulary=VOCABULARY, embedding_size=3, size=2, bidirectional=True),
        Recurrent(vocabulary=VOCABULARY, memory_size=4, bos=BOS, eos=toy.EOS, attention=Additive),
    )
    with pytest.raises(SeqloomError, match="train with encoder"):
        WaitKDecoder.of(both_ways, 3)
    with pytest.raises(SeqloomError, match="wait = 0: expected 1 to 1,000,000"):
        WaitKDecoder.of(recurrent(attention=Additive), 0)
    with pytest.raises(SeqloomError, match='"copy" needs all of the source'):
        WaitKDecoder.of(recurrent(attention=Additive, bridge="copy"), 3)
    residual = recurrent(attention=Additive)
    residual.encoder = RecurrentEncoder(vocabulary=VOCABULARY, embedding_size=4, size=4, layers=2, residual=True)
    with pytest.raises(SeqloomError, match="not the encoder's last state"):
        WaitKDecoder.of(residual.double(), 3).start(residual.encode(SOURCE))
    with pytest.raises(SeqloomError, match="leave it out"):
        WaitKDecoder(decoder=WaitKDecoder.of(recurrent(attention=Additive), 2), wait=3)


def test_a_summary_fed_at_every_step_is_the_last_state_read():
    model = recurrent(attention=Additive, feed_context=True, bridge="dense")
    waiting, memory = WaitKDecoder.of(model, 2), model.encode(SOURCE)
    output, state = waiting(memory, INPUTS).scores, None
    for place, count in enumerate((2, 3)):
        part = model.encode(Padded(SOURCE.values[:1, :count], torch.tensor([count])))
        state = model.decoder.start(part) if state is None else state
        scores, state = model.decoder.step(INPUTS.values[:1, place], state, part)
        torch.testing.assert_close(output[0, place], scores[0])


@kinds
def test_wait_k_training_with_a_long_wait_is_cross_entropy(kind):
    model, batch = toy.model(kind), toy.batch(((4, 5, 5, 4), (5,), (5, 4, 4)))
    ours, theirs = (each(model, batch, 0.5) for each in (WaitK(shortest=9, longest=9), CrossEntropy()))
    torch.testing.assert_close(ours.total, theirs.total)
    assert ours.count == theirs.count
    for drawn, wait in ((WaitK(shortest=1, longest=1), 1), (WaitK(shortest=1, longest=4).eval(), 2)):
        scores = WaitKDecoder.of(model, wait)(model.encode(batch.source), batch.inputs).scores.log_softmax(-1)
        chosen = scores.gather(2, batch.targets.values[:, :, None])[:, :, 0]
        torch.testing.assert_close(drawn(model, batch, 0.5).total, -(chosen * batch.targets.mask).sum())


# -- the agent


def agent(seed: int = 3) -> Model:
    """A small agent with random weights."""
    torch.manual_seed(seed)
    translator = partial(Recurrent, embedding_size=4, size=4, attention=Additive)
    decoder = Agent(vocabulary=VOCABULARY, memory_size=4, bos=BOS, eos=toy.EOS, blank=0, translator=translator, size=3)
    model = Model(RecurrentEncoder(vocabulary=VOCABULARY, embedding_size=3, size=4), decoder).double()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)
    return model


def read_by_rule(model: Model, wait: int) -> Model:
    """The same agent with the policy of wait-k: write when the lag is `wait`."""
    first, _, last = model.decoder.policy
    with torch.no_grad():
        for layer in (first, last):
            layer.weight.zero_()
            layer.bias.zero_()
        first.weight[0, -1] = 1e4  # the lag, of which SCALE are 1
        first.bias[0] = -1e4 * (wait - 0.5) / LAG_SCALE
        last.weight[0, 0] = 1e4
    return model


@pytest.mark.parametrize("wait", [1, 2, 3, 7])
def test_an_agent_with_the_policy_of_wait_k_is_wait_k(wait):
    model = read_by_rule(agent(), wait)
    memory = model.encode(SOURCE)
    usual = WaitKDecoder(decoder=model.decoder.translator, wait=wait)
    # An agent reads where its translator would end too soon: EOS is never chosen here.
    for entry, length in enumerate(SOURCE.lengths.tolist()):
        own = memory.select(torch.tensor([entry]))
        state, inner = model.decoder.start(own), usual.start(own)
        token, times = torch.tensor([BOS]), []
        for _ in range(length + 2):
            scores, state = model.decoder.step(token, state, own)
            while scores[0].argmax() == 0 and state["frame"] + 1 < length:
                scores, state = model.decoder.step(torch.tensor([0]), state, own)
            expected, inner = usual.step(token, inner, own)
            expected = expected.index_fill(1, torch.tensor([0, BOS]), float("-inf")).log_softmax(-1)[0]
            words = torch.tensor([1, 4, 5])
            torch.testing.assert_close(scores[0, words], expected[words], atol=1e-9, rtol=0)
            times.append(int(model.decoder.states_read(state, own)))
            token = words[scores[0, words].argmax()][None]
        assert times == [min(wait + place, length) for place in range(length + 2)]


def test_an_agent_reads_where_its_translator_would_end_too_soon():
    model = agent()
    memory = model.encode(SOURCE)
    state = model.decoder.start(memory)
    for token in map(torch.tensor, ([BOS, BOS, BOS], [4, 0, 5], [0, 5, 5])):
        seen = model.decoder.observe(token, state, memory)
        write = torch.sigmoid(model.decoder.policy(seen.features)[:, 0])
        scores, state = model.decoder.step(token, state, memory)
        ends = seen.end.exp()
        reads = torch.where(state["frame"] + 1 < memory.lengths, 1 - write + write * ends, ends)
        torch.testing.assert_close(scores[:, 0].exp(), reads)
        torch.testing.assert_close(scores.exp().sum(1), torch.ones(3, dtype=torch.float64))
        assert (scores[:, toy.EOS] == float("-inf")).all()


def test_a_prefix_beam_finds_the_times_of_an_agent():
    model = read_by_rule(agent(), 2)
    with torch.no_grad():
        found = PrefixBeam(beam_size=1, symbols_per_state=30, maximum_length=8)(model.decoder, model.encode(SOURCE))
    for each, length in zip(found, SOURCE.lengths.tolist()):
        assert each[0].times == sorted(each[0].times)
        assert all(1 <= time <= length for time in each[0].times)


LONGEST = 3
ONE = Batch(
    source=Padded(torch.tensor([[4, 5, 5]]), torch.tensor([3])),
    inputs=Padded(torch.tensor([[BOS, 4]]), torch.tensor([2])),
    targets=Padded(torch.tensor([[4, toy.EOS]]), torch.tensor([2])),
)
TAUGHT = {"hidden_size": 7, "decode": None, "reward": "edit_rate", "samples": 1, "entropy": 0.0, "longest": 1.5}
TAUGHT |= {"waits": 2, "waits_weight": -0.3, "proportion": 0.5, "proportion_weight": -0.7}


def all_episodes(model, own, taken=()):
    """Every episode over three inputs and up to three tokens: (probability, tokens, times, writes)."""
    state, token = model.decoder.start(own), torch.tensor([BOS])
    chance, tokens, times, chosen = torch.ones((), dtype=torch.float64), [], [], list(taken)
    decided = []
    while True:
        seen = model.decoder.observe(token, state, own)
        scores, state = model.decoder.step(token, state, own)
        frame = int(state["frame"])
        probabilities = scores[0].exp()
        if frame + 1 < 3:
            if not chosen:
                yield from all_episodes(model, own, (*taken, True))
                yield from all_episodes(model, own, (*taken, False))
                return
            write = chosen.pop(0)
            chance = chance * (probabilities[1:].sum() if write else probabilities[0])
            best = int(scores[0, 1:].argmax()) + 1
        else:
            write, best = True, int(seen.log_probs[0].argmax())
        decided.append(write)
        if write and best == toy.EOS:
            break
        if write:
            tokens.append(best)
            times.append(frame + 1)
        if len(tokens) == LONGEST:
            break
        token = torch.tensor([best if write else 0])
    yield chance, tokens, times, decided


def reward_by_hand(tokens, times, decided):
    """The reward of one episode, step by step as in the paper; the changes in quality sum to the final quality."""
    quality = (
        -float(tokens != [4]) if len(tokens) == 1 else -abs(len(tokens) - 1) - float(4 not in tokens and tokens != [])
    )
    row, total = 1, quality
    for write in decided:
        row = 0 if write else row + 1
        total += -0.3 * ((row > 2) - (row < 2) + 1)
    proportion = sum(times) / (3 * len(times)) if times else 1.0
    return total - 0.7 * max(proportion - 0.5, 0)


def test_the_rewards_of_all_episodes():
    model = agent()
    own = model.encode(ONE.source)
    found = list(all_episodes(model, own))
    assert sum(chance for chance, *_ in found).item() == pytest.approx(1)
    assert len({tuple(decided) for *_, decided in found}) == len(found) > 5
    objective = ReadWrite(**TAUGHT).double()
    for _, tokens, times, decided in found:
        with torch.no_grad(), drawn_as(decided):
            episodes = read_write.run_episodes(model.decoder, own, LONGEST)
            quality, delays, proportions = objective.score(episodes, own, ONE.targets, toy.EOS)
        assert episodes.tokens.values[0].tolist() == tokens
        assert (quality[0, -1] + delays[0].sum()).item() == pytest.approx(reward_by_hand(tokens, times, decided))
        assert proportions.item() == pytest.approx(sum(times) / (3 * len(times)) if times else 1)


@contextmanager
def drawn_as(decided):
    """Fixed decisions instead of sampled ones."""
    left = list(decided)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_write, "draw_bernoulli", lambda chance: torch.tensor([left.pop(0)]))
        yield


def test_the_expected_estimate_is_the_gradient_of_the_expected_reward():
    model = agent()
    policy = list(model.decoder.policy.parameters())
    found = list(all_episodes(model, model.encode(ONE.source)))
    expected = sum(chance * reward_by_hand(*way) for chance, *way in found)
    exact = torch.autograd.grad(-expected, policy)
    torch.manual_seed(0)
    objective = ReadWrite(**TAUGHT).double()
    total = [torch.zeros_like(each) for each in policy]
    for chance, _, _, decided in found:
        with drawn_as(decided):
            loss = objective(model, ONE, 0.5)
        estimate = torch.autograd.grad(loss.total, policy)
        total = [sums + chance.detach() * each for sums, each in zip(total, estimate)]
    assert max(each.abs().max() for each in exact) > 1e-3
    for ours, theirs in zip(total, exact):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)


def test_the_likeliest_decision_is_the_one_above_a_half():
    found = set()
    for seed in range(5):
        model = agent(seed)
        episodes = read_write.run_episodes(model.decoder, model.encode(SOURCE), LONGEST, likeliest=True)
        _, writes = read_write.decision_log_probs(model.decoder, episodes.features, episodes.ends)
        assert torch.equal(episodes.wrote[episodes.free], (writes.exp() > 0.5)[episodes.free])
        found |= {*episodes.wrote[episodes.free].tolist()}
    assert found == {True, False}


def test_the_entropy_of_free_decisions_is_rewarded():
    model, plain = agent(), ReadWrite(**TAUGHT).double()
    own, (_, _, _, decided) = model.encode(ONE.source), next(all_episodes(model, model.encode(ONE.source)))
    with drawn_as(decided):
        episodes = read_write.run_episodes(model.decoder, own, LONGEST)
    reads, _ = read_write.decision_log_probs(model.decoder, episodes.features, episodes.ends)
    entropies = torch.distributions.Bernoulli(probs=reads.exp()).entropy()[episodes.free]
    losses = []
    for plain.entropy in (0.0, 0.25):
        with drawn_as(decided):
            losses.append(plain(model, ONE, 0.5).total)
    assert len(entropies) > 1
    torch.testing.assert_close(losses[1] - losses[0], -0.25 * entropies.sum())


def test_only_the_policy_and_the_baseline_learn_and_validation_takes_the_likeliest_decisions():
    model, objective = agent().train(), ReadWrite(**{**TAUGHT, "samples": 4, "entropy": 0.1}).double()
    batch = toy.batch(((4, 5, 5, 4), (5,), (5, 4, 4)))
    torch.manual_seed(1)
    loss = objective(model, batch, 0.5)
    learned = {**dict(model.named_parameters()), **dict(objective.named_parameters())}
    found = dict(zip(learned, torch.autograd.grad(loss.total, list(learned.values()), allow_unused=True)))
    taught = {name for name, gradient in found.items() if gradient is not None and gradient.any()}
    assert taught == {name for name in learned if name.startswith((objective.trains, "judge."))}
    assert loss.count == 3
    one = objective.eval()(model, ONE, 0.5)
    own = model.encode(ONE.source)
    episodes = read_write.run_episodes(model.decoder, own, LONGEST, likeliest=True)
    values = {
        tuple(decided): reward_by_hand(tokens, times, decided) for _, tokens, times, decided in all_episodes(model, own)
    }
    assert one.total.item() == pytest.approx(-values[tuple(episodes.wrote[0].tolist())])
