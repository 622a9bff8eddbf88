"""The display of a training: a panel on a terminal, plain lines anywhere else, all on stderr.

It gets numbers at every update and redraws a few times per second. It runs no thread of its own, so that a forked
process never inherits a lock, and an interrupt leaves the terminal as it was.
"""

from __future__ import annotations

import os
import sys
from time import monotonic
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from seqloom.errors import printable

FRAME = 0.25  # seconds between two drawings of the panel
SMOOTHING = 0.98  # decay of the average loss per update


class Display:
    """Shows the progress of one training."""

    def __init__(self, *, stream: TextIO | None = None, interval: float = 15.0):
        """Plain lines come every `interval` seconds and at each validation."""
        self.stream: TextIO | None = sys.stderr if stream is None else stream
        self.interval = interval
        self.live: Live | None = None
        self.title, self.parameters = "", 0
        self.total_steps: int | None = None
        self.began = self.drawn = monotonic()
        self.first: tuple[int, float] | None = None  # step and time of the first update, from which the ETA counts
        self.step = self.epoch = self.updates = 0
        self.average = self.rate = self.learning_rate = self.gradient_norm = 0.0
        self.last_validation = self.best_validation = ""
        self.last_is_best = False
        self.example: tuple[str, str, str] | None = None

    @classmethod
    def quiet(cls) -> Self:
        """A display that prints nothing: for tests, and for all processes but the first."""
        display = cls()
        display.stream = None
        return display

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self, total_steps: int | None, parameters: int, title: str) -> None:
        """Training starts; the total may be unknown."""
        self.total_steps, self.parameters, self.title = total_steps, parameters, printable(title)
        self.began = self.drawn = monotonic()
        if on_terminal(self.stream):
            console = Console(file=self.stream, force_terminal=True)
            # stdout is for results
            self.live = Live(console=console, auto_refresh=False, redirect_stdout=False)
            self.live.start()
            self.live.update(self.panel(console.width), refresh=True)
        else:
            steps = f", {total_steps:,} steps" if total_steps else ""
            self.line(f"{self.title}: {parameters:,} parameters{steps}")

    def update(
        self, step: int, epoch: int, loss: float, rate: float, learning_rate: float, gradient_norm: float
    ) -> None:
        """Show an update; the rate is in tokens per second."""
        now = monotonic()
        self.first = self.first or (step, now)
        self.step, self.epoch, self.rate = step, epoch, rate
        self.learning_rate, self.gradient_norm = learning_rate, gradient_norm
        self.updates += 1
        self.average = SMOOTHING * self.average + (1 - SMOOTHING) * loss
        if self.live:
            self.draw(now)
        elif now - self.drawn >= self.interval:
            self.drawn = now
            self.line(self.progress())

    def validation(self, step: int, results: dict[str, float], best: bool) -> None:
        """Show the results of a validation; `best` marks the best so far."""
        self.last_validation = f"step {step:,}  " + "  ".join(f"{name} {value:.4g}" for name, value in results.items())
        self.last_is_best = best
        if best:
            self.best_validation = self.last_validation
        if self.live:
            self.draw(monotonic())
        else:
            self.drawn = monotonic()
            self.line(f"{self.progress()} | validation {self.last_validation}{'  (best so far)' if best else ''}")

    def sample(self, source: str, prediction: str, reference: str) -> None:
        """Show one prediction of a validation."""
        self.example = printable(source), printable(prediction), printable(reference)
        if self.live:
            self.draw(monotonic())
        else:
            source, prediction, reference = (shorten(text) for text in self.example)
            self.line(f"sample: {source} -> {prediction} (reference: {reference})")

    def say(self, text: str) -> None:
        """Print a line that stays, above the panel if there is one."""
        if self.live:
            self.live.console.print(Text(printable(text)))
        else:
            self.line(text)

    def end(self, summary: str) -> None:
        """Training is over: print the summary below the last drawing."""
        self.close()
        self.line(summary)

    def close(self) -> None:
        """Give the terminal back; calling it twice does no harm."""
        live, self.live = self.live, None
        if live:
            live.update(self.panel(live.console.width))
            live.stop()

    @property
    def loss(self) -> float:
        """The smoothed loss, corrected for its start at zero."""
        return self.average / (1 - SMOOTHING**self.updates) if self.updates else 0.0

    def remaining(self) -> float | None:
        """Seconds to the last step, at the pace since the first; None while it is unknown."""
        if not self.total_steps or not self.first or self.step <= self.first[0]:
            return None
        pace = (monotonic() - self.first[1]) / (self.step - self.first[0])
        return pace * max(self.total_steps - self.step, 0)

    def progress(self) -> str:
        """The progress in one line."""
        of = f"/{max(self.total_steps, self.step):,}" if self.total_steps else ""
        left = self.remaining()
        return (
            f"step {self.step:,}{of}  epoch {self.epoch}  loss {self.loss:.4f}  {self.rate:,.0f} tokens/s  "
            f"learning rate {self.learning_rate:.2e}  gradient norm {self.gradient_norm:.2f}  "
            f"elapsed {duration(monotonic() - self.began)}" + (f"  left {duration(left)}" if left is not None else "")
        )

    def draw(self, now: float) -> None:
        """Redraw the panel, unless it was drawn a moment ago."""
        if self.live and now - self.drawn >= FRAME:
            self.drawn = now
            self.live.update(self.panel(self.live.console.width), refresh=True)

    def panel(self, columns: int) -> Panel:
        """The panel for a terminal of that width: numbers in two columns, then validations, then a sample."""
        left, of = self.remaining(), f" / {max(self.total_steps, self.step):,}" if self.total_steps else ""
        numbers = Table.grid(padding=(0, 2), expand=True)
        for style in ("dim", "bold", "dim", "bold"):
            numbers.add_column(style=style, no_wrap=True, ratio=None if style == "dim" else 1)
        numbers.add_row("step", f"{self.step:,}{of}", "elapsed", duration(monotonic() - self.began))
        numbers.add_row("epoch", str(self.epoch), "left", duration(left) if left is not None else "-")
        numbers.add_row("loss", f"{self.loss:.4f}", "rate", f"{self.rate:,.0f} tokens/s")
        numbers.add_row("learning rate", f"{self.learning_rate:.2e}", "gradient norm", f"{self.gradient_norm:.2f}")

        words = Table.grid(padding=(0, 2), expand=True)
        words.add_column(style="dim", no_wrap=True, min_width=len("learning rate"))
        words.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        if self.last_validation:
            words.add_row("validation", Text(self.last_validation + (" ★" if self.last_is_best else "")))
        if self.best_validation and not self.last_is_best:
            words.add_row("best", Text(self.best_validation + " ★", style="green"))
        if self.example:
            for name, text in zip(("source", "prediction", "reference"), self.example):
                words.add_row(name, Text(text))

        bar = Table.grid(expand=True)  # a bar alone does not end its line
        if self.total_steps:
            bar.add_row(ProgressBar(total=self.total_steps, completed=self.step))
        title = Text(f"{self.title} · {self.parameters:,} parameters")
        width = min(columns - 3, 100)  # room for an echoed ^C: wrapped, it would shift the panel
        return Panel(Group(bar, numbers, words), title=title, title_align="left", border_style="cyan", width=width)

    def line(self, text: str) -> None:
        """Print a plain line."""
        if self.stream:
            try:
                print(printable(text), file=self.stream, flush=True)
            except OSError:  # nobody reads it any more: no reason to stop training
                self.stream = None


def on_terminal(stream: TextIO | None) -> bool:
    """Whether the stream can be drawn on."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") not in (None, "dumb", "unknown")


def shorten(text: str, length: int = 120) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def duration(seconds: float) -> str:
    """0:07, 12:34, 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
