"""Sphinx configuration."""

from ocelad import __version__

project = "ocelad"
author = "the ocelad developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
html_theme = "furo"
html_title = f"ocelad {release}"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_mock_imports = ["pyspark", "google"]  # of the extra spark, for which pages need not wait
napoleon_google_docstring = False


def show_equations(app, what, name, obj, options, lines):  # noqa: ARG001
    """Docstrings are plain text: an indented block is an equation, and a bar means a norm."""
    plain, equation = [], False
    for number, line in enumerate(lines):
        indented = line.startswith("    ")
        if indented and not equation and number and not lines[number - 1].strip():
            plain += ["::", ""]
            equation = True
        elif line.strip() and not indented:
            equation = False
        plain.append(line if equation or ">>>" in line else line.replace("|", "\\|"))
    lines[:] = plain


def setup(app):
    app.connect("autodoc-process-docstring", show_equations, priority=100)  # before napoleon
