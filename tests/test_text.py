"""Texts as rows: what is removed, what is kept, and what each row weighs."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from ocelad.data import DriftingTopics, LabelledTexts, TextStream, adjacent
from ocelad.data.mojibake import repair
from ocelad.data.tfidf import clean

TEXTS = [
    "Cutting #taxes helps working families https://t.co/abc",
    "RT @user: families need tax cuts, and they don't need #debt",
    "An open internet for all, says @fcc! www.example.org",
    "We're raising families",
    "#only @tags https://and.links URL",
]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("vote #now!", ["vote", "!"]),
        ("#one#two three", ["three"]),
        ("see https://t.co/x?y=1#z and www.a.b/c", ["see", "and"]),
        ("@user_1 @user2 hi", ["hi"]),
        ("RT QT URL urls art", ["urls", "art"]),
        ("a &amp; b", ["a", "&", "b"]),
        ("＃wide ＠handle ok", ["ok"]),  # noqa: RUF001
    ],
)
def test_hashtags_links_and_handles_go(text, left):
    assert clean(text).split() == left


AS_WRITTEN = ["don’t", "“yes”", "Español, mañana à São José", "5 € – now…", "🚨 call 🇺🇸", "it’s ✔ →"]  # noqa: RUF001


@pytest.mark.parametrize("text", AS_WRITTEN)
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_utf_8_that_was_read_as_something_else_is_repaired(text, encoding):
    def misread(text):  # a byte that is undefined is kept, as browsers do
        return "".join(bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in text.encode())

    assert repair(text) == text
    assert misread(text) != text
    assert repair(misread(text)) == text
    assert repair(misread(misread(text))) == text


@pytest.mark.parametrize("text", ["«LIBERTÉ»", "“AMANHÔ", "«Bébé»”", "Å… ja", "château", "ÂME", "½ ¿qué?"])
def test_what_was_written_on_purpose_is_no_mojibake(text):
    assert repair(text) == text


@pytest.mark.parametrize(
    "damaged", ["donâ€™t raise taxes", "don\ufffdt raise\ufffd taxes", "don&amp;#39;t raise taxes"]
)
def test_damaged_texts_have_the_stems_of_whole_ones(damaged):
    every_word = TextStream(stop_words=())
    assert every_word.stems(damaged) == every_word.stems("don\u2019t raise taxes") == ["don't", "rais", "tax"]


def test_bytes_of_windows_in_a_table_are_letters(tmp_path):
    row = "1,a,“café” ".encode() + "don’t “café”".encode("cp1252")  # noqa: RUF001
    (tmp_path / "texts.csv").write_bytes(b"t,label,text\n" + row + b"\n")
    assert LabelledTexts.read(tmp_path / "texts.csv").texts == ("“café” don’t “café”",)  # noqa: RUF001


@given(st.lists(st.sampled_from(["#tax", "@house", "https://t.co/x", "taxes", "cut"]), max_size=12))
def test_no_tag_leaves_a_trace(words):
    plain = [word for word in words if word in ("taxes", "cut")]
    assert TextStream().stems(" ".join(words)) == TextStream().stems(" ".join(plain))


def test_rows_are_tf_idf():
    """As scikit-learn weighs the same stems."""
    stream = TextStream(6).fit(TEXTS)
    sklearn = TfidfVectorizer(analyzer=stream.stems, vocabulary=stream.names).fit(TEXTS)
    rows = stream.transform(TEXTS)
    assert sparse.issparse(rows)
    np.testing.assert_allclose(rows.toarray(), sklearn.transform(TEXTS).toarray(), atol=1e-14)
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
    np.testing.assert_allclose(lengths, [1, 1, 1, 1, 0], atol=1e-14)


def test_vocabulary_is_learned_on_the_first_texts_only():
    stream = TextStream(3).partial_fit(TEXTS[:2])
    names = list(stream.names)
    assert names == ["cut", "famili", "debt"] or set(names[:2]) == {"cut", "famili"}
    stream.partial_fit(["internet internet", "internet again"])
    assert stream.names == names
    assert stream.texts == 4


def test_counts_may_go_on_in_any_pieces():
    whole, pieces = TextStream(["cut", "famili"]), TextStream(["cut", "famili"])
    whole.partial_fit(TEXTS)
    for text in TEXTS:
        pieces.partial_fit([text])
    np.testing.assert_array_equal(whole.idf, pieces.idf)
    assert whole.idf[1] < whole.idf[0]  # families are mentioned more often


def test_a_stem_is_spelled_as_its_most_frequent_word():
    texts = ["Immigration and immigrants", "immigration!", "taxes, tax, taxes", "cuts"]
    stream = TextStream(["immigr", "tax", "famili"])
    assert stream.spelled(texts) == ["immigration", "taxes", "famili"]  # a stem that nobody says stays


def test_hashing_takes_any_word_and_is_the_same_in_every_process():
    stream = TextStream(32, hashed=True)
    rows = stream.transform(["never seen before", "never heard"])
    assert rows.shape == (2, 32)
    assert (np.diff(rows.indptr) > 0).all()
    code = (
        "from ocelad.data import TextStream; "
        "print(TextStream(32, hashed=True).transform(['never seen before', 'never heard']).indices.tolist())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str(rows.indices.tolist())


def test_other_languages_have_their_stems():
    assert TextStream(language="german").stems("die Häuser") == ["die", "haus"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TextStream(0), "vocabulary must be a number"),
        (lambda: TextStream("tax"), "vocabulary must be a number"),
        (lambda: TextStream(["tax", "tax"]), "different stems"),
        (lambda: TextStream(["tax"], hashed=True), "with hashed=True"),
        (lambda: TextStream(language="klingon"), "language must be one of"),
        (lambda: TextStream().transform(["tax"]), "has not been learned yet"),
        (lambda: TextStream().fit("one text"), "several strings"),
        (lambda: TextStream().fit([1]), "texts must be strings, got 1"),
        (lambda: TextStream().fit(["#only @tags"]), "words in them"),
    ],
)
def test_bad_texts_and_vocabularies(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_missing_stemmer_is_named():
    code = "import sys; sys.modules['snowballstemmer'] = None; from ocelad.data import TextStream; TextStream()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "ocelad[text]"' in done.stderr


# Tables of texts


def test_a_table_of_texts_is_read_in_order_of_time(tmp_path):
    file = tmp_path / "texts.csv"
    file.write_text(
        'created_at,text,label\n2017-11-02T10:00:00+02:00,"later, with\na break",b\n'
        "2017-11-02T07:59:00Z,,a\n1,old,a\n"
    )
    texts = LabelledTexts.read(str(file))
    assert texts.texts == ("old", "", "later, with\na break")
    assert [str(time) for time in texts.times] == [
        "1970-01-01T00:00:01",
        "2017-11-02T07:59:00",
        "2017-11-02T08:00:00",
    ]
    assert [texts.classes[k] for k in texts.labels] == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("t,text\n2017-01-01,x\n", "no column label: there are t, text"),
        ("when,label,text\n2017-01-01,a,x\n", "no column t"),
        ("t,label,text\n2017-01-01,a,x\nsoon,a,x\n", "line 3, column t: it must be a time"),
        ("t,label,text\n2017-01-01,,x\n", "line 2, column label: it must not be empty"),
        ("t,label,text\n2017-01-01,a\n", "line 2"),
    ],
)
def test_bad_tables_are_errors_with_file_line_and_column(tmp_path, content, words):
    file = tmp_path / "texts.csv"
    file.write_text(content)
    with pytest.raises(ValueError, match=words) as error:
        LabelledTexts.read(str(file))
    assert "texts.csv" in str(error.value)


def test_columns_of_different_lengths():
    with pytest.raises(ValueError, match="one length, got 1, 1 and 2"):
        LabelledTexts.of(["2017-01-01"], ["a"], ["x", "y"])


# Comparisons of what is near in time


@given(st.lists(st.integers(0, 3), min_size=2, max_size=60), st.sampled_from([(1,), (1, 2), (1, 8), (1, 3, 4)]))
def test_each_item_is_compared_with_recent_ones_of_both_kinds(labels, back):
    later, earlier, first = adjacent(np.array(labels), back)
    for k in range(1, len(labels)):
        mine = earlier[later == k].tolist()
        assert mine[0] == k - 1
        assert first[later == k].tolist() == [True] + [False] * (len(mine) - 1)
        expected = []
        for kind in (True, False):
            there = [j for j in range(k) if (labels[j] == labels[k]) is kind][::-1]
            expected += [there[rank - 1] for rank in back if rank <= len(there)]
        assert sorted(mine) == sorted(expected)
    assert first.sum() == len(labels) - 1
    assert (np.diff(later) >= 0).all()


@pytest.mark.parametrize("back", [(2,), (1, 1), (1, 3, 2), (0, 1)])
def test_how_far_back_must_begin_with_the_latest(back):
    with pytest.raises(ValueError, match="back must be increasing integers that begin with 1"):
        adjacent(np.array([0, 1]), back)


# The made-up stream


def test_topics_drift_and_texts_repeat():
    texts = DriftingTopics(texts=1500).draw(np.random.default_rng(0))
    assert (np.diff(texts.times) >= np.timedelta64(0)).all()
    assert texts.source.startswith("synthetic")
    stream = TextStream(400).fit(texts.texts)
    plain = [" ".join(stream.stems(text)) for text in texts.texts]
    assert 0.15 < 1 - len(set(plain)) / len(plain) < 0.35
    assert not set(stream.names) & set(texts.classes)  # the hashtags tell the labels
    X, early = stream.transform(texts.texts), texts.times < DriftingTopics().events["all stories change"]
    before, after = X[np.flatnonzero(early)].sum(axis=0), X[np.flatnonzero(~early)].sum(axis=0)
    assert ((before == 0) & (after > 0)).sum() > 20  # words that nobody had used before the event


@pytest.mark.parametrize(
    "mark",
    [
        "HTTP://EXAMPLE.com/foo",
        "Https://T.co/AbCd",
        "WWW.foo.com/bar",
        "pic.twitter.com/Zzz",
        "bit.ly/abc",
        "ftp://foo.org/bar",
        "htt\u2026",
        "https\u2026",
        "#e\u0301te\u0301",
        "#\u200btag",
        "#tax\u200dreform",
        "\uff03tag",
        "@user@mastodon.social",
        "joe@example.com",
    ],
)
def test_no_hashtag_link_or_handle_becomes_a_stem(mark):
    assert TextStream(stop_words=()).stems(f"lower {mark} jobs") == TextStream(stop_words=()).stems("lower jobs")


@pytest.mark.parametrize(
    ("word", "day"), [("20170131", "2017-01-31"), ("20171399", "1970-08-22"), ("86400", "1970-01-02")]
)
def test_eight_digits_are_a_date_if_they_can_be_one(word, day, tmp_path):
    (tmp_path / "texts.csv").write_text(f"t,label,text\n{word},a,x\n{word},b,y\n")
    assert str(LabelledTexts.read(tmp_path / "texts.csv").times[0])[:10] == day
