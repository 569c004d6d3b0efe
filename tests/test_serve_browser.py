"""The page in a real browser: nothing is lost, nothing moves, only our code runs, and everybody can use it."""

import csv
import io
import json
import re
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from ocelad import loads
from running import Running

pytest.importorskip("fastapi", reason="the service needs the extra serve")
api = pytest.importorskip("playwright.sync_api", reason="there is no Playwright: make browser installs it")

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
if CHROMIUM is None:
    pytest.skip("there is no Chromium: make browser installs it", allow_module_level=True)

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]
WATCH = """
window.shifts = [];
const place = ({ x, y, width, height }) => [x, y, width, height].map(Math.round);
const moved = ({ node, previousRect, currentRect }) =>
  `${node?.id || node?.className || node?.nodeName} ${place(previousRect)} to ${place(currentRect)}`;
const told = ({ value, sources }) => `${value}: ${sources.map(moved).join("; ")}`;
new PerformanceObserver((list) => window.shifts.push(...list.getEntries().map(told)))
  .observe({ type: "layout-shift", buffered: true });
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""
PATIENCE = 15.0
"""Seconds that anything may take."""

REFUSED = r"Failed to load resource: net::ERR_"
"""What the browser itself says while there is no service."""


def table(path, count=40, seed=0):
    """Animals of three kinds that differ in length and weight."""
    rng = np.random.default_rng(seed)
    kind = np.arange(count) % 3
    points = rng.normal(size=(count, 3)) + np.array([[0, 0, 0], [6, 0, 0], [0, 6, 0]])[kind]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "colour", "length", "weight", "age"])
        for k in range(count):
            writer.writerow([f"animal {k}", ["red", "blue"][k % 2], *map(repr, points[k].tolist())])
    return path


def kind(id):
    return int(id.split()[1]) % 3


def truth(pair):
    return 1 if kind(pair[0]) == kind(pair[1]) else -1


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    with Running(table(folder / "animals.csv"), data=folder / "data") as running:
        yield running
        assert "Warning" not in running.words()  # of Python's


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Seven animals, each pair of which is asked of two people."""
    folder = tmp_path_factory.mktemp("small")
    with Running(table(folder / "few.csv", 7), "--repeats", 2, data=folder / "data") as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def come(browser, service):
    """Lets a person come to a service; nothing may be said on the console, come from elsewhere, or be refused."""
    people = []
    with ExitStack() as contexts:

        def arrive(to=service, stream="default", path=None, said=(), **how):
            context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **how})
            contexts.callback(context.close)
            people.append(Person(context, to, stream, path, said))
            return people[-1]

        yield arrive
        for person in people:
            person.leave()


class Person:
    """Somebody before the page, and all that their browser complained about."""

    def __init__(self, context, service, stream, path, said):
        self.context, self.service, self.stream, self.said = context, service, stream, said
        self.home = f"http://127.0.0.1:{service.port}/"
        self.words, self.outside, self.gone = [], [], False
        context.add_init_script(WATCH)
        context.set_default_timeout(1000 * PATIENCE)
        self.page = page = context.new_page()
        page.on("console", lambda message: self.words.append(message.text))
        page.on("pageerror", lambda error: self.words.append(str(error)))
        page.on("dialog", lambda dialog: (self.words.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.outside.append(request.url))
        page.goto(path or f"{self.home}?stream={stream}")

    def leave(self):
        """Before the service goes, if it does: the browser would complain of that."""
        if self.gone:
            return
        self.gone = True
        assert [word for word in self.words if not any(re.search(each, word) for each in self.said)] == []
        assert [url for url in self.outside if not url.startswith((self.home, f"blob:{self.home}"))] == []
        assert self.page.evaluate("window.violations") == []
        assert len(self.context.pages) == 1
        self.context.close()

    def asked(self):
        """The two that the page asks about now."""
        self.until("!document.getElementById('similar').disabled")
        return tuple(self.page.locator("#stage .id").all_inner_texts())

    def press(self, key):
        self.page.keyboard.press(key)

    def answer(self, keys="sd", about=truth):
        """Press the right one of two keys; the pair and the answer."""
        pair = self.asked()
        y = about(pair)
        self.press(keys[0] if y > 0 else keys[1])
        return (*pair, y)

    def until(self, condition, argument=None):
        """Until it holds; Playwright's own waiting evaluates strings in the page, which its policy forbids."""
        end = time.monotonic() + PATIENCE
        while not self.page.evaluate(condition, argument):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(10)

    def saved(self):
        """Until nothing waits in the browser."""
        self.until("document.body.dataset.pending === '0'")

    def shows(self, place, words):
        """Until some place has these words."""
        self.until("([place, words]) => document.querySelector(place).textContent.includes(words)", [place, words])

    def shifts(self):
        """What has moved by itself, from where to where."""
        return self.page.evaluate("window.shifts")

    def log(self):
        path = f"/v1/streams/{self.stream}/comparisons?limit=10000"
        status, found = self.service.request("GET", path)
        return found["comparisons"] if status == 200 else []

    def kept(self):
        """The comparisons of the log that hold."""
        entries = [entry for entry in self.log() if entry["kind"] == "comparison" and not entry["undone"]]
        return [(entry["a"], entry["b"], entry["y"]) for entry in entries]

    def say(self, comparisons, by="Eve"):
        """Comparisons that a program sends."""
        body = [
            {"request_id": f"{by} {time.monotonic_ns()} {k}", "a": a, "b": b, "y": y, "by": by}
            for k, (a, b, y) in enumerate(comparisons)
        ]
        assert self.service.request("POST", f"/v1/streams/{self.stream}/comparisons", body)[0] == 201


def some(count, seed=0):
    """Comparisons that are right."""
    pairs = np.random.default_rng(seed).permutation([(i, j) for i in range(40) for j in range(i)])[:count].tolist()
    return [(f"animal {i}", f"animal {j}", truth((f"animal {i}", f"animal {j}"))) for i, j in pairs]


class TestKeys:
    def test_sixty_answers(self, come):
        person = come(stream="keys")
        given = []
        for k in range(60):
            given.append(person.answer(["sd", ("ArrowLeft", "ArrowRight"), "SD"][k % 3]))
            person.page.wait_for_timeout(60)  # nobody is faster, and each time is that of one answer
        person.saved()
        assert person.kept() == given
        assert [entry["kind"] for entry in person.log()] == ["comparison"] * 60
        assert person.page.locator("#number").inner_text() == "Question 61"
        assert person.page.locator("#status-words").inner_text() == "saved"
        times = person.page.evaluate("window.__ocelad")
        assert len(times["shown"]) == len(times["acknowledged"]) == 60
        for name in ("shown", "painted", "acknowledged"):
            middle, worst = median(times[name]), max(times[name])
            print(f"\nfrom key to {name}: median {middle:.1f} ms, at most {worst:.1f} ms", end="")
        person.shows("#counts", "60" if all(y > 0 for *_, y in given) else str(sum(y > 0 for *_, y in given)))
        assert person.shifts() == []

    def test_undo(self, come):
        person = come(stream="undo")
        assert person.page.locator("#undo").is_disabled()
        given = [person.answer() for _ in range(6)]
        person.saved()
        after = person.asked()
        person.press("z")
        assert person.asked() == given[5][:2]
        person.press("ArrowUp")
        person.press("Z")
        assert person.asked() == given[3][:2]
        person.saved()
        assert person.kept() == given[:3]
        assert sum(entry["kind"] == "undo" for entry in person.log()) == 3
        for a, b, y in given[3:]:  # asked again in the same order, and then what would have come
            assert person.answer(about=lambda pair: -truth(pair)) == (a, b, -y)
        assert person.asked() == after
        for _ in range(6):
            person.press("z")
        person.saved()
        assert person.kept() == []
        assert person.page.locator("#undo").is_disabled()
        assert person.shifts() == []

    def test_undo_before_it_is_acknowledged(self, come):
        person = come(stream="early")
        pair = person.asked()
        for _ in range(5):
            person.press("s")
            person.press("z")
        assert person.asked() == pair
        person.press("d")
        person.saved()
        assert person.kept() == [(*pair, -1)]

    def test_skip(self, come):
        person = come(stream="skip")
        first, second = [(person.asked(), person.press(key))[0] for key in ("u", "ArrowDown")]
        third = person.answer()
        person.saved()
        assert [(entry["kind"], entry["a"], entry["b"]) for entry in person.log()] == [
            ("skip", *first),
            ("skip", *second),
            ("comparison", *third[:2]),
        ]
        person.press("z")
        person.press("z")
        person.saved()
        assert person.asked() == second
        assert [entry["undone"] for entry in person.log() if entry["kind"] != "undo"] == [False, True, True]

    def test_a_key_that_is_typed_or_held_or_part_of_a_shortcut_is_no_answer(self, come):
        person = come(stream="typed")
        pair = person.asked()
        person.page.locator("#name").focus()
        for key in "sdzu":
            person.press(key)
        assert person.page.locator("#name").input_value() == "sdzu"
        person.press("Enter")
        for key in ("Control+d", "Alt+ArrowLeft", "Shift+ArrowRight"):
            person.page.evaluate(
                "([key, name]) => document.body.dispatchEvent(new KeyboardEvent('keydown', "
                "{key, [name]: true, bubbles: true}))",
                [key.split("+")[1], f"{key.split('+')[0].lower().replace('control', 'ctrl')}Key"],
            )
        person.page.locator("#change").click()
        person.press("s")  # a dialog is open
        person.press("Escape")
        assert person.asked() == pair
        person.page.keyboard.down("s")
        for _ in range(3):
            person.page.keyboard.down("s")  # held
        person.page.keyboard.up("s")
        person.saved()
        assert len(person.log()) == 1

    def test_all_can_be_done_by_tab_and_enter(self, come):
        person = come(stream="tabs")
        pair = person.asked()
        focused = []
        person.page.locator(".jump").focus()
        for _ in range(12):
            focused.append(person.page.evaluate("document.activeElement.id || document.activeElement.localName"))
            person.press("Tab")
        expected = ["name", "aim", "similar", "different", "unsure", "change"]
        assert [name for name in focused if name in expected] == expected
        person.page.locator("#different").focus()
        person.press("Enter")
        person.saved()
        assert person.kept() == [(*pair, -1)]
        assert person.page.evaluate("document.activeElement.id") == "different"  # it stays where it was
        said = person.page.locator("#say").text_content()
        assert said.startswith("Different. Question 2. A: ")


class TestNothingIsLost:
    def test_reload_in_the_middle(self, come):
        person = come(stream="reload")
        given = [person.answer() for _ in range(5)]
        for _ in range(3):
            given.append(person.answer())
            person.page.reload()  # without waiting
        person.asked()
        person.saved()
        assert person.kept() == given
        person.press("z")
        person.press("z")
        assert person.asked() == given[-2][:2]
        person.saved()
        assert person.kept() == given[:-2]

    def test_the_service_is_killed_and_started_again(self, come, tmp_path):
        items = table(tmp_path / "animals.csv")
        with Running(items, data=tmp_path / "data") as first:
            person = come(first, said=[REFUSED, "503"])  # which is what it says while it starts
            given = [person.answer() for _ in range(3)]
            person.page.wait_for_timeout(500)  # so that three questions are at hand again
            given.append(person.answer())
            first.kill()  # the last answer may be on its way
            for _ in range(2):
                given.append(person.answer())
            person.shows("#status-words", "no connection")
            assert re.search(r"\d answers? waits? here", person.page.locator("#status-words").inner_text())
            given.append(person.answer())
            person.press("z")
            taken_back = given.pop()
        with Running(items, data=tmp_path / "data", port=first.port) as person.service:
            assert person.asked() == taken_back[:2]
            given.append(person.answer())
            person.saved()
            given += [person.answer() for _ in range(5)]
            person.saved()
            assert person.kept() == given
            asked = [entry["request_id"] for entry in person.log() if entry["kind"] == "comparison"]
            assert len(set(asked)) == len(asked)
            person.shows("#foreseen-of", f"{len(given)} answers")  # events go on, too
            assert person.shifts() == []

    def test_answers_wait_while_it_refuses(self, come):
        person = come(stream="busy", said=["Failed to load resource: the server responded with a status of 503"])
        refuse = {"status": 503, "headers": {"Retry-After": "1"}, "json": {"detail": "the disk is full"}}
        person.asked()
        person.page.route("**/comparisons", lambda route: route.fulfill(**refuse))
        given = [person.answer() for _ in range(3)]
        person.shows("#status-words", "the disk is full")
        person.page.unroute("**/comparisons")
        person.saved()
        assert person.kept() == given

    def test_undo_of_what_another_tab_has_sent(self, come):
        person = come(stream="tabs-undo", said=["status of 503"])
        refuse = {"status": 503, "headers": {"Retry-After": "60"}, "json": {"detail": "not now"}}
        pair = person.asked()
        person.page.route("**/comparisons", lambda route: route.fulfill(**refuse))
        person.press("s")
        person.shows("#status-words", "not now")
        key, text = person.page.evaluate("Object.entries(localStorage).find(([key]) => key.includes('.answer.'))")
        path = f"/v1/streams/{person.stream}/comparisons"
        assert person.service.request("POST", path, json.loads(text)["body"])[0] == 201  # as another tab would
        person.page.evaluate("(key) => localStorage.removeItem(key)", key)
        person.page.unroute("**/comparisons")
        person.page.reload()
        person.asked()
        assert person.kept() == [(*pair, 1)]
        person.press("z")
        person.saved()
        assert person.kept() == []

    def test_who_answers_is_kept(self, come):
        person = come(stream="name")
        person.asked()
        assert person.page.locator("#name").input_value() == ""
        person.page.locator("#name").fill("Ann")
        person.press("Enter")
        person.answer()
        person.saved()
        person.page.reload()
        person.answer()
        person.saved()
        assert person.page.locator("#name").input_value() == "Ann"
        assert [entry["by"] for entry in person.log()] == ["Ann", "Ann"]


class TestSeveral:
    def test_two_are_never_asked_the_same(self, come):
        people = [come(stream="several") for _ in range(2)]
        for person, name in zip(people, ("Ann", "Bob"), strict=True):
            person.page.locator("#name").fill(name)
            person.press("Enter")
        given = []
        for _ in range(15):
            pairs = [frozenset(person.asked()) for person in people]
            assert pairs[0] != pairs[1]
            given += [frozenset(person.answer()[:2]) for person in people]
        for person in people:
            person.saved()
        assert len(set(given)) == len(given) == 30
        by = [entry["by"] for entry in people[0].log()]
        assert sorted(by) == ["Ann"] * 15 + ["Bob"] * 15
        people[0].shows("#people", "2 people")
        people[0].shows("#people", "you 15, Bob 15")
        people[0].shows("#people", "no pair twice yet")

    def test_agreement(self, come, small):
        people = [come(small, stream="agreement") for _ in range(2)]
        for person, name in zip(people, ("Ann", "Bob"), strict=True):
            person.page.locator("#name").fill(name)
            person.press("Enter")
            given = [person.answer() for _ in range(6)]
            person.saved()
        assert {frozenset(pair) for *pair, _ in given} & {frozenset(pair) for *pair, _ in people[0].kept()[:6]}
        people[0].shows("#people", "agreement100 % of ")

    def test_streams_are_apart(self, come):
        one, other = come(stream="one"), come(stream="other")
        given = one.answer(), other.answer()
        one.saved()
        other.saved()
        assert (one.kept(), other.kept()) == ([given[0]], [given[1]])
        assert one.page.locator("#export-list a").first.get_attribute("href").startswith("/v1/streams/one/")


class TestWhatIsLearned:
    def test_panels(self, come):
        person = come(stream="panels")
        person.asked()
        before = person.page.locator(".panel .empty:visible").count()
        assert before >= 4
        person.say(some(29))
        person.answer()
        person.shows("#foreseen-of", "of the last 30 answers.")
        assert re.fullmatch(r"\d+ %", person.page.locator("#foreseen-share").inner_text())
        features = person.page.locator("#features li:visible .of").all_inner_texts()
        assert sorted(features) == ["age", "length", "weight"]
        assert features[-1] == "age"  # which does not count
        assert person.page.locator("#experts li:visible").count() >= 2
        person.until("document.querySelectorAll('.chart canvas').length === 2")
        person.until("document.getElementById('map').getAttribute('aria-label').includes('after 30 answers')")
        assert person.page.locator(".panel .empty:visible").count() == 0
        drawn = "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
        for canvas in (person.page.locator("#map"), *person.page.locator(".chart canvas").all()):
            assert canvas.evaluate(drawn) > 3
        counts = person.page.locator("#counts").inner_text().split()
        assert int(counts[1]) + int(counts[3]) == 30
        assert person.shifts() == []

    def test_map(self, come):
        person = come(stream="map")
        person.asked()
        person.say(some(30))
        person.until("document.getElementById('map').getAttribute('aria-label').includes('after 30 answers')")
        person.page.locator("#color").select_option("colour")
        person.page.locator("#map-details summary").click()
        person.shows("#map-table", "red")
        rows = person.page.locator("#map-table tbody tr")
        assert rows.count() == 40
        person.page.wait_for_timeout(500)  # until nothing moves
        box = person.page.locator("#map").bounding_box()
        for x in np.linspace(0.1, 0.9, 60):  # somewhere there is an item
            for y in (0.3, 0.5, 0.7):
                person.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
                if person.page.locator("#map-tip.shown").count():
                    break
            else:
                continue
            break
        assert re.search(r"animal \d+.*colour (red|blue)", person.page.locator("#map-tip").inner_text())

    def test_a_contradiction_is_noted(self, come):
        person = come(stream="otherwise")
        person.page.locator("#name").fill("Ann")
        person.press("Enter")
        person.answer()
        a, b = person.asked()
        person.say([(a, b, -1)], by="Ann")
        person.press("s")
        person.shows("#notes", "You said otherwise before")
        person.shows("#notes", "now similar, before different.")
        a, b = person.asked()
        person.say([(a, b, 1)], by="Bob")
        person.press("d")
        person.shows("#notes", "Bob said otherwise before")
        assert person.shifts() == []

    def test_i_judge_differently_now(self, come):
        person = come(stream="change")
        person.answer()
        person.page.locator("#change").click()
        person.page.locator("#change-no").click()
        person.page.locator("#change").click()
        person.page.locator("#change-yes").click()
        person.saved()
        assert [entry["kind"] for entry in person.log()] == ["comparison", "change"]
        person.shows("#notes", "You judge differently since answer 1")
        person.shows("#say-more", "You judge differently since answer 1")
        other = come(stream="change")
        other.shows("#notes", "judges differently since answer 1")
        assert person.page.evaluate("document.activeElement.id") == "ask"  # Enter does not open the dialog again
        person.page.reload()
        person.asked()
        person.shows("#notes", "You judge differently since answer 1")
        person.press("z")
        person.until("!document.getElementById('notes').textContent.includes('since question')")
        person.saved()
        assert [(entry["kind"], entry["undone"]) for entry in person.log()[1:]] == [
            ("change", True),
            ("undo", False),
        ]
        person.answer()
        person.saved()
        assert len(person.kept()) == 2

    def test_groups_until_all_is_known(self, come, small):
        person = come(small, stream="groups")
        person.page.locator("#aim").select_option("groups")
        for _ in range(40):
            person.until("!similar.disabled || stage.textContent.includes('All is known')")
            if person.page.locator("#similar").is_disabled():
                break
            person.answer()
        person.shows("#stage", "All is known.")
        person.shows("#people", "items placed7 of 7")
        with person.page.expect_download() as download:
            person.page.locator("#stage .links a", has_text="Groups").click()
        rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
        groups = {row["id"]: row["group"] for row in rows}
        assert len(groups) == 7
        for a in groups:
            for b in groups:
                assert (groups[a] == groups[b]) == (kind(a) == kind(b))
        person.press("z")  # and back
        person.asked()


def test_export(come):
    person = come(stream="export")
    given = [person.answer() for _ in range(12)]
    person.press("u")
    person.saved()
    person.until("document.getElementById('map').getAttribute('aria-label').includes('after 12 answers')")
    person.shows("#export-list .again", "ocelad track answers.csv --items items.csv")
    files = {}
    for name in ("Answers", "Items", "Groups", "Tracker", "Figure"):
        person.page.locator("#export summary").click()
        with person.page.expect_download() as download:
            person.page.locator("#export-list").get_by_text(name, exact=True).click()
        files[download.value.suggested_filename] = Path(download.value.path()).read_bytes()
        assert person.page.locator("#export").get_attribute("open") is None
    assert sorted(files) == ["answers.csv", "groups.csv", "items.csv", "map.png", "tracker.ocelad"]
    rows = list(csv.reader(io.StringIO(files["answers.csv"].decode())))
    assert [row[:3] for row in rows[1:13]] == [[a, b, str(y)] for a, b, y in given]
    items = list(csv.DictReader(io.StringIO(files["items.csv"].decode())))
    assert [row["id"] for row in items] == [f"animal {k}" for k in range(40)]
    assert len(list(csv.DictReader(io.StringIO(files["groups.csv"].decode())))) == 40
    tracker = loads(files["tracker.ocelad"])
    assert tracker.feature_names_in_.tolist() == ["length", "weight", "age"]
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(files["map.png"]))
    assert image.format == "PNG"
    assert image.size == (1800, 1376)
    assert len(image.getcolors(1 << 20)) > 10


class TestItems:
    def test_texts_that_are_html_are_shown_and_do_nothing(self, come, tmp_path):
        evil = "<img src=x onerror=\"alert(1)\"><script>alert(2)</script><b>bold</b> & 'quoted' </textarea>"
        with open(tmp_path / "texts.jsonl", "w") as file:
            for k in range(6):
                row = {"id": f"<i>{k}</i><svg onload=alert(3)>", "body": f"{evil} {k}", "<u>note</u>": evil}
                file.write(json.dumps(row) + "\n")
        np.save(tmp_path / "points.npy", np.random.default_rng(0).normal(size=(6, 3)))
        options = ["--text", "body", "--points", tmp_path / "points.npy", "--title", evil]
        with Running(tmp_path / "texts.jsonl", *options, data=tmp_path / "data") as running:
            person = come(running)
            ids = person.asked()
            texts = person.page.locator("#stage .text").all_inner_texts()
            for id, text in zip(ids[:2], texts, strict=True):
                number = id[3]
                assert id == f"<i>{number}</i><svg onload=alert(3)>"
                assert text == f"{evil} {number}"
            assert person.page.locator("#title").inner_text() == evil
            for _ in range(6):
                person.asked()
                person.press("s")
            person.asked()
            person.say([(ids[0], ids[1], -1)])
            person.shows("#notes", "said otherwise before")
            person.page.locator("#color").select_option("<u>note</u>")
            person.page.locator("#map-details summary").click()
            person.shows("#map-table", "<script>")
            assert person.page.locator("#stage :is(b, i, u, svg, script, img), #notes :is(i, svg)").count() == 0
            assert person.page.locator("h1 b, #map-table :is(b, i, svg, img), #color b").count() == 0
            person.saved()
            person.leave()

    def test_images(self, come, tmp_path):
        image = pytest.importorskip("PIL.Image")
        (tmp_path / "dots" / "of <b>").mkdir(parents=True)
        for k in range(6):
            image.new("L", (8 + 60 * (k % 2), 8), 40 * k).save(tmp_path / "dots" / "of <b>" / f"{k} & #.png")
        with Running(tmp_path / "dots", data=tmp_path / "data") as running:
            person = come(running)
            for _ in range(4):
                names = person.asked()
                assert all(re.fullmatch(r"of <b>/\d & #\.png", name) for name in names)
                person.until("[...document.querySelectorAll('#stage img')].every((i) => i.complete)")
                pictures = person.page.locator("#stage img")
                assert pictures.evaluate_all("all => all.map((i) => i.naturalWidth)") == [
                    8 + 60 * (int(name.split("/")[1][0]) % 2) for name in names
                ]
                assert pictures.first.get_attribute("alt") == f"Picture of {names[0]}"
                person.press("d")
            person.saved()
            assert person.shifts() == []
            person.leave()


def test_touch(come):
    person = come(
        stream="touch",
        viewport={"width": 360, "height": 740},
        has_touch=True,
        is_mobile=True,
        device_scale_factor=2,
    )
    given = []
    for k in range(6):
        pair = person.asked()
        person.page.locator("#similar" if k % 2 else "#different").tap()
        given.append((*pair, 1 if k % 2 else -1))
    person.saved()
    assert person.kept() == given
    person.page.locator("#undo").tap()
    person.saved()
    assert person.kept() == given[:-1]
    person.asked()
    person.page.locator("#unsure").tap()
    person.saved()
    assert person.log()[-1]["kind"] == "skip"
    assert person.page.evaluate("document.documentElement.scrollWidth") == 360
    sizes = person.page.locator("#buttons button").evaluate_all(
        "all => all.map((b) => [b.getBoundingClientRect().height, b.getBoundingClientRect().bottom])"
    )
    assert min(height for height, _ in sizes) >= 44
    assert max(bottom for _, bottom in sizes) <= 740  # the question and all answers are on one screen
    assert person.shifts() == []


def test_dark(come):
    light, dark = (come(stream="dark", color_scheme=scheme) for scheme in ("light", "dark"))
    shade = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((p, q) => p + q)"
    for person in (light, dark):
        person.asked()
    assert light.page.evaluate(shade) > 600
    assert dark.page.evaluate(shade) < 150
    dark.page.emulate_media(color_scheme="light")  # while it is open
    assert dark.page.evaluate(shade) > 600


class TestAccess:
    WIDTHS = ((360, 740), (1024, 768), (1920, 1080))

    def violations(self, person):
        found = person.page.evaluate("axe.run().then((found) => found.violations)")
        return [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found]

    def everywhere(self, person):
        for scheme in ("light", "dark"):
            person.page.emulate_media(color_scheme=scheme)
            for width, height in self.WIDTHS:
                person.page.set_viewport_size({"width": width, "height": height})
                person.page.wait_for_timeout(100)
                assert person.page.evaluate("document.documentElement.scrollWidth") == width
                assert (scheme, width, self.violations(person)) == (scheme, width, [])

    def test_everybody_can_use_it(self, come):
        person = come(stream="axe")
        person.asked()
        person.page.evaluate(AXE.read_text())
        self.everywhere(person)
        person.say(some(40))
        a, b = person.asked()
        person.say([(a, b, -1)])
        person.press("s")
        person.shows("#notes", "said otherwise")
        person.until("document.getElementById('map').getAttribute('aria-label').includes('after 42 answers')")
        self.everywhere(person)

    def test_also_what_opens(self, come):
        person = come(stream="axe-open")
        person.answer()
        person.saved()
        person.page.evaluate(AXE.read_text())
        person.page.locator("#export summary").click()
        assert self.violations(person) == []
        person.press("Escape")
        person.page.locator("#map-details summary").click()
        assert self.violations(person) == []
        person.page.locator("#change").click()
        assert self.violations(person) == []


def test_links_let_one_person_in_each(come, tmp_path):
    (tmp_path / "token.txt").write_text("a-token-that-nobody-guesses\n")
    items = table(tmp_path / "animals.csv", 8)
    with Running(items, "--token-file", tmp_path / "token.txt", data=tmp_path / "data") as running:
        link = re.search(r"http://\S+login\?code=\S+", running.words()).group()
        first = come(running, path=link)
        first.page.wait_for_url(first.home)
        first.answer()
        first.saved()
        first.context.grant_permissions(["clipboard-read", "clipboard-write"])
        first.page.locator("#invite").click()
        first.until("document.getElementById('invite-link').value")
        invitation = first.page.locator("#invite-link").input_value()
        first.page.locator("#invite-copy").click()
        first.shows("#invite-words", "Copied.")
        assert first.page.evaluate("navigator.clipboard.readText()") == invitation
        first.page.locator("#invite-close").click()
        second = come(running, path=invitation)
        second.page.wait_for_url(second.home)
        second.answer()
        second.saved()
        late = [come(running, path=used, said=["403"]) for used in (link, invitation)]
        for person in late:
            assert "has been used" in person.page.locator("p").inner_text()
        nobody = come(running, path=f"http://127.0.0.1:{running.port}/", said=["401"])
        assert nobody.page.locator("#similar").count() == 0
        for person in (first, second, nobody, *late):
            person.leave()
        log = running.request(
            "GET",
            "/v1/streams/default/comparisons",
            headers={"Authorization": "Bearer a-token-that-nobody-guesses"},
        )[1]
        assert len(log["comparisons"]) == 2
