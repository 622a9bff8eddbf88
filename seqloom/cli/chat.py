"""`seqloom chat`: a conversation in the terminal, or through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seqloom.cli import options
from seqloom.cli.messages import note
from seqloom.errors import SeqloomError, UnreadableError, printable, show

if TYPE_CHECKING:
    from seqloom.inference.chat import Chat

HELP = "/reset forgets the conversation, /undo takes the last exchange back, /quit (or Ctrl-D) ends; //text says /text"
PROMPT = "> "


@click.command()
@options.runs
@options.task
@click.option("--context", type=click.IntRange(min=0), help="Turns that the model reads; 0: all that it can.")
@click.option("--temperature", type=float, help="Sample replies: below 1 safer, above 1 more varied.")
@click.option("--top-k", type=click.IntRange(min=0), help="Sample from the k likeliest tokens only.")
@click.option("--top-p", type=float, help="Sample from the likeliest tokens of this joint probability.")
@click.option("--seed", type=int, help="Sample the same replies again.")
@options.beam_size
@click.option("--max-characters", type=click.IntRange(1, 100_000_000), help="Characters of a turn at most.")
@options.geometric
@options.settings
@options.device
@options.threads(1)
@options.trust
def chat(
    runs: tuple[Path, ...],
    task: str,
    context: int | None,
    beam_size: int | None,
    max_characters: int | None,
    geometric: bool,
    settings: tuple[str, ...],
    device: str,
    threads: int,
    trust: bool,
    **given: Any,
) -> None:
    """Talk to a run: it answers each line. /help lists the commands; Ctrl-C and Ctrl-D end the conversation.

    Through a pipe: one line in, one reply out, and an empty line stays empty.
    """
    from seqloom.engines.load import load

    average: Any = "geometric" if geometric else "arithmetic"
    model = load(*runs, device=device, trust=trust, average=average, threads=threads, task=task)
    options.set_limit(model, max_characters)
    chosen = {name: value for name, value in given.items() if value is not None}
    talk = model.chat(context=context, **chosen, **options.search_settings(settings, beam_size))
    try:
        if sys.stdin.isatty():
            note(f"Say something. {HELP}.")
            converse(talk, typed_lines(), forgiving=True)
        else:
            converse(talk, piped_lines(model.max_characters))
    except KeyboardInterrupt:
        print(flush=True)


def converse(chat: Chat, lines: Iterator[str], forgiving: bool = False) -> None:
    """Answer lines until they end or one is /quit. A line that cannot be read ends it too, unless `forgiving`."""
    for number, line in enumerate(lines, start=1):
        try:
            if line.startswith("/") and not line.startswith("//"):
                if line.strip() == "/quit":
                    break
                note(obey(chat, line.strip()))
                continue
            said = line[1:] if line.startswith("//") else line
            # What a model writes is data of anybody's, and here it goes to a terminal.
            print(printable(chat.say(said)) if said.strip() else "", flush=True)
        except UnreadableError as bad:
            if not forgiving:
                raise SeqloomError(f"standard input, line {number}: {bad}") from None
            note(str(bad))
        if forgiving:
            tell_left_out(chat)
    tell_left_out(chat)


def obey(chat: Chat, command: str) -> str:
    """Do what a command says; returns what to tell the person."""
    commands: dict[str, Callable[[], str]] = {
        "/help": lambda: f"{HELP}.",
        "/reset": lambda: forget(chat),
        "/undo": lambda: "Took the last exchange back." if chat.undo() else "There is nothing to take back.",
    }
    return commands.get(command, lambda: f"{show(command)} is no command: {HELP}.")()


def forget(chat: Chat) -> str:
    chat.reset()
    return "Forgot the conversation."


def tell_left_out(chat: Chat) -> None:
    """Say which turns were cut."""
    for codec in chat.system.sources:
        for line in codec.notes():
            note(line)


def typed_lines() -> Iterator[str]:
    """Lines as a person types them, with the keys to edit them."""
    import contextlib

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # makes `input` editable

    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            print(flush=True)
            return
        except UnicodeDecodeError:
            note("The line is not UTF-8: type it again.")


def piped_lines(limit: int) -> Iterator[str]:
    """Lines of a pipe, each as soon as it is there."""
    from seqloom.cli.predict import chunks

    for found in chunks(sys.stdin.buffer, limit):
        yield from found
