"""``python -m ocelad.cli``."""

from . import main

main()
