"""The display: a panel on a terminal, plain lines elsewhere, and the terminal given back."""

import io
import os
import pty
import re
import sys
import time
from collections.abc import Iterator
from queue import Queue
from threading import Thread
from typing import TextIO

import pytest

from seqloom.train import display as module
from seqloom.train.display import Display, duration

MARK = "\x00"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class FakeTime:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time_passes(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    made = FakeTime()
    monkeypatch.setattr(module, "monotonic", made)
    return made


class Terminal:
    """A pseudo-terminal: what is written to the stream can be read back."""

    def __init__(self) -> None:
        self.leader, follower = pty.openpty()
        self.stream: TextIO = os.fdopen(follower, "w")
        self.received: Queue[bytes] = Queue()
        Thread(target=self.receive, daemon=True).start()  # a terminal that is not read blocks its writer after 4 kB

    def receive(self) -> None:
        try:
            while part := os.read(self.leader, 65536):
                self.received.put(part)
        except OSError:  # how Linux reports that the other end was closed
            os.close(self.leader)

    def shown(self) -> str:
        """What was written since the last call."""
        print(end=MARK, file=self.stream, flush=True)
        text = b""
        while not text.endswith(MARK.encode()):
            text += self.received.get(timeout=5)
        return text.decode().removesuffix(MARK)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("LINES", "30")
    made = Terminal()
    yield made
    made.stream.close()


def train(display: Display, steps: int = 3, clock: FakeTime | None = None, pause: float = 1.0) -> None:
    for step in range(1, steps + 1):
        if clock:
            clock.now += pause
        display.update(step, 1, loss=2.0, rate=12345.6, learning_rate=3e-4, gradient_norm=1.5)


def test_lines_come_at_intervals_and_at_validations(time_passes: FakeTime) -> None:
    stream = io.StringIO()
    with Display(stream=stream, interval=15) as display:
        display.begin(100, 1234, "g2p")
        train(display, steps=40, clock=time_passes)
        display.validation(40, {"exact": 12.5}, best=True)
        display.validation(41, {"exact": 11.5}, best=False)
        display.end("finished")
    first, at_15, at_30, best, worse, last = stream.getvalue().splitlines()
    assert first == "g2p: 1,234 parameters, 100 steps"
    assert at_15.startswith("step 15/100  epoch 1  loss 2.0000  12,346 tokens/s")
    assert at_30.startswith("step 30/100")
    assert "elapsed 0:30  left 1:10" in at_30
    assert best.endswith("validation step 40  exact 12.5  (best so far)")
    assert worse.endswith("validation step 41  exact 11.5")
    assert last == "finished"


def test_plain_lines_never_hold_control_characters_even_if_the_data_or_the_environment_ask_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    with Display(stream=stream, interval=0) as display:
        display.begin(None, 5, "a\x1b[31mb")
        train(display)
        display.sample("so\x07urce\r", "\x1b[2Jprediction", "two\nlines")
        display.say("[bold]kept[/bold]\x00")
        display.end("done\x1b[0m")
    lines = stream.getvalue()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", lines)
    assert r"sample: so\u0007urce\u000d -> \u001b[2Jprediction (reference: two\u000alines)" in lines
    assert "[bold]kept[/bold]" in lines


def test_everything_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with Display() as display:
        display.begin(10, 5, "title")
        train(display)
        display.end("summary")
    output = capsys.readouterr()
    assert output.out == ""
    assert "title" in output.err
    assert "summary" in output.err


def test_a_quiet_display_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with Display.quiet() as display:
        display.interval = 0
        display.begin(10, 5, "title")
        train(display)
        display.validation(3, {"exact": 1.0}, best=True)
        display.sample("a", "b", "c")
        display.say("hello")
        display.end("summary")
    assert capfd.readouterr() == ("", "")


def test_the_panel_shows_numbers_the_best_validation_and_a_sample(terminal: Terminal, time_passes: FakeTime) -> None:
    with Display(stream=terminal.stream) as display:
        display.begin(100, 1234567, "g2p")
        display.validation(1, {"exact": 71.25}, best=True)
        display.validation(2, {"exact": 60.5}, best=False)
        display.sample("loom", "L UW [M]", "L UW M")
        train(display, steps=50, clock=time_passes)
        display.say("a [remark]")
        display.end("summary")
    shown = terminal.shown()
    for text in (
        "g2p · 1,234,567 parameters",
        "50 / 100",
        "12,346 tokens/s",
        "2.0000",
        "3.00e-04",
        "0:50",
        "step 2  exact 60.5",
        "step 1  exact 71.25 ★",
        "L UW [M]",
        "a [remark]",
        "summary",
    ):
        assert text in re.sub(r"\x1b\[[0-9;]*m", "", shown), text
    assert shown.rindex("summary") > shown.rindex("╯")


def test_the_panel_is_drawn_at_most_four_times_per_second(terminal: Terminal, time_passes: FakeTime) -> None:
    with Display(stream=terminal.stream) as display:
        display.begin(10_000, 5, "title")
        terminal.shown()
        train(display, steps=1000, clock=time_passes, pause=0.002)  # two seconds
        assert 7 <= terminal.shown().count("╰") <= 8


def test_an_update_between_two_drawings_costs_next_to_nothing(terminal: Terminal) -> None:
    with Display(stream=terminal.stream) as display:
        display.begin(10_000, 5, "title")
        start = time.perf_counter()
        train(display, steps=10_000)
        assert (time.perf_counter() - start) / 10_000 < 1e-4
        terminal.shown()


def test_an_interrupt_gives_the_terminal_back(terminal: Terminal) -> None:
    def interrupted() -> None:
        with Display(stream=terminal.stream) as display:
            display.begin(10, 5, "title")
            assert HIDE_CURSOR in terminal.shown()
            raise KeyboardInterrupt

    before = sys.stdout, sys.stderr
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert SHOW_CURSOR in terminal.shown()
    assert (sys.stdout, sys.stderr) == before


def test_a_dumb_terminal_gets_plain_lines(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with Display(stream=terminal.stream) as display:
        display.begin(10, 5, "title")
        display.end("summary")
    assert terminal.shown().splitlines() == ["title: 5 parameters, 10 steps", "summary"]


def test_the_smoothed_loss_of_a_steady_loss_is_that_loss_from_the_first_update() -> None:
    display = Display.quiet()
    for step in range(1, 4):
        train(display, steps=1)
        assert display.loss == pytest.approx(2.0), step


def test_time_left_counts_from_the_first_step_seen_so_that_resumed_training_is_not_flattered(
    time_passes: FakeTime,
) -> None:
    display = Display.quiet()
    display.begin(1000, 5, "resumed")
    assert display.remaining() is None
    for step in (901, 902, 903):
        time_passes.now += 2
        display.update(step, 9, 1.0, 1.0, 1.0, 1.0)
    assert display.remaining() == pytest.approx(97 * 2)


def test_durations_are_in_minutes_and_hours() -> None:
    assert [duration(7.9), duration(754), duration(3723)] == ["0:07", "12:34", "1:02:03"]
