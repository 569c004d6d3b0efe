"""Draw the pictures of the page of ``ocelad serve``: ``python docs/screenshots.py``, a minute or two.

Somebody answers with the keyboard whether two digits are the same. After 100 answers they judge differently, and
say whether both are even, or both odd. It prints what the tutorial quotes. It needs Chromium, and the extra
``browser``.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from ocelad import loads

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from running import Running

EXAMPLE = Path(__file__).parent.parent / "examples" / "serve_digits.py"
IMAGES = Path(__file__).parent / "images"
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]
LAPTOP, WIDE, PHONE = (1600, 1060), (1920, 1080), (360, 740)
PATIENCE = 30.0
"""Seconds that anything may take."""

Array = NDArray[np.float64]
Rule = Callable[[str], int]


def digit(id: str) -> int:
    return int(id.split("/")[0])


def parity(id: str) -> int:
    return digit(id) % 2


class Person:
    """Somebody before the page, who answers by a rule: two digits are similar if it gives the same of both."""

    def __init__(self, browser: Browser, service: Running, size: tuple[int, int], phone: bool = False) -> None:
        self.service, self.answers = service, 0
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            device_scale_factor=2 if phone else 1,
            is_mobile=phone,
            has_touch=phone,
            color_scheme="light",
            reduced_motion="reduce",  # points are at once where they will be
        )
        self.page: Page = context.new_page()
        self.page.goto(f"http://127.0.0.1:{service.port}/")
        self.page.locator("#name").fill("Ann")
        self.page.locator("#name").press("Enter")
        self.page.locator("#color").select_option("folder")

    def until(self, condition: str) -> None:
        """Wait; Playwright's own way would evaluate strings in the page, which its policy forbids."""
        end = time.monotonic() + PATIENCE
        while not self.page.evaluate(condition):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            self.page.wait_for_timeout(5)

    def asked(self) -> list[str]:
        """The two that are shown."""
        self.until("!document.getElementById('similar').disabled")
        return self.page.locator("#stage .id").all_inner_texts()

    def answer(self, rule: Rule, times: int) -> None:
        """Press a key for each question; what was said is learned before the next."""
        for _ in range(times):
            a, b = self.asked()
            self.page.keyboard.press("s" if rule(a) == rule(b) else "d")
            self.until("document.body.dataset.pending === '0'")
            self.service.learned()
            self.answers += 1

    def change(self) -> None:
        self.page.locator("#change").click()
        self.page.locator("#change-yes").click()
        self.until("document.body.dataset.pending === '0'")

    def picture(self, name: str) -> None:
        """Once the page has drawn all that was learned."""
        self.asked()
        t = self.service.learned()["t"]
        self.until(f"document.getElementById('map').getAttribute('aria-label').includes('after {t} answer')")
        self.page.wait_for_timeout(1000)
        with Image.open(io.BytesIO(self.page.screenshot())) as picture:
            few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        few.save(IMAGES / f"serve-{name}.png", optimize=True)

    def tell(self, name: str, points: Array, ids: list[str]) -> None:
        """What the page says, and how many of 5000 random pairs the tracker would judge by each rule."""
        state = self.service.learned()
        print(f"{name}: {self.answers} answers, {state['counts']}, foreseen {state['foreseen']}")
        if self.answers:
            tracker = loads(self.service.get("export/tracker.ocelad"))
            i, j = np.random.default_rng(0).integers(len(ids), size=(2, 5000))
            found = tracker.predict(np.stack([points[i], points[j]], axis=1))
            for rule in (digit, parity):
                of = np.array([rule(id) for id in ids])
                right = found == np.where(of[i] == of[j], 1, -1)
                print(f"  random pairs judged by {rule.__name__}: {right.mean():.3f}")
            print(f"  groups: {state['groups']}; alarms: {state['alarms']}; {state['curve']['words']}")
            heavy = sorted(state["experts"], key=lambda expert: -expert["weight"])[:3]
            print("  experts:", ", ".join(f"{expert['name']} {expert['weight']:.2f}" for expert in heavy))


def main() -> None:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        subprocess.run([sys.executable, str(EXAMPLE), name], check=True)
        points = np.load(folder / "digits.npy")
        ids = sorted(path.relative_to(folder / "digits").as_posix() for path in folder.rglob("*.png"))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        with Running(folder / "digits", "--points", folder / "digits.npy", data=folder / "data") as service:
            ann = Person(browser, service, LAPTOP)
            steps: list[tuple[str, Rule, int]] = [("start", digit, 0), ("same", digit, 100)]
            steps += [("changed", parity, 30), ("parity", parity, 170)]
            for step, rule, times in steps:
                if step == "changed":
                    ann.change()
                ann.answer(rule, times)
                ann.picture(step)
                ann.tell(step, points, ids)
            ann.page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
            ann.picture("wide")
            ann.page.close()
            Person(browser, service, PHONE, phone=True).picture("phone")
        browser.close()


if __name__ == "__main__":
    main()
