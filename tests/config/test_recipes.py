"""Recipes: what is read, completed, refused and built.

Most tests run on a small house of parts of their own, so that they say what a recipe means and not what a part does;
the last ones run on the parts of the toolkit.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from seqloom.config import recipes
from seqloom.config.build import assemble_model, build_model, build_part, build_task
from seqloom.config.complete import complete, fill_part
from seqloom.config.discovery import CONTRACTS, parameters, parts, slot
from seqloom.config.recipes import describe, difference, override, packaged, read_recipe
from seqloom.config.settings import Data, build_settings
from seqloom.data.special_tokens import BOS, EOS, PAD
from seqloom.errors import SeqloomError
from seqloom.storage.toml import read_toml, write_toml
from seqloom.values import ABSENT

DECODER_METHODS = """
    def prepare(self, memory): return memory
    def start(self, memory): return {}
    def step(self, token, state, memory): raise NotImplementedError
    def forward(self, memory, inputs, state=None, attention=False): raise NotImplementedError
"""
CODEC_METHODS = """
    def fit(self, values): return self
    def encode(self, value, source=None): raise NotImplementedError
    def decode(self, tensor, source=None): raise NotImplementedError
    def save(self, folder, name): pass
    def load(self, folder, name): return self
"""
CELL_METHODS = """
    def project(self, inputs): return inputs
    def start(self, rows): return {}
    def forward(self, projected, state): return projected, state
"""
HOUSE = {
    "nn/cells/lstm.py": f"""
from seqloom.contracts import Cell
class LSTM(Cell):
    def __init__(self, *, input_size: int, size: int, forget_bias: float = 1):
        super().__init__(input_size=input_size, size=size)
        self.forget_bias = forget_bias
{CELL_METHODS}
class _Helper(LSTM): pass
""",
    "nn/cells/mut_one.py": f"""
from seqloom.contracts import Cell
class Mut(Cell):
{CELL_METHODS}
""",
    "nn/encoders/recurrent.py": """
from __future__ import annotations
from collections.abc import Callable
from seqloom.nn.cells.lstm import LSTM
from seqloom.contracts import Cell, Encoder
class Recurrent(Encoder):
    def __init__(self, *, vocabulary: int, pad: int, size: int = 8, cell: Callable[..., Cell] = LSTM):
        super().__init__()
        self.vocabulary, self.pad, self.output_size = vocabulary, pad, 2 * size
        self.cell = cell(input_size=size, size=size)
    def forward(self, source, attention=False): raise NotImplementedError
""",
    "nn/decoders/recurrent.py": f"""
from __future__ import annotations
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal
from seqloom.nn.cells.lstm import LSTM
from seqloom.contracts import Cell, Codec, Decoder
class Recurrent(Decoder):
    def __init__(self, *, vocabulary: int, memory_size: int, bos: int, eos: int, size: int = 256,
                 cell: Callable[..., Cell] = partial(LSTM, forget_bias=0.5), second: Callable[..., Cell] | None = None,
                 order: Literal["luong", "bahdanau"] = "luong", dropout: float = 0, widths: tuple[int, ...] = (1, 2),
                 tied: bool = False, path: Path = Path("x"), codec: Codec | None = None):
        super().__init__()
        if size % 2:
            raise ValueError(f"size = {{size}} is odd\\nand the rest of a long story")
        self.arguments = {{name: value for name, value in locals().items() if name not in ("self", "__class__")}}
        self.bos, self.eos = bos, eos
{DECODER_METHODS}
""",
    "nn/decoders/shared.py": """
from seqloom.contracts import Decoder
class SharedDecoder(Decoder): pass
""",
    "objectives/cross_entropy.py": """
from seqloom.contracts import Objective
class CrossEntropy(Objective):
    def __init__(self, *, label_smoothing: float = 0.0):
        super().__init__()
        self.label_smoothing = label_smoothing
    def forward(self, model, batch, progress): raise NotImplementedError
""",
    "search/beam.py": """
from seqloom.contracts import Search
class Beam(Search):
    def __init__(self, *, beam_size: int = 5): self.beam_size = beam_size
    def start(self, decoder, memory, prefix=None, constraints=()): raise NotImplementedError
    def advance(self, decoder, memory, beam): raise NotImplementedError
    def finish(self, decoder, memory, beam): raise NotImplementedError
""",
    "data/codecs/text.py": f"""
from seqloom.contracts import Codec
class Text(Codec):
    def __init__(self, *, size: int = 100): self.vocabulary = size
{CODEC_METHODS}
""",
    "data/codecs/sound.py": f"""
from seqloom.contracts import Codec
class Sound(Codec):
{CODEC_METHODS}
""",
    "data/codecs/readers.py": "",
    "metrics/bleu.py": "HIGHER_IS_BETTER = True",
    "metrics/exact_match.py": "HIGHER_IS_BETTER = True",
    "metrics/shared.py": "",
    "tasks/pairs.py": """
from __future__ import annotations
from collections.abc import Sequence
from seqloom.contracts import Codec, Task
class Pairs(Task):
    bos, eos, plan, in_order, collate = 2, 3, None, None, None
    def __init__(self, *, target: Codec, source: Codec | None = None, joint: bool = False, metrics: Sequence[str] = ()):
        self.target, self.source, self.joint, self.metrics = target, source, joint, metrics
""",
}
OWN = f"""
from seqloom.contracts import Decoder
class Mine(Decoder):
    def __init__(self, *, vocabulary: int, depth: int = 2):
        super().__init__()
        self.vocabulary, self.depth = vocabulary, depth
{DECODER_METHODS}
class Stranger: pass
"""


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The folders of the toolkit, with small parts instead of its own; the toolkit is as before afterwards."""
    folders = sorted({name.rpartition("/")[0] for name in HOUSE} | {"nn/attention", "nn/heads"})
    packages = {folder: importlib.import_module(f"seqloom.{folder}".replace("/", ".")) for folder in folders}
    prefixes = tuple(f"{package.__name__}." for package in packages.values())
    before = {name: module for name, module in sys.modules.items() if name.startswith(prefixes)}
    attributes = {folder: dict(vars(package)) for folder, package in packages.items()}
    for name in before:
        del sys.modules[name]
    for folder, package in packages.items():
        (tmp_path / "house" / folder).mkdir(parents=True)
        monkeypatch.setattr(package, "__path__", [str(tmp_path / "house" / folder)])
    for name, text in HOUSE.items():
        (tmp_path / "house" / name).write_text(text)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "own_parts_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path / "own")
    importlib.invalidate_caches()
    yield
    for name in [name for name in sys.modules if name.startswith((*prefixes, "own_parts_of_a_test"))]:
        del sys.modules[name]
    sys.modules.update(before)
    for folder, package in packages.items():
        vars(package).clear()
        vars(package).update(attributes[folder])


def recipe(**changes: Any) -> dict[str, Any]:
    whole = {
        "task": {"source": "text", "target": {"type": "text", "size": 50}, "metrics": ["bleu"]},
        "encoder": {"type": "recurrent"},
        "decoder": {"type": "recurrent"},
    }
    return {**whole, **changes}


def complaint(function: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(SeqloomError) as caught:
        function(*arguments, **named)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def complaint_about(**changes: Any) -> str:
    return complaint(complete, recipe(**changes), "x.toml")


@pytest.mark.usefixtures("house")
class TestComplete:
    def test_every_default_is_written_out_in_the_order_of_the_constructor(self) -> None:
        full = complete(recipe(), "x.toml")
        assert list(full) == [
            "seed",
            "share_embeddings",
            "objective",
            "search",
            "task",
            "encoder",
            "decoder",
            "train",
            "data",
        ]
        assert full["decoder"] == {
            "type": "recurrent",
            "size": 256,
            "cell": {"type": "lstm", "forget_bias": 0.5},
            "order": "luong",
            "dropout": 0.0,
            "widths": [1, 2],
            "tied": False,
            "path": "x",
        }
        assert list(full["decoder"])[:3] == ["type", "size", "cell"]
        assert isinstance(full["decoder"]["dropout"], float)
        assert full["encoder"]["cell"] == {"type": "lstm", "forget_bias": 1.0}
        assert full["objective"] == {"type": "cross_entropy", "label_smoothing": 0.0}
        assert full["search"] == {"type": "beam", "beam_size": 5}
        assert (full["train"]["tokens"], full["train"]["betas"]) == (4096, [0.9, 0.98])
        assert "steps" not in full["train"]
        assert full["task"]["source"] == {"type": "text", "size": 100}
        assert full["data"] == {"max_characters": 20_000, "skip_bad": False, "dialogues": False}

    def test_completing_what_was_written_and_loaded_changes_nothing(self, tmp_path: Path) -> None:
        given = recipe(
            seed=7, init="runs/a", data={"train": ["a", "b"], "test": "c"}, train={"steps": 3, "betas": [0, 0.5]}
        )
        once = complete(given, "x.toml")
        write_toml(once, tmp_path / "config.toml")
        again = complete(read_toml(tmp_path / "config.toml"), "x.toml")
        assert again == once
        assert repr(again) == repr(once)  # the order and the types of numbers too

    def test_the_recipe_itself_stays_as_it_was(self) -> None:
        given = recipe(decoder={"type": "recurrent", "widths": [4]})
        before = repr(given)
        complete(given, "x.toml")["decoder"]["widths"].append(5)
        assert repr(given) == before

    def test_a_name_alone_is_a_part_with_its_defaults(self) -> None:
        full = complete(recipe(decoder={"type": "recurrent", "cell": "lstm", "second": "mut-one"}), "x.toml")
        assert full["decoder"]["cell"] == {"type": "lstm", "forget_bias": 1.0}
        assert full["decoder"]["second"] == {"type": "mut_one"}

    def test_a_table_without_type_changes_the_default_part(self) -> None:
        full = complete(recipe(search={"beam_size": 9}, encoder={"type": "recurrent", "cell": {"forget_bias": 2}}), "x")
        assert full["search"] == {"type": "beam", "beam_size": 9}
        assert full["encoder"]["cell"] == {"type": "lstm", "forget_bias": 2.0}

    def test_a_language_model_has_neither_source_nor_encoder(self) -> None:
        given = recipe(task={"target": "text"})
        assert complaint(complete, given, "x.toml").startswith("x.toml: task.source: missing, but encoder is set")
        del given["encoder"]
        assert "encoder" not in complete(given, "x.toml")
        with_source = recipe()
        del with_source["encoder"]
        message = complaint(complete, with_source, "x.toml")
        assert message.startswith("x.toml: encoder: missing, but task.source is set")

    def test_metrics_are_files_of_their_folder(self) -> None:
        task = recipe()["task"]
        full = complete(recipe(task={**task, "metrics": ["exact-match"]}), "x.toml")
        assert full["task"]["metrics"] == ["exact_match"]
        for name, hint in (("blue", 'did you mean "bleu"'), ("shared", "known: bleu, exact_match")):
            message = complaint_about(task={**task, "metrics": [name]})
            assert message.startswith(f'x.toml: task.metrics = "{name}": no such metric')
            assert hint in message

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"sed": 3}, 'x.toml: sed = 3: unknown key of a recipe (did you mean "seed"?)'),
            ({"seed": True}, "x.toml: seed = true: expected an integer"),
            ({"seed": 1.0}, "x.toml: seed = 1.0: expected an integer"),
            ({"train": {"tokens": "many"}}, 'x.toml: train.tokens = "many": expected an integer'),
            ({"train": {"tokens": 0}}, "x.toml: train.tokens = 0 cannot be used: it must be 1 or more"),
            ({"train": {"token": 1}}, 'x.toml: train.token = 1: unknown key of [train] (did you mean "tokens"?)'),
            ({"train": {"betas": [0.9]}}, "x.toml: train.betas = [0.9]: expected a list of 2: a number, a number"),
            ({"train": 3}, "x.toml: train = 3: expected a table"),
            (
                {"decoder": {"type": "recurrent", "sise": 3}},
                'x.toml: decoder.sise = 3: unknown key of decoder "recurrent" (did you mean "size"?)',
            ),
            (
                {"encoder": {"type": "recurent"}},
                'x.toml: encoder.type = "recurent": no such encoder (did you mean "recurrent"?)',
            ),
            ({"encoder": {"type": 3}}, "x.toml: encoder.type = 3: expected the name of an encoder"),
            ({"encoder": {}}, "x.toml: encoder.type: missing, expected the name of an encoder (known: recurrent)"),
            ({"decoder": {"type": "shared"}}, 'x.toml: decoder.type = "shared": no such decoder (known: recurrent)'),
            ({"decoder": {"type": "../recurrent"}}, 'x.toml: decoder.type = "../recurrent": no such decoder'),
            (
                {"decoder": {"type": "recurrent", "order": "loung"}},
                'decoder.order = "loung": expected one of "luong", "bahdanau" (did you mean "luong"?)',
            ),
            (
                {"decoder": {"type": "recurrent", "dropout": "0.1"}},
                'x.toml: decoder.dropout = "0.1": expected a number',
            ),
            ({"decoder": {"type": "recurrent", "dropout": True}}, "x.toml: decoder.dropout = true: expected a number"),
            ({"decoder": {"type": "recurrent", "tied": 1}}, "x.toml: decoder.tied = 1: expected true or false"),
            ({"decoder": {"type": "recurrent", "widths": [1, "b"]}}, "expected a list, each an integer"),
            (
                {"decoder": {"type": "recurrent", "cell": 3}},
                "x.toml: decoder.cell = 3: expected the name or the table of a cell",
            ),
            (
                {"decoder": {"type": "recurrent", "cell": {"type": "lstm", "forget_bios": 1}}},
                'x.toml: decoder.cell.forget_bios = 1: unknown key of cell "lstm" (did you mean "forget_bias"?)',
            ),
            (
                {"decoder": {"type": "recurrent", "vocabulary": 9}},
                "x.toml: decoder.vocabulary = 9: derived from the data",
            ),
            (
                {"decoder": {"type": "recurrent", "cell": {"type": "lstm", "input_size": 9}}},
                "x.toml: decoder.cell.input_size = 9: derived from its neighbour",
            ),
            ({"task": {"source": "text"}}, 'x.toml: task.target: missing, task "pairs" needs it'),
            ({"task": {"source": "text", "target": "readers"}}, 'x.toml: task.target.type = "readers": no such codec'),
            (
                {"data": {"train": ["a"]}},
                'x.toml: data.train = ["a"]: expected a string or a list of 2: a string, a string',
            ),
        ],
    )
    def test_a_mistake_is_one_line_with_file_key_value_and_remedy(self, changes: dict[str, Any], message: str) -> None:
        assert message in complaint_about(**changes)

    def test_a_recipe_without_decoder_is_told_so(self) -> None:
        given = recipe()
        del given["decoder"]
        assert complaint(complete, given, "x.toml") == "x.toml: decoder: missing, a recipe needs it"

    def test_a_file_with_two_parts_is_refused(self, tmp_path: Path) -> None:
        twice = HOUSE["nn/cells/lstm.py"] + "\nclass Other(LSTM): pass\n"
        (tmp_path / "house" / "nn" / "cells" / "twice.py").write_text(twice)
        importlib.invalidate_caches()
        assert complaint(parts, "cells") == "seqloom.nn.cells.twice: expected one public cell, found LSTM, Other"


@pytest.mark.usefixtures("house")
class TestTrust:
    own = "own_parts_of_a_test:Mine"

    def test_a_part_of_ones_own_is_not_even_imported_without_trust(self, tmp_path: Path) -> None:
        for value in (self.own, {"type": self.own}):
            message = complaint_about(decoder=value)
            assert message.startswith(f'x.toml: decoder.type = "{self.own}": names code outside Seqloom')
        assert "outside" in complaint(build_part, "decoders", self.own, "decoder", vocabulary=3)
        path = tmp_path / "own.toml"
        write_toml(recipe(decoder={"type": self.own}), path)
        assert complaint(read_recipe, path).startswith(f"{path}: decoder.type = ")
        assert read_recipe(path, trust=True) == read_toml(path)
        assert "own_parts_of_a_test" not in sys.modules

    def test_with_trust_it_is_a_part_like_any_other(self) -> None:
        full = complete(recipe(decoder=self.own), "x.toml", trust=True)
        assert full["decoder"] == {"type": self.own, "depth": 2}
        built = build_part("decoders", full["decoder"], "decoder", trust=True, vocabulary=3)
        assert (type(built).__name__, built.vocabulary, built.depth) == ("Mine", 3, 2)
        wrong = {"type": self.own, "dept": 1}
        assert "did you mean" in complaint(complete, recipe(decoder=wrong), "x.toml", trust=True)

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("own_parts_of_a_test:Stranger", "expected a subclass of seqloom.contracts.Decoder"),
            ("own_parts_of_a_test:Missing", "cannot be imported"),
            ("no_such_module_at_all:Part", "cannot be imported"),
            (":Part", "cannot be imported"),
        ],
    )
    def test_trust_does_not_make_anything_a_decoder(self, name: str, reason: str) -> None:
        assert reason in complaint(complete, recipe(decoder={"type": name}), "x.toml", trust=True)


@pytest.mark.usefixtures("house")
class TestBuild:
    sizes = {"vocabulary": 9, "memory_size": 4, "bos": BOS, "eos": EOS}  # noqa: RUF012

    def test_a_nested_part_is_a_factory_with_its_settings(self) -> None:
        from seqloom.nn.cells.lstm import LSTM

        table = {"type": "recurrent", "cell": {"type": "lstm", "forget_bias": 3}, "second": "mut_one", "widths": [5]}
        arguments = build_part("decoders", table, "decoder", **self.sizes).arguments
        assert isinstance(arguments["cell"], partial)
        assert arguments["cell"].func is LSTM
        assert arguments["cell"].keywords == {"forget_bias": 3.0}
        assert arguments["second"].__name__ == "Mut"  # nothing to set: the class itself
        assert arguments["widths"] == (5,)
        assert arguments["path"] == Path("x")

    def test_a_parameter_annotated_with_a_contract_gets_a_built_part(self) -> None:
        table = {"type": "recurrent", "codec": {"type": "text", "size": 3}}
        assert build_part("decoders", table, "decoder", **self.sizes).arguments["codec"].vocabulary == 3

    def test_a_completed_table_builds_the_same_as_a_short_one(self) -> None:
        full = complete(recipe(), "x.toml")["decoder"]
        short = build_part("decoders", "recurrent", "decoder", **self.sizes).arguments
        long = build_part("decoders", full, "decoder", **self.sizes).arguments
        assert (long.pop("cell").keywords, short.pop("cell").keywords) == ({"forget_bias": 0.5}, {"forget_bias": 0.5})
        assert long == short

    def test_what_a_constructor_refuses_is_one_line_under_its_key(self) -> None:
        table = {"type": "recurrent", "size": 3}
        assert complaint(build_part, "decoders", table, "decoder", **self.sizes) == "decoder: size = 3 is odd"
        assert "memory_size" in complaint(build_part, "decoders", "recurrent", "decoder", vocabulary=1, bos=2, eos=3)

    def test_the_task_and_the_settings_are_built_from_their_tables(self) -> None:
        full = complete(recipe(train={"betas": [0, 0.5]}), "x.toml")
        task = build_task(full)
        assert (task.source.vocabulary, task.target.vocabulary, list(task.metrics)) == (100, 50, ["bleu"])
        assert build_settings(full).betas == (0.0, 0.5)


@pytest.fixture
def any_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that keeps what it is given."""
    module = SimpleNamespace(Model=lambda encoder, decoder, share_embeddings: (encoder, decoder, share_embeddings))
    monkeypatch.setitem(sys.modules, "seqloom.nn.model", module)


@pytest.mark.usefixtures("house", "any_model")
class TestBuildModel:
    def test_sizes_come_from_the_codecs_and_the_encoder(self) -> None:
        encoder, decoder, shared = assemble_model(
            recipe(), SimpleNamespace(vocabulary=7, features=None), SimpleNamespace(vocabulary=5, features=None)
        )
        assert (encoder.vocabulary, encoder.pad, shared) == (7, PAD, False)
        given = {name: decoder.arguments[name] for name in ("vocabulary", "memory_size", "bos", "eos")}
        assert given == {"vocabulary": 5, "memory_size": encoder.output_size, "bos": BOS, "eos": EOS}

    def test_a_language_model_reads_a_memory_of_size_zero(self) -> None:
        alone = {"decoder": "recurrent"}
        encoder, decoder, _ = assemble_model(alone, None, SimpleNamespace(vocabulary=5, features=None))
        assert encoder is None
        assert decoder.arguments["memory_size"] == 0

    def test_a_decoder_is_given_only_what_it_asks_for(self) -> None:
        own = recipe(decoder={"type": TestTrust.own})
        codec = SimpleNamespace(vocabulary=5, features=None)
        assert assemble_model(own, codec, codec, trust=True)[1].vocabulary == 5
        assert "outside" in complaint(assemble_model, own, codec, codec)

    def test_parts_that_do_not_fit_are_named_together(self) -> None:
        symbols, sound = SimpleNamespace(vocabulary=5, features=None), SimpleNamespace(vocabulary=None, features=None)
        message = complaint(
            assemble_model, recipe(share_embeddings=True), SimpleNamespace(vocabulary=7, features=None), symbols
        )
        assert all(word in message for word in ("share_embeddings", "task.source has 7", "task.target 5"))
        message = complaint(assemble_model, recipe(), sound, symbols)
        assert all(word in message for word in ("encoder.type", "task.source"))
        assert "task.source" in complaint(assemble_model, recipe(), None, symbols)

    def test_what_the_model_refuses_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(**parts: Any) -> None:
            raise ValueError("share_embeddings needs tables of one shape")

        monkeypatch.setitem(sys.modules, "seqloom.nn.model", SimpleNamespace(Model=refuse))
        codec = SimpleNamespace(vocabulary=5, features=None)
        message = complaint(assemble_model, recipe(), codec, codec)
        assert message == "encoder and decoder do not fit: share_embeddings needs tables of one shape"


class TestOverride:
    @pytest.mark.parametrize(
        ("assignment", "value"),
        [
            ("a.b=2048", 2048),
            ("a.b = 2e-5", 2e-5),
            ("a.b=true", True),
            ("a.b=additive", "additive"),
            ("a.b='7'", "7"),
            ("a.b=[1, 2]", [1, 2]),
            ('a.b={type = "lstm"}', {"type": "lstm"}),
            ("a.b=my:Part", "my:Part"),
            ("a.b=data/x=y.tsv", "data/x=y.tsv"),
            ("a.b=2024-05-01", "2024-05-01"),
            ("a.b=1\nseed = 2", "1\nseed = 2"),
        ],
    )
    def test_values_are_toml_and_bare_words_are_strings(self, assignment: str, value: Any) -> None:
        assert override({"a": {"c": 1}}, [assignment]) == {"a": {"c": 1, "b": value}}

    def test_missing_tables_are_made_and_the_recipe_stays_as_it_was(self) -> None:
        given = {"decoder": {"type": "recurrent"}}
        changed = override(given, ["decoder.attention.type=additive", "seed=3", "seed=4"])
        assert changed == {"decoder": {"type": "recurrent", "attention": {"type": "additive"}}, "seed": 4}
        assert given == {"decoder": {"type": "recurrent"}}

    @pytest.mark.parametrize(
        ("assignment", "reason"),
        [
            ("seed.deep=3", "seed = 1 is no table"),
            ("tokens", "expected key=value"),
            ("a..b=3", "expected key=value"),
            ("a=", "expected key=value"),
            ("=3", "expected key=value"),
            ("a=[1, 2", "not a TOML value"),
        ],
    )
    def test_a_bad_assignment_is_refused(self, assignment: str, reason: str) -> None:
        assert reason in complaint(override, {"seed": 1}, [assignment])

    def test_a_dictionary_sets_what_strings_set_and_values_keep_their_type(self) -> None:
        given = {"decoder": {"type": "recurrent", "attention": {"type": "dot", "scaled": True}, "dropout": 0.3}}
        strings = [
            "decoder.attention=additive",
            "decoder.attention.size=32",
            "train.tokens=2048",
            "decoder.dropout=none",
        ]
        nested = {"decoder": {"attention": {"type": "additive", "size": 32}, "dropout": None}, "train.tokens": 2048}
        expected = {
            "decoder": {"type": "recurrent", "attention": {"type": "additive", "size": 32}},
            "train": {"tokens": 2048},
        }
        assert override(override(given, strings[:1]), strings[1:]) == override(given, nested) == expected
        assert override(given, [strings[2], {"decoder.attention.size": 32}])["decoder"]["attention"]["scaled"] is True
        values = {"a": "2048", "b": 2048.0, "c": [1, 2], "d": {}, "e": np.int64(3), "f": "none"}
        assert override({}, values) == {**values, "e": 3}
        assert type(override({}, values)["e"]) is int
        assert override({}, "seed=3") == {"seed": 3}

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"train.tokens": "many"}, 'dates: train.tokens = "many": expected an integer'),
            ({"train": {"tokens": "many"}}, 'dates: train.tokens = "many": expected an integer'),
            ({"decoder": {"atention": "dot"}}, 'decoder.atention = "dot": unknown key of decoder "recurrent" (did you'),
            ({"seed": {"deep": 3}}, "seed.deep=3: seed = 1 is no table; set seed={...} whole"),
            ({3: 4}, "settings: 3: expected the name of a key"),
            (7, 'settings: 7: expected "key=value", or a dictionary'),
            ([7], 'settings: 7: expected "key=value", or a dictionary'),
        ],
    )
    def test_a_bad_dictionary_gets_the_line_of_a_bad_string(self, settings: Any, reason: str) -> None:
        given = {"seed": 1, **read_recipe("dates")}
        assert reason in complaint(lambda: complete(override(given, settings), "dates"))


class TestFiles:
    @pytest.fixture
    def packaged(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        path = tmp_path / "g2p-small.toml"
        path.write_text("# Words to sounds.\n# More.\nseed = 5\n")
        monkeypatch.setattr(recipes, "packaged", lambda: {"g2p-small": path})
        return path

    def test_a_recipe_is_read_by_name_or_by_path(self, packaged: Path) -> None:
        assert read_recipe("g2p-small") == read_recipe("g2p_small") == read_recipe(str(packaged)) == {"seed": 5}
        assert describe(packaged) == "Words to sounds."

    def test_an_unknown_name_gets_the_nearest(self, packaged: Path) -> None:
        assert complaint(read_recipe, "gp2-small").endswith('(did you mean "g2p-small"?)')

    @pytest.mark.parametrize(
        ("content", "reason"),
        [(b"seed = 1\nseed 2\n", "line 2"), (b"seed = '\xff'", "not UTF-8"), (None, "No such file")],
    )
    def test_a_file_that_is_no_recipe_is_named(self, tmp_path: Path, content: bytes | None, reason: str) -> None:
        path = tmp_path / "bad.toml"
        if content is not None:
            path.write_bytes(content)
        message = complaint(read_recipe, path)
        assert message.startswith(str(path))
        assert reason in message
        assert "directory" in complaint(read_recipe, tmp_path)

    def test_nothing_is_half_written(self, tmp_path: Path) -> None:
        path = tmp_path / "config.toml"
        write_toml({"seed": 1}, path)
        with pytest.raises(TypeError):
            write_toml({"seed": object()}, path)
        assert read_toml(path) == {"seed": 1}
        assert [file.name for file in tmp_path.iterdir()] == ["config.toml"]
        assert "could not write" in complaint(write_toml, {}, tmp_path / "missing" / "config.toml")

    def test_the_difference_is_the_dotted_keys(self) -> None:
        old = {"seed": 1, "train": {"tokens": 1, "steps": 2}, "encoder": {"type": "a"}}
        new = {"seed": 1, "train": {"tokens": 3, "steps": 2}, "decoder": {"type": "a"}}
        assert difference(old, new) == ["train.tokens", "encoder", "decoder"]
        assert difference(old, old) == []


class TestToolkit:
    def test_importing_config_does_not_import_torch(self) -> None:
        program = "import sys, seqloom.config; sys.exit('torch' in sys.modules or 'pydantic' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

    @pytest.mark.parametrize("folder", CONTRACTS)
    def test_every_part_of_the_toolkit_can_be_completed(self, folder: str) -> None:
        for name, part in parts(folder).items():
            asked = {
                name for name, each in parameters(part).items() if each.default is ABSENT and slot(each.annotation)
            }
            of = {name: slot(parameters(part)[name].annotation) for name in asked}
            needed = {name: {} if place.table else "text" for name, place in of.items()}
            full = fill_part(folder, {"type": name, **needed}, name, trust=False)
            assert fill_part(folder, full, name, trust=False) == full
            assert full["type"] == name
            optional = {key for key, parameter in parameters(part).items() if parameter.default not in (None, ABSENT)}
            assert set(full) == {"type", *needed, *optional}

    def test_every_packaged_recipe_is_complete_and_described(self) -> None:
        for name, path in packaged().items():
            full = complete(read_recipe(name), name)
            assert complete(full, name) == full
            assert describe(path), name

    def test_the_longest_line_is_the_one_of_the_readers(self) -> None:
        from seqloom.data.readers import MAX_CHARACTERS

        assert Data().max_characters == MAX_CHARACTERS

    def test_a_recurrent_model_is_built_from_its_tables(self) -> None:
        given = {
            "share_embeddings": True,
            "encoder": {"type": "recurrent", "size": 4, "embedding_size": 6, "cell": "gru"},
            "decoder": {
                "type": "recurrent",
                "size": 8,
                "embedding_size": 6,
                "attention": {"type": "additive", "size": 3},
            },
        }
        codec = SimpleNamespace(vocabulary=11, features=None)
        model = build_model(given, codec, codec)
        assert model.encoder.embedding is model.decoder.embedding
        given["encoder"]["embedding_size"] = 5
        assert "share_embeddings" in complaint(build_model, given, codec, codec)
        given["decoder"]["attention"] = {"type": "dot"}
        assert complaint(build_model, given, codec, codec).startswith("decoder: dot attention needs")
