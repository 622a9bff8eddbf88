"""Two commands that resume one run at the same time: one goes on, the other says who does, and nothing is spoiled."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.faults.command import Finished
from tests.faults.training import Training, reference, share

SHORT, LONG = 1, 10


def attack(number: int, folder: Path) -> str | None:
    training = Training(folder)
    training.train(kind="kill", at=1 + int((0.5 + share(number) / 2) * reference().calls))
    ended: list[Finished] = []
    threads = [threading.Thread(target=lambda: ended.append(training.train())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problem := next((each.problem() for each in ended if each.problem()), None):
        return problem
    for each in ended:
        last = each.err.strip().splitlines()[-1]
        if each.code == 2 and not ("is being written by process" in last and " on " in last):
            return f"refused with other words: {last}"
    if 0 not in [each.code for each in ended]:
        return "neither went on"
    return training.difference() or training.finish()
