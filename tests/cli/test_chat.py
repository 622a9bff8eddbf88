"""`seqloom chat`: a conversation through a pipe, in a terminal, and in Python."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

import seqloom
from seqloom.data.generators.slots import slots
from seqloom.errors import SeqloomError
from seqloom.inference import chat as chats
from tests.cli.conftest import trained

DIALOGUE = {"type": "dialogue", "units": "word", "longest": 6}
GRU = {"type": "recurrent", "cell": {"type": "gru"}, "embedding_size": 8, "size": 8}
HRED = {
    "search": {"type": "beam", "beam_size": 2},
    "task": {"source": DIALOGUE, "target": DIALOGUE, "joint": True, "metrics": ["exact"]},
    "encoder": {"type": "hierarchical", "encoder": GRU, "size": 8},
    "decoder": {**GRU, "feed_context": True},
    "train": {"tokens": 256, "steps": 10, "learning_rate": 0.01, "device": "cpu"},
    "data": {"dialogues": True},
}


@pytest.fixture(scope="session")
def talker(tmp_path_factory):
    """A run of dialogues that has hardly learned anything."""
    folder = tmp_path_factory.mktemp("talker")
    return trained(folder, HRED, [(one.source, one.target) for one in slots(80)])


@pytest.fixture
def asked(monkeypatch):
    """The sources that chats ask for; the reply is how many there were before."""
    found = []

    class Reply:
        def __init__(self, text):
            self.text = text

    def answer(system, sources, **options):
        found.append((sources[0], options))
        return [Reply(f"reply {len(found)}")]

    monkeypatch.setattr(chats, "best_predictions", answer)
    return found


# -- in Python


def test_a_model_reads_all_turns_so_far(talker, asked):
    chat = seqloom.load(talker).chat()
    assert chat.say(" hello \n there ") == "reply 1"
    assert chat.say("how are you") == "reply 2"
    assert [source for source, _ in asked] == [["hello there"], ["hello there", "reply 1", "how are you"]]
    assert chat.turns == ["hello there", "reply 1", "how are you", "reply 2"]


def test_an_exchange_taken_back_was_never_said(talker, asked):
    chat = seqloom.load(talker).chat()
    chat.say("one")
    chat.say("two")
    assert chat.undo()
    chat.say("three")
    assert asked[-1][0] == ["one", "reply 1", "three"]
    chat.reset()
    assert not chat.undo()
    chat.say("four")
    assert asked[-1][0] == ["four"]


def test_the_context_is_so_many_turns(talker, translator, asked):
    for run, context, last in (
        (talker, 2, ["reply 1", "b"]),
        (talker, 1, ["b"]),
        (translator, None, "b"),
        (translator, 3, "a reply 1 b"),
        (translator, 0, "a reply 1 b"),
    ):
        asked.clear()
        chat = seqloom.load(run).chat(context=context)
        chat.say("a")
        chat.say("b")
        assert asked[-1][0] == last


def test_what_is_said_never_ends_a_turn(talker):
    model = seqloom.load(talker)
    codec = model.task.source
    turns = codec.divisions(codec.read(["a __eou__ b", "c"]))
    assert len(turns) == 2
    model.chat().say("a __eou__ b")


def test_replies_are_sampled_where_a_setting_of_sampling_is_given(talker):
    model = seqloom.load(talker)

    def replies(seed):
        chat = model.chat(temperature=3.0, seed=seed)
        return [chat.say("for two .") for _ in range(4)]

    assert replies(1) == replies(1) != replies(2)
    assert len(set(replies(1))) > 1  # each reply has random numbers of its own


def test_the_reply_is_that_of_predict(talker):
    model = seqloom.load(talker)
    assert model.chat().say("for two .") == model.predict([["for two ."]], minimum_length=1)[0]


def test_a_reply_has_words_and_an_empty_one_is_no_turn(talker, monkeypatch):
    chat = seqloom.load(talker).chat()
    assert chat.options["minimum_length"] == 1
    chat.exchanges = [("hello", "")]
    assert chat.turns == ["hello"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5, "beam_size": 2}, "temperature is for sampling, beam_size for a beam"),
        ({"context": -1}, "context = -1"),
        ({"temperature": 0.0, "said": "a"}, "temperature = 0.0 must be above 0"),
        ({"said": " "}, "the text is empty"),
        ({"said": "a" * 20_001}, "the text has 20,001 characters"),
    ],
)
def test_mistakes_are_one_line(talker, options, message):
    said = options.pop("said", "")
    with pytest.raises((SeqloomError, ValueError), match=message):
        seqloom.load(talker).chat(**options).say(said)


def test_a_language_model_is_no_partner(language_model):
    with pytest.raises(SeqloomError, match="chat: this run is a language model and reads no source"):
        seqloom.load(language_model).chat()


# -- through a pipe


def test_one_line_in_is_one_reply_out(command, talker):
    said = command("chat", talker, stdin="a table in oslo please .\n\nfor two .\n")
    assert said.code == 0
    lines = said.out.splitlines()
    assert len(lines) == 3
    assert lines[1] == ""
    chat = seqloom.load(talker).chat()
    assert [lines[0], lines[2]] == [chat.say("a table in oslo please ."), chat.say("for two .")]


def test_commands_say_what_they_did_and_write_no_reply(command, talker):
    said = command("chat", talker, stdin="/undo\nhello\n/undo\n/reset\n/help\n/what\n//what\n/quit\nnever read\n")
    assert said.code == 0
    assert len(said.out.splitlines()) == 2
    assert [line.partition(":")[0][:24] for line in said.err.splitlines()] == [
        "There is nothing to take",
        "Took the last exchange b",
        "Forgot the conversation.",
        "/reset forgets the conve",
        '"/what" is no command',
    ]


def test_turns_that_were_cut_are_counted(command, talker):
    said = command("chat", talker, stdin="one two three four five six seven eight\n")
    assert said.err == "In 1 of 1 context turns of more than 6 tokens were cut (task.source.longest).\n"


def test_control_characters_are_escaped(command, talker, monkeypatch):
    monkeypatch.setattr(chats.Chat, "say", lambda chat, text: "\x1b[2Jgone")
    assert command("chat", talker, stdin="hello\n").out == "\\u001b[2Jgone\n"


def test_a_line_that_cannot_be_read_is_named(command, talker):
    said = command("chat", talker, "--max-characters", 5, stdin="hello\nhello there\n").complaint
    assert said.startswith("standard input, line 2, has 11 characters; expected at most 5")
    assert "not UTF-8" in command("chat", talker, stdin=b"\xff\n").complaint


def test_plain_text_is_answered_line_by_line(command, translator):
    said = command("chat", translator, stdin="123\n145\n")
    assert said.out.splitlines() == seqloom.load(translator).predict(["123", "145"], minimum_length=1)


# -- in a terminal


class Terminal:
    """`seqloom chat` with a person before it."""

    def __init__(self, *arguments):
        self.ours, theirs = pty.openpty()
        line = [sys.executable, "-m", "seqloom", "chat", *map(str, arguments)]
        self.process = subprocess.Popen(
            line,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # A shell may have started the tests in the background, where an interrupt is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(theirs)
        self.seen = ""

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.ours], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.ours, 4096).decode()
                except OSError:  # it has ended
                    break
        assert text in self.seen, self.seen
        self.seen = self.seen.partition(text)[2]

    def type(self, text):
        os.write(self.ours, text.encode())

    def interrupt(self):
        """Ctrl-C. Python notices one that comes just as a line is asked for only with the next."""
        for _ in range(5):
            self.process.send_signal(signal.SIGINT)
            until = time.monotonic() + 5
            while self.process.poll() is None and time.monotonic() < until:
                if select.select([self.ours], [], [], 0.1)[0]:
                    try:
                        self.seen += os.read(self.ours, 4096).decode()
                    except OSError:  # it has ended
                        return
            if self.process.poll() is not None:
                return

    def end(self):
        """The exit code, and what was still printed."""
        said = self.seen
        while True:
            if not select.select([self.ours], [], [], 60)[0]:
                self.process.kill()
                pytest.fail(f"the conversation goes on: {said}")
            try:
                said += (more := os.read(self.ours, 4096).decode())
            except OSError:  # all have closed it
                break
            if not more:
                break
        os.close(self.ours)
        return self.process.wait(timeout=60), said


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["ctrl-c", "ctrl-d", "/quit"])
def test_a_conversation_in_a_terminal_ends_cleanly(talker, ending):
    terminal = Terminal(talker, "--max-characters", 20)
    terminal.wait_for("/quit (or Ctrl-D) ends")
    terminal.wait_for("> ")
    terminal.type("a" * 30 + "\n")
    terminal.wait_for("the text has 30 characters")
    terminal.wait_for("> ")
    terminal.type("for two .\n")
    terminal.wait_for("> ")
    if ending == "ctrl-c":
        terminal.interrupt()
    else:
        terminal.type("\x04" if ending == "ctrl-d" else "/quit\n")
    code, said = terminal.end()
    assert code == 0
    assert "Traceback" not in said
