"""How functions are compiled: by numba, and cached on disk under a hash of the sources they are made from.

numba's own cache looks at the file of a function, and not at those of the functions and constants that it uses:
after an edit it could go on serving old machine code. So each room has a cache folder that is named after a hash
of all that its kernels can be made from (see `sources`); after an edit it is another folder. Code in a folder that
cannot be written to, say that of an image, is read, and what is compiled besides is kept elsewhere.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numba.core.caching

_config: Any = numba.config
if _config.DISABLE_JIT:
    raise ImportError("NUMBA_DISABLE_JIT is set, and ocelad's kernels work only if they are compiled: unset it")

njit: Any = numba.njit  # its types say less than ours, and change from release to release
_caching: Any = numba.core.caching

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent


def entry(function: F) -> F:
    """Compiled on first use, for Python to call; it releases the GIL.

    IEEE arithmetic as written, division by zero included.
    """
    return _compile(function, fastmath=set())


def kernel(function: F) -> F:
    """The same, for other kernels to call. A call from Python raises."""
    return _for_kernels(_compile(function, fastmath=set(), no_cpython_wrapper=True))


def sums(function: F) -> F:
    """A kernel of plain sums of products, which may be added up in any order."""
    return _for_kernels(_compile(function, fastmath={"reassoc", "contract"}, no_cpython_wrapper=True))


def inlined(function: F) -> F:
    """A kernel with one caller or two, copied there before anything is compiled.

    The compiler looks again at whatever a function calls, and at what that calls: deep calls take long to compile.
    """
    return _for_kernels(_compile(function, fastmath=set(), no_cpython_wrapper=True, inline="always"))


def _compile(function: F, **options: object) -> F:
    # what Python or C would need to call a kernel takes a quarter of the time that compiling takes
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    room = Path(function.__code__.co_filename).parent
    with _numba_keeps_code_in(cache_folder(room)) as folder:
        compiled = njit(cache=folder is not None, **options)(function)
    shipped = read_only_folder(room)
    if shipped is not None:
        with _numba_keeps_code_in(shipped):
            compiled._cache = _Shipped(function, compiled._cache)
    return compiled


def _for_kernels(compiled: F) -> F:
    """Without what Python needs to call it, a call would end the process: let it raise instead."""

    def refuse(self: Any, *_: object, **__: object) -> None:
        raise TypeError(f"{self.py_func.__name__} is a kernel for other kernels: Python cannot call it")

    kind = type(compiled)
    compiled.__class__ = type("InnerKernel", (kind,), {"__call__": refuse})
    return compiled


def sources(room: Path) -> list[Path]:
    """The files that the kernels of a room may be made from: its own, and those of the rooms around and below."""
    rooms = {room, PACKAGE, PACKAGE / "geometry"}
    if room.parent.is_relative_to(PACKAGE):
        rooms.add(room.parent)
    return sorted({path for each in rooms for path in each.glob("*.py")})


@cache
def cache_folder(room: Path) -> Path | None:
    """Where the compiled code of a room is kept; None if there is no place to write to."""
    chosen, candidates = _candidates(room)
    for folder in candidates:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if not chosen:
                for old in folder.parent.glob(f"compiled-{room.name}-*"):  # code of sources that are no more
                    if old != folder:
                        shutil.rmtree(old, ignore_errors=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
    return None


@cache
def read_only_folder(room: Path) -> Path | None:
    """Where there is compiled code of a room that was put there by somebody else, as while an image is built."""
    first = _candidates(room)[1][0]
    with suppress(OSError):
        if first != cache_folder(room) and any(first.iterdir()):
            return first
    return None


def _candidates(room: Path) -> tuple[bool, list[Path]]:
    """Whether the user has chosen where to keep compiled code, and the folders to try, the best first."""
    digest = hashlib.sha256()
    for path in sources(room):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    name = f"compiled-{room.name}-{digest.hexdigest()[:16]}"
    chosen = _config.CACHE_DIR or os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return True, [Path(chosen) / name]
    home = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return False, [room / "__pycache__" / name, Path(home) / "ocelad" / name]


class _ReadOnlyLocator(_caching.UserProvidedCacheLocator):  # type: ignore[misc]
    """numba passes over a folder that it cannot write to, also to read."""

    def ensure_cache_path(self) -> None:
        pass


class _ReadOnlyImplementation(_caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_ReadOnlyLocator,)


class _Shipped(_caching.FunctionCache):  # type: ignore[misc]
    """Compiled code in a read-only folder; what is not there goes to another cache."""

    _impl_class = _ReadOnlyImplementation

    def __init__(self, function: Callable[..., Any], other: Any) -> None:
        super().__init__(function)
        self.other = other

    def load_overload(self, signature: Any, context: Any) -> Any:
        found = None
        with suppress(OSError):  # it may not even be readable
            found = super().load_overload(signature, context)
        return self.other.load_overload(signature, context) if found is None else found

    def save_overload(self, signature: Any, result: Any) -> None:
        self.other.save_overload(signature, result)


@contextmanager
def _numba_keeps_code_in(folder: Path | None) -> Iterator[Path | None]:
    """numba asks where to keep a function's code when the function is decorated."""
    before = _config.CACHE_DIR
    _config.CACHE_DIR = "" if folder is None else str(folder)
    try:
        yield folder
    finally:
        _config.CACHE_DIR = before


def announce(room: Path, what: str) -> Callable[[], None]:
    """Print that something is about to be compiled, if it has not been before on this machine.

    Returns a function to call when that is done. Nothing is printed where nobody would read it.
    """
    folders = [folder for folder in (cache_folder(room), read_only_folder(room)) if folder is not None]
    markers = [folder / f"{what}.ready" for folder in folders]
    if any(marker.exists() for marker in markers):
        return lambda: None
    if sys.stderr.isatty() or "ipykernel" in sys.modules:
        print("ocelad: compiling, once on this machine; it takes some seconds ...", file=sys.stderr, flush=True)

    def ready() -> None:
        for marker in markers[:1]:
            with suppress(OSError):
                marker.touch()

    return ready


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """For the time of a compilation, which garbage collection makes a twelfth longer."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
