"""Contract checks for parts of anybody's, in the package or outside it.

seqloom.testing.check_part(MyAttention)
"""

from seqloom.testing.claims import ContractError
from seqloom.testing.parts import Check, Report, Result, check_part, checks_of, examine

__all__ = ["Check", "ContractError", "Report", "Result", "check_part", "checks_of", "examine"]
