"""The page of the simulator in headless Chromium, as its tests open and move it."""

import itertools
import pathlib
import sys

PAGE, PROGRAM, ROOT = (pathlib.Path(each).resolve() for each in sys.argv[1:4])
sys.path[:0] = [str(ROOT / "scripts" / "picture"), str(ROOT / "tests" / "report")]

from browser import DESKTOP  # noqa: E402

READY = """new Promise((done, fail) => { const begin = performance.now(); const look = () =>
  document.querySelector("#numbers:not(:empty)") && !document.body.classList.contains("is-starting") ? done(1)
    : performance.now() - begin > 60000 ? fail(new Error("the page does not start")) : setTimeout(look, 20); look(); })"""
# Charts are drawn when they are seen.
SEEN = """(async () => { for (const each of document.querySelectorAll("section")) { each.scrollIntoView();
  await new Promise(done => setTimeout(done, 150)); } scrollTo(0, 0); await new Promise(done => setTimeout(done, 100)); })()"""
FIGURE = """Object.fromEntries(Array.from(document.querySelectorAll("#numbers tbody tr"), row =>
  [row.querySelector("th").textContent, Array.from(row.querySelectorAll("summary"), each => each.textContent)]))"""

LOADS = itertools.count()


def open_page(browser, link="", size=DESKTOP, scheme="light"):
    browser.open(f"{PAGE}?{next(LOADS)}{link}", size, scheme)  # another link alone would not load the page again
    browser.evaluate(READY)


def moved(browser, slider, steps):
    """Moves a slider by the arrow keys; waits until the page has followed."""
    browser.evaluate(f"document.querySelector('#{slider}').focus()")
    key = "ArrowRight" if steps > 0 else "ArrowLeft"
    for _ in range(abs(steps)):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                         windowsVirtualKeyCode=39 if steps > 0 else 37)
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
