"""Ask a person about pairs of items: which to ask, what the answers teach, and a file in which they are safe.

Nothing here knows of a terminal: a `Session` is what a command, or a page, shows and feeds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers_file import AnswersFile
    from .items import Items
    from .session import Answer, Changed, Event, Progress, Session

__all__ = ["Answer", "AnswersFile", "Changed", "Event", "Items", "Progress", "Session"]


def __getattr__(name: str) -> Any:
    """Imported when it is used: tables of items are read without what learns, which takes a second to import."""
    if name in __all__:
        room = {"AnswersFile": "answers_file", "Items": "items"}.get(name, "session")
        return getattr(import_module(f"{__name__}.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
