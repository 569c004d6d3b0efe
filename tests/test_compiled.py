"""What is kept on disk is the machine code of today's sources, however they are edited."""

import ast
import os
import shutil
import subprocess
import sys

import pytest

from ocelad import compiled

ROOMS = [compiled.PACKAGE / name for name in ("engine/kernels", "evaluate", "baselines", "baselines/batch")]


def kernel_modules(room):
    """The files in which something is compiled."""
    return [path for path in sorted(room.glob("*.py")) if "compiled import" in path.read_text()]


def imported(path):
    """The files of this package that a file imports, what it needs for its types left out."""
    parts = path.relative_to(compiled.PACKAGE).parts
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = compiled.PACKAGE.joinpath(*parts[: len(parts) - node.level])
            named = [*(node.module.split(".") if node.module else [])]
            for alias in node.names:
                for candidate in (folder.joinpath(*named, alias.name), folder.joinpath(*named)):
                    file = candidate.with_suffix(".py")
                    if file.exists() or (candidate / "__init__.py").exists():
                        yield file if file.exists() else candidate / "__init__.py"
                        break
                else:
                    raise AssertionError(f"{path} imports {ast.unparse(node)}")


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_all_that_kernels_are_made_from_is_looked_at(room):
    """Also what the files that they import import."""
    known, waiting, seen = set(compiled.sources(room)), kernel_modules(room), set()
    assert waiting
    while waiting:
        path = waiting.pop()
        if path not in seen and path.name != "__init__.py":
            seen.add(path)
            assert path in known, path
            waiting += imported(path)
    assert len(seen) > 2


def copy_of_kernels(folder):
    shutil.copytree(ROOMS[0], folder / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "kernels"


def edit(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_after_an_edit_it_is_another_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled._config, "CACHE_DIR", "")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    one, other, edited = (copy_of_kernels(tmp_path / name) for name in ("one", "other", "edited"))
    edit(edited / "run.py", "CHECK_EVERY = 1024", "CHECK_EVERY = 1025")
    folders = [compiled.cache_folder(room) for room in (one, other, edited)]
    assert folders[0].parent == one / "__pycache__"
    assert folders[0].name == folders[1].name != folders[2].name


def test_code_of_sources_that_are_no_more_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled._config, "CACHE_DIR", "")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    room = copy_of_kernels(tmp_path)
    folder = compiled.cache_folder(room)
    (folder / "code").touch()
    edit(room / "layout.py", "RECENT_CAPACITY = 64", "RECENT_CAPACITY = 65")
    again = compiled.cache_folder.__wrapped__(room)
    assert again != folder
    assert again.is_dir()
    assert not folder.exists()


def test_a_folder_that_was_chosen_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled._config, "CACHE_DIR", str(tmp_path / "chosen"))
    (tmp_path / "chosen" / "compiled-of-others").mkdir(parents=True)
    folder = compiled.cache_folder(copy_of_kernels(tmp_path))
    assert folder.parent == tmp_path / "chosen"
    assert len(list(folder.parent.iterdir())) == 2  # it may be shared: nothing is removed


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(compiled._config, "CACHE_DIR", str(tmp_path / "file" / "folder"))
    assert compiled.cache_folder(copy_of_kernels(tmp_path)) is None


def test_only_files_of_the_package_are_looked_at(tmp_path, monkeypatch):
    (tmp_path / "package").mkdir()
    for path in (tmp_path / "neighbour.py", tmp_path / "package" / "own.py"):
        path.touch()
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path / "package")
    assert compiled.sources(tmp_path / "package") == [tmp_path / "package" / "own.py"]


def test_rooms_that_share_a_folder_leave_each_others_code(tmp_path, monkeypatch):
    """The user's cache folder, where that of the package cannot be written to."""
    monkeypatch.setattr(compiled._config, "CACHE_DIR", "")
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    rooms = (
        copy_of_kernels(tmp_path),
        shutil.copytree(ROOMS[1], tmp_path / "evaluate", ignore=lambda *_: ["__pycache__"]),
    )
    for room in rooms:
        (room / "__pycache__").touch()  # a file: nothing can be kept there
    one, other = (compiled.cache_folder(room) for room in rooms)
    assert one.parent == other.parent == tmp_path / "home" / "ocelad"
    edit(rooms[0] / "layout.py", "RECENT_CAPACITY = 64", "RECENT_CAPACITY = 65")
    again = compiled.cache_folder.__wrapped__(rooms[0])
    assert sorted(one.parent.iterdir()) == sorted([again, other])


USE = """
import sys, tempfile
from pathlib import Path

refused, real = sys.argv[1], tempfile.TemporaryFile

def temporary_file(*given, dir=None, **named):
    if str(dir).startswith(refused):
        raise PermissionError(dir)
    return real(*given, dir=dir, **named)

tempfile.TemporaryFile = temporary_file  # both numba and ocelad try that to see if a folder is writable
import numpy as np
from ocelad import compiled
from ocelad.evaluate import knn, knn_error

room = Path(knn.__file__).parent
compiled.announce(room, "columns")()
assert knn_error(np.array([[1.0], [4.0], [5.0]]), np.array([1, 0, 1]), 1) == 1.0
print(compiled.cache_folder(room) is None, sum(knn.errors.stats.cache_misses.values()))
"""


def test_code_in_a_read_only_folder_is_read(tmp_path):
    """As in a container, whose image has been warmed up by another user."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "chosen")}

    def use(refused):
        done = subprocess.run(
            [sys.executable, "-c", USE, str(refused)], capture_output=True, text=True, check=True, env=environment
        )
        return done.stdout.split()

    def files():
        return {path: path.stat().st_mtime_ns for path in (tmp_path / "chosen").rglob("*")}

    assert use(tmp_path / "none") == ["False", "1"]
    before = files()
    assert any(path.suffix == ".nbc" for path in before)
    assert use(tmp_path / "chosen") == ["True", "0"]
    assert files() == before
