"""The command line: seqloom VERB. One mistake, one line, exit code 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import NoReturn, TypeVar

import click

from seqloom.cli.messages import TRACEBACK, in_one_line
from seqloom.errors import SeqloomError
from seqloom.version import __version__

Command = TypeVar("Command", bound=Callable[..., object])
Callback = Callable[[click.Context, click.Parameter, bool], None]
SPINS = "1000"  # turns that threads wait for each other before they sleep: what libgomp takes on a crowded machine
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True}
VERBS = {  # verb: its module in this folder, and its help in one line
    "train": ("train", "Train a model on pairs."),
    "predict": ("predict", "Predict: one source per line on stdin, one output per line on stdout."),
    "evaluate": ("evaluate", "Measure a run on pairs by the metrics of its task; prints JSON."),
    "score": ("evaluate", "Print the log-probability of each pair."),
    "fill": ("fill", "Find the words that a text has masked."),
    "embed": ("embed", "A vector for each line of stdin, from the encoder of a run."),
    "similar": ("embed", "The lines of a file that are nearest to a text."),
    "chat": ("chat", "Talk to a run: it answers each line from the turns before."),
    "stream": ("stream", "Write while the input is still arriving: sound as a WAV stream, films by name, or text."),
    "generate": ("generate", "Generate texts, pictures, music or signals with a language model."),
    "complete": ("complete", "Complete a picture, several times."),
    "explain": ("explain", "Show why a run answers as it does, in the terminal and on a page."),
    "diagnose": ("diagnose", "Say what is wrong with a run, with figures, and what to try next."),
    "check": ("check", "Check a recipe, printed with every default, or a part of your own."),
    "recipes": ("check", "List the recipes that come with Seqloom."),
    "gradcheck": ("gradients", "Check every gradient of a recipe's model against finite differences."),
    "gradients": ("gradients", "Plot how far back a recurrent cell learns: |dL/dh| by distance."),
    "info": ("info", "Print how large a run or a recipe is and what it costs: parameters, memory, FLOPs, speed."),
    "compare": ("compare", "Compare runs: recipes, results and learning curves."),
    "average": ("average", "Average the newest checkpoints of a run into another run."),
    "export": ("export", "Export a run to a folder that predicts without torch."),
    "demo": ("demo", "Train on dates in twelve languages, in about two minutes, and look at the result."),
    "data": ("data", "Generate data: dates, sums, hulls, tours and more."),
    "cache": ("cache", "List the encoded data sets, or remove them."),
    "reproduce": ("reproduce", "Train a published result again and write results/NAME.json."),
}


class LazyGroup(click.Group):
    """Verbs by name; the module of one is imported when it runs, or when its own help is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"seqloom.cli.{VERBS[name][0]}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in VERBS.items()])


def install_completion(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        from seqloom.cli.completion import install

        install(ctx.command)
        ctx.exit()


def show_completion(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        from seqloom.cli.completion import script

        click.echo(script(ctx.command))
        ctx.exit()


def show_traceback(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        os.environ[TRACEBACK] = "1"


def flag(name: str, callback: Callback, about: str) -> Callable[[Command], Command]:
    return click.option(name, is_flag=True, expose_value=False, is_eager=True, callback=callback, help=about)


@click.group(cls=LazyGroup, context_settings=SETTINGS)
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version.")
@flag("--install-completion", install_completion, "Install completion for the current shell.")
@flag("--show-completion", show_completion, "Print the completion script of the current shell.")
@flag("--traceback", show_traceback, f"Print the traceback of an error too, as {TRACEBACK}=1 does: for developers.")
def app() -> None:
    """Sequence-to-sequence learning: from a file of pairs to a trained, explained, reusable model."""


def main() -> None:
    """The entry point of all commands."""
    if "OMP_WAIT_POLICY" not in os.environ:  # libgomp's 300,000 would slow down training 10-fold beside a busy process
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)  # before torch is imported

    def run() -> int:
        try:
            code = app(sys.argv[1:] or ["--help"], prog_name="seqloom", standalone_mode=False)
        except click.Abort as abort:  # an interrupt, or an unexpected end of a file
            raise abort.__cause__ or KeyboardInterrupt from None
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            see = f"{context.command_path if context else 'seqloom'} --help"
            raise SeqloomError(f"{error.format_message()} (see {see})") from error
        code = code if isinstance(code, int) else 0  # an Exit comes back as its code
        return leave(code) if "TORCHELASTIC_RUN_ID" in os.environ else code

    in_one_line(run)


def leave(code: int) -> NoReturn:
    """End a process of torchrun at once: threads of torch that run while it exits would abort it now and then."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
