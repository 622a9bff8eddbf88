"""One file per kind of attack.

Each has a docstring in one line, `SHORT` and `LONG` (how many are made by the tests and by hand), and

    def attack(number: int, folder: Path) -> str | None

which makes attack `number`, the same one each time, in an empty folder, and returns what gave way in one line, or None.
"""
