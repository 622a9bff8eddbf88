"""Running text: carrying the state from window to window changes only where gradients stop."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import seqloom
from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.data import batching
from seqloom.data.codecs.text import Text as Codec
from seqloom.data.special_tokens import EOS
from seqloom.data.split import last_tenth
from seqloom.errors import SeqloomError
from seqloom.inference.generation import continue_text
from seqloom.inference.running_text import in_one_pass, in_windows
from seqloom.nn.decoders.recurrent import Recurrent
from seqloom.nn.decoders.transformer import Transformer
from seqloom.nn.model import Model
from seqloom.objectives.cross_entropy import CrossEntropy
from seqloom.tasks.text import RunningText
from seqloom.train.display import Display
from seqloom.types import COUNTED, Batch, Padded, flatten, nest

V = 9
LINES = ["To be, or not to be,", "", "that is the\tquestion:", "Whether 'tis nobler", "in the mind to suffer"] * 12
RECIPE: dict[str, Any] = {
    "task": {"type": "text", "target": {"type": "text", "units": "char"}, "window": 8},
    "decoder": {"type": "recurrent", "size": 12, "embedding_size": 8, "layers": 2, "dropout": 0.1},
    "train": {"tokens": 64, "steps": 12, "learning_rate": 0.01, "device": "cpu", "validate_every": 6, "log_every": 1},
}
TRANSFORMER = {"type": "transformer", "size": 8, "heads": 2, "hidden": 16, "layers": 1}


def recurrent() -> Model:
    torch.manual_seed(1)
    decoder = Recurrent(vocabulary=V, memory_size=0, bos=EOS, eos=None, size=7, embedding_size=5, layers=2)
    return Model(None, decoder).double().eval()


def transformer() -> Model:
    torch.manual_seed(1)
    decoder = Transformer(
        vocabulary=V, memory_size=0, bos=EOS, eos=None, size=8, heads=2, hidden=16, layers=2, dropout=0.0
    )
    return Model(None, decoder).double().eval()


def text(length: int) -> torch.Tensor:
    return torch.randint(3, V, (length,), generator=torch.Generator().manual_seed(0))


# -- answers

SUMS = ["1+2=3", "", "40-7=33", "no answer", "5=", "8-9=-1=x"]


def arithmetic(window: int = 4) -> RunningText:
    codec = Codec(units="char")
    codec.fit(SUMS)
    return RunningText(target=codec, window=window, answers_after="=")


class Stream:
    """A corpus of one text."""

    def __init__(self, tokens: np.ndarray):
        self.tokens = tokens

    def stream(self, begin: int, end: int) -> np.ndarray:
        return self.tokens[begin:end]


def test_only_what_follows_the_sign_on_its_line_counts() -> None:
    task = arithmetic()
    tokens = np.append(task.encode("\n".join(SUMS)), EOS)
    expected = []
    for line in SUMS:
        _, sign, answer = line.partition("=")
        expected += [False] * (len(line) - len(answer)) + [True] * len(answer) + [bool(sign)]
    assert task.counted(tokens).tolist() == expected
    assert RunningText(target=task.target).counted(tokens).all()


@given(st.integers(2, 9), st.data())
def test_every_window_knows_which_of_its_tokens_count(window: int, data: st.DataObject) -> None:
    task = arithmetic(window)
    tokens = np.append(task.encode("\n".join(SUMS)), EOS)
    begin = data.draw(st.integers(0, len(tokens) - 1))
    ends = [min(begin + window, len(tokens)), 1]
    corpus: Any = Stream(tokens)
    batch = task.collate(corpus, np.array([[begin, ends[0]], [0, 1]]))
    counted = batch.extra[COUNTED]
    assert counted[0, : ends[0] - begin].tolist() == task.counted(tokens)[begin : ends[0]].tolist()
    assert not counted[1].any()


def test_the_loss_is_that_of_the_tokens_that_count() -> None:
    task = arithmetic(40)
    tokens = np.append(task.encode("\n".join(SUMS)), EOS)
    corpus: Any = Stream(tokens)
    batch = task.collate(corpus, np.array([[0, len(tokens)], [3, 9]]))
    torch.manual_seed(1)
    decoder = Recurrent(vocabulary=task.target.vocabulary, memory_size=0, bos=EOS, eos=None, size=7, embedding_size=5)
    model = Model(None, decoder).double()
    losses = torch.nn.functional.cross_entropy(
        model(batch).scores.transpose(1, 2), batch.targets.values, reduction="none"
    )
    for mode in (True, False):
        loss = CrossEntropy().train(mode)(model, batch, 0.5)
        torch.testing.assert_close(loss.total, losses[batch.extra[COUNTED]].sum())
        assert loss.count == batch.extra[COUNTED].sum() < len(tokens)
        assert loss.logs["nll"].item() == pytest.approx(loss.total.item())


def test_a_sign_that_is_no_token_is_refused_in_one_line() -> None:
    task = arithmetic()
    for sign in ("==", "~"):
        task.answers_after = sign
        with pytest.raises(SeqloomError, match=r"answers_after = .*one token of the vocabulary"):
            task.counted(task.encode("1+2=3"))


# -- reading


@pytest.mark.parametrize("chunk", [1, 7, 40])
@torch.no_grad()
def test_a_text_read_in_chunks_has_the_scores_of_one_long_pass(chunk: int) -> None:
    whole = in_one_pass(recurrent(), text(41), 1000)
    assert torch.allclose(in_one_pass(recurrent(), text(41), chunk), whole, atol=1e-12)
    assert len(whole) == 40


@pytest.mark.parametrize(("length", "window"), [(1, 6), (5, 6), (6, 6), (7, 6), (23, 6), (24, 6), (25, 5), (9, 2)])
@torch.no_grad()
def test_windows_score_each_token_once_after_at_least_half_a_window(length: int, window: int) -> None:
    model, given_text = transformer(), text(1 + length)
    found = in_windows(model, given_text, window)
    assert len(found) == length
    for place in range(length):
        half = max(window // 2, 1)
        first = 0 if place < window else (place - window) // half * half + half
        assert place - first >= (window - half if place >= window else 0)
        assert place - first < window
        inputs = Padded(given_text[None, first : place + 1], torch.tensor([place + 1 - first]))
        scores = model.decoder(model.encode(None, 1), inputs).scores[0, -1].log_softmax(-1)
        assert found[place].item() == pytest.approx(scores[given_text[place + 1]].item(), abs=1e-10)


# -- training


def test_carried_windows_have_the_losses_of_one_pass_and_no_gradient_between_them() -> None:
    model, objective, stream = recurrent(), CrossEntropy(), text(25)
    expected = -in_one_pass(model, stream, 100)
    carried, total = None, 0.0
    for begin in range(0, 24, 8):
        inputs, targets = stream[None, begin : begin + 8], stream[None, begin + 1 : begin + 9]
        lengths = torch.tensor([8])
        batch = Batch(None, Padded(inputs, lengths), Padded(targets, lengths), carry=True, state=carried)
        loss = objective(model, batch, 0.0)
        assert loss.total.item() == pytest.approx(expected[begin : begin + 8].sum().item(), abs=1e-10)
        total += loss.total.item()
        carried = loss.state
        assert carried is not None
        assert not any(value.requires_grad for value in flatten(carried).values())
        loss.total.backward()  # would reach a freed graph, were it still tied to the window before
    assert total == pytest.approx(expected.sum().item(), abs=1e-9)


def test_a_batch_that_does_not_carry_leaves_no_state() -> None:
    one = Padded(torch.tensor([[3]]), torch.tensor([1]))
    assert CrossEntropy()(recurrent(), Batch(None, one, one), 0.0).state is None


@settings(deadline=None)
@given(st.integers(1, 400), st.integers(1, 17), st.integers(1, 9), st.integers(1, 4), st.integers(0, 16))
def test_columns_cover_the_text_once_and_each_batch_continues_the_one_before(
    total: int, window: int, columns: int, groups: int, shift: int
) -> None:
    if total - shift < groups:
        return
    plan = batching.columns_of_text(total, window, columns, groups, shift)
    covered = [place for number in range(len(plan)) for begin, end in plan[number] for place in range(begin, end)]
    assert len(covered) == len(set(covered))
    assert set(covered) <= set(range(shift, total))
    assert total - shift - len(covered) < groups * max(len(plan[0]), 1)
    assert len(plan) % groups == 0
    for number in range(len(plan)):
        assert plan.continues(number) == (number >= groups)
        if plan.continues(number):
            assert (plan[number][:, 0] == plan[number - groups][:, 1]).all()


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 9), st.one_of(st.none(), st.integers(0, 5)))
def test_windows_cover_the_text_once(total: int, window: int, columns: int, epoch: int | None) -> None:
    plan = batching.windows_of_text(total, window, columns, None if epoch is None else (1, epoch))
    rows = [tuple(row) for number in range(len(plan)) for row in plan[number]]
    assert sorted(place for begin, end in rows for place in range(begin, end)) == list(range(total))
    assert max(end - begin for begin, end in rows) <= window
    assert not plan.continues(len(plan) - 1)


def fit(path: Path, steps: int = 12, resume: bool = False, **changes: Any) -> seqloom.Predictor:
    recipe = {**RECIPE, "task": {**RECIPE["task"], **changes}}
    limit = [f"train.steps={steps}"]
    return seqloom.fit(LINES, recipe, out=path, resume=resume, settings=limit, display=Display.quiet())


def test_a_resumed_text_goes_on_with_the_state_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    unbroken = fit(tmp_path / "unbroken")
    fit(tmp_path / "broken", steps=5)
    broken = fit(tmp_path / "broken", resume=True)
    for name, value in unbroken.model.state_dict().items():
        assert torch.equal(value, broken.model.state_dict()[name]), name


def test_the_state_is_carried_through_an_epoch_and_dropped_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    seen: list[bool] = []
    forward = Model.forward

    def watched(self: Model, batch: Batch, attention: bool = False) -> Any:
        if self.training:
            seen.append(batch.state is not None)
        return forward(self, batch, attention)

    monkeypatch.setattr(Model, "forward", watched)
    model = fit(tmp_path / "run", steps=30)
    del seen[0]  # the rehearsal
    tokens = sum(len(line) + 1 for line in LINES[:54])
    epoch = math.ceil(tokens // 8 / 8)
    assert seen[:epoch] == [False] + [True] * (epoch - 1)
    assert seen[epoch] is False
    assert model.task.running


# -- texts


@settings(deadline=None)
@given(st.text(alphabet="ab \n"))
def test_texts_round_trip_with_their_line_breaks(value: str) -> None:
    task = RunningText(target=Codec(units="char").fit(["ab "]))
    assert task.decode(task.encode(value)) == value


def test_a_state_is_flattened_for_files_and_nested_again() -> None:
    one, two = torch.zeros(1), torch.ones(2)
    nested = {"layers": {"0": {"hidden": one}}, "frame": two}
    assert flatten(nested) == {"layers/0/hidden": one, "frame": two}
    assert nest(flatten(nested)) == nested


def test_a_text_longer_than_the_window_is_written_half_a_window_at_a_time() -> None:
    calls = []

    def write(beginning: torch.Tensor, length: int) -> torch.Tensor:
        calls.append((beginning.shape[1], length))
        last = int(beginning[0, -1]) if beginning.shape[1] else -1
        more = torch.arange(last + 1, last + 1 + length - beginning.shape[1])
        return torch.cat([beginning, more[None]], dim=1)

    found = continue_text(write, torch.zeros(1, 0, dtype=torch.long), 21, 8)
    assert found[0].tolist() == list(range(21))
    assert calls == [(0, 8), (4, 8), (4, 8), (4, 8), (4, 5)]
    found = continue_text(write, torch.arange(11)[None], 20, 8)
    assert found[0].tolist() == list(range(20))
    assert calls[5:] == [(7, 8), (4, 8), (4, 8)]


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_a_text_model_is_trained_scored_and_continued(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    recipe = dict(RECIPE)
    if kind == "transformer":
        recipe["task"] = {**RECIPE["task"], "carry": False}
        recipe["decoder"] = TRANSFORMER
    model = seqloom.fit(LINES, recipe, out=tmp_path / "run", display=Display.quiet())
    assert model.model.decoder.eos is None
    assert model.model.decoder.bos == EOS

    wanted = sum(len(line) + 1 for line in LINES)
    scores = model.score(LINES)
    assert len(scores) == len(LINES)
    results = model.evaluate(LINES)
    assert results["nats_per_token"] == pytest.approx(-sum(scores) / wanted)
    assert results["perplexity"] == pytest.approx(math.exp(results["nats_per_token"]))
    assert results["bits_per_character"] == pytest.approx(results["nats_per_token"] / math.log(2))

    (made,) = model.generate(maximum_length=30, seed=1)
    assert len(made) == 30
    assert model.generate(maximum_length=30, seed=1) == [made]
    for continued in model.generate(2, prefix="that is\nthe", maximum_length=25):
        assert continued.startswith("that is\nthe")
        assert len(continued) == 25
    with pytest.raises(SeqloomError, match="reads no source"):
        model.predict(["x"])


def test_the_last_tenth_is_held_out_and_repeated_lines_are_no_leak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    lines: list[str] = []
    display = Display.quiet()
    monkeypatch.setattr(display, "say", lines.append)
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n")
    seqloom.fit(str(path), RECIPE, out=tmp_path / "run", display=display)
    assert "Read 60 lines." in lines
    assert "54 to train on; 6 to validate with, held out of them." in lines
    assert not any("uplicate" in line or "flatter" in line for line in lines)


def test_one_line_cannot_be_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "text.txt"
    path.write_text("To be, or not to be")
    with pytest.raises(SeqloomError, match="only one line"):
        seqloom.fit(str(path), RECIPE, out=tmp_path / "run", display=Display.quiet())


@pytest.mark.parametrize(("sizes", "cut"), [([9] * 90 + [2201] * 10, 98), ([5, 5], 1), ([1] * 10, 9), ([1, 1, 100], 2)])
def test_what_is_held_out_is_a_tenth_of_the_text_not_of_its_lines(sizes: list[int], cut: int) -> None:
    held = last_tenth(np.array(sizes))
    assert held.tolist() == [False] * cut + [True] * (len(sizes) - cut)


def test_each_window_of_a_seeded_text_is_drawn_with_other_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    recipe = {**RECIPE, "task": {**RECIPE["task"], "carry": False}, "decoder": TRANSFORMER}
    recipe["search"] = {"type": "sample", "maximum_length": 50}
    model = seqloom.fit(LINES, recipe, out=tmp_path / "run", display=Display.quiet())
    (made,) = model.generate(seed=1, temperature=100.0)  # all tokens are about equally likely
    assert len(made) == 50  # as the recipe says
    halves = [made[begin : begin + 4] for begin in range(8, 48, 4)]
    assert len(set(halves)) > 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder": "transformer"}, "cannot carry its state: set task.carry = false"),
        ({"carry": False, "decoder": "learned"}, "longest = 4: raise it to task.window = 8"),
        ({"window": 65}, "task.window = 65: larger than train.tokens = 64"),
        ({"window": 1}, "window = 1 must be 2 or more"),
    ],
)
def test_an_invalid_window_is_refused_before_data_is_read(changes: dict[str, Any], message: str) -> None:
    learned = {**TRANSFORMER, "positions": "learned", "longest": 4}
    decoder = {"transformer": TRANSFORMER, "learned": learned}.get(changes.pop("decoder", ""), RECIPE["decoder"])
    recipe = complete({**RECIPE, "task": {**RECIPE["task"], **changes}, "decoder": decoder}, "x")
    with pytest.raises(SeqloomError, match=re.escape(message)):
        check_recipe(recipe)


def test_a_text_too_short_for_its_micro_batches_is_one_line_and_a_short_one_has_all_its_epochs() -> None:
    with pytest.raises(SeqloomError, match="3 tokens, too few for 4 micro-batches"):
        batching.columns_of_text(3, 8, 2, groups=4)
    task = RunningText(target=Codec(units="char"), window=16)
    lengths = np.array([[0, 11]])
    for epoch in range(6):
        assert len(task.plan(lengths, 64, 1, epoch)) == 1


def test_an_empty_list_has_no_scores_and_a_prefix_must_be_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    model = fit(tmp_path / "run", steps=1)
    assert model.score([]) == []
    with pytest.raises(SeqloomError, match="expected a text, not 5"):
        model.generate(prefix=5)
    explained = model.explain()
    assert len(explained.hypotheses[0].tokens) <= 40
