"""Each finding on curves and outputs that are made up: when it is reported, and when not."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom.analysis.diagnosis.answers import Answer
from seqloom.analysis.diagnosis.commands import Commands
from seqloom.analysis.diagnosis.confusions import Confusions, confused_labels, confusions
from seqloom.analysis.diagnosis.curves import Curves, lowest, mean_between, over_trained, under_trained
from seqloom.analysis.diagnosis.diagnose import diagnose, short_diagnosis
from seqloom.analysis.diagnosis.finding import Finding, by_severity, percent
from seqloom.analysis.diagnosis.learning_rate import (
    Rates,
    faults,
    never_reached,
    overshoot,
    rise,
    stuck,
    swings,
    too_high,
)
from seqloom.analysis.diagnosis.next_steps import next_steps
from seqloom.analysis.diagnosis.outputs import (
    Outputs,
    empty_outputs,
    loop_length,
    repeated_outputs,
    same_outputs,
    wrong_lengths,
)
from seqloom.analysis.diagnosis.unknown_words import UnknownWords, unknown_sources, unknown_targets
from seqloom.analysis.diagnosis.where import Bin, Errors, by_frequency, by_length, errors_by_frequency, errors_by_length
from seqloom.config.complete import complete
from seqloom.config.recipes import override, read_recipe
from seqloom.storage.history import History
from seqloom.storage.run import Run


def recipe(*settings: str, name: str = "dates") -> dict[str, Any]:
    return complete(override(read_recipe(name), list(settings)), name)


COMMANDS = Commands(Path("runs/x"), recipe("data.train=pairs.tsv"))


def curves(valid: list[float], train: list[float] | None = None, start: float | None = 3.0, best: int = 0) -> Curves:
    """Validations every 100 updates, and as many lines of training; the best validation is the lowest."""
    steps = 100.0 * np.arange(1, len(valid) + 1)
    losses = np.array(valid)
    return Curves(
        100 * len(valid),
        start,
        (steps, np.array(valid if train is None else train)),
        (steps, losses),
        best or int(steps[losses.argmin()]),
    )


def rates(**changes: Any) -> Rates:
    given: dict[str, Any] = {
        "peak": 1e-3,
        "usual": 1e-3,
        "highest": 1e-3,
        "warmup": 50,
        "updates": 1000,
        "clipped": 0.2,
    }
    return Rates(**{**given, "skipped": 0, "gradient_norm": 0.5, **changes})


# -- curves


def test_shares_are_written_with_as_many_figures_as_they_need() -> None:
    assert [percent(share) for share in (0.0, 0.004, 0.0996, 0.5, 1.0)] == ["0 %", "0.4 %", "10.0 %", "50 %", "100 %"]


def test_stretches_of_a_curve() -> None:
    curve = np.array([10.0, 20.0, 30.0, 40.0]), np.array([4.0, 3.0, 2.0, 5.0])
    assert lowest(curve, 30) == (2.0, 5.0)
    assert lowest(curve, 40) == (2.0, None)
    assert mean_between(curve, 0.5, 1.0, 40) == 3.5
    assert mean_between(curve, 0.0, 0.1, 40) is None


def test_a_loss_that_still_falls_at_the_end_is_under_trained() -> None:
    found = under_trained(curves([2.0, 1.8, 1.6, 1.5, 1.4]), COMMANDS)
    assert found is not None
    assert "in the last fifth of 500 updates the validation loss still fell by 6.7 % (1.5 to 1.4)" in found.sentence
    assert found.command.startswith("seqloom train")
    assert under_trained(curves([2.0, 1.5, 1.42, 1.41, 1.40]), COMMANDS) is None


def test_with_one_validation_the_training_loss_says_whether_it_still_falls() -> None:
    steps = np.arange(10.0, 110.0, 10.0)
    for last, named in ((1.0, True), (1.95, False)):
        train = steps, np.array([3.0] * 6 + [2.0, 2.0, last, last])
        found = under_trained(Curves(100, 3.0, train, (steps[-1:], np.ones(1)), 100), COMMANDS)
        assert (found is not None) is named
        assert found is None or "training loss still fell by 50 %" in found.sentence


def test_a_loss_next_to_nothing_is_not_under_trained() -> None:
    assert under_trained(curves([0.5, 0.1, 0.05, 0.03, 0.02]), COMMANDS) is None
    assert under_trained(curves([0.5, 0.1, 0.05, 0.03, 0.02], start=0.6), COMMANDS) is not None


def test_a_validation_loss_that_rises_while_that_of_training_falls_is_over_trained() -> None:
    valid = [2.0, 1.0, 1.1, 1.2, 1.4]
    found = over_trained(curves(valid, train=[2.0, 0.9, 0.5, 0.2, 0.1]), COMMANDS)
    assert found is not None
    assert "best at step 200 of 500" in found.sentence
    assert "risen from its lowest, 1, to 1.4, while that of training fell from 0.9 to 0.1" in found.sentence
    assert "encoder.dropout=0.1" in found.command
    assert over_trained(curves(valid, train=[2.0, 0.9, 0.95, 1.0, 1.1]), COMMANDS) is None  # it does not learn at all
    assert over_trained(curves([2.0, 1.5, 1.2, 1.0, 1.04]), COMMANDS) is None
    late = curves(valid, train=[2.0, 0.9, 0.5, 0.2, 0.1], best=400)  # by a metric, a late one was the best
    assert over_trained(late, COMMANDS) is None
    assert over_trained(Curves(5, 3.0, (np.empty(0),) * 2, (np.empty(0),) * 2, None), COMMANDS) is None


def test_rewards_are_not_compared_with_the_losses_of_validation(tmp_path: Path) -> None:
    for key, count in (("nll", 2), ("reward", 0)):
        run = Run.create(tmp_path / key, recipe())
        for step in (1, 2):
            run.log({"kind": "train", "step": step, "epoch": 1.0, "loss": -9.0, key: 1.0, "seconds": 1.0})
        assert len(Curves.read(History.read(run.path)).train[0]) == count


# -- learning rate


def test_a_loss_that_rises_in_both_sets_is_a_learning_rate_too_high() -> None:
    rising = curves([2.0, 1.5, 2.5, 2.6, 2.7])
    assert rise(rising) == ("the loss rises again, in training from 1.5 to 2.7, in validation from 1.5 to 2.7")
    found = too_high(rising, rates(), COMMANDS)
    assert found is not None
    assert "learning rate of 0.001 is probably too high" in found.sentence
    assert "clipped in 20 % of the updates" in found.sentence
    assert "train.learning_rate=0.0003" in found.command
    far = too_high(rising, rates(peak=0.3), COMMANDS)
    assert far is not None
    assert "train.learning_rate=0.003" in far.command
    assert rise(curves([2.0, 1.5, 2.5, 2.6, 2.7], train=[2.0, 1.5, 1.0, 0.8, 0.5])) == ""  # over-trained
    assert rise(curves([2.0, 1.5, 1.4, 1.4, 1.5])) == ""
    assert too_high(curves([2.0, 1.5, 1.2, 1.1, 1.0]), rates(), COMMANDS) is None


def test_an_early_explosion_is_a_learning_rate_too_high_even_if_the_loss_comes_back() -> None:
    back = curves([5.0, 3.0, 1.5, 1.4, 1.4], train=[8.0, 4.0, 1.5, 1.4, 1.4])
    assert overshoot(back) == "the training loss rose to 8 at step 100; an untrained model has 3"
    assert "the validation loss rose to 9e+30" in overshoot(curves([9e30, 9e30], train=[2.0, 2.0]))
    assert overshoot(curves([4.4, 3.0, 2.0])) == ""
    assert overshoot(curves([8.0, 3.0, 2.0], start=None)) == ""


def test_skipped_updates_count_when_there_are_many() -> None:
    assert faults(rates(skipped=11)) == "11 of 1,000 updates were skipped because they were not finite"
    assert faults(rates(skipped=10)) == ""


def test_clipping_counts_only_where_the_loss_does_not_fall() -> None:
    flat = curves([2.9] * 5)
    assert stuck(flat, rates(clipped=0.99)) == "the loss hardly falls (3 to 2.9)"
    assert stuck(flat, rates(clipped=0.5)) == ""
    assert stuck(flat, rates(clipped=None)) == ""  # a run that did not count it
    assert stuck(curves([2.0] * 5), rates(clipped=0.99)) == ""


def test_a_validation_loss_that_goes_up_and_down_swings() -> None:
    assert swings(curves([2.0, 2.5, 1.8, 2.4, 1.7])) == (
        "the validation loss swings: 2 of 4 changes go up by more than a tenth, 2 down"
    )
    assert swings(curves([2.0, 1.7, 1.4, 1.6, 1.2, 1.0, 0.8])) == ""  # one bad validation
    assert swings(curves([2.0, 2.5, 1.8])) == ""  # too few to say


def test_a_learning_rate_that_is_never_reached_is_a_problem_and_a_long_warm_up_a_hint() -> None:
    never = never_reached(rates(warmup=680, updates=171, highest=2.5e-4), COMMANDS)
    assert never is not None
    assert (never.name, never.severity) == ("learning-rate-never-reached", "problem")
    assert "680 updates of warm-up in a training of 171; the highest rate was 0.00025 of 0.001" in never.sentence
    assert "train.warmup=8" in never.command
    long = never_reached(rates(warmup=101), COMMANDS)
    assert long is not None
    assert (long.name, long.severity) == ("long-warm-up", "hint")
    assert never_reached(rates(warmup=100), COMMANDS) is None


# -- outputs


def answers(*pairs: tuple[str, str], length: int = 5) -> list[Answer]:
    """Pairs of outputs and references; a token is a character."""
    from rapidfuzz.distance import Levenshtein

    return [
        Answer("s", one, other, length, [*map(ord, one)], [*map(ord, other)], Levenshtein.distance(one, other))
        for one, other in pairs
    ]


@pytest.mark.parametrize(
    ("tokens", "length"),
    [("abcabcabc", 9), ("xabcabcabcab", 11), ("aaaa", 4), ("aaa", 0), ("ababab", 6), ("abab", 0), ("", 0), ("abc", 0)],
)
def test_a_loop_is_a_span_three_times_in_a_row(tokens: str, length: int) -> None:
    assert loop_length([*map(ord, tokens)]) == length


def test_outputs_are_measured_against_their_references() -> None:
    found = Outputs.measure(answers(("abcd", "abcd"), ("", "abc"), ("ababab", "abx"), ("xyxyxy", "xyxyxy")))
    shares = {"empty": 0.25, "length_ratio": 1.0, "looping": 0.25, "same": 0.25, "same_expected": 0.25}
    assert found == Outputs(4, **shares, right=0.5, error=7 / 16)
    same = Outputs.measure(answers(("no", "no"), ("no", "yes"), ("no", "so"), ("yes", "so")))
    assert (same.same, same.same_expected) == (0.75, 0.25)


def outputs(**changes: float) -> Outputs:
    usual = {"empty": 0.0, "length_ratio": 1.0, "looping": 0.0, "same": 0.1, "same_expected": 0.1}
    return Outputs(100, **{**usual, "right": 0.5, "error": 0.1, **changes})  # type: ignore[arg-type]


def test_outputs_that_are_all_the_same_are_reported_unless_the_references_are() -> None:
    found = same_outputs(outputs(same=0.8, same_expected=0.3), COMMANDS)
    assert found is not None
    assert found.sentence == "80 % of the outputs are the same; of the references 30 % are."
    assert same_outputs(outputs(same=0.49, same_expected=0.1), COMMANDS) is None
    assert same_outputs(outputs(same=0.8, same_expected=0.5), COMMANDS) is None


@pytest.mark.parametrize(
    ("check", "figure", "bad", "fine"),
    [
        (empty_outputs, "empty", 0.02, 0.01),
        (repeated_outputs, "looping", 0.03, 0.02),
        (wrong_lengths, "length_ratio", 0.89, 0.9),
        (wrong_lengths, "length_ratio", 1.11, 1.1),
    ],
)
def test_outputs_are_reported_beyond_a_threshold(check: Any, figure: str, bad: float, fine: float) -> None:
    found = check(outputs(**{figure: bad}), COMMANDS)
    assert found.severity == "problem"
    assert found.command.startswith("seqloom diagnose runs/x --set ")
    assert check(outputs(**{figure: fine}), COMMANDS) is None


def test_advice_on_lengths_widens_a_greedy_search_and_leaves_other_searches_alone() -> None:
    short = outputs(length_ratio=0.5)
    greedy = Commands(Path("x"), recipe("search.beam_size=1", "data.train=pairs.tsv"))
    assert wrong_lengths(short, greedy).command.endswith("--set beam_size=5 --set length_penalty=1.5")  # type: ignore[union-attr]
    sampled = Commands(Path("x"), recipe("search.type=sample", "data.train=pairs.tsv"))
    assert "train" in wrong_lengths(short, sampled).command  # type: ignore[union-attr]


# -- unknown words


def test_unknown_words_that_could_be_copied_suggest_copying() -> None:
    words = UnknownWords(source=0.2, target=0.1, copyable=0.8, copies=False)
    found = unknown_targets(words, COMMANDS, has_attention=True)
    assert found is not None
    assert "10 % of the target words" in found.sentence
    assert "80 % of them are in their source" in found.sentence
    assert found.command == "seqloom diagnose runs/x --replace-unknown"
    assert "seqloom train pointer-generator --data pairs.tsv --out runs/x-pointer-generator" in found.advice
    without = unknown_targets(words, COMMANDS, has_attention=False)
    assert without is not None
    assert without.command.startswith("seqloom train pointer-generator")


def test_unknown_words_that_are_nowhere_suggest_byte_pairs() -> None:
    found = unknown_targets(UnknownWords(0.0, 0.1, 0.1, copies=False), COMMANDS, has_attention=True)
    assert found is not None
    assert "task.target.units=bpe" in found.command
    assert unknown_targets(UnknownWords(0.0, 0.01, 0.1, copies=False), COMMANDS, has_attention=True) is None
    assert unknown_targets(UnknownWords(None, None, None, copies=False), COMMANDS, has_attention=True) is None


def test_a_run_that_copies_is_told_only_of_words_that_it_cannot_copy() -> None:
    commands = Commands(Path("x"), recipe("data.train=pairs.tsv", name="pointer-generator"))
    assert unknown_targets(UnknownWords(0.3, 0.1, 0.95, copies=True), commands, has_attention=True) is None
    found = unknown_targets(UnknownWords(0.3, 0.1, 0.5, copies=True), commands, has_attention=True)
    assert found is not None
    assert "task.target.size=4000" in found.command
    assert unknown_sources(UnknownWords(0.3, 0.0, None, copies=True), commands) is None


def test_unknown_words_of_sources_count_when_there_are_many() -> None:
    assert unknown_sources(UnknownWords(0.06, 0.0, None, copies=False), COMMANDS) is not None
    assert unknown_sources(UnknownWords(0.05, 0.0, None, copies=False), COMMANDS) is None


# -- where


def test_errors_by_length_are_in_quarters_that_share_no_source() -> None:
    few = [each for length in (1, 2, 3, 4) for each in answers(*[("ab", "ab")] * length, length=length)]
    wrong = answers(("xb", "ab"), length=8)
    found = by_length([*few, *wrong])
    assert sum(each.count for each in found.bins) == 11
    assert (found.bins[0].low, found.bins[-1].high) == (1, 8)
    assert all(before.high < after.low for before, after in zip(found.bins, found.bins[1:]))  # type: ignore[operator]
    assert found.overall == pytest.approx(1 / 22)
    assert found.bins[-1].error == pytest.approx(1 / (2 * found.bins[-1].count))
    assert by_length(answers(("a", "a"), length=3)).bins == [Bin(3, 3, 1, 0.0)]


def test_errors_by_frequency_look_at_the_words_that_an_output_lacks() -> None:
    counts = Counter({"the": 100, "cat": 10, "sat": 9})
    found = by_frequency(answers(("the dog sat", "the cat sat on")), counts)
    assert found == Errors(0.5, [Bin(0, 0, 1, 1.0), Bin(1, 9, 1, 0.0), Bin(10, 99, 1, 1.0), Bin(100, None, 1, 0.0)])


def test_errors_that_concentrate_are_reported() -> None:
    even, high = Bin(1, 10, 100, 0.2), Bin(11, 30, 100, 0.5)
    found = errors_by_length(Errors(0.3, [even, high]), COMMANDS)
    assert found is not None
    assert "sources of 11 to 30 tokens: their token error rate is 50 %, over all 30 %" in found.sentence
    assert errors_by_length(Errors(0.35, [even, high]), COMMANDS) is None
    assert errors_by_length(Errors(0.2, [even, Bin(11, 30, 19, 0.9)]), COMMANDS) is None  # too few to say
    assert errors_by_length(Errors(0.0, [Bin(1, 2, 50, 0.0), Bin(3, 4, 50, 0.0)]), COMMANDS) is None


def test_errors_in_rare_words_are_reported_errors_in_frequent_ones_are_not() -> None:
    rare, frequent = Bin(1, 9, 100, 0.9), Bin(100, None, 300, 0.2)
    found = errors_by_frequency(Errors(0.4, [rare, frequent]), COMMANDS, "word")
    assert found is not None
    assert "1 to 9 times, 90 % are wrong, over all 40 %" in found.sentence
    assert "units=bpe" in found.command
    assert errors_by_frequency(Errors(0.4, [rare, frequent]), COMMANDS, "bpe").command == ""  # type: ignore[union-attr]
    other = Errors(0.4, [Bin(1, 9, 100, 0.2), Bin(100, None, 300, 0.9)])
    assert errors_by_frequency(other, COMMANDS, "word") is None
    seldom = Errors(0.2, [Bin(1, 9, 30, 0.9), Bin(100, None, 1000, 0.2)])
    assert errors_by_frequency(seldom, COMMANDS, "word") is None
    new = errors_by_frequency(Errors(0.4, [Bin(0, 0, 100, 0.9), frequent]), COMMANDS, "word")
    assert "of those that the training data does not have, 90 % are wrong" in new.sentence  # type: ignore[union-attr]


# -- labels


def test_labels_are_counted_whole_and_tags_one_by_one() -> None:
    labels = confusions(answers(*[("yes", "no")] * 3, ("no", "yes"), *[("no", "no")] * 4))
    assert labels == Confusions(4, [("no", "yes", 3), ("yes", "no", 1)])
    tags = [("B I O", "B O O"), ("O O O", "O O O"), ("O B I", "O B O"), ("B B O", "B B O"), ("I O O", "I O O")]
    distinct = [(f"{one} {number % 3}", f"{other} {number % 3}") for number, (one, other) in enumerate(tags)]
    assert confusions(answers(*distinct)) == Confusions(2, [("O", "I", 2)])
    assert confusions(answers(*[(f"w{number}", f"w{number}") for number in range(9)])) is None  # no labels
    assert confusions(answers(("a b", "a c d"), ("b b b", "a b"), ("c d", "d"))) is None  # no tags


def test_frequent_confusions_are_reported() -> None:
    found = confused_labels(Confusions(40, [("no", "yes", 20), ("yes", "no", 5), ("no", "perhaps", 3)]))
    assert found is not None
    assert found.sentence == 'Most confused of 40 errors: "yes" for "no" (20 times), "no" for "yes" (5 times).'
    assert confused_labels(Confusions(4, [("no", "yes", 4)])) is None


# -- commands


def test_problems_come_first_and_each_command_once() -> None:
    hint, problem = (Finding(name, name, "s", "a", name) for name in ("hint", "problem"))  # type: ignore[arg-type]
    ranked = by_severity([None, hint, problem, problem])
    assert [each.name for each in ranked] == ["problem", "problem", "hint"]
    steps = next_steps(ranked, COMMANDS)
    assert steps[:2] == ["problem", "hint"]
    assert "seed=2" in steps[2]
    assert len(next_steps([], COMMANDS)) == 3
    over = next_steps([Finding("over-trained", "hint", "s", "a", COMMANDS.more_dropout())], COMMANDS)
    assert "objective.label_smoothing=0.1" in over[-1]
    assert COMMANDS.longer() not in over
    fast = next_steps([Finding("learning-rate-too-high", "problem", "s", "a", "slower")], COMMANDS)
    assert fast[0] == "slower"
    assert "train.warmup=100" in fast[1]
    assert COMMANDS.longer() not in fast


def test_training_longer_doubles_the_limit_and_resumes_where_there_is_a_checkpoint(tmp_path: Path) -> None:
    assert COMMANDS.longer() == "seqloom train runs/x/config.toml --set train.epochs=8 --out runs/x-longer"
    (tmp_path / "checkpoints" / "step-00000010").mkdir(parents=True)
    there = Commands(tmp_path, recipe("train.epochs=none", "train.steps=10", "data.train=pairs.tsv"))
    assert there.longer() == f"seqloom train --resume --out {tmp_path} --set train.steps=20"


def test_minutes_are_doubled_and_not_the_steps_that_they_were_turned_into(tmp_path: Path) -> None:
    given = recipe("train.epochs=none", "train.steps=171", "train.minutes=4.0", "data.train=pairs.tsv")
    assert "--set train.minutes=8 --set train.steps=none --out" in Commands(tmp_path, given).longer()
    (tmp_path / "checkpoints" / "step-00000010").mkdir(parents=True)
    there = Commands(tmp_path, given).longer()
    assert there == f"seqloom train --resume --out {tmp_path} --set train.minutes=8"


def test_a_run_that_does_not_record_its_data_is_told_to_give_a_file() -> None:
    commands = Commands(Path("my run"), recipe())
    assert shlex.split(commands.again("b", "seed=2")) == [
        *("seqloom", "train", "my run/config.toml", "--data", "FILE", "--set", "seed=2", "--out", "my run-b")
    ]


def test_dropout_is_found_in_decoders_within_decoders() -> None:
    commands = Commands(Path("x"), recipe("data.train=pairs.tsv", name="pointer-generator"))
    assert dict(commands.dropouts()) == {"encoder.dropout": 0.2, "decoder.decoder.dropout": 0.2}
    assert "decoder.decoder.dropout=0.3" in commands.more_dropout()


def test_files_in_the_working_folder_are_named_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside = Commands(Path("x"), recipe(f"data.train={tmp_path}/pairs.tsv")).other_recipe("pointer-generator")
    assert inside == "seqloom train pointer-generator --data pairs.tsv --out x-pointer-generator"
    outside = Commands(Path("x"), recipe("data.train=/elsewhere/pairs.tsv")).other_recipe("pointer-generator")
    assert "--data /elsewhere/pairs.tsv" in outside


# -- a run folder


def logged(path: Path, valid: list[float], *settings: str, skipped: int = 2) -> Path:
    """A run without weights, whose losses of both sets are the same."""
    run = Run.create(path, recipe("train.warmup=1", "train.select_by=none", *settings))
    run.log({"kind": "start", "step": 0, "epoch": 0.0, "loss": 3.0, "seconds": 0.0})
    for step, loss in enumerate(valid, start=1):
        place = {"step": 100 * step, "epoch": float(step), "seconds": 6.0 * step}
        more = {"learning_rate": 1e-3, "gradient_norm": 0.5, "clipped": 1.0, "skipped": skipped}
        run.log({"kind": "train", **place, "loss": loss, "nll": loss, **more})
        run.log({"kind": "valid", **place, "loss": loss})
    return path


def test_a_run_without_weights_is_diagnosed_by_its_curves(tmp_path: Path) -> None:
    found = diagnose(logged(tmp_path / "run", [2.0, 1.8, 1.6, 1.5, 1.4]))
    assert [finding.name for finding in found.findings] == ["learning-rate-too-high"]  # not to be trained longer
    assert found.notes == ["The run has no weights to predict with: only its curves are diagnosed."]
    assert found.figures["curves"]["first_validation_loss"] == 3.0
    assert found.figures["learning_rate"]["skipped"] == 10
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["next"] == found.next_steps
    found.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_short_form_has_at_most_three_lines(tmp_path: Path) -> None:
    bad = logged(tmp_path / "bad", [2.0, 1.5, 2.5, 1.6, 2.7], "train.warmup=1000")
    lines = short_diagnosis(bad)
    assert len(lines) == 2
    assert "probably too high" in lines[0]  # and nothing of a warm-up that is too long
    both = short_diagnosis(logged(tmp_path / "both", [2.0, 1.8, 1.6, 1.5, 1.4], "train.warmup=1000", skipped=0))
    assert len(both) == 3
    assert "never reached its peak" in both[0]
    assert "Under-trained" in both[1]
    assert lines[1] == f"More, and what to try next: seqloom diagnose {bad}"
    fine = logged(tmp_path / "fine", [2.0, 1.2, 1.02, 1.01, 1.0], skipped=0)
    assert short_diagnosis(fine)[0] == "Nothing stands out in the curves."
