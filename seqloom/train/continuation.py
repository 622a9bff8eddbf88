"""The recipe of a run that is continued: its own, perhaps with other limits; any other change is refused.

The recipe may be given again, as in a command that is repeated after a crash. What was fitted to the data and the time
when the run began is then no change.
"""

from __future__ import annotations

import re
from pathlib import Path

from seqloom.config.complete import complete
from seqloom.config.recipes import Overrides, difference, override, read_recipe
from seqloom.errors import SeqloomError
from seqloom.storage.run import Run
from seqloom.train.planning import Planning
from seqloom.train.recipe import FROM_DATA, Recipe

MAY_CHANGE = ("train.epochs", "train.steps", "train.minutes", "train.patience", "train.device", "train.timeout", "data")
TO_TIME = ("epochs", "steps", "warmup", "validate_every")  # keys of [train] that are laid out over minutes
TO_DATA = re.compile(
    r"train\.tokens|task\.(source|target)\.size|(encoder|decoder)(\.\2)*\.(dropout|size|hidden|embedding_size)"
)


def resumed_recipe(
    run: Run, recipe: str | Path | Recipe | None, settings: Overrides, as_written: bool, trust: bool
) -> Recipe:
    """The recipe to go on with, its keys in the order of the run's."""
    origin = str(run.path / "config.toml")
    stored = run.recipe()
    before = complete(stored, origin, trust)
    after = complete(override(before, settings), origin, trust)
    changed = difference(before, after)
    if recipe is not None:
        given, origin = (recipe, "recipe") if isinstance(recipe, dict) else (read_recipe(recipe, trust), str(recipe))
        given = override(given, settings)
        planning = Planning(recipe, given, settings, as_written)
        whole = complete(given, origin, trust)
        changed = [key for key in difference(before, whole) if not is_derived(key, planning, before)]
        if not planning.fits:  # its limits may have been changed by hand
            after["train"] = whole["train"] | laid_out(before, whole, planning)
    refused = [key for key in changed if not without_task(key).startswith(MAY_CHANGE)]
    if refused:
        raise SeqloomError(
            f"{run.path} was trained with another recipe ({', '.join(refused[:4])} changed): "
            "resume with the old values, or start a new training in another --out"
        )
    return in_order_of(stored, after)


def is_derived(key: str, planning: Planning, before: Recipe) -> bool:
    """Whether a key may differ from the recipe that was given because it was set from the data or the time."""
    if key == "init" or without_task(key) in ["decoder", *(f"decoder.{name}" for name in FROM_DATA)]:
        return True
    if key in planning.by_hand:
        return False
    to_time = key in [f"train.{name}" for name in TO_TIME] and (planning.fits or "minutes" in before["train"])
    return to_time or (planning.fits and TO_DATA.fullmatch(key) is not None)


def without_task(key: str) -> str:
    """The key of one of several tasks, as that of a recipe with one: tasks.letters.data.train is data.train."""
    return re.sub(r"^tasks\.[^.]+\.(?=decoder|data)", "", key)


def laid_out(before: Recipe, given: Recipe, planning: Planning) -> Recipe:
    """The keys of [train] that the same minutes were turned into when the run began."""
    ours, theirs = before["train"], given["train"]
    if ours.get("minutes") is None or ours["minutes"] != theirs.get("minutes"):
        return {}
    kept = {name: ours[name] for name in TO_TIME if name in ours and f"train.{name}" not in planning.by_hand}
    return kept | {"steps": min(ours["steps"], theirs.get("steps", ours["steps"]))} if "steps" in ours else kept


def in_order_of(old: Recipe, new: Recipe) -> Recipe:
    """The new recipe with its keys in the order of the old one; keys of its own come last."""
    names = dict.fromkeys([*(name for name in old if name in new), *new])
    return {
        name: in_order_of(old[name], new[name]) if isinstance(old.get(name), dict) and isinstance(new[name], dict)
        else new[name]
        for name in names
    }  # fmt: skip
