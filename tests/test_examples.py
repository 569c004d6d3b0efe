"""The scripts in examples/, as a reader runs them, of a smaller size where the whole would take long."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
ALL = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py"))
NOT_RUN = {"spark/users_job.py"}  # needs spark-submit, and does not end by itself
SMALLER = {
    "asking_digits.py": "1",
    "grid_search.py": "--folds 2 --data wine",
    "own_parts.py": "--days 100 --seeds 2",
    "retrieval.py": "--searches 40 --seeds 2",
    "river_pipeline.py": "--points 200 --seeds 2",
    "users.py": "--comparisons 100 --users 3",
}
NEEDS = {"river_pipeline.py": "river", "serve_digits.py": "PIL", "csv_in_and_out.py": "click"}


def run(example, *words, cwd, **environment):
    done = subprocess.run(
        [sys.executable, str(FOLDER / example), *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("example", [name for name in ALL if name not in NOT_RUN])
def test_it_runs_and_prints_what_it_found(example, tmp_path):
    if example in NEEDS and importlib.util.find_spec(NEEDS[example]) is None:
        pytest.skip(f"it needs {NEEDS[example]}")
    out = run(example, *SMALLER.get(example, "").split(), cwd=tmp_path)
    assert re.search(r"\d", out) or "is not installed" in out
    assert "nan" not in out


def test_what_is_said_of_examples_here_is_of_some_that_exist():
    assert {*NOT_RUN, *SMALLER, *NEEDS} <= set(ALL)


@pytest.mark.parametrize("example", ALL)
def test_it_is_a_short_script_that_says_what_it_shows(example):
    text = (FOLDER / example).read_text(encoding="utf-8")
    assert re.match(r'"""\S.*[.?:]\n\n    (python|ocelad|spark-submit) ', text), "a sentence, then how to run it"
    assert 'if __name__ == "__main__":' in text
    assert len(text.splitlines()) <= 120


def test_the_readme_lists_all_with_a_line_each():
    listed = re.findall(
        r"^\| \[`?([\w/.]+?)`?\]\(\1\) \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.M
    )
    assert sorted(listed) == ALL


def test_the_encoder_of_the_example_is_a_sentence_transformer_where_there_is_one(tmp_path):
    """One that gives as many numbers as it has words."""
    (tmp_path / "sentence_transformers.py").write_text(
        "import os\n"
        "import numpy as np\n"
        "class SentenceTransformer:\n"
        "    def __init__(self, name):\n"
        "        assert os.environ['HF_HUB_OFFLINE'] == '1'\n"
        "        if name == 'absent':\n"
        "            raise OSError('there is no such model')\n"
        "    def encode(self, texts):\n"
        "        assert type(texts) is list\n"
        "        words = 'invoice password order address cancel stop change edit find look see'.split()\n"
        "        return np.array([[word in text for word in words] for text in texts], dtype=np.float32)\n"
    )
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    for name, words in (("all-words", "all-words: want the same done: right"), ("absent", "cannot be loaded")):
        assert words in run("encoder.py", name, cwd=tmp_path, PYTHONPATH=paths)
