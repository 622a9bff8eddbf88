"""A conversation with a model: each text that is said is answered from the turns before it.

chat = model.chat(temperature=0.8)
chat.say("Hello !")
chat.say("How are you ?")

A run of dialogues reads the turns as such; one of plain text reads the last turns as one text, by default one turn.
There is no torch here.
"""

from __future__ import annotations

from typing import Any

from seqloom.contracts import Search
from seqloom.data.limits import refuse_long
from seqloom.errors import SeqloomError
from seqloom.inference.candidates import best_predictions
from seqloom.inference.system import System, search_table
from seqloom.values import expect

SAMPLED = ("temperature", "top_k", "top_p", "argmax_every", "seed")  # settings that only sampling has


class Chat:
    """`exchanges` are what was said and answered so far. `context` is how many turns the model reads; 0: all it can.

    Options are those of `candidates`; with a setting of sampling, replies are sampled.
    """

    def __init__(self, system: System, *, context: int | None = None, **options: Any):
        source = system.task.source
        if source is None:
            raise SeqloomError("chat: this run is a language model and reads no source: use `generate`")
        if system.model.is_head or source.is_vectors or system.task.target.is_vectors or source.names_files:
            raise SeqloomError("chat: this run does not answer texts with texts: use `predict`")
        self.system, self.divided = system, source.divided == "turn"
        self.context = (0 if self.divided else 1) if context is None else context
        expect(0, 1_000_000, context=self.context)
        self.options = sampling(system, options)
        self.exchanges: list[tuple[str, str]] = []

    @property
    def turns(self) -> list[str]:
        """What was said by both so far; a reply without text is no turn."""
        return [turn for exchange in self.exchanges for turn in exchange if turn]

    def say(self, text: str) -> str:
        """The reply. The text is taken as it is: nothing in it is a command or ends a turn."""
        said = " ".join(text.split())
        if not said:
            raise SeqloomError("chat: the text is empty: say something")
        refuse_long(said, self.system.max_characters, "the text")
        turns = [*self.turns, said][-self.context :]  # -0 keeps all
        source = turns if self.divided else " ".join(turns)[-self.system.max_characters :]
        options = dict(self.options)
        if options.get("seed") is not None:  # other random numbers for each reply
            options["seed"] += len(self.exchanges)
        reply = " ".join(str(best_predictions(self.system, [source], **options)[0].text).split())
        self.exchanges.append((said, reply))
        return reply

    def undo(self) -> bool:
        """Take the last exchange back; False: there was none."""
        return bool(self.exchanges and self.exchanges.pop())

    def reset(self) -> None:
        """Forget everything."""
        self.exchanges.clear()


def sampling(system: System, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with a search that has them: sampling where one of its settings is given; replies are not empty."""
    if isinstance(options.get("search"), Search):
        return options
    asked = [name for name in SAMPLED if options.get(name) is not None]
    if asked and options.get("beam_size") is not None:
        raise SeqloomError(f"chat: {asked[0]} is for sampling, beam_size for a beam: give one of them")
    options = {"type": "sample", **options} if asked else options
    kind = search_table(system, **{name: options[name] for name in ("type",) if name in options})["type"]
    return {"minimum_length": 1, **options} if kind in ("beam", "sample") else options
