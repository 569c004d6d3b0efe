"""Read the items of a service from their source, and keep them in its folder: a process that ends with that."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from .item_sources import read_items
from .items import StoredItems, check_continues


def main(folder: str, given: str) -> None:
    """Read, check that earlier answers are still about the same items, and write."""
    try:
        left_out: list[str] = []
        new = read_items(**json.loads(given), warnings=left_out)
        for words in left_out:
            print(words, file=sys.stderr)
        if StoredItems.exists(Path(folder)):
            check_continues(StoredItems.read(Path(folder)), new)
        new.write(Path(folder))
    except (ValueError, OSError, ImportError, EOFError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
