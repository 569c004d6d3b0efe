"""Links and images of the documentation lead somewhere, every page can be found, and every block of Python runs.

Links to other sites are not followed. `make docs` looks at what Sphinx makes of the pages; this looks at the
files, also at those that people read on the host of the repository.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    page
    for pattern in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md", "docs/**/*.md")
    for page in sorted(ROOT.glob(pattern))
    if "_build" not in page.parts
]
NOT_DOCTESTS = {
    "docs/serve-digits.md": "its last block needs files that a reader has downloaded from the page",
    "docs/spark.md": "tests/spark_job.py runs its blocks where there is Java",
}
"""Pages with blocks of Python that are no doctests, and why."""

FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})(.*?)\n(.*?)^\1\2`*[ \t]*$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"\]\(\s*<?([^()\s>]+(?:\([^()]*\))?)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]^]+\]:\s*<?(\S+?)>?(?:\s+\"[^\"]*\")?\s*$", re.MULTILINE)
HTML = re.compile(r"<(?:img|a)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"")
ROLE = re.compile(r"\{(doc|download)\}`(?:[^`<]*<)?([^`<>]+)>?`")
OTHER_SITE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def blocks(text):
    """What is between fences: the words after the opening one, and the lines in between."""
    return [(match[3].strip(), match[4]) for match in FENCE.finditer(text)]


def prose(text):
    """A page without comments and blocks; words of code are the word "code"."""
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", _kept_if_role, _without_blocks(text))


def _without_blocks(text):
    return FENCE.sub("", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))


def _kept_if_role(match):
    before = match.string[: match.start()]
    return match[0] if before.endswith("}") else "code"


def anchors(text):
    """The fragments that lead into a page: headings as GitHub and MyST spell them, and targets, ``(name)=``."""
    found, seen = set(re.findall(r"^\(([^)\s]+)\)=\s*$", text, re.MULTILINE)), {}
    for heading in re.findall(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", _without_blocks(text), re.MULTILINE):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        found.add(slug if not seen[slug] else f"{slug}-{seen[slug]}")
    return found


def toctree(page):
    """The pages that a page's tables of contents name, with the words that name them."""
    for head, body in blocks(page.read_text(encoding="utf-8")):
        if head.startswith("{toctree}"):
            for line in body.splitlines():
                entry = line.strip()
                if entry and not entry.startswith((":", "---")):
                    target = entry.rpartition("<")[2].rstrip(">") if entry.endswith(">") else entry
                    if OTHER_SITE.match(target) or target == "self":
                        continue
                    path = target if target.endswith(".md") else f"{target}.md"
                    several = sorted(page.parent.glob(path)) if ":glob:" in body else []
                    yield from ((entry, each) for each in several or [page.parent / path])


def targets(page):
    """Each internal link, image and role of a page: as it is written, the file, and the fragment."""
    text = page.read_text(encoding="utf-8")
    plain = prose(text)
    written = [match[1] for pattern in (INLINE, REFERENCE, HTML) for match in pattern.finditer(plain)]
    for head, body in blocks(text):
        if found := re.match(r"\{(?:image|figure|literalinclude|include)\}\s+(\S+)", head):
            written.append(found[1])
        if head == "{eval-rst}":
            written += re.findall(r"^\s*\.\. (?:image|figure|literalinclude)::\s+(\S+)", body, re.MULTILINE)
    for link in written:
        if not OTHER_SITE.match(link):
            path, _, fragment = link.partition("#")
            yield link, (page.parent / path) if path else page, fragment
    for role, target in ROLE.findall(plain):
        name = target if role == "download" or target.endswith(".md") else f"{target}.md"
        yield f"{{{role}}}`{target}`", page.parent / name, ""


def dead(page):
    """What is wrong with the links of a page, a sentence each."""
    wrong = []
    for link, path, fragment in targets(page):
        if not path.exists():
            wrong.append(f"{link}: there is no {path}")
        elif fragment and path.suffix == ".md" and fragment not in anchors(path.read_text(encoding="utf-8")):
            wrong.append(f"{link}: {path.name} has no heading #{fragment}")
    return wrong + [f"toctree, {entry}: there is no {path}" for entry, path in toctree(page) if not path.exists()]


def reachable(index):
    """All pages that the tables of contents lead to."""
    found, todo = set(), [index]
    while todo:
        page = todo.pop().resolve()
        if page not in found and page.exists():
            found.add(page)
            todo += [path for _, path in toctree(page)]
    return found


def not_run(page):
    """Blocks of Python that are no doctests, or skip some of their lines."""
    python = [
        body for head, body in blocks(page.read_text(encoding="utf-8")) if re.match(r"(python|pycon|py)\b", head)
    ]
    return [body for body in python if ">>>" not in body or "+SKIP" in body]


def unseen(page):
    """What a host that knows Markdown alone would not show, or show as code: a word each."""
    text = page.read_text(encoding="utf-8")
    plain = prose(text)
    links = re.findall(r"(?<!!)\[\s*\]\([^)]*\)", plain)
    roles = re.findall(r"\{[\w:-]+\}`[^`]*`", plain)
    return links + roles + [head for head, _ in blocks(text) if re.match(r"\{(?!toctree|eval-rst)", head)]


def name(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_and_images_lead_somewhere(page):
    wrong = dead(page)
    assert not wrong, f"dead links in {name(page)}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_can_be_read_as_plain_markdown(page):
    hidden = unseen(page)
    assert not hidden, f"{name(page)} has what only Sphinx shows:\n" + "\n".join(hidden)


def test_every_page_can_be_found_from_the_index():
    lost = {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - reachable(ROOT / "docs" / "index.md")
    assert not lost, f"no toctree that docs/index.md leads to names {sorted(map(name, lost))}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_of_python_runs(page, pytestconfig):
    resting = not_run(page)
    if name(page) in NOT_DOCTESTS:
        assert resting, f"{name(page)} need not be an exception: all its blocks are doctests"
        return
    assert not resting, (
        f"{name(page)} has Python that is no doctest: write it with >>>, or say in NOT_DOCTESTS where it runs:\n"
        + "\n".join(resting)
    )
    if any(head.startswith("python") for head, _ in blocks(page.read_text(encoding="utf-8"))):
        collected = [ROOT / path for path in pytestconfig.getini("testpaths")]
        assert any(page.is_relative_to(path) for path in collected), f"pytest does not collect {name(page)}"


def test_exceptions_are_pages():
    assert set(NOT_DOCTESTS) <= set(map(name, PAGES))


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    (tmp_path / "index.md").write_text(
        "# Home\n\n```{toctree}\n:maxdepth: 1\n\nThe guide <guide>\nsub/more\n```\n"
    )
    (tmp_path / "guide.md").write_text("# The `guide`, part 1\n\n## Why?\n\n## Why?\n\n(here)=\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "more.md").write_text("# More\n")
    (tmp_path / "lost.md").write_text("# Lost\n")
    (tmp_path / "picture.png").touch()
    return tmp_path


@pytest.mark.parametrize(
    "good",
    [
        "[a](guide.md)",
        "[](guide.md#why)",
        "[the second](guide.md#why-1)",
        "[](guide.md#the-guide-part-1)",
        "[](guide.md#here)",
        "[](#title)",
        "![picture](picture.png)",
        "[![picture](picture.png)](guide.md)",
        "```{image} picture.png\n:alt: it\n```",
        "{doc}`guide` and {doc}`this <sub/more>`",
        "[there][1]\n\n[1]: guide.md",
        '<img src="picture.png">',
        "[elsewhere](https://example.org/nothing.md)",
        "`[code](nothing.md)` and ``[more](nothing.md)``",
        "```python\n>>> x[0](nothing.md)\n```",
        "<!-- [a comment](nothing.md) -->",
    ],
)
def test_good_links_are_left_in_peace(site, good):
    page = site / "page.md"
    page.write_text(f"# Title\n\n{good}\n")
    assert dead(page) == []


@pytest.mark.parametrize(
    "bad",
    [
        "[a](nothing.md)",
        "[](guide.md#nowhere)",
        "[](guide.md#why-2)",
        "[](#nowhere)",
        "![picture](nothing.png)",
        "[![picture](nothing.png)](guide.md)",
        "[![picture](picture.png)](nothing.md)",
        "```{image} nothing.png\n```",
        "{doc}`nothing`",
        "{doc}`this <nothing>`",
        "[there][1]\n\n[1]: nothing.md",
        '<img src="nothing.png">',
        "```{toctree}\nnothing\n```",
        "```{eval-rst}\n.. image:: nothing.png\n```",
        "`code` [a](nothing.md) `code`",
    ],
)
def test_dead_links_are_found(site, bad):
    page = site / "page.md"
    page.write_text(f"# Title\n\n{bad}\n")
    (wrong,) = dead(page)
    assert "no" in wrong


@pytest.mark.parametrize(
    "bad",
    [
        "see [](guide.md)",
        "see [ ](guide.md#why)",
        "```{image} picture.png\n:alt: it\n```",
        "```{math}\nx\n```",
        "````{note}\nx\n````",
        "the square {math}`x^2`",
        "{doc}`guide`",
    ],
)
def test_what_only_sphinx_shows_is_found(site, bad):
    page = site / "page.md"
    page.write_text(f"# Title\n\n{bad}\n")
    assert len(unseen(page)) == 1


@pytest.mark.parametrize(
    "good",
    [
        "[the guide](guide.md)",
        "![](picture.png)",
        "[`guide`](guide.md)",
        "[![picture](picture.png)](guide.md)",
        "```{toctree}\nguide\n```",
        "```{eval-rst}\n.. autoclass:: x\n```",
        "`[](guide.md)` and ``{doc}`guide` ``",
        "```python\n>>> x[0], [](1)\n```",
        "$$\nx^2\n$$",
    ],
)
def test_plain_markdown_is_left_in_peace(site, good):
    page = site / "page.md"
    page.write_text(f"# Title\n\n{good}\n")
    assert unseen(page) == []


def test_lost_pages_are_found(site):
    found = {page.relative_to(site).as_posix() for page in reachable(site / "index.md")}
    assert found == {"index.md", "guide.md", "sub/more.md"}


def test_a_toctree_may_have_patterns(site):
    page = site / "page.md"
    page.write_text("```{toctree}\n:glob:\n\nl*\nguide\n```\n")
    assert dead(page) == []
    assert {each.name for each in reachable(page)} == {"page.md", "lost.md", "guide.md"}
    page.write_text("```{toctree}\n:glob:\n\nnothing*\n```\n")
    assert len(dead(page)) == 1


def test_python_that_does_not_run_is_found(site):
    page = site / "page.md"
    page.write_text("```python\n>>> 1 + 1\n2\n\n```\n\n```sh\nls\n```\n\n```python\nx = 1\n```\n")
    assert not_run(page) == ["x = 1\n"]
