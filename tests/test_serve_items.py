"""The items of ``ocelad serve``: points as ``ocelad track`` reads them, whatever they are, and safe images."""

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocelad.data.tables import read_items as track_reads
from ocelad.data.tables import read_rows
from ocelad.serve.image_folder import find_images
from ocelad.serve.item_sources import read_items
from ocelad.serve.items import StoredItems, check_continues, clean_name, source_digest, track_items
from running import posix

TABLE = "id,kind,a,b\ncat 1,cat,0.1,-0.0\nowl 7,owl,1e-300,2.5\ndog 3,<b>dog</b>,3,4\n"
IDS = ["cat 1", "owl 7", "dog 3"]


@pytest.fixture(name="table")
def fixture_table(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture(name="photos")
def fixture_photos(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow makes the images")
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for k, name in enumerate(["b.png", "a.JPG", "more/c.gif", "more/d.webp", "z.bmp", "e.jpeg"]):
        pixels = rng.integers(0, 256, size=(20 + k, 30, 3), dtype=np.uint8)
        image.fromarray(pixels).save(folder / name)
    return folder


def items(m=3, points=None, **changes):
    points = np.arange(2.0 * m).reshape(m, 2) if points is None else points
    ids, cells = [f"item {k}" for k in range(m)], [["red", str(k)] for k in range(m)]
    features = tuple(f"f{k}" for k in range(points.shape[1]))
    plain = StoredItems(
        ids, points, features, ("colour", "size"), cells, None, None, None, "table", "features", "d"
    )
    return replace(plain, **changes)


def exported(stored, tmp_path):
    """What ``ocelad track --items`` would read of the export."""
    path = tmp_path / "exported.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        header, rows = track_items(stored)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    with closing(read_rows(str(path))) as rows:
        return track_reads(rows)


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


# What is kept


def test_what_is_written_is_read_back(tmp_path):
    texts = ["a text\nof lines", "", "\U0001f989"]
    for kept in (items(), items(texts=texts, kind="text", scale="auto")):
        kept.write(tmp_path)
        assert StoredItems.exists(tmp_path)
        again = StoredItems.read(tmp_path)
        for name in (
            "ids",
            "features",
            "columns",
            "cells",
            "texts",
            "images",
            "folder",
            "kind",
            "scale",
            "digest",
        ):
            assert getattr(again, name) == getattr(kept, name)
        assert same_bits(again.points, kept.points)
        assert again.number == {"item 0": 0, "item 1": 1, "item 2": 2}
        with pytest.raises(ValueError, match="read-only"):
            again.points[0, 0] = 1.0
    assert sorted(path.suffix for path in (tmp_path / "items").iterdir()) == [".json", ".npy"]
    assert json.loads((tmp_path / "items/items.json").read_text())["ids"] == kept.ids
    assert not StoredItems.exists(tmp_path / "elsewhere")


def test_the_array_that_is_given_stays_as_it_is():
    points = np.ones((3, 2))
    items(points=points)
    points[0, 0] = 2.0


def test_what_is_shown():
    long = "x" * 30_000
    kept = items(cells=[["red", long], ["", ""], ["<script>", "2"]])
    assert kept.item(2) == {
        "id": "item 2", "text": None, "image": None, "cells": [["colour", "<script>"], ["size", "2"]],
    }  # fmt: skip
    assert len(kept.item(0)["cells"][1][1]) == 20_000
    assert [kept.label(k) for k in (1, 2)] == ["item 1", "item 2: <script>, 2"]
    assert len(kept.label(0)) == 80
    assert kept.column("colour") == ["red", "", "<script>"]
    with pytest.raises(ValueError, match="no column 'weight': there are colour, size"):
        kept.column("weight")
    texts = items(texts=["one\ntwo", long, ""], kind="text")
    assert texts.item(0)["text"] == "one\ntwo"
    assert len(texts.item(1)["text"]) == 20_000
    assert [len(texts.label(1)), texts.label(0), texts.label(2)] == [80, "item 0: one two", "item 2"]
    pictures = items(images=["a.png", "b.png", "c/d.png"], folder="/nowhere", kind="image")
    assert (pictures.item(2)["image"], pictures.item(2)["cells"]) == ("/images/2", [])
    assert (pictures.label(2), pictures.column("size")) == ("item 2", ["0", "1", "2"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ids": ["a", "b", "a"]}, "'a' is there twice"),
        ({"ids": ["a", "b", "c\n"]}, "characters that can be printed"),
        ({"ids": ["a", "b", " c"]}, "without spaces around"),
        ({"ids": ["a", "b", ""]}, "1 to 200 characters"),
        ({"ids": ["a", "b", "c" * 201]}, "1 to 200 characters"),
        ({"ids": ["a", "b"]}, r"shape \(2, 2\)"),
        ({"points": np.zeros((3, 2), dtype=np.float32)}, "float64"),
        ({"features": ("id", "b")}, "'id'"),
        ({"features": ("a", "a")}, "different names"),
        ({"cells": [["a"]] * 3}, "3 rows of 2"),
        ({"texts": ["a"]}, "texts must be as many as items, 3, got 1"),
        ({"images": ["a.png"] * 3}, "in a folder"),
        ({"images": ["a.png", "../b.png", "c.png"], "folder": "/photos"}, "in a folder"),
        ({"kind": "song"}, "'song'"),
    ],
    ids=str,
)
def test_items_that_do_not_fit_together_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        items(**changes)


def test_damage_is_noticed_wherever_it_is(tmp_path):
    items(20).write(tmp_path)
    files = sorted((tmp_path / "items").iterdir())
    rng = np.random.default_rng(0)
    for path in files:
        good = path.read_bytes()
        flips = [bytearray(good) for _ in range(40)]
        for bad in flips:
            bad[rng.integers(len(bad))] ^= 1 << int(rng.integers(8))
        for bad in [*flips, b"", good[:-1], good[: len(good) // 2], good + b"x", b"null", b"\x80" * 100]:
            path.write_bytes(bad)
            with pytest.raises(ValueError, match=r"damaged .* another --data folder"):
                StoredItems.read(tmp_path)
        path.unlink()
        with pytest.raises(ValueError, match=r"missing.* another --data folder"):
            StoredItems.read(tmp_path)
        path.write_bytes(good)
    assert len(StoredItems.read(tmp_path).ids) == 20


def test_a_crash_between_the_two_files_leaves_the_old_items(tmp_path, monkeypatch):
    items(3).write(tmp_path)
    replaced = os.replace

    def crash(source, target):
        if str(target).endswith(".json"):
            raise OSError("no space left")
        replaced(source, target)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="no space"):
        items(4).write(tmp_path)
    monkeypatch.undo()
    assert len(StoredItems.read(tmp_path).ids) == 3
    items(4).write(tmp_path)
    assert len(StoredItems.read(tmp_path).ids) == 4
    assert len(list((tmp_path / "items").iterdir())) == 2


def test_reading_needs_no_large_library():
    code = (
        "import sys, ocelad.serve.items; print([name for name in sys.modules if name.split('.')[0] in sys.argv])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "scipy", "sklearn", "numba", "PIL"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


# Going on with other items


def test_items_may_be_added(tmp_path):
    check_continues(items(3), items(3))
    check_continues(items(3), items(5))
    check_continues(items(3), items(3, columns=("x", "y")))  # what is only shown does not matter
    items(3).write(tmp_path)
    check_continues(StoredItems.read(tmp_path), items(5))


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (items(2), "item 'item 2' is no longer there"),
        (items(3, ids=["item 1", "item 0", "item 2"]), "item 'item 0' has another place"),
        (items(3, points=np.array([[-0.0, 1], [2, 3], [4, 5]])), "item 'item 0' has other features .* 'f0'"),
        (items(3, points=np.array([[0, 1], [2, 3], [4, np.nextafter(5, 6)]])), "item 'item 2' .* 'f1'"),
        (items(3, features=("f0", "g1")), "features are others .* 'f1'"),
        (items(3, features=("f1", "f0")), "features are others"),
        (items(3, scale="auto"), "features come from elsewhere"),
    ],
)
def test_other_items_are_not_mixed_with_the_answers_so_far(new, words):
    with pytest.raises(ValueError, match=f"{words}.*start with another --data folder"):
        check_continues(items(3), new)


# Tables


def test_a_table_gives_the_points_that_track_reads(table, tmp_path):
    stored = read_items(str(table))
    with closing(read_rows(str(table))) as rows:
        names, points = track_reads(rows, ["a", "b"])
    assert (list(stored.features), stored.ids) == (names, list(points)) == (["a", "b"], IDS)
    assert same_bits(stored.points, list(points.values()))
    assert (stored.kind, stored.scale, stored.columns) == ("table", "features", ("kind", "a", "b"))
    assert stored.cells[2] == ["<b>dog</b>", "3", "4"]
    names, points = exported(stored, tmp_path)
    assert same_bits(stored.points, list(points.values()))


def test_all_formats_give_the_same(table, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    expected = read_items(str(table))
    lines = [dict(zip(("id", "kind", "a", "b"), line.split(","), strict=True)) for line in TABLE.split("\n")[1:-1]]
    records = [each | {"a": float(each["a"]), "b": float(each["b"])} for each in lines]
    (tmp_path / "items.tsv").write_text(TABLE.replace(",", "\t"))
    (tmp_path / "items.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "items.parquet")
    for name in ("items.tsv", "items.csv.gz", "items.jsonl", "items.parquet"):
        stored = read_items(str(tmp_path / name))
        assert (stored.ids, stored.features) == (expected.ids, expected.features)
        assert same_bits(stored.points, expected.points)


def test_columns_are_chosen(table):
    stored = read_items(str(table), id="kind", features=["b"], show=["a", "id"])
    assert (stored.ids[:2], stored.features, stored.columns) == (["cat", "owl"], ("b",), ("id", "a"))
    plain = table.with_name("plain.csv")
    plain.write_text("a,b\n1,2\n\n3,4\n")
    assert read_items(str(plain)).ids == ["2", "4"]


def test_features_may_have_any_name(tmp_path):
    path = tmp_path / "odd.jsonl"
    names = ["id", "a;b;c;d", "a b c d", " x", "x", 'quo"te', "new\nline", "com,ma", "", "\ud800"]
    records = [{"name": f"n{k}"} | {name: k + j / 3 for j, name in enumerate(names)} for k in range(3)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    stored = read_items(str(path), id="name")
    assert stored.features == (
        "id (feature)", "a b c d", "a b c d (2)", "x", "x (2)", 'quo"te', "new line", "com,ma", "unnamed",
        "unnamed (2)",
    )  # fmt: skip
    json.dumps([stored.columns, stored.cells], ensure_ascii=False).encode()
    read, points = exported(stored, tmp_path)
    assert (tuple(read), list(points)) == (stored.features, stored.ids)
    assert same_bits(stored.points, list(points.values()))


WORDS = st.text(min_size=1, max_size=12).map(str.strip).filter(lambda word: word and word.isprintable())
NUMBERS = st.floats(-1e29, 1e29, allow_subnormal=True)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_the_export_is_read_back_to_the_bit(data, tmp_path_factory):
    ids = data.draw(st.lists(WORDS, min_size=2, max_size=6, unique=True))
    names = data.draw(st.lists(st.text(max_size=8).map(clean_name), min_size=1, max_size=4, unique=True))
    row = st.lists(NUMBERS, min_size=len(names), max_size=len(names))
    X = np.array(data.draw(st.lists(row, min_size=len(ids), max_size=len(ids))))
    stored = items(len(ids), X, ids=ids, features=tuple(names))
    folder = tmp_path_factory.mktemp("export")
    read, points = exported(stored, folder)
    assert (read, list(points)) == (names, ids)
    assert same_bits(X, list(points.values()))
    stored.write(folder)
    assert same_bits(StoredItems.read(folder).points, X)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("id,word\na,b\nc,d\n", {}, r"no column has numbers.*--text COLUMN.*--points FILE\.npy"),
        ("id,a\nx,1\n", {}, "two or more items"),
        ("id,a\nx,1\nx,2\n", {}, "line 3, column id: item 'x' is there twice"),
        ("id,a\nx,1\n,2\n", {}, "line 3, column id: it must not be empty"),
        ("id,a\nx,1\ny\x07,2\n", {}, "can be printed"),
        (f"id,a\nx,1\n{'y' * 201},2\n", {}, "items.csv: the id of an item must be 1 to 200 characters"),
        ("id,a\nx,1\ny,\n", {}, "column a: it must be a finite number, got nothing"),
        ("id,a\nx,1\ny,1e30\n", {}, "at most 1e"),
        ("id,a\nx,1\ny,2\n", {"id": "name"}, "no column name: there are id, a"),
        ("id,a\nx,1\ny,2\n", {"text": "name"}, "--text: there is no column name: there are id, a"),
        ("id,a\nx,1\ny,2\n", {"features": ["f*"]}, r"no column matches 'f\*'"),
        ("id,a\nx,1\ny,2\n", {"show": ["f*"]}, r"no column matches 'f\*'"),
        ("id,a\nx,1\ny,2\n", {"features": ["a"], "text": "a"}, "cannot be had with --text"),
        ("id,a\nx,1\ny,2\n", {"text": "a"}, "--text: texts must have words in them"),
        ("", {}, "it is empty"),
    ],
)
def test_tables_that_will_not_do(content, options, words, tmp_path):
    path = tmp_path / "items.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=words):
        read_items(str(path), **options)


def test_sources_that_will_not_do(table, tmp_path):
    with pytest.raises(FileNotFoundError):
        read_items(str(tmp_path / "nothing.csv"))
    with pytest.raises(ValueError, match="a table, a folder of images, or --points"):
        read_items(None)
    with pytest.raises(ValueError, match="two or more images are needed, there are none"):
        read_items(str(tmp_path))
    with pytest.raises(ValueError, match="--text is for tables"):
        read_items(str(tmp_path), text="a")
    with pytest.raises(ValueError, match="format is not told"):
        read_items(str(table.rename(tmp_path / "items.xyz")))


# Arrays


def save(path, array):
    np.save(path, array)
    return str(path)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "i4", "u1", "longdouble"])
def test_an_array_has_the_features_of_a_table(table, tmp_path, dtype):
    X = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 99]]).astype(dtype)
    stored = read_items(str(table), points=save(tmp_path / "x.npy", X))
    assert (stored.ids, stored.kind, stored.scale, stored.features) == (IDS, "table", "auto", ("x0", "x1", "x2"))
    assert same_bits(stored.points, X.astype(np.float64))
    assert stored.columns == ("kind", "a", "b")


def test_an_array_alone(tmp_path):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(4, 30)))
    np.savez_compressed(tmp_path / "x.npz", X)
    stored = read_items(None, points=save(tmp_path / "x.npy", X))
    for other in (read_items(None, points=str(tmp_path / "x.npz")), read_items(str(tmp_path / "x.npy"))):
        assert same_bits(other.points, stored.points)
    assert (stored.ids, stored.kind, stored.scale) == (["0", "1", "2", "3"], "points", "auto")
    assert same_bits(stored.points, np.ascontiguousarray(X))
    assert len(stored.item(0)["cells"]) == 12
    _, points = exported(stored, tmp_path)
    assert same_bits(stored.points, list(points.values()))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros(3), r"shape \(items, features\), got float64 of shape \(3,\)"),
        (np.zeros((3, 0)), r"got float64 of shape \(3, 0\)"),
        (np.zeros((3, 2), dtype=complex), "got complex128"),
        (np.array([["a"], ["b"], ["c"]]), "got <U1"),
        (np.array([[1.0], [np.nan], [2.0]]), "got nan in row 1, column 0"),
        (np.array([[1.0], [2.0], [-np.inf]]), "got -inf in row 2, column 0"),
        (np.array([[1.0], [2.0], [1e30]]), "at most 1e"),
        (np.zeros((4, 2)), r"a row for each item of .*items\.csv, 3, got 4"),
    ],
)
def test_arrays_that_will_not_do(array, words, table, tmp_path):
    with pytest.raises(ValueError, match=words):
        read_items(str(table), points=save(tmp_path / "x.npy", array))


def test_nothing_is_unpickled(table, tmp_path):
    class Bad:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "pwned"),))

    np.save(tmp_path / "x.npy", np.array([[Bad()]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "two.npz", a=np.zeros((3, 1)), b=np.zeros((3, 1)))
    (tmp_path / "text.npy").write_text("1,2\n3,4\n")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "two.npz").read_bytes()[:100])
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 8)})
    (tmp_path / "huge.npy").write_bytes(huge.getvalue())
    (tmp_path / "empty.npy").write_bytes(b"")
    for name in ("x.npy", "two.npz", "text.npy", "cut.npy", "huge.npy", "empty.npy"):
        with pytest.raises(ValueError, match=f"{name}: it must be a .npy or .npz file with one array"):
            read_items(str(table), points=str(tmp_path / name))
    assert not (tmp_path / "pwned").exists()


# Texts


@pytest.fixture(name="texts")
def fixture_texts(tmp_path):
    path = tmp_path / "texts.jsonl"
    bodies = ["Owls hunt\nat night\x07", "A cat hunts birds", "Dogs have an id", ""]
    lines = [{"id": f"t{k}", "who": "me", "body": body} for k, body in enumerate(bodies)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_features_are_the_words_of_a_column(texts, tmp_path):
    pytest.importorskip("snowballstemmer")
    from ocelad import data

    stored = read_items(str(texts), text="body")
    assert (stored.kind, stored.scale, stored.columns) == ("text", "auto", ("who",))
    assert stored.texts == ["Owls hunt\nat night ", "A cat hunts birds", "Dogs have an id", ""]
    rows = data.TextStream().fit(stored.texts).transform(stored.texts).toarray()
    assert same_bits(stored.points, rows)
    assert "id (feature)" in stored.features
    _, points = exported(stored, tmp_path)
    assert same_bits(stored.points, list(points.values()))


def test_texts_may_have_features_of_their_own(texts, tmp_path):
    stored = read_items(str(texts), text="body", points=save(tmp_path / "x.npy", np.eye(4)))
    assert (stored.kind, stored.features, stored.texts[1]) == (
        "text",
        ("x0", "x1", "x2", "x3"),
        "A cat hunts birds",
    )


def test_without_the_stemmer_it_is_said_what_to_install(texts, monkeypatch):
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(ImportError, match=r"--text: .*ocelad\[text\]"):
        read_items(str(texts), text="body")


# Images


def test_a_folder_of_images(photos, tmp_path):
    stored = read_items(str(photos))
    assert stored.ids == stored.images == ["a.JPG", "b.png", "e.jpeg", "more/c.gif", "more/d.webp", "z.bmp"]
    assert (stored.kind, stored.scale, stored.features[0]) == ("image", "auto", "pc 1")
    assert stored.points.shape[1] == 5
    between = stored.points[:, None] - stored.points
    assert np.mean(np.sum(between**2, axis=-1)) == pytest.approx(1.0)
    assert np.all(np.diff(stored.points.var(axis=0)) <= 1e-12)
    assert same_bits(stored.points, read_items(str(photos)).points)
    stored.write(tmp_path)
    assert StoredItems.read(tmp_path).image_path(3) == (photos / "more/c.gif").resolve()


def test_the_sub_folders_of_images_are_a_column(photos, tmp_path):
    image = pytest.importorskip("PIL.Image")
    (photos / "more" / "still more").mkdir()
    image.new("L", (8, 8)).save(photos / "more" / "still more" / "f.png")
    stored = read_items(str(photos))
    stored.write(tmp_path)
    for each in (stored, StoredItems.read(tmp_path)):
        assert each.columns == ("folder",)
        assert dict(zip(each.ids, each.column("folder"), strict=True)) == {
            "a.JPG": "", "b.png": "", "e.jpeg": "", "more/c.gif": "more", "more/d.webp": "more",
            "more/still more/f.png": "more/still more", "z.bmp": "",
        }  # fmt: skip
        assert each.item(3)["cells"] == []  # it is in the name, which is shown
        assert each.label(3) == "more/c.gif"
    for name in find_images(photos / "more"):
        os.rename(photos / "more" / name, photos / os.path.basename(name))
    flat = read_items(str(photos))
    assert (flat.columns, flat.cells) == ((), [[]] * 7)
    items_before = replace(stored, columns=(), cells=[[]] * 7)  # as they were kept when there was no column yet
    check_continues(items_before, stored)


def test_images_differ_as_they_look(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow makes the images")
    folder = tmp_path / "photos"
    folder.mkdir()
    half = np.zeros((64, 64), dtype=np.uint8)
    half[:, 32:] = 255
    image.fromarray(half).save(folder / "a.png")
    image.fromarray(half.astype(np.uint16) * 257).save(folder / "sixteen bits.png")
    image.fromarray(np.dstack([np.zeros_like(half)] * 3 + [255 - half])).save(folder / "through.png")
    image.fromarray(half).convert("P").save(folder / "palette.gif")
    turned = image.Exif()
    turned[0x0112] = 6  # turn it clockwise to see it
    image.fromarray(np.rot90(half).copy()).save(folder / "turned.png", exif=turned)
    image.fromarray(half.T.copy()).save(folder / "other.png")
    stored = read_items(str(folder))
    d = np.linalg.norm(stored.points - stored.points[0], axis=1)
    assert d[[stored.number[name] for name in stored.ids if name != "other.png"]] == pytest.approx(0.0, abs=0.02)
    assert d[stored.number["other.png"]] > 0.5


def test_images_with_an_array_need_no_pillow(photos, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    X = np.eye(6)
    stored = read_items(str(photos), points=save(tmp_path / "x.npy", X))
    assert same_bits(stored.points, X)
    with pytest.raises(ImportError, match=r"Pillow.*ocelad\[serve\]"):
        read_items(str(photos))
    with pytest.raises(ValueError, match=r"a row for each item of .*photos, 6, got 5"):
        read_items(str(photos), points=save(tmp_path / "x.npy", X[:5]))


@pytest.mark.parametrize("content", [b"", b"<svg></svg>", b"\x89PNG\r\n\x1a\n" + b"\0" * 50, None], ids=str)
def test_an_image_that_cannot_be_read_is_named(photos, content):
    path = photos / "b.png"
    path.write_bytes(path.read_bytes()[:300] if content is None else content)
    with pytest.raises(ValueError, match=r"b\.png: the image cannot be read: ."):
        read_items(str(photos))


def test_an_image_that_claims_to_be_huge_is_not_unpacked(photos):
    image = pytest.importorskip("PIL.Image")
    image.new("1", (11_000, 10_000)).save(photos / "b.png")
    with pytest.raises(ValueError, match=r"b\.png: .* 11000 x 10000 pixels"):
        read_items(str(photos))


def test_images_that_are_all_alike_are_refused(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name in ("a.png", "b.png"):
        image.new("RGB", (20, 20), "red").save(tmp_path / name)
    with pytest.raises(ValueError, match=r"look the same.*--points"):
        read_items(str(tmp_path))


@posix
def test_only_images_of_the_folder_are_found(tmp_path):
    folder, outside = tmp_path / "photos", tmp_path / "outside"
    (folder / "more").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    outside.mkdir()
    for path in ("photos/a.png", "photos/more/b.PNG", "photos/.c.png", "photos/.hidden/d.png", "outside/s.png"):
        (tmp_path / path).write_bytes(b"x")
    for name in ("e.svg", "f.txt", "g.html", "h.png.html", "png"):
        (folder / name).write_bytes(b"x")
    (folder / "inside.png").symlink_to("more/b.PNG")
    (folder / "leaves.png").symlink_to(outside / "s.png")
    (folder / "passwords.png").symlink_to("/etc/passwd")
    (folder / "broken.png").symlink_to("nothing.png")
    (folder / "loop.png").symlink_to("loop.png")
    (folder / "svg.png").symlink_to("e.svg")
    (folder / "folder").symlink_to(outside)
    (folder / "folder.png").mkdir()
    os.mkfifo(folder / "pipe.png")
    warnings = []
    assert find_images(folder, warnings) == ["a.png", "inside.png", "more/b.PNG"]
    words = sorted(warning.removeprefix(f"{folder}/").partition(":")[0] for warning in warnings)
    assert words == sorted(
        ["leaves.png", "passwords.png", "broken.png", "loop.png", "svg.png", "folder", "pipe.png"]
    )
    warnings = []
    stored = read_items(str(folder), points=save(tmp_path / "x.npy", np.eye(3)), warnings=warnings)
    assert len(warnings) == 7
    assert (stored.ids, stored.folder) == (["a.png", "inside.png", "more/b.PNG"], str(folder.resolve()))


def test_names_of_images_that_cannot_be_shown_are_refused(photos, tmp_path):
    (photos / "b.png").rename(photos / "b\n.png")
    with pytest.raises(ValueError, match=r"photos: the id of an item must be .*'b\\n\.png'"):
        read_items(str(photos), points=save(tmp_path / "x.npy", np.eye(6)))


@pytest.mark.parametrize(
    "name", ["../secret.png", "/etc/passwd", "more/../../secret.png", "", ".", "..", "a\0.png", "..\\secret.png",
             "C:/secret.png", "more//a.png", "./a.png"],
)  # fmt: skip
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    (tmp_path / "photos/more").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(b"x")
    with pytest.raises(ValueError, match="in a folder"):
        items(3, images=["a.png", "b.png", name], folder=str(tmp_path / "photos"), kind="image")
    forged = items(3, images=["a.png", "b.png", "c.png"], folder=str(tmp_path / "photos"), kind="image")
    forged.images[2] = name
    with pytest.raises(ValueError, match="not inside"):
        forged.image_path(2)


def test_an_image_that_became_a_link_is_not_served(tmp_path):
    folder = tmp_path / "photos"
    (folder / "more").mkdir(parents=True)
    (tmp_path / "photos and more").mkdir()
    for path in ("photos/a.png", "photos/more/b.png", "photos/c.png", "photos and more/b.png"):
        (tmp_path / path).write_bytes(b"x")
    stored = items(3, images=["a.png", "more/b.png", "c.png"], folder=str(folder), kind="image")
    assert [stored.image_path(k).name for k in range(3)] == ["a.png", "b.png", "c.png"]
    (folder / "a.png").unlink()
    (folder / "a.png").symlink_to("/etc/passwd")
    (folder / "more").rename(tmp_path / "elsewhere")
    (folder / "more").symlink_to(tmp_path / "photos and more")
    (folder / "c.png").unlink()
    for number in range(2):
        with pytest.raises(ValueError, match="not inside"):
            stored.image_path(number)
    with pytest.raises(FileNotFoundError):
        stored.image_path(2)
    with pytest.raises(ValueError, match="no images"):
        items(3).image_path(0)


# Whether a source has changed


def test_the_digest_tells_whether_the_source_has_changed(table, tmp_path):
    given = {"path": str(table), "features": ["a"], "points": None}
    digest = source_digest(**given)
    assert source_digest(**given | {"features": ("a",)}) == digest == read_items(**given).digest
    moved = tmp_path / "moved.csv"
    moved.write_text(TABLE)
    assert source_digest(**given | {"path": str(moved)}) == digest
    x = save(tmp_path / "x.npy", np.eye(3))
    others = [{"features": ["b"]}, {"id": "id"}, {"show": ["a"]}, {"text": "kind"}, {"points": x}, {"path": None}]
    seen = {digest, *(source_digest(**given | other) for other in others)}
    table.write_text(TABLE + "fox 9,fox,1,2\n")
    seen.add(source_digest(**given))
    assert len(seen) == 8


def test_the_digest_of_images_is_of_names_sizes_and_times(photos):
    seen = [source_digest(str(photos))]
    assert source_digest(f"{photos}/") == seen[0]
    os.utime(photos / "more/c.gif", (1, 1))
    seen.append(source_digest(str(photos)))
    (photos / "b.png").rename(photos / "bb.png")
    seen.append(source_digest(str(photos)))
    (photos / "notes.txt").write_text("not an image")
    assert source_digest(str(photos)) == seen[-1]
    seen.append(source_digest(str(photos.rename(photos.with_name("moved")))))
    assert len(set(seen)) == 4
