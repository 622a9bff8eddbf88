"""python -m seqloom, which is also how torchrun starts us."""

from seqloom.cli.main import main

main()
