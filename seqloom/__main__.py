"""python -m seqloom, which is also how torchrun starts us."""

from seqloom.awake import main

main()
