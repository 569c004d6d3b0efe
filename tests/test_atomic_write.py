"""A file is there as a whole or not at all."""

import os

import pytest

from ocelad.files import atomic_write, remove_unfinished


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("stop", [OSError, KeyboardInterrupt])
def test_what_fails_half_way_leaves_the_old_file_and_nothing_else(text, stop, tmp_path):
    path, half = tmp_path / "file", "new" if text else b"new"
    path.write_text("old")

    def write(then):
        with atomic_write(path, text=text) as file:
            file.write(half)
            file.flush()
            assert path.read_text() == "old"
            then()

    def fail():
        raise stop

    with pytest.raises(stop):
        write(fail)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]
    write(lambda: None)
    assert path.read_text() == "new"


@pytest.mark.parametrize("text", [False, True])
def test_a_folder_that_is_missing_is_told_by_the_files_own_name(text, tmp_path):
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "none" / "file", text=text):
        pass
    assert caught.value.filename == os.path.realpath(tmp_path / "none" / "file")
    assert ".tmp" not in str(caught.value)


def test_text_is_utf_8_and_its_lines_end_as_they_are_written(tmp_path):
    with atomic_write(tmp_path / "file", text=True) as file:
        file.write("ü\n\r\n")
    assert (tmp_path / "file").read_bytes() == b"\xc3\xbc\n\r\n"


def test_what_a_killed_process_has_left_is_removed(tmp_path):
    with atomic_write(tmp_path / "file") as file:
        os.link(file.name, file.name.replace(".tmp", "0.tmp"))  # as if nobody had cleared it away
    assert len(os.listdir(tmp_path)) == 2
    remove_unfinished(tmp_path)
    assert os.listdir(tmp_path) == ["file"]
