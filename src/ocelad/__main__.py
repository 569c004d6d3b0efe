"""``python -m ocelad``."""

from .cli import main

main()
