"""The figures of the page on trust are those of the files that the attacks and the mistakes wrote."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs/guide/trust.md").read_text(encoding="utf-8").split())
FAULTS = json.loads((ROOT / "results/faults.json").read_text())
MUTATIONS = json.loads((ROOT / "results/mutations.json").read_text())
DRAWN = {room: each for room, each in MUTATIONS.items() if room != "named"}


def figures(sentence: str) -> list[int]:
    """The numbers of the one place where the page has this sentence, in which # stands for a number."""
    pattern = re.escape(sentence).replace(r"\#", r"([\d,]+)")
    (found,) = re.findall(pattern, PAGE)
    return [int(each.replace(",", "")) for each in ([found] if isinstance(found, str) else found)]


def test_the_page_counts_the_attacks_that_were_made() -> None:
    every = FAULTS.values()
    made, gave_way = figures("# attacks were made, and # gave way.")
    assert (made, gave_way) == (sum(each["made"] for each in every), sum(len(each["gave_way"]) for each in every))


def test_every_attack_is_on_the_page() -> None:
    assert all(f"`{name}`" in PAGE for name in FAULTS)


def test_the_page_counts_the_mistakes_that_were_drawn() -> None:
    drawn = "In # rooms # mistakes were drawn: tests notice #, # change nothing that was promised, and # are left."
    made, killed, equivalent = (sum(each[key] for each in DRAWN.values()) for key in ("made", "killed", "equivalent"))
    assert figures(drawn) == [len(DRAWN), made, killed, equivalent, made - killed - equivalent]
