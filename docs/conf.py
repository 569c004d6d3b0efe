"""Sphinx configuration."""

import re

from ocelad import __version__

project = "ocelad"
author = "the ocelad developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
html_theme = "furo"
html_title = f"ocelad {release}"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_mock_imports = ["pyspark", "google"]  # of the extra spark, for which pages need not wait
napoleon_google_docstring = False


def show_equations(app, what, name, obj, options, lines):  # noqa: ARG001
    """Docstrings are plain text: an indented block is an equation, a bar means a norm, and x_ is no link."""
    plain, equation = [], False
    for number, line in enumerate(lines):
        indented = line.startswith("    ")
        if indented and not equation and number and not lines[number - 1].strip():
            plain += ["::", ""]
            equation = True
        elif line.strip() and not indented:
            equation = False
        if not equation and ">>>" not in line:
            line = line.replace("|", "\\|")
            if "`" not in line and " : " not in line:
                line = re.sub(r"(\w)_(?=[\s.,;]|$)", r"\1\\_", line)
        plain.append(line)
    lines[:] = plain


def setup(app):
    app.connect("autodoc-process-docstring", show_equations, priority=100)  # before napoleon
