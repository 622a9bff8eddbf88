"""Files that a stranger has put into a folder: read if they are regular, small and plain, else refused in one line."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from seqloom.errors import SeqloomError
from seqloom.storage import weights
from seqloom.storage.environment import stored_threads
from seqloom.storage.files import SMALL, read_bytes, read_json, remove, replace_file, write
from seqloom.storage.history import History
from seqloom.storage.run import Run
from seqloom.storage.toml import read_toml


def complaint(call: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(SeqloomError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestKinds:
    """Whatever is no regular file is refused at once: a test that reads on does not end."""

    @pytest.mark.parametrize("reader", [read_bytes, read_json, read_toml, weights.read])
    def test_links_pipes_devices_and_folders_are_refused(self, tmp_path: Path, reader: Callable[[Path], Any]) -> None:
        path = tmp_path / "file"
        path.symlink_to("/dev/zero")
        assert f"{path} cannot be read (it is a symbolic link to /dev/zero" in complaint(reader, path)
        path.unlink()
        os.mkfifo(path)
        assert f"{path} cannot be read (it is no regular file)" in complaint(reader, path)
        path.unlink()
        path.mkdir()
        assert f"{path} cannot be read (it is no regular file)" in complaint(reader, path)
        assert "cannot be read" in complaint(reader, Path("/dev/zero"))

    def test_a_link_inside_the_folder_is_not_followed_either(self, tmp_path: Path) -> None:
        (tmp_path / "there.json").write_text("{}")
        (tmp_path / "here.json").symlink_to("there.json")
        assert "links are not followed" in complaint(read_json, tmp_path / "here.json")

    def test_a_folder_may_itself_be_a_link(self, tmp_path: Path) -> None:
        Run.create(tmp_path / "run", {"seed": 3})
        (tmp_path / "link").symlink_to("run")
        assert Run.open(tmp_path / "link").recipe() == {"seed": 3}

    def test_a_recipe_that_the_user_names_may_be_a_link_but_must_end(self, tmp_path: Path) -> None:
        (tmp_path / "mine.toml").write_text("seed = 1")
        (tmp_path / "link.toml").symlink_to("mine.toml")
        assert read_toml(tmp_path / "link.toml", own=True) == {"seed": 1}
        assert "larger than 1 MB" in complaint(read_toml, Path("/dev/zero"), True)

    def test_a_file_beyond_its_limit_is_not_read(self, tmp_path: Path) -> None:
        (tmp_path / "large.json").touch()
        os.truncate(tmp_path / "large.json", 1 << 40)  # takes no room on the disk
        assert f"larger than {SMALL >> 20} MB" in complaint(read_json, tmp_path / "large.json")


class TestValues:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"[" * 100_000, "cannot be read"),
            (b'{"a":' * 40 + b"1" + b"}" * 40, "nested more than 32 levels deep"),
            (b'{"a": %s}' % (b"9" * 5000), "cannot be read"),
            (b'{"a": 9223372036854775808}', "an integer of 64 bits"),
            (b'{"a": ["\\ud800"]}', "half a surrogate pair"),
            (b'{"\\udc00": 1}', "half a surrogate pair"),
            (b"\xff\xfe{", "cannot be read"),
            (b"null", "must hold a JSON object"),
        ],
    )
    def test_json_that_nothing_of_ours_writes_is_refused(self, tmp_path: Path, content: bytes, words: str) -> None:
        (tmp_path / "a.json").write_bytes(content)
        message = complaint(read_json, tmp_path / "a.json")
        assert words in message
        assert "a.json" in message

    def test_json_at_the_limits_is_read(self, tmp_path: Path) -> None:
        value: Any = [-(2**63), 2**63 - 1, "ü\U0001f9f5"]
        for _ in range(30):
            value = {"a": value}
        (tmp_path / "a.json").write_text(json.dumps(value))
        assert read_json(tmp_path / "a.json") == value

    @pytest.mark.parametrize(
        "content",
        [
            b"a" + b".a" * 5000 + b" = 1",
            b"a" + b".a" * 400_000 + b" = 1",
            b"a = " + b"[" * 100_000,
            b"a = " + b"9" * 5000,
            b"a = 99999999999999999999",
            b"a = " + b"{a = " * 60 + b"1" + b"}" * 60,
            b"a = 1\na = 2",
            b"\xff = 1",
        ],
    )
    def test_toml_that_no_recipe_has_is_refused(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "a.toml").write_bytes(content)
        assert "a.toml" in complaint(read_toml, tmp_path / "a.toml")

    @pytest.mark.parametrize("threads", ["4", None, 3.5, [4], True, -1, 100_000])
    def test_a_number_of_threads_that_is_none(self, tmp_path: Path, threads: Any) -> None:
        (tmp_path / "environment.json").write_text(json.dumps({"threads": threads}))
        assert "environment.json: threads = " in complaint(stored_threads, tmp_path)


class TestWeights:
    def test_a_header_of_a_terabyte_is_not_believed(self, tmp_path: Path) -> None:
        (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", 1 << 40) + b"{}")
        assert "a header of 1,099,511,627,776 bytes" in complaint(weights.read, tmp_path / "a.safetensors")

    @pytest.mark.parametrize("kind", ["F8_E4M3", "F4", "C64", "X"])
    def test_numbers_of_a_type_that_we_never_write(self, tmp_path: Path, kind: str) -> None:
        header = json.dumps({"weight": {"dtype": kind, "shape": [2, 1], "data_offsets": [0, 2]}}).encode()
        path = tmp_path / "a.safetensors"
        path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0")
        module = nn.Linear(1, 2, bias=False)
        assert "a.safetensors" in complaint(lambda: weights.load_file(module, path))

    def test_integers_do_not_become_weights_but_other_floats_do(self, tmp_path: Path) -> None:
        module = nn.Linear(1, 2, bias=False)
        save_file({"weight": torch.ones(2, 1, dtype=torch.int64)}, tmp_path / "a.safetensors")
        message = complaint(weights.load_file, module, tmp_path / "a.safetensors")
        assert 'tensor "weight" holds int64 values, the model expects float32' in message
        save_file({"weight": torch.ones(2, 1, dtype=torch.bfloat16)}, tmp_path / "a.safetensors")
        weights.load_file(module, tmp_path / "a.safetensors")
        assert module.weight.tolist() == [[1.0], [1.0]]
        assert module.weight.dtype == torch.float32

    def test_the_average_of_different_numbers_is_refused(self, tmp_path: Path) -> None:
        for name, kind in (("a", torch.float32), ("b", torch.float16)):
            save_file({"w": torch.ones(2, dtype=kind)}, tmp_path / f"{name}.safetensors")
        paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
        assert "not checkpoints of one model" in complaint(weights.average, paths)


class TestHistory:
    @pytest.fixture
    def run(self, tmp_path: Path) -> Run:
        run = Run.create(tmp_path / "run", {"seed": 1, "train": {"select_by": "loss"}})
        run.log({"kind": "valid", "step": 1, "seconds": 1.0, "loss": 2.0})
        return run

    def test_it_is_read_back(self, run: Run) -> None:
        assert History.read(run.path).lines == [{"kind": "valid", "step": 1, "seconds": 1.0, "loss": 2.0}]

    @pytest.mark.parametrize(
        "line",
        [
            *('{"kind": 3, "step": 1, "seconds": 1}', '{"kind": "valid", "step": 1.5, "seconds": 1}'),
            *('{"kind": "valid", "step": -1, "seconds": 1}', '{"kind": "valid", "step": 1, "seconds": null}'),
            *('{"kind": "valid", "step": 1, "seconds": 1, "loss": "2"}', "[]", "null", "3", "x", "[" * 10_000),
            *('{"kind": "valid", "step": 1, "seconds": NaN}', '{"kind": "valid", "step": 1, "seconds": 1e400}'),
            *('{"kind": "valid", "step": 1, "seconds": 1, "\\u001b[2J": 1}', '{"step": 1, "seconds": 1}'),
        ],
    )
    def test_a_line_with_other_values_is_named(self, run: Run, line: str) -> None:
        with run.metrics.open("a") as file:
            file.write(line + "\n")
        assert "metrics.jsonl, line 2: expected" in complaint(History.read, run.path)

    @pytest.mark.parametrize(
        "content",
        [
            'seed = "x"',
            "seed = true",
            "init = 3",
            "train = 1",
            'train.epochs = "x"',
            "train.select_by = []",
            "data = 1",
        ],
    )
    def test_a_recipe_with_other_values_is_named(self, run: Run, content: str) -> None:
        (run.path / "config.toml").write_text(content)
        assert "config.toml: " in complaint(History.read, run.path)


class TestWriting:
    def test_a_run_is_not_written_through_links_or_pipes(self, tmp_path: Path) -> None:
        run, mine = Run.create(tmp_path / "run", {}), tmp_path / "mine"
        mine.write_text("mine")
        run.metrics.symlink_to(mine)
        assert "is a link or a pipe" in complaint(Run.open, run.path)
        run.metrics.unlink()
        os.mkfifo(run.metrics)
        assert "is a link or a pipe" in complaint(Run.open, run.path)

    def test_a_link_under_a_temporary_name_is_not_followed(self, tmp_path: Path) -> None:
        mine, other = tmp_path / "mine", tmp_path / ".other.partial"
        mine.write_text("mine")
        other.symlink_to(mine)
        with pytest.raises(OSError):
            write(other, b"theirs")
        with pytest.raises(OSError):
            replace_file(tmp_path / "other", b"theirs")
        assert mine.read_text() == "mine"

    def test_removing_a_link_leaves_what_it_leads_to(self, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "link").symlink_to("mine")
        remove(tmp_path / "link")
        assert (tmp_path / "mine").is_dir()
        assert not (tmp_path / "link").is_symlink()

    def test_a_copied_run_has_no_copy_of_what_a_link_leads_to(self, tmp_path: Path) -> None:
        run, mine = Run.create(tmp_path / "run", {}), tmp_path / "mine"
        mine.write_text("secret")
        (run.path / "notes").symlink_to(mine)
        run.copy(tmp_path / "copy", {"w": torch.zeros(1)})
        assert (tmp_path / "copy" / "notes").is_symlink()

    def test_a_full_disk_is_reported_with_the_name_of_the_file(self) -> None:
        with pytest.raises(OSError) as caught:
            write(Path("/dev/full"), b"x" * 10)
        assert caught.value.filename == "/dev/full"
