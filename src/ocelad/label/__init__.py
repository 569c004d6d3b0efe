"""Ask a person about pairs of items: which to ask, what the answers teach, and a file in which they are safe.

Nothing here knows of a terminal: a `Session` is what a command, or a page, shows and feeds.
"""

from .answers_file import AnswersFile
from .items import Items
from .session import Answer, Changed, Event, Progress, Session

__all__ = ["Answer", "AnswersFile", "Changed", "Event", "Items", "Progress", "Session"]
