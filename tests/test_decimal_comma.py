"""Numbers with decimal commas, as Excel writes them in much of Europe: between semicolons or tabs."""

from contextlib import closing

import numpy as np
import pytest

from ocelad import MetricTracker, load
from ocelad.data.tables import comparisons, parsed, read_rows
from ocelad.label import Items
from streams import comparisons as stream
from test_cli import run

HEADER = "x_a;x_b;z_a;z_b;y"


def pairs_of(path, text):
    path.write_text(text)
    with closing(read_rows(str(path))) as rows:
        form = comparisons(rows.header)
        found = [form.block(piece) for piece in parsed(rows, form.parse)]
    return np.concatenate([block.pairs for block in found]).reshape(-1, 4).tolist()


def european(text, mark=";"):
    return text.replace(",", mark).replace(".", ",")


@pytest.mark.parametrize("mark", [";", "\t"])
def test_decimal_commas_are_told_by_the_separator(tmp_path, mark):
    plain = "x_a,x_b,z_a,z_b,y\n0.5,-1.25,2,1e-3,1\n1.234,2,3,1.5e2,-1\n"
    expected = pairs_of(tmp_path / "plain.csv", plain)
    assert pairs_of(tmp_path / "t.csv", european(plain, mark)) == expected
    assert pairs_of(tmp_path / "p.csv", plain.replace(",", mark)) == expected  # points are as good
    whole = european(plain, mark).replace(f"1{mark}", f"1,0{mark}").replace(f"{mark}1\n", f"{mark}1,0\n")
    assert pairs_of(tmp_path / "w.csv", whole) == expected


BAD = {
    "a point after a comma": (
        "1,5;2;3;4;1\n1;2;3.5;4;1",
        "line 3, column z_a: it must have a decimal comma, .* '3.5'",
    ),
    "a comma after a point": (
        "1.5;2;3;4;1\n1;2,5;3;4;1",
        "line 3, column x_b: it must have a decimal point, .* '2,5'",
    ),
    "both in a row": (
        "1,5;2.5;3;4;1",
        "line 2, column x_b: it must have a decimal comma, as '1,5' in line 2, column x_a, got '2.5' "
        "\\(is one a mark between thousands\\?\\)",
    ),
    "a space": (
        "72 989,33;2;3;4;1",
        "column x_a: .* got '72 989,33': numbers must have no mark between thousands",
    ),
    "a narrow space": ("1;72\u202f989;3;4;1", "column x_b: .*: numbers must have no mark between thousands"),
    "thousands": (
        "1.234,5;2;3;4;1",
        "column x_a: it must be a finite number, got '1.234,5': numbers must have no mark between thousands",
    ),
    "more thousands": (
        "1;1,234,567;3;4;1",
        "column x_b: it must be a finite number, got '1,234,567': .* thousands",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_could_be_read_in_two_ways_is_an_error(tmp_path, case):
    rows, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        pairs_of(tmp_path / "t.csv", f"{HEADER}\n{rows}\n")


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("number", ["8,043", "8.043", "-12,500"])
def test_what_may_be_thousands_is_warned_of(tmp_path, mark, number):
    header = HEADER.replace(";", mark)
    whole = number.replace(",", "").replace(".", "")
    with pytest.warns(UserWarning, match=rf"{number} is taken for .*, not {whole}: numbers must have no mark"):
        pairs_of(tmp_path / "t.csv", f"{header}\n{mark.join([number, '2', '3', '4', '1'])}\n")
    clear = mark.join([f"0{number[-4]}5", number, "3", "4", "1"])  # the mark is known by then
    pairs_of(tmp_path / "t.csv", f"{header}\n{clear}\n")


def test_a_run_that_goes_on_knows_the_mark(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    rows = [";".join([*(f"{x:.3f}" for x in row), "1"]) for row in rng.normal(size=(60, 4))]
    commas = [row.replace(".", ",") for row in rows[:30]]
    (tmp_path / "half.csv").write_text("\n".join([HEADER, *commas]) + "\n")
    (tmp_path / "whole.csv").write_text("\n".join([HEADER, *commas, *rows[30:]]) + "\n")
    out, table = tmp_path / "out", tmp_path / "t.csv"
    for name, found in (("half.csv", "30 rows, 0 rejected"), ("whole.csv", "30 rows, 30 rejected")):
        table.write_bytes((tmp_path / name).read_bytes())
        assert not run(monkeypatch, "track", str(table), "--out", str(out), "--resume", "--skip-bad")
        assert f"from {found}" in capsys.readouterr().out


def test_commas_between_cells_leave_none_for_decimals(tmp_path):
    with pytest.raises(
        ValueError, match=r"10 cells, expected 5 \(cells must be separated by ; if numbers have decimal commas\)"
    ):
        pairs_of(tmp_path / "t.csv", HEADER.replace(";", ",") + "\n1,5,2,5,3,5,4,5,1,0\n")
    with pytest.raises(ValueError, match=r"7 cells, expected 5$"):  # of an English table
        pairs_of(tmp_path / "t.csv", HEADER.replace(";", ",") + "\n1.5,2,3,4,1,2,3\n")
    with pytest.raises(
        ValueError, match="column x_a: it must be a finite number, got '1,5': decimal commas need ;"
    ):
        pairs_of(tmp_path / "t.csv", HEADER.replace(";", ",") + '\n"1,5",2,3,4,1\n')


def test_a_word_may_have_a_comma_or_a_point(tmp_path):
    text = "kind;a;note\nBerlin, Mitte;1,5;v2.1\nUlm;2,5;12.30\n"
    (tmp_path / "t.csv").write_text(text)
    with closing(read_rows(str(tmp_path / "t.csv"))) as rows:
        items = Items.read(rows)
    assert items.features == ("a",)
    assert items.points.tolist() == [[1.5], [2.5]]
    assert items.cells[0] == ["Berlin, Mitte", "1,5", "v2.1"]


def test_a_header_that_does_not_tell_is_an_error(tmp_path):
    (tmp_path / "t.csv").write_text("length, cm;width, cm;kind\n1,5;2,5;a\n")
    with pytest.raises(ValueError, match=r"line 1: it has as many commas as semicolons.*in double quotes"):
        read_rows(str(tmp_path / "t.csv"))
    (tmp_path / "t.csv").write_text('"length, cm";"width, cm";kind\n1,5;2,5;a\n')
    with closing(read_rows(str(tmp_path / "t.csv"))) as rows:
        assert rows.header == ["length, cm", "width, cm", "kind"]


def test_a_header_that_is_not_utf_8_is_an_error(tmp_path):
    (tmp_path / "t.csv").write_bytes("Länge;Breite\n1,5;2\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"t\.csv: line 1: it is not UTF-8 text: save it as CSV UTF-8"):
        read_rows(str(tmp_path / "t.csv"))


@pytest.mark.parametrize(
    ("first", "mark"), [("sep=;", ";"), ('"sep=;"', ";"), ("SEP=,", ","), ("sep=\t", "\t"), ("sep=|", "|")]
)
def test_a_line_that_tells_the_separator_is_none_of_the_table(tmp_path, first, mark):
    text = f"{first}\r\nlength, m{mark}b{mark}kind\r\n1{mark}2{mark}x\r\n".replace(
        "length, m", "a" if mark == "," else "a, m"
    )
    (tmp_path / "t.csv").write_bytes(text.encode("utf-8-sig"))
    with closing(read_rows(str(tmp_path / "t.csv"))) as rows:
        assert rows.header == ["a" if mark == "," else "a, m", "b", "kind"]
        found = [row for piece in rows.pieces() for row in piece]
        rows.used.add(found[0].raw, found[0].lines)
    assert [(row.line, row.cells) for row in found] == [(3, ["1", "2", "x"])]
    with closing(read_rows(str(tmp_path / "t.csv"))) as again:
        again.skip(rows.used.lines, rows.used.digest)
        assert list(again.pieces()) == []


def test_every_command_takes_them(monkeypatch, capsys, tmp_path):
    pairs, y = stream(seed=0, steps=200, n=2)
    lines = [
        "x_a,x_b,z_a,z_b,y",
        *(",".join(map(str, [*row, s])) for row, s in zip(pairs.reshape(-1, 4), y, strict=True)),
    ]
    points = ["a,b,kind", *(f"{a},{b},{'x' if a > 0 else 'o'}" for a, b in pairs[:50, 0])]
    for name, table in (("pairs", lines), ("points", points)):
        (tmp_path / f"{name}.csv").write_text("\n".join(table) + "\n")
        (tmp_path / f"{name}_eu.csv").write_text(european("\n".join(table) + "\n"))
    monkeypatch.chdir(tmp_path)

    def said(*words):
        assert run(monkeypatch, *words) in (0, None)
        return capsys.readouterr().out

    for table, more in (("pairs", []), ("points", ["--label", "kind"])):
        for suffix in ("", "_eu"):
            said("track", f"{table}{suffix}.csv", "--out", f"run_{table}{suffix}", *more)
        one, other = (load(f"run_{table}{suffix}/tracker.ocelad") for suffix in ("", "_eu"))
        assert isinstance(one, MetricTracker)
        assert (one.get_mahalanobis_matrix() == other.get_mahalanobis_matrix()).all()
    assert said("score", "run_pairs", "pairs.csv") == said("score", "run_pairs", "pairs_eu.csv")
    assert said("embed", "run_points", "points.csv") == said("embed", "run_points", "points_eu.csv")
