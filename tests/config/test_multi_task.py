"""Recipes of several tasks, and what was given for each."""

import pytest

from seqloom.config.check import check_recipe
from seqloom.config.complete import complete
from seqloom.config.multi_task import choose_task, data_by_task, tasks_of
from seqloom.config.recipes import override
from seqloom.errors import SeqloomError

CHARACTERS = {"type": "text", "units": "char"}
PART = {"type": "transformer", "size": 8, "layers": 1, "heads": 2, "hidden": 8}


def recipe(*tasks, **changes):
    tables = [{"source": CHARACTERS, "target": CHARACTERS, **task} for task in tasks or ({"name": "a"}, {"name": "b"})]
    return {"task": tables, "encoder": PART, "decoder": PART, **changes}


def test_a_completed_recipe_completes_to_itself():
    own = {"name": "b", "share": 2, "metrics": ["exact"], "decoder": {"length_ratio": 3.0}}
    full = complete(recipe({"name": "a"}, own), "r")
    assert complete(full, "r") == full
    assert full["tasks"]["b"]["share"] == 2
    check_recipe(full)


def test_each_task_has_a_plain_recipe_with_its_own_keys():
    own = {"name": "b", "metrics": ["exact"], "decoder": {"length_ratio": 3.0}, "search": {"beam_size": 2}}
    made = tasks_of(complete(recipe({"name": "a"}, own, train={"select_by": "b/exact"}), "r"))
    assert made["a"]["decoder"]["length_ratio"] == 2.0
    assert made["b"]["decoder"]["length_ratio"] == 3.0
    assert made["b"]["decoder"]["size"] == 8
    assert made["b"]["search"] == {**made["a"]["search"], "beam_size": 2}
    assert [each["train"]["select_by"] for each in made.values()] == ["", "exact"]
    assert made["b"]["task"]["metrics"] == ["exact"]
    assert "share" not in made["b"]["task"]


def test_another_type_of_decoder_starts_from_its_own_defaults():
    label = {"name": "b", "type": "answer", "decoder": {"type": "label"}}
    made = tasks_of(complete(recipe({"name": "a"}, label), "r"))
    assert made["b"]["decoder"]["type"] == "label"
    assert "heads" not in made["b"]["decoder"]
    check_recipe(complete(recipe({"name": "a"}, label), "r"))


def test_keys_of_one_task_are_set_by_its_name():
    changed = override(recipe(), ["tasks.b.share=3", "tasks.a.source.units=word"])
    assert changed["tasks"]["b"]["share"] == 3
    assert changed["tasks"]["a"]["source"]["units"] == "word"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (recipe({"name": "a"}, {"name": "a"}), 'two tasks are called "a"; give each a name of its own'),
        (recipe({"name": "a"}, {}), "task 2: expected a table [[task]] with a name"),
        (recipe({"name": "../a"}), 'a task is called "../a"; expected letters, digits'),
        (recipe({"name": "a", "share": 0}), "tasks.a.share = 0: expected a number above 0"),
        (recipe({"name": "a", "share": "x"}), 'tasks.a.share = "x": expected a number above 0'),
        (recipe({"name": "a", "shares": 2}), "tasks.a: task.shares = 2: unknown key"),
        (recipe(train={"select_by": "a/exactt"}), 'train.select_by = "a/exactt": not measured'),
        ({**recipe(), "tasks": {"c": {}}}, "it has tables [[task]] and [tasks.NAME]; write all in one way"),
        ({"task": [], "encoder": PART, "decoder": PART}, "expected a table for each task"),
    ],
)
def test_a_mistake_is_one_line(given, message):
    with pytest.raises(SeqloomError) as found:
        complete(given, "r")
    assert message in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"name": "b", "encoder": {"size": 16}, "decoder": {"size": 16}}, "tasks a and b cannot share a body"),
        ({"name": "b", "decoder": {"type": "tags"}}, "tasks.b: decoder.type"),
    ],
)
def test_tasks_that_do_not_fit_each_other_are_one_line(task, message):
    with pytest.raises(SeqloomError, match=message):
        check_recipe(complete(recipe({"name": "a"}, task), "r"))


def test_data_is_given_by_task():
    assert data_by_task([""], ["x=y"]) == {"": ["x=y"]}  # one task takes files of any name
    assert data_by_task(["a", "b"], None) == {"a": None, "b": None}
    assert data_by_task(["a", "b"], {"b": "f"}) == {"a": None, "b": "f"}
    assert data_by_task(["a", "b"], ["a=s=1", "b=f", "a=t"]) == {"a": ["s=1", "t"], "b": "f"}
    for given, message in (
        (["f"], '--data "f": this recipe has several tasks; say whose file it is, --data a=f'),
        (["c=f"], "--data c=...: the recipe has no task of this name"),
        ({"c": "f"}, "the recipe has no task of this name"),
    ):
        with pytest.raises(SeqloomError) as found:
            data_by_task(["a", "b"], given)
        assert message in str(found.value)


def test_a_task_is_named_where_there_are_several():
    assert choose_task(["a", "b"], "b", "run") == "b"
    assert choose_task([""], "", "run") == ""
    for names, name, message in (
        (["a", "b"], "", "run has several tasks (a, b): name one, --task a"),
        (["a", "bee"], "be", 'run has no task "be" (did you mean "bee"?)'),
        ([""], "a", 'run has one task, which has no name: leave out the task "a"'),
    ):
        with pytest.raises(SeqloomError) as found:
            choose_task(names, name, "run")
        assert message in str(found.value)
