"""What `make dist` has built: are all files in it, is nothing else, and does it work where the sources are not?

python .ci/check_dist.py dist
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = {"PKG-INFO", ".gitignore"}  # of a source distribution: the second says what was left out

SMOKE = r"""
import doctest, re, sys, tempfile
from pathlib import Path
import numpy as np
import ocelad

assert "site-packages" in ocelad.__file__, ocelad.__file__
rng = np.random.default_rng(0)
pairs = rng.normal(size=(300, 2, 3))
y = np.where(np.abs(pairs[:, 0, 0] - pairs[:, 1, 0]) < 1, 1, -1)
tracker = ocelad.MetricTracker().partial_fit(pairs[:200], y[:200])
right = (tracker.predict(pairs[200:]) == y[200:]).mean()
assert right > 0.8, right
with tempfile.TemporaryDirectory() as folder:
    ocelad.save(tracker, Path(folder) / "tracker.ocelad")
    again = ocelad.load(Path(folder) / "tracker.ocelad")
assert (again.predict(pairs) == tracker.predict(pairs)).all()

blocks = re.findall("```python\\n(.*?)```", Path(sys.argv[1]).read_text(encoding="utf-8"), re.DOTALL)
first = next(block for block in blocks if ">>>" in block)
test = doctest.DocTestParser().get_doctest(first, {}, "README", sys.argv[1], 0)
sys.exit(doctest.DocTestRunner().run(test).failed)
"""


def tracked() -> set[str]:
    """The files that git knows."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return set(listed.splitlines())


def check_files(wheel: Path, sdist: Path) -> None:
    """The wheel has the package, and the source distribution what git knows; neither has anything else."""
    package = {name.removeprefix("src/") for name in tracked() if name.startswith("src/ocelad/")}
    with zipfile.ZipFile(wheel) as opened:
        found = {name for name in opened.namelist() if ".dist-info/" not in name}
    if found != package:
        sys.exit(f"{wheel.name} and src/ differ in {sorted(found ^ package)}")
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    if junk := names - GENERATED - tracked():
        sys.exit(f"{sdist.name} has files that git does not know: {sorted(junk)}")
    if missing := {f"src/{name}" for name in package} - names:
        sys.exit(f"{sdist.name} lacks {sorted(missing)}")
    print(f"{wheel.name}: {len(found)} files; {sdist.name}: {len(names)} files; nothing that git does not know")


def check_readme() -> None:
    """A package index shows the README without the images beside it, so that each needs words in its place."""
    if bare := re.findall(r"!\[\s*\]\((.*?)\)", (ROOT / "README.md").read_text(encoding="utf-8")):
        sys.exit(f"README.md: images without a text that takes their place: {bare}")


def check_installed(wheel: Path) -> None:
    """In a fresh environment outside the tree: the command, learning, saving, the first example of the README."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "fresh", with_pip=True)
        python = folder / "fresh" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        (folder / "smoke.py").write_text(SMOKE, encoding="utf-8")
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        for words in (
            ["-m", "pip", "install", "--quiet", f"{wheel}[cli]"],
            ["-m", "pip", "check"],
            [str(python.parent / "ocelad"), "--version"],
            [str(folder / "smoke.py"), str(ROOT / "README.md")],
        ):
            program = [] if words[0].endswith("ocelad") else [str(python)]
            subprocess.run([*program, *words], cwd=folder, check=True, env=clean)
    print(f"{wheel.name} works in a fresh environment")


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_files(wheel, sdist)
    check_readme()
    check_installed(wheel)


if __name__ == "__main__":
    main()
