"""The studies of stories: bAbI as it is read, the run that is chosen, and the picture."""

import io
import tarfile
from pathlib import Path

import pytest

from seqloom.studies.gates import Gate
from seqloom.studies.measures.stories import babi_errors
from seqloom.studies.page import estimates, paired_differences
from seqloom.studies.pictures import errors_by_task
from seqloom.studies.sources.stories import babi, cloze
from seqloom.studies.study import Study, Variant

TEXT = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Mary got the milk there.
5 What is Mary carrying?\tmilk,football\t4
1 Sandra journeyed to the garden.
2 Where is Sandra? \tgarden\t1
"""


@pytest.fixture(autouse=True)
def _archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data" / "babi-tasks").mkdir(parents=True)
    with tarfile.open(tmp_path / "data" / "babi-tasks" / "en.tar.xz", "w:xz") as archive:
        for name in ("qa1_facts_train", "qa1_facts_test", "qa11_facts_train"):
            member = tarfile.TarInfo(f"en/{name}.txt")
            member.size = len(TEXT)
            archive.addfile(member, io.BytesIO(TEXT.encode()))


def test_a_question_comes_after_all_of_its_story_so_far(tmp_path: Path) -> None:
    data = babi(1)(tmp_path)
    assert Path(data.train[0]).read_text().splitlines() == [
        "Mary moved to the bathroom. John went to the hallway. Where is Mary?\tbathroom",
        "Mary moved to the bathroom. John went to the hallway. Mary got the milk there. What is Mary carrying?"
        "\tmilk,football",
        "Sandra journeyed to the garden. Where is Sandra?\tgarden",
    ]


def test_entities_are_renamed_alike_within_a_story_and_anew_in_each(tmp_path: Path) -> None:
    data = cloze(1, copies=20)(tmp_path)
    lines = Path(data.train[0]).read_text().splitlines()
    assert len(lines) == 2 * 20  # one answer is not in its story
    first = [line for line in lines if "hallway" not in line and line.count(".") == 2]
    for line in first:
        source, target = line.split("\t")
        mary, moved, to, the, place, *_, asked = source.replace(".", "").replace("?", "").split()
        assert (moved, to, the) == ("moved", "to", "the")
        assert (mary, place) == (asked, target)
    assert len(set(first)) > 10


def test_of_two_runs_that_with_the_lower_loss_in_training_counts(tmp_path: Path) -> None:
    gate = Gate("error", lambda measured: measured["task 1"]["error"], "<=", 100)
    study = Study(
        "",
        "babi",
        babi(1),
        (gate,),
        variants={"task 1": Variant(), "without ages": Variant(("encoder.ages=0",))},
        measure=babi_errors,
        seeds=(1, 2),
        choose="train_loss",
    )
    record = study.reproduce("few", tmp_path, ["train.epochs=1", "train.device=cpu", "encoder.size=4"])
    rows = [row for row in record["rows"] if row["variant"] == "task 1"]
    assert [row["seed"] for row in rows] == [1, 2]
    best = min(rows, key=lambda row: row["measured"]["train_loss"])
    assert [row["chosen"] for row in rows] == [row is best for row in rows]
    assert best["measured"]["published"] == 0.1
    assert record["gates"][0]["value"] == best["measured"]["error"]
    assert estimates(record)["task 1"]["train_loss"].mean == best["measured"]["train_loss"]
    assert "published" not in estimates(record)["without ages"]
    assert paired_differences(record) == []
    (panel,) = errors_by_task(record).axes
    assert [bar.get_height() for bar in panel.patches] == [best["measured"]["error"], 0.1]
