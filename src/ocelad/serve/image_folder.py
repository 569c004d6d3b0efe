"""The images of a folder, none of which is outside of it: not by its name, and not through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
"""What is served, and as what. SVG is not among them: it may have scripts."""


def find_images(folder: str | os.PathLike[str], warnings: list[str] | None = None) -> list[str]:
    """The images below a folder, as sorted paths relative to it, with slashes.

    What begins with a dot is left out. So is, with a word in ``warnings``, what is not a file of this folder.
    """
    root, found = os.path.realpath(folder), []
    said = [] if warnings is None else warnings
    for here, folders, files in os.walk(root, onerror=_refuse):
        for name in [name for name in folders if os.path.islink(os.path.join(here, name))]:
            said.append(f"{os.path.join(here, name)}: links to folders are not followed")
        above = "" if here == root else os.path.relpath(here, root).replace(os.sep, "/") + "/"
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.startswith(".") or os.path.splitext(name)[1].lower() not in IMAGES:
                continue
            path = f"{above}{name}"
            try:
                if not stat.S_ISREG(os.lstat(os.path.join(here, name)).st_mode):  # perhaps a link to one
                    inside(root, path)
            except (ValueError, OSError) as error:
                said.append(f"{os.path.join(here, name)}: left out: {_reason(error)}")
            else:
                found.append(path)
    return sorted(found)


def _refuse(error: OSError) -> None:
    raise error  # os.walk would leave out a folder that it may not read, without a word


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def inside(folder: str | os.PathLike[str], name: str) -> Path:
    """Where an image of the folder really is; an error if that is elsewhere, or no image.

    >>> inside("photos", "../secret.png")
    Traceback (most recent call last):
    ...
    ValueError: it is not inside of the folder
    """
    root = os.path.realpath(folder)
    if not is_relative(name):
        raise ValueError("it is not inside of the folder")
    path = Path(os.path.realpath(os.path.join(root, name), strict=True))
    if not path.is_relative_to(root):
        raise ValueError("it is not inside of the folder")
    if path.suffix.lower() not in IMAGES:
        raise ValueError(f"it is none of {', '.join(IMAGES)}")
    if not stat.S_ISREG(os.stat(path, follow_symlinks=False).st_mode):
        raise ValueError("it is not a regular file")
    return path


def is_relative(name: str) -> bool:
    """Whether a name leads down from a folder, if no link leads elsewhere."""
    parts = name.split("/")
    return (
        bool(name)
        and "\0" not in name
        and "\\" not in name
        and ":" not in parts[0][1:2]
        and not ({"", ".", ".."} & set(parts))
    )
