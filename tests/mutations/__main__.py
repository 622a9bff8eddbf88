"""python -m tests.mutations [ROOM ...]: make small mistakes in the code and see whether a test notices.

Writes results/mutations.json and goes on where it was. The same seed draws the same mistakes, also when other lines
change; a larger --count draws more. --survivors tests again what nobody noticed. `named` makes the mistakes that once
went unnoticed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.mutations.named import MISTAKES
from tests.mutations.operators import Mutant, mutants
from tests.mutations.reasons import REASONS
from tests.mutations.rooms import ROOMS, likely_tests, sources
from tests.mutations.runner import TIME, Tree

ROOT, RECORD, GATE, SEED = Path.cwd(), Path("results/mutations.json"), 0.9, 1
Save = Callable[[str, list[dict[str, Any]]], None]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"named, {', '.join(ROOMS)}; without any, all")
    parser.add_argument("--count", type=int, default=20, help="mistakes per room")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop when they are over")
    parser.add_argument("--survivors", action="store_true", help="test again what nobody noticed")
    parser.add_argument("--list", action="store_true", help="say which mistakes are drawn, and make none")
    options = parser.parse_args()
    if unknown := {*options.rooms} - {"named", *ROOMS}:
        parser.error(f"no room is called {', '.join(sorted(unknown))}; there are named, {', '.join(ROOMS)}")
    end = time.monotonic() + 60 * options.minutes
    found: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}

    def save(room: str, done: list[dict[str, Any]]) -> None:
        found[room] = summary(done)
        kept = {each: found[each] for each in ("named", *ROOMS) if each in found}
        RECORD.write_text(json.dumps(kept, indent=1) + "\n")

    with tempfile.TemporaryDirectory(prefix="seqloom-") as folder:
        tree = Tree(ROOT, Path(folder))
        for room in options.rooms or ["named", *ROOMS]:
            if options.list:
                print(
                    *(f"{each.where}: {each.change}    in {each.text}" for each in drawn(room, options.count)), sep="\n"
                )
                continue
            (make_named if room == "named" else make)(tree, room, options, found.get(room, {}), end, save)
            if results := found.get(room):
                print(
                    f"{room}: {results['made']} made, {results['killed']} noticed, {results['score']:.0%}", flush=True
                )
    return 0 if all(each["score"] >= GATE for each in found.values()) else 1


def drawn(room: str, count: int) -> list[Mutant]:
    """The first of all mutants of a room in a random order, in which no line's place depends on the other lines."""
    every = [each for path in sources(room, ROOT) for each in mutants((ROOT / path).read_text(), path)]
    return sorted(every, key=place)[:count]


def place(mutant: Mutant) -> bytes:
    key = f"{SEED} {mutant.path} {mutant.text} {mutant.column} {mutant.change}"
    return hashlib.sha256(key.encode()).digest()


def make(tree: Tree, room: str, options: argparse.Namespace, before: dict[str, Any], end: float, save: Save) -> None:
    """Make the mistakes of a room; those of an earlier run are not made again."""
    known = {(each["where"], each["change"]): each["noticed_by"] for each in before.get("mutants", [])}
    chosen = drawn(room, max(options.count, len(known)))
    noticed = {each: known[each.where, each.change] for each in chosen if (each.where, each.change) in known}

    def save_all() -> None:
        made = [each for each in chosen if each in noticed]
        save(room, [entry(each.where, each.text, each.operator, each.change, noticed[each]) for each in made])

    for mutant in chosen:
        if mutant in noticed and (
            noticed[mutant] or not options.survivors or reason_key(mutant.where, mutant.text, mutant.change) in REASONS
        ):
            continue
        if time.monotonic() > end:
            break
        noticed[mutant] = try_out(tree, room, mutant)
        print(f"{mutant.where}: {mutant.change}: {noticed[mutant] or 'NOT NOTICED'}", flush=True)
        save_all()
    save_all()  # reasons may be new
    check_tests(tree, room, [*noticed.values()])


def entry(where: str, line: str, operator: str, change: str, noticed_by: str) -> dict[str, Any]:
    return {"where": where, "line": line, "operator": operator, "change": change, "noticed_by": noticed_by}


def check_tests(tree: Tree, room: str, noticed: Sequence[str]) -> None:
    """A test that notices a mistake must pass where there is none."""
    tests = sorted({test.removesuffix(TIME) for test in noticed if "::" in test})
    if failed := tests and tree.test(tests):
        sys.exit(f"{room}: a test fails without any mistake: {failed}")


def try_out(tree: Tree, room: str, mutant: Mutant) -> str:
    """Which test notices a mutant; empty: none."""
    source = (ROOT / mutant.path).read_text()
    with tree.changed(mutant.path, mutant.apply(source)):
        for tests in likely_tests(room, mutant.path, tree.path):
            if noticed := tree.test(tests):
                return noticed
    return ""


def reason_key(where: str, line: str, change: str) -> tuple[str, str, int, str]:
    path, _, column = where.split(":")
    return path, line, int(column), change


def summary(done: list[dict[str, Any]]) -> dict[str, Any]:
    """Mutants that cannot be noticed do not count in the score."""
    killed = sum(bool(each["noticed_by"]) for each in done)
    survivors = []
    for each in done:
        if not each["noticed_by"]:
            reason = REASONS.get(reason_key(each["where"], each["line"], each["change"]), "")
            survivors.append({**{key: each[key] for key in ("where", "line", "change")}, "reason": reason})
    excused = sum(bool(each["reason"]) for each in survivors)
    score = round(killed / max(1, len(done) - excused), 3)
    counts = {"made": len(done), "killed": killed, "equivalent": excused, "score": score}
    return {**counts, "survivors": survivors, "mutants": done}


def make_named(
    tree: Tree, room: str, options: argparse.Namespace, before: dict[str, Any], end: float, save: Save
) -> None:
    done: list[dict[str, Any]] = []
    for mistake in MISTAKES:
        if time.monotonic() > end:
            break
        source = (ROOT / mistake.path).read_text()
        assert source.count(mistake.before) == 1, f"{mistake.path} no longer has {mistake.before!r} once"
        with tree.changed(mistake.path, source.replace(mistake.before, mistake.after)):
            noticed = tree.test(mistake.tests)
        print(f"{mistake.about}: {noticed or 'NOT NOTICED'}", flush=True)
        begin = source.index(mistake.before)
        line, column = source[:begin].count("\n") + 1, begin - source.rfind("\n", 0, begin)
        text = source.splitlines()[line - 1].strip()
        change = f"{' '.join(mistake.before.split())} -> {' '.join(mistake.after.split())}"
        done.append(entry(f"{mistake.path}:{line}:{column}", text, mistake.about, change, noticed))
        save(room, done)
    check_tests(tree, room, [each["noticed_by"] for each in done])


if __name__ == "__main__":
    sys.exit(main())
