"""The pages of studies in a real browser: all can be read, wide and narrow, light and dark."""

import shutil
from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from ocelad.plots import html

api = pytest.importorskip("playwright.sync_api", reason="there is no Playwright: make browser installs it")
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
if CHROMIUM is None:
    pytest.skip("there is no Chromium: make browser installs it", allow_module_level=True)

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
BRIGHTNESS = (
    "e => getComputedStyle(e).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0) / 765"
)


@pytest.fixture(name="page", scope="module")
def fixture_page(tmp_path_factory):
    """A page with all that the reports have: a wide figure, a wide table, verdicts, and a word without spaces."""
    header = ["", *(f"{k}: B, drift 0.05" for k in range(8))]
    rows = [[f"method {k}", *["0.0123 ± 0.0045"] * 8] for k in range(3)]
    verdicts = [
        ("ocelad", word, look, "a reason " * 12) for word, look in (("holds", "yes"), ("does not hold", "no"))
    ]
    figure = plt.figure(figsize=(9, 3))
    parts = [
        f"<p>From /{'folder/' * 30}table.csv</p>",
        html.figure(figure, "nothing at all"),
        "<h2>Claims</h2>",
        html.told([*verdicts, ("RICE", "the trials do not tell", "open", "a reason")]),
        "<h2>Numbers</h2>",
        html.table(header, rows),
    ]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html.document("A study", parts), encoding="utf-8")
    return path


@pytest.fixture(name="browser", scope="module")
def fixture_browser():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_a_page_can_be_read_on_any_screen(browser, page, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    shown = context.new_page()
    shown.goto(page.as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width  # what is wide scrolls by itself
    assert shown.locator(".told td").last.bounding_box()["width"] > 0.4 * width or width > 360
    assert shown.locator("img").bounding_box()["width"] > 550  # a figure stays legible
    assert (shown.locator("body").evaluate(BRIGHTNESS) < 0.2) == (scheme == "dark")
    assert shown.locator(".card").evaluate(BRIGHTNESS) == 1.0  # figures are drawn for white paper
    shown.add_script_tag(path=AXE)
    # contrast, names, headings, and what scrolls without a mouse
    found = shown.evaluate("axe.run().then((found) => found.violations)")
    assert not [(each["id"], each["nodes"][0]["html"][:200]) for each in found]
    context.close()
