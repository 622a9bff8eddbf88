"""python -m tests.faults [NAME ...]: every attack in its long form; writes results/faults.json.

--short makes as few as the tests do. --only N makes attack N of one kind alone, to see it fail.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.faults.frame import NAMES, about, make, rounds

RECORD = Path("results/faults.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    if unknown := {*options.names} - {*NAMES}:
        parser.error(f"no attack is called {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    found = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for name in options.names or NAMES:
        numbers = [options.only] if options.only is not None else range(rounds(name, options.short))
        result = make(name, numbers, lambda line: print(line, flush=True))
        print(f"{name}: {result['made']} made, {len(result['gave_way'])} gave way, {result['seconds']} s")
        if options.only is None and not options.short:
            found[name] = {"about": about(name), **result}
            RECORD.write_text(json.dumps({each: found[each] for each in NAMES if each in found}, indent=2) + "\n")
        if options.only is not None and result["gave_way"]:
            return 1
    return 1 if any(each["gave_way"] for each in found.values()) else 0


sys.exit(main())
