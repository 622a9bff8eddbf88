"""python -m seqloom, which is also how torchrun starts us."""

from seqloom.cli import main

main()
