"""Tables: the same rows in every format, and a word on what is wrong with a row."""

import gzip
import io
import json
import sys
from contextlib import closing
from datetime import datetime

import numpy as np
import pytest

from ocelad.data import tables
from ocelad.data.tables import Columns, Labelled, comparisons, parsed, read_items, read_rows
from ocelad.data.tables.lines import CHUNK, Csv, Lines, TextRows

HEADER = ["x_a", "x_b", "z_a", "z_b", "y"]
ROWS = [[0.5, 1.25, -2.0, 1e-3, 1], [3.0, 0.1, 0.2, 0.3, -1], [1.0, 2.0, 3.0, 4.0, 1]]


def as_csv(delimiter=",", end="\n"):
    return "".join(delimiter.join(map(str, row)) + end for row in [HEADER, *ROWS])


def as_json_lines(nested=False):
    records = [dict(zip(HEADER, row, strict=True)) for row in ROWS]
    if nested:
        records = [{"x": row[:2], "z": row[2:4], "y": row[4]} for row in ROWS]
    return "".join(json.dumps(record) + "\n" for record in records)


def written(path, text):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return str(path)


def parquet(path, columns):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    write_table(arrow.table(columns), path)
    return str(path)


def blocks(path, **options):
    with closing(read_rows(path, **options)) as rows:
        form = comparisons(rows.header)
        found = [form.block(piece) for piece in parsed(rows, form.parse)]
    return form.features, np.concatenate([b.pairs for b in found]), np.concatenate([b.y for b in found])


SOURCES = {
    "csv": lambda d: written(d / "t.csv", as_csv()),
    "gzipped": lambda d: written(d / "t.csv.gz", as_csv()),
    "semicolons": lambda d: written(d / "t.csv", as_csv(";")),
    "tabs": lambda d: written(d / "t.tsv", as_csv("\t", "\r\n")),
    "no last line end": lambda d: written(d / "t.csv", as_csv()[:-1]),
    "empty lines": lambda d: written(d / "t.csv", as_csv().replace("\n", "\n\n")),
    "byte order mark": lambda d: written(d / "t.csv", "\ufeff" + as_csv()),
    "quoted": lambda d: written(d / "t.csv", as_csv().replace("0.5", '"0.5"').replace("x_a", '"x_a"')),
    "json lines": lambda d: written(d / "t.jsonl", as_json_lines()),
    "json lists": lambda d: written(d / "t.ndjson.gz", as_json_lines(nested=True)),
    "parquet": lambda d: parquet(d / "t.parquet", dict(zip(HEADER, zip(*ROWS, strict=True), strict=True))),
    "parquet lists": lambda d: parquet(
        d / "t.parquet", {"x": [r[:2] for r in ROWS], "z": [r[2:4] for r in ROWS], "y": [r[4] for r in ROWS]}
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_all_formats_say_the_same(source, tmp_path):
    features, pairs, y = blocks(SOURCES[source](tmp_path))
    assert features in (("a", "b"), ("0", "1"))
    assert pairs.tolist() == [[row[:2], row[2:4]] for row in ROWS]
    assert y.tolist() == [row[4] for row in ROWS]


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(as_json_lines().encode())))
    assert blocks("-", format="jsonl")[1].tolist() == [[row[:2], row[2:4]] for row in ROWS]
    assert not sys.stdin.buffer.closed


def test_what_is_gzipped_is_unzipped_whatever_its_name(monkeypatch, tmp_path):
    data, expected = gzip.compress(as_csv().encode()), [[row[:2], row[2:4]] for row in ROWS]
    for name, content in (("t.csv", data), ("t.csv.gz", as_csv().encode())):
        (tmp_path / name).write_bytes(content)
        assert blocks(str(tmp_path / name))[1].tolist() == expected
    with (tmp_path / "t.csv").open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        assert blocks("-")[1].tolist() == expected
        assert not sys.stdin.buffer.closed
    for broken in (data[:30], data[:20] + b"\xff" * 20):
        (tmp_path / "t.csv").write_bytes(broken)
        with pytest.raises(ValueError, match=r"t\.csv: "):
            blocks(str(tmp_path / "t.csv"))


@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_pieces_of_any_size_have_the_same_rows_and_none_waits_for_the_next(size):
    data = as_csv().encode() * 3

    class Slow(io.BytesIO):
        def read1(self, most):
            return super().read(min(size, most))

    lines = Lines("slow", Slow(data))
    rows = TextRows(lines, Csv(lines))
    seen = []
    for piece in rows.pieces():
        seen += [row.line for row in piece]
        rest = data[lines._file.tell() - size : lines._file.tell()]
        assert b"\n" in rest  # handed out as soon as its line was complete
    assert seen == list(range(2, 13))
    assert size < CHUNK


def test_the_used_part_does_not_depend_on_pieces_and_can_be_skipped(tmp_path):
    for source in SOURCES.values():
        path = source(tmp_path)
        with closing(read_rows(path)) as rows:
            all_rows = [row for piece in rows.pieces() for row in piece]
            for row in all_rows[:2]:
                rows.used.add(row.raw, row.lines)
            lines, digest = rows.used.lines, rows.used.digest
        with closing(read_rows(path)) as again:
            again.skip(lines, digest)
            assert [(r.line, r.cells) for p in again.pieces() for r in p] == [
                (r.line, r.cells) for r in all_rows[2:]
            ]
        with closing(read_rows(path)) as other, pytest.raises(ValueError, match="another input"):
            other.skip(lines, "0" * 64)
        with closing(read_rows(path)) as other, pytest.raises(ValueError, match="another input: it has"):
            other.skip(99, digest)


BAD = {
    "a word": ("1,2,abc,4,1", "line 3, column z_a: it must be a finite number, got 'abc'"),
    "nothing": ("1,2,,4,1", "line 3, column z_a: it must be a finite number, got nothing"),
    "nan": ("nan,2,3,4,1", "line 3, column x_a: it must be a finite number, got 'nan'"),
    "infinity": ("1,2,3,-inf,1", "line 3, column z_b: it must be a finite number, got '-inf'"),
    "huge": ("1,2,3,1e31,1", "line 3, column z_b: it must be at most 1e.30 in size, got '1e31'"),
    "underscored": ("1,2,3,1_0,1", "line 3, column z_b: it must be a finite number, got '1_0'"),
    "label": ("1,2,3,4,2", "line 3, column y: it must be 1 .similar. or -1 .*, got '2'"),
    "short": ("1,2,3,4", "line 3: it has 4 cells, expected 5"),
    "long": ("1,2,3,4,1,6", "line 3: it has 6 cells, expected 5"),
    "quote": ('1,2,3,4,"1', "line 3: unexpected end of data"),
    "not text": (b"1,2,3,\xff,1", "line 3: it is not UTF-8 text"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_are_named(name, tmp_path):
    row, message = BAD[name]
    row = row if isinstance(row, bytes) else row.encode()
    path = tmp_path / "t.csv"
    path.write_bytes(b"x_a,x_b,z_a,z_b,y\n1,2,3,4,-1\n" + row + b"\n")
    with pytest.raises(ValueError, match=f"t.csv: {message}"):
        blocks(str(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "line 2: it must be a JSON object"),
        ("{", "line 2: it is not JSON"),
        ('{"x": [1], "z": [1, 2], "y": 1}', "line 2: column x_1 is missing"),
        ('{"x": [1, 2], "z": [1, 2], "y": 1, "w": 0}', "line 2: column w is not in the first row"),
        ('{"x": [1, null], "z": [1, 2], "y": 1}', "line 2, column x_1: it must be a finite number, got nothing"),
        ("[" * 100_000, "line 2: it is not JSON"),
        ('{"x": [1, 1%s], "z": [1, 2], "y": 1}' % ("0" * 400), "line 2, column x_1: it must be a finite number"),
    ],
)
def test_bad_objects_are_named(line, message, tmp_path):
    path = written(tmp_path / "t.jsonl", '{"x": [1, 2], "z": [1, 2], "y": 1}\n' + line + "\n")
    with pytest.raises(ValueError, match=f"t.jsonl: {message}"):
        blocks(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "", "it is empty"),
        ("t.jsonl", "", "it is empty"),
        ("t.csv", "a,a\n", "two columns 'a'"),
        ("t.txt", "", "its format is not told by its name"),
        ("t.csv", "x\0_\0a\0", "t.csv: it is not UTF-8 text: save it as CSV UTF-8"),
        ("t.jsonl", "{\0", "t.jsonl: it is not UTF-8 text: save it as UTF-8"),
        ("t.csv", '\n{"x": [1, 2]}\n', "t.csv: line 2 looks like JSON; --format jsonl"),
        ("t.csv", 'a,"b,c\nd",e\n', "t.csv: line 1: unexpected end of data"),
        ("t.parquet", "nonsense", "t.parquet"),
        ("t.parquet.gz", "", "not gzipped"),
    ],
)
def test_what_is_no_table_is_refused(name, text, message, tmp_path):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=message):
        read_rows(written(tmp_path / name, text))


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_empty_lines_and_a_mark_of_order_may_come_first(name, tmp_path):
    plain = "x_a,z_a,y\n1,2,1\n" if name == "t.csv" else '{"x_a": 1, "z_a": 2, "y": 1}\n'
    with closing(read_rows(written(tmp_path / name, "\n \n" + plain))) as rows:
        assert rows.header == ["x_a", "z_a", "y"]
        assert [row.line for piece in rows.pieces() for row in piece] == [4 if name == "t.csv" else 3]
    with closing(read_rows(written(tmp_path / name, "\ufeff" + plain))) as rows:
        assert rows.header == ["x_a", "z_a", "y"]
        assert sum(not row.problem for piece in rows.pieces() for row in piece) == 1


def test_a_line_without_end_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("ocelad.data.tables.lines.LONGEST", 2 * CHUNK)
    path = written(tmp_path / "t.csv", "a,b\n" + "1" * (4 * CHUNK))
    with closing(read_rows(path)) as rows, pytest.raises(ValueError, match="a line of more than"):
        list(rows.pieces())


def test_dates_of_parquet_are_shown_as_dates(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    day = datetime(2023, 1, 1)
    for value, shown in (
        (day, "2023-01-01"),
        (day.date(), "2023-01-01"),
        (day.replace(hour=9), "2023-01-01 09:00:00"),
    ):
        pyarrow.parquet.write_table(pyarrow.table({"day": [value]}), tmp_path / "t.parquet")
        with closing(read_rows(str(tmp_path / "t.parquet"))) as rows:
            ((row,),) = rows.pieces()
            with pytest.raises(ValueError, match=f"column day: .* got {shown}, a date or a time$"):
                Columns.of(rows.header, ["day"]).numbers(row)


def test_missing_pyarrow_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"ocelad\[tables\]"):
        read_rows("t.parquet")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (["x_a", "z_a"], "no column y"),
        (["x_a", "z_b", "y"], "no column z_a"),
        (["z_b", "y"], "no column x_b"),
        (["f", "y"], "comparisons need columns"),
        (["id_a", "id_b", "y"], "--items"),
        (["x_a z_a y"], "there is only one, 'x_a z_a y': separate cells by , ; or tab"),
    ],
)
def test_tables_that_say_nothing_are_refused(header, message):
    with pytest.raises(ValueError, match=message):
        comparisons(header)


def test_items_for_a_table_that_names_none_are_refused():
    with pytest.raises(ValueError, match="items are for columns id_a and id_b, there are x_a, z_a, y"):
        comparisons(["x_a", "z_a", "y"], {}, ["a"])


def test_items_are_looked_up(tmp_path):
    with closing(read_rows(written(tmp_path / "i.csv", "id,f,g,name\nu,1,2,Ann\nv,3,4,Bob\n"))) as rows:
        names, points = read_items(rows, ["f", "g"])
    assert names == ["f", "g"]
    with closing(read_rows(written(tmp_path / "t.csv", "id_a,id_b,y\nu,v,1\nv,w,0\n"))) as rows:
        form = comparisons(rows.header, points, names)
        with pytest.raises(ValueError, match="line 3, column id_b: there is no item 'w'"):
            list(parsed(rows, form.parse))
    with closing(read_rows(written(tmp_path / "t.csv", "id_a,id_b,y\nu,v,1\nv,u,0\n"))) as rows:
        (piece,) = parsed(rows, form.parse)
    assert form.block(piece).pairs.tolist() == [[[1, 2], [3, 4]], [[3, 4], [1, 2]]]
    assert form.block(piece).y.tolist() == [1, -1]
    with (
        closing(read_rows(written(tmp_path / "i.csv", "id,f\nu,1\nu,2\n"))) as rows,
        pytest.raises(ValueError, match="line 3, column id: item 'u' is there twice"),
    ):
        read_items(rows)


def labelled(**options):
    header = ["f", "g", "kind", "day"]
    return Labelled(*(Columns.of(header, names) for names in (["f", "g"], ["kind"], ["day"])), **options)


@pytest.mark.parametrize("strategy", ["balanced", "random", "consecutive"])
def test_labelled_rows_meet_earlier_ones_of_their_group(strategy):
    rng = np.random.default_rng(0)
    given = [tables.Row(k + 2, [str(k), "0", str(rng.integers(3)), str(k // 40)], b"") for k in range(120)]
    form, pieces = labelled(strategy=strategy, memory=10, count=2), []
    for cut in (given[:7], given[7:8], given[8:]):
        again = labelled(strategy=strategy, memory=10, count=2)
        again.restore(json.loads(json.dumps(form.state())))  # what is remembered is all there is
        form = again
        pieces.append(form.block([form.parse(row) for row in cut]))
    whole = labelled(strategy=strategy, memory=10, count=2).block([form.parse(row) for row in given])
    for name in ("pairs", "y"):
        np.testing.assert_array_equal(np.concatenate([getattr(p, name) for p in pieces]), getattr(whole, name))
    assert [line for p in pieces for line in p.others] == whole.others
    lines, others = np.array(whole.lines) - 2, np.array(whole.others) - 2
    assert (lines // 40 == others // 40).all()
    assert (lines > others).all()
    assert (lines - others <= 10).all()
    words = np.array([row.cells[2] for row in given])
    np.testing.assert_array_equal(whole.y > 0, words[lines] == words[others])
    assert set(lines.tolist()) == set(range(120)) - {0, 40, 80}  # the first of each group has nobody to meet
    if strategy == "consecutive":
        assert set((lines - others).tolist()) == {1, 2}
    else:
        assert len(set((lines - others).tolist())) > 5
