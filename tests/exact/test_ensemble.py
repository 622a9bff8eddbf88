"""Ensembles against the formula: members scored one by one, their probabilities averaged by hand."""

import itertools
import json
import math
from dataclasses import replace

import pytest
import torch

import seqloom
from seqloom.errors import SeqloomError
from seqloom.inference.system import System, has_unknown_source
from seqloom.nn.attention.additive import Additive
from seqloom.nn.attention.dot import Dot
from seqloom.nn.cells.gru import GRU
from seqloom.nn.combine.ensemble import Ensemble, MemberEncoders, ensemble_of
from seqloom.nn.decoders.copy import Copy
from seqloom.nn.decoders.pointer import Pointer
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.transformer import Transformer
from seqloom.nn.encoders.recurrent import Recurrent as RecurrentEncoder
from seqloom.nn.encoders.transformer import Transformer as TransformerEncoder
from seqloom.nn.model import Model
from seqloom.predictor import Predictor
from seqloom.search.beam import BeamSearch
from seqloom.search.sample import Sampling
from seqloom.tasks.text import RunningText
from seqloom.types import Batch, Padded, select
from tests.building import SMALL, build, source, tensors
from tests.cli import conftest
from tests.cli.conftest import LANGUAGE_MODEL, TEXT, TRANSLATOR, pairs, trained

BOS, EOS, VOCABULARY = 0, 1, 4  # of the output; BOS is an ordinary token to the model
LIMIT = 4
AVERAGES = pytest.mark.parametrize("average", ["arithmetic", "geometric"])
command, quiet_place = conftest.command, conftest.quiet_place

DECODERS = {
    "plain": (Recurrent, {}),
    "luong": (Recurrent, {"attention": Dot}),
    "bahdanau": (Recurrent, {"attention": Additive, "order": "bahdanau", "input_feeding": True, "cell": GRU}),
    "transformer": (Transformer, {}),
}
MIXTURES = {
    "one": ["luong"],
    "two": ["luong", "transformer"],
    "three": ["transformer", "bahdanau", "plain"],
    "four of two kinds": ["transformer", "luong", "transformer", "luong"],
}


def in_parts(members: list[Padded]) -> Padded:
    """One source as each member encodes it."""
    return replace(members[0], parts={str(number): each for number, each in enumerate(members)})


def member(name, seed, language_model=False):
    """A random model in float64."""
    part, settings = DECODERS[name]
    if language_model:
        settings = {"memory_size": 0}
    decoder = build(part, vocabulary=VOCABULARY, bos=BOS, eos=EOS, **settings)
    decoder.limit = lambda memory: torch.full((memory.rows,), LIMIT)
    encoder = None if language_model else build(TransformerEncoder if seed % 2 else RecurrentEncoder)
    made = Model(encoder, decoder)
    torch.manual_seed(seed)
    for parameter in made.parameters():  # sharp distributions: ties and near-ties would hide mistakes
        torch.nn.init.uniform_(parameter, -1, 1)
    return made


@pytest.fixture(params=[*MIXTURES, "language models"])
def members(request):
    if request.param == "language models":
        return [member("plain", 1, True), member("transformer", 2, True)]
    return [member(name, seed) for seed, name in enumerate(MIXTURES[request.param])]


def source_of(models, lengths=(5, 2, 3)):
    return None if models[0].encoder is None else source(lengths)


def memory_of(model, given, rows=3):
    return model.encode(given, rows)


def forced(rows=3, length=4, seed=5):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(VOCABULARY, (rows, length), generator=generator)
    values[:, 0] = BOS
    return values


def by_hand(distributions, average):
    """The mean of probabilities, with loops and no logarithm: a list of (V,) for each member."""
    count = len(distributions)
    if average == "arithmetic":
        return torch.stack([sum(each[token] for each in distributions) / count for token in range(VOCABULARY)])
    products = [math.prod(float(each[token]) for each in distributions) ** (1 / count) for token in range(VOCABULARY)]
    return torch.tensor([product / sum(products) for product in products], dtype=torch.float64)


def stepped(decoder, memory, tokens):
    """Logits of all steps.  (rows, U) -> (rows, U, V)"""
    state = decoder.start_rows(memory, len(tokens))
    logits = []
    for token in tokens.unbind(1):
        scores, state = decoder.step(token, state, memory)
        logits.append(scores)
    return torch.stack(logits, 1), state


def close(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


# -- the average


@AVERAGES
@torch.no_grad()
def test_a_token_has_the_mean_of_the_members_probabilities(members, average):
    given, tokens = source_of(members), forced()
    together = ensemble_of(members, average)
    scores, _ = stepped(together.decoder, memory_of(together, given), tokens)
    alone = [stepped(each.decoder, memory_of(each, given), tokens)[0].softmax(-1) for each in members]
    for row, step in itertools.product(range(3), range(4)):
        expected = by_hand([each[row, step] for each in alone], average)
        close(scores[row, step].exp(), expected)  # log-probabilities already: nothing is normalised here


@AVERAGES
@torch.no_grad()
def test_teacher_forcing_is_stepping(members, average):
    together = ensemble_of(members, average)
    memory, tokens = memory_of(together, source_of(members)), forced()
    output = together.decoder(memory, Padded(tokens, torch.full((3,), 4)))
    scores, state = stepped(together.decoder, memory, tokens)
    close(output.scores, scores)
    close(output.project(output.hidden[1, 2]), scores[1, 2])  # an objective projects positions one by one
    following = torch.tensor([2, 3, 1])
    close(*(together.decoder.step(following, each, memory)[0] for each in (output.state, state)))


@torch.no_grad()
def test_inputs_of_different_lengths_are_as_if_read_one_by_one(members):
    together = ensemble_of(members)
    memory, tokens = memory_of(together, source_of(members)), forced()
    output = together.decoder(memory, Padded(tokens, torch.tensor([4, 1, 3])))
    going_on = together.decoder(memory, Padded(forced(seed=6), torch.tensor([2, 4, 1])), output.state)
    for row, (first, second) in enumerate([(4, 2), (1, 4), (3, 1)]):
        both = torch.cat([tokens[row, :first], forced(seed=6)[row, :second]])[None]
        scores, _ = stepped(together.decoder, memory.select(torch.tensor([row])), both)
        close(torch.cat([output.scores[row, :first], going_on.scores[row, :second]]), scores[0])


@torch.no_grad()
def test_permuting_rows_commutes_with_a_step(members):
    together = ensemble_of(members)
    memory = memory_of(together, source_of(members, (4,)), 1)
    _, state = stepped(together.decoder, memory, forced())
    before = [value.clone() for value in tensors(state)]
    order, token = torch.tensor([2, 0, 1]), torch.tensor([1, 2, 3])
    logits, after = together.decoder.step(token, state, memory)
    permuted, permuted_after = together.decoder.step(token[order], select(state, order), memory)
    close(permuted, logits[order])
    further, _ = together.decoder.step(token, after, memory)
    close(together.decoder.step(token[order], permuted_after, memory)[0], further[order])
    assert all(torch.equal(*pair) for pair in zip(before, tensors(state)))


@torch.no_grad()
def test_several_rows_per_source_are_as_if_the_memory_were_repeated(members):
    together = ensemble_of(members)
    memory, inputs = memory_of(together, source_of(members)), Padded(forced(6), torch.full((6,), 4))
    repeated = memory.select(memory.owner(6))
    assert all(part.rows == 6 for part in repeated.parts.values())
    close(together.decoder(memory, inputs).scores, together.decoder(repeated, inputs).scores)


@torch.no_grad()
def test_the_limit_is_the_largest_of_the_members():
    made = [member("luong", 0), member("transformer", 1)]
    for each, ratio, offset in zip(made, (1.0, 0.5), (1, 3)):
        del each.decoder.limit
        each.decoder.length_ratio, each.decoder.length_offset = ratio, offset
    together = ensemble_of(made)
    assert (together.decoder.length_ratio, together.decoder.length_offset) == (1.0, 3)
    limit = together.decoder.limit(memory_of(together, source((5, 2, 4))))
    assert limit.tolist() == [max(5 + 1, 3 + 3), max(2 + 1, 1 + 3), max(4 + 1, 2 + 3)]
    own = in_parts([source((1, 2, 3)), source((9, 2, 1))])
    assert together.decoder.limit(together.encode(own)).tolist() == [8, 4, 4]


@torch.no_grad()
def test_members_may_share_one_memory_without_parts():
    first, second = member("luong", 0), member("transformer", 2)
    shared = Model(first.encoder, Ensemble(members=[first.decoder, second.decoder]))
    apart = ensemble_of([first, Model(first.encoder, second.decoder)])
    batch = Batch(source(), Padded(forced(), torch.full((3,), 4)), Padded(forced(), torch.full((3,), 4)))
    close(shared(batch).scores, apart(batch).scores)


@AVERAGES
@pytest.mark.parametrize("kind", [Copy, Pointer])
@torch.no_grad()
def test_members_that_choose_from_their_source_do_it_together(kind, average):
    made = [Model(build(RecurrentEncoder), build(kind)) for _ in range(2)]
    for seed, each in enumerate(made):
        torch.manual_seed(seed)
        for parameter in each.parameters():
            torch.nn.init.uniform_(parameter, -1, 1)
    first = SMALL["vocabulary"]
    unknown = first if kind is Copy else 4  # copies are words that only the source knows
    given = Padded(
        torch.tensor([[4, unknown, 5, 6, 4], [6, 7, 0, 0, 0], [unknown, 4, 8, 0, 0]]), torch.tensor([5, 2, 3])
    )
    tokens = torch.tensor(
        [[SMALL["bos"], first + 1, first], [SMALL["bos"], first, first + 1], [SMALL["bos"], first, 4]]
    )
    together = ensemble_of(made, average)
    memory = together.encode(given)
    scores, _ = stepped(together.decoder, memory, tokens)
    close(together.decoder(memory, Padded(tokens, torch.full((3,), tokens.shape[1]))).scores, scores)
    alone = torch.stack([stepped(each.decoder, each.encode(given), tokens)[0].softmax(-1) for each in made])
    mean = alone.mean(0) if average == "arithmetic" else alone.prod(0).sqrt() / alone.prod(0).sqrt().sum(-1, True)
    close(scores.exp(), mean)
    assert scores.shape[-1] == first + 5


# -- search


def hypotheses(found):
    return [[(one.tokens, one.score, one.log_probs) for one in each] for each in found]


def same(found, expected):
    for ours, theirs in zip(hypotheses(found), hypotheses(expected), strict=True):
        assert [tokens for tokens, _, _ in ours] == [tokens for tokens, _, _ in theirs]
        for (_, score, log_probs), (_, other, others) in zip(ours, theirs):
            assert score == pytest.approx(other, abs=1e-12, rel=0)
            assert log_probs == pytest.approx(others, abs=1e-12, rel=0)


SEARCHES = {
    "greedy": BeamSearch(beam_size=1),
    "beam": BeamSearch(beam_size=4, n_best=3),
    "sample": Sampling(n_best=3, seed=4, temperature=0.7),
}


@AVERAGES
@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("search", SEARCHES)
@torch.no_grad()
def test_copies_of_one_model_are_that_model(members, search, copies, average):
    for one in members:
        together = ensemble_of([one] * copies, average)
        given = source_of(members)
        found = SEARCHES[search](together.decoder, memory_of(together, given))
        same(found, SEARCHES[search](one.decoder, memory_of(one, given)))


@AVERAGES
@torch.no_grad()
def test_a_wide_beam_finds_the_likeliest_output_of_the_averaged_model(members, average):
    given = source_of(members)
    together = ensemble_of(members, average)
    search = BeamSearch(beam_size=VOCABULARY ** (LIMIT - 1), n_best=40, length_penalty=0.0)
    found = search(together.decoder, memory_of(together, given))
    outputs = [tokens for length in range(LIMIT) for tokens in itertools.product((0, 2, 3), repeat=length)]
    for row in range(3):
        expected, entry = [], torch.tensor([row])
        memories = [memory_of(each, given).select(entry) for each in members]
        for tokens in outputs:
            inputs = Padded(torch.tensor([[BOS, *tokens]]), torch.tensor([len(tokens) + 1]))
            probabilities = [each.decoder(ours, inputs).scores[0].softmax(-1) for each, ours in zip(members, memories)]
            steps = [by_hand([each[step] for each in probabilities], average) for step in range(len(tokens) + 1)]
            expected.append((sum(math.log(step[token]) for step, token in zip(steps, [*tokens, EOS])), tokens))
        expected.sort(reverse=True)
        assert [tuple(one.tokens) for one in found[row]] == [tokens for _, tokens in expected]
        assert [one.score for one in found[row]] == pytest.approx([score for score, _ in expected], abs=1e-9)


@pytest.mark.parametrize("search", ["greedy", "beam"])
@torch.no_grad()
def test_a_batch_is_its_sources_one_by_one(members, search):
    together = ensemble_of(members)
    prefix = Padded(torch.tensor([[2, 3], [3, 0], [0, 0]]), torch.tensor([2, 1, 0]))
    given = source_of(members)
    for beginning in (None, prefix):
        found = SEARCHES[search](together.decoder, memory_of(together, given), beginning)
        for row in range(3):
            own = given and Padded(given.values[row : row + 1, : given.lengths[row]], given.lengths[row : row + 1])
            begin = beginning and Padded(
                prefix.values[row : row + 1, : prefix.lengths[row]], prefix.lengths[row : row + 1]
            )
            same(SEARCHES[search](together.decoder, memory_of(together, own, 1), begin), [found[row]])


# -- sources encoded differently


@torch.no_grad()
def test_members_may_encode_the_source_differently():
    made = [member("luong", 0), member("transformer", 1)]
    own = [source((5, 2, 3), seed=1), source((2, 4, 1), seed=2)]
    together = ensemble_of(made)
    scores, _ = stepped(together.decoder, together.encode(in_parts(own)), forced())
    alone = [stepped(each.decoder, each.encode(given), forced())[0].softmax(-1) for each, given in zip(made, own)]
    close(scores.exp(), (alone[0] + alone[1]) / 2)
    found = SEARCHES["beam"](together.decoder, together.encode(in_parts(own)))
    for row in range(3):
        parts = [Padded(each.values[row : row + 1, : each.lengths[row]], each.lengths[row : row + 1]) for each in own]
        same(SEARCHES["beam"](together.decoder, together.encode(in_parts(parts).to("cpu"))), [found[row]])
    with pytest.raises(ValueError):  # one encoded source per member
        together.encode(in_parts(own[:1]))


# -- attention


@torch.no_grad()
def test_attention_is_the_mean_of_the_members_that_attend():
    made = [member("luong", 0), member("plain", 1), member("transformer", 3)]
    together, inputs = ensemble_of(made), Padded(forced(), torch.full((3,), 4))
    memory = together.encode(source())
    assert memory.lengths.tolist() == [5, 3, 1]
    assert together.decoder(memory, inputs).attention == {}
    maps = together.decoder(memory, inputs, attention=True).attention
    alone = [each.decoder(each.encode(source()), inputs, attention=True).attention for each in made]
    assert [sorted(each) for each in alone] == [["source"], [], ["self", "source"]]
    assert maps["source"].shape == (3, 2, 1, 4, 5)
    close(maps["source"].mean((1, 2)), (alone[0]["source"].mean((1, 2)) + alone[2]["source"].mean((1, 2))) / 2)
    close(maps["self"].mean((1, 2)), alone[2]["self"].mean((1, 2)))


@torch.no_grad()
def test_a_coverage_penalty_of_copies_is_that_of_the_model():
    one, search = member("luong", 0), BeamSearch(beam_size=4, n_best=4, coverage_penalty=0.4)
    together = ensemble_of([one, one])
    same(search(together.decoder, together.encode(source())), search(one.decoder, one.encode(source())))


@torch.no_grad()
def test_attention_over_different_positions_is_refused():
    together = ensemble_of([member("luong", 0), member("transformer", 1)])
    memory = together.encode(in_parts([source(), source()]))
    inputs = Padded(forced(), torch.full((3,), 4))
    assert together.decoder(memory, inputs).scores.shape == (3, 4, VOCABULARY)
    with pytest.raises(SeqloomError, match="cannot be averaged"):
        together.decoder(memory, inputs, attention=True)


@torch.no_grad()
def test_encoders_that_shorten_the_source_differently_share_no_positions():
    class Halving(RecurrentEncoder):
        def forward(self, source, attention=False):
            memory = super().forward(source, attention)
            return replace(memory, states=memory.states[:, ::2], lengths=(memory.lengths + 1) // 2)

    given = source()
    memory = MemberEncoders(members=[build(RecurrentEncoder), build(Halving)])(given)
    assert memory.states.shape[1] == 0
    assert [part.lengths.tolist() for part in memory.parts.values()] == [[5, 3, 1], [3, 2, 1]]


# -- wrong use


def test_what_makes_no_ensemble_is_refused_in_one_line():
    from seqloom.nn.heads.value import Value

    class Waiting(Recurrent):
        blanks = (2,)

    ordinary = member("luong", 0)
    other_end = member("luong", 1)
    other_end.decoder.eos = 2
    more_tokens = Model(ordinary.encoder, build(Recurrent, vocabulary=5, bos=BOS, eos=EOS))
    waiting = Model(ordinary.encoder, build(Waiting, vocabulary=VOCABULARY, bos=BOS, eos=EOS))
    head = Model(ordinary.encoder, Value(memory_size=8, features=2))
    inputs = Padded(forced(), torch.full((3,), 4))
    for mistake, word in (
        (lambda: ensemble_of([]), "no members"),
        (lambda: ensemble_of([ordinary], "geometrical"), 'did you mean "geometric"'),
        (lambda: ensemble_of([ordinary, member("plain", 1, True)]), "language models"),
        (lambda: ensemble_of([ordinary, other_end]), "one BOS and one EOS"),
        (lambda: ensemble_of([ordinary, waiting]), "blanks"),
        (lambda: ensemble_of([ordinary, head]), "head"),
        (lambda: ensemble_of([ordinary, Model(ordinary.encoder, build(Copy, bos=BOS, eos=EOS))]), "alike"),
        (lambda: ensemble_of([ordinary, more_tokens])(Batch(source(), inputs, inputs)).scores, "4 and 5 tokens"),
    ):
        with pytest.raises(SeqloomError) as caught:
            mistake()
        assert word in str(caught.value)
        assert "\n" not in str(caught.value)


# -- runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Small runs on the same numbers: recurrent, Transformer, one that reads bytes, one of letters, language models."""
    small = {"type": "transformer", "size": 8, "heads": 2, "hidden": 16, "layers": 1}
    as_letters = str.maketrans("0123456789", "abcdefghij")  # as many tokens, but different ones
    numbers, letters = pairs(), [(source, target.translate(as_letters)) for source, target in pairs()]
    texts, running = [target for _, target in numbers], {"type": "text", "target": TEXT}
    bytes_in = {**TRANSLATOR["task"], "source": {"type": "text", "units": "bpe", "size": 260}}
    made = {
        "recurrent": (TRANSLATOR, numbers),
        "transformer": ({**TRANSLATOR, "encoder": small, "decoder": small}, numbers),
        "bytes": ({**TRANSLATOR, "task": bytes_in}, numbers),
        "letters": (TRANSLATOR, letters),
        "text": (LANGUAGE_MODEL, texts),
        "text again": ({**LANGUAGE_MODEL, "decoder": small}, texts),
        "running": ({**LANGUAGE_MODEL, "task": running}, texts),
        "windows": ({**LANGUAGE_MODEL, "task": {**running, "carry": False, "window": 8}, "decoder": small}, texts),
    }
    return {
        name: trained(tmp_path_factory.mktemp(name.replace(" ", "-")), recipe, data)
        for name, (recipe, data) in made.items()
    }


def loaded(runs, *names, **settings):
    """In float64, so that equalities are exact."""
    made = seqloom.load(*(runs[name] for name in names), device="cpu", **settings)
    made.model.double()
    return made


def test_one_run_is_itself_and_twice_the_same_changes_nothing(runs):
    for name in ("recurrent", "transformer"):
        alone, twice = loaded(runs, name), loaded(runs, name, name)
        assert not isinstance(alone.model.decoder, Ensemble)
        assert isinstance(twice.model.decoder, Ensemble)
        assert twice.score(pairs(9)) == pytest.approx(alone.score(pairs(9)), abs=1e-12, rel=0)
        sources = ["123", "4", "5677"]
        for one, other in zip(alone.candidates(sources, n_best=3), twice.candidates(sources, n_best=3)):
            assert [each.text for each in one] == [each.text for each in other]
            assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-12, rel=0)
        one, other = (torch.tensor(each.candidates(["123"], attention=True)[0][0].attention) for each in (alone, twice))
        torch.testing.assert_close(one, other)
        assert twice.evaluate(pairs(20)) == alone.evaluate(pairs(20))


@AVERAGES
@pytest.mark.parametrize("names", [("recurrent", "transformer"), ("recurrent", "bytes", "transformer")])
@torch.no_grad()
def test_runs_are_averaged_token_by_token_however_each_encodes_its_source(runs, names, average):
    together, alone = loaded(runs, *names, average=average), [loaded(runs, name) for name in names]
    assert len(together.system.sources) == (3 if "bytes" in names else 1)
    rows = [("123", "321"), ("4", "44444"), ("15", "5")]
    target = together.task.target
    expected = []
    for source_text, text in rows:
        tokens = target.encode(text).tolist()
        probabilities = []
        for each in alone:  # one pair at a time, so that nothing is padded
            memory = each.model.encode(Padded.stack([each.task.source.encode(source_text)]).to("cpu"))
            inputs = Padded.stack([torch.tensor([2, *tokens])])
            probabilities.append(each.model.decoder(memory, inputs).scores[0].softmax(-1))
        stacked = torch.stack(probabilities)
        mean = stacked.mean(0) if average == "arithmetic" else stacked.log().mean(0).softmax(-1)
        expected.append(sum(math.log(mean[step, token]) for step, token in enumerate([*tokens, 3])))
    assert together.score(rows) == pytest.approx(expected, abs=1e-12, rel=0)
    sources = ["123", "4", "15", "167777"]
    answers = together.candidates(sources, n_best=2)
    for source_text, found in zip(sources, answers):
        assert [one.text for one in found] == [one.text for one in together.candidates([source_text], n_best=2)[0]]
        for one in found:
            assert together.score([(source_text, one.text)])[0] == pytest.approx(sum(one.log_probs), abs=1e-12)


def test_a_source_token_unknown_to_any_member_is_noticed(runs):
    together = loaded(runs, "bytes", "recurrent")  # every byte is known, not every character
    assert has_unknown_source(together.system, "x1")
    assert not has_unknown_source(loaded(runs, "bytes").system, "x1")
    assert not has_unknown_source(together.system, "12")


def test_language_models_are_averaged_and_generate(runs):
    names, texts = ("text", "text again"), ["321", "0", "44"]
    together, alone = loaded(runs, *names), [loaded(runs, name) for name in names]
    twice = loaded(runs, "text", "text")
    assert twice.score(texts) == pytest.approx(alone[0].score(texts), abs=1e-12, rel=0)
    assert twice.generate(4, seed=3, prefix="1") == alone[0].generate(4, seed=3, prefix="1")
    assert all(text.startswith("12") for text in together.generate(3, prefix="12", seed=1))
    ends = [math.exp(each.score([""])[0]) for each in (*alone, together)]  # nothing but the end: one token
    assert ends[2] == pytest.approx((ends[0] + ends[1]) / 2, abs=1e-12)
    assert abs(ends[0] - ends[1]) > 1e-6


def test_a_running_text_is_read_on_by_all_members(runs):
    alone, twice = loaded(runs, "running"), loaded(runs, "running", "running")
    lines = ["321", "001", "44"]
    assert twice.score(lines) == pytest.approx(alone.score(lines), abs=1e-12, rel=0)
    assert twice.generate(2, seed=3, maximum_length=9) == alone.generate(2, seed=3, maximum_length=9)
    for names in (("running", "windows"), ("windows", "running")):  # one sees windows, so all are shown windows
        mixed = loaded(runs, *names)
        assert (mixed.task.carry, mixed.task.window) == (False, 8)
        assert [len(text) for text in mixed.generate(2, seed=3, maximum_length=30)] == [30, 30]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("recurrent", "letters"), ["vocabularies differ", "task.target"]),
        (("recurrent", "text"), ["one is a language model", "reads a source"]),
        (("text", "running"), ["vocabularies differ"]),
    ],
)
def test_runs_that_make_no_ensemble_are_named_in_one_line(runs, command, names, words):
    first, second = (str(runs[name]) for name in names)
    for verb in ("predict", "evaluate", "score"):
        complaint = command(verb, first, first, second, stdin="12\n").complaint
        assert all(word in complaint for word in [f"{first} and {second}", *words])
    with pytest.raises(SeqloomError, match="make no ensemble"):
        seqloom.load(second, first)


def test_other_wrong_uses_of_runs_are_one_line(runs):
    together, lines = loaded(runs, "recurrent", "bytes"), loaded(runs, "text")
    running = Predictor(
        System(lines.model, RunningText(target=lines.task.target), lines.recipe)
    )  # of the same characters
    for mistake, word in (
        (seqloom.load, "no run was given"),
        (lambda: seqloom.load(runs["recurrent"], "nowhere"), "nowhere is not a run folder"),
        (lambda: loaded(runs, "recurrent", "transformer", average="mean"), 'average = "mean"'),
        (lambda: Predictor.ensemble([together, together]), "ensemble already"),
        (lambda: Predictor.ensemble([lines, running]), "vocabularies differ"),
        (lambda: together.explain("12"), "one by one"),
        (lambda: together.candidates(["12"], attention=True), "cannot be averaged"),
        (lambda: together.predict(["12"], coverage_penalty=0.2), "cannot be averaged"),
        (lambda: together.save("copy"), "no run folder"),
    ):
        with pytest.raises(SeqloomError) as caught:
            mistake()
        assert word in str(caught.value)
        assert "\n" not in str(caught.value)


def test_the_command_line_takes_several_runs(runs, command):
    names = ("recurrent", "bytes", "transformer")
    folders = [runs[name] for name in names]
    sources, rows = ["123", "4", "15"], pairs(4)
    data = conftest.tsv(rows=rows)
    for options, average in (([], "arithmetic"), (["--geometric"], "geometric")):
        model = seqloom.load(*folders, device="cpu", average=average)
        outcome = command("predict", *folders, *options, stdin="\n".join(sources))
        assert (outcome.code, outcome.out.splitlines()) == (0, model.predict(sources))
        printed = command("score", *folders, "--data", data, *options).out.splitlines()
        assert [float(each) for each in printed] == pytest.approx(model.score(rows), abs=1e-5)
        measured = json.loads(command("evaluate", *folders, "--data", data, *options).out)
        assert measured == {"examples": 4, **{name: round(x, 4) for name, x in model.evaluate(rows).items()}}
    single = [float(each) for each in command("score", folders[0], "--data", data).out.splitlines()]
    assert single == pytest.approx(seqloom.load(folders[0], device="cpu").score(rows), abs=1e-5)
    assert single != pytest.approx(model.score(rows), abs=1e-3)
