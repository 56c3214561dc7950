"""Opens the page of the simulator in headless Chromium: are its figures those of the program, do sliders, keyboard, links
and dropped files work, and does it fit at 390 and 1440 pixels, light and dark?

Usage: page_test.py LAB.html DCULAB SOURCE_DIR [FOLDER_FOR_SCREENSHOTS]. Exits with 77 (skipped) without `chromium`.
"""

import itertools
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

PAGE, PROGRAM, ROOT = (pathlib.Path(each).resolve() for each in sys.argv[1:4])
SHOTS = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None
sys.path.insert(0, str(ROOT / "tests" / "report"))

from browser import DESKTOP, PHONE, Browser  # noqa: E402
from page_checks import MISPLACED  # noqa: E402

SECTIONS = ["roofline", "time-by-op", "hit-rates", "kv-footprint", "block-size", "throughput-latency"]
READY = """new Promise((done, fail) => { const begin = performance.now(); const look = () =>
  document.querySelector("#numbers table, #numbers:not(:empty)") && !document.body.classList.contains("is-starting") ? done(1)
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


def predicted(*options):
    done = subprocess.run([PROGRAM, "predict", *options, "--format", "json"], cwd=ROOT, capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def check_size():
    size = PAGE.stat().st_size
    assert size < 2_000_000, f"{size} bytes"
    print(f"{PAGE.name}: {size / 1e6:.2f} MB")


def check_layout(browser, size, scheme):
    where = f"at {size[0]} pixels, {scheme}"
    for link in ("", "#model=deepseek-v3&machine=mi300x&tensor_parallel_size=8&b.model=llama-3-70b&b.machine=h100-sxm"):
        open_page(browser, link, size, scheme)
        browser.evaluate(SEEN)
        assert not browser.problems, (where, link, browser.problems)
        asked = [url for url in browser.requests if not url.startswith(("file://", "data:", "blob:"))]
        assert not asked, (where, asked)
        shown = browser.evaluate('Array.from(document.querySelectorAll("section"), each => each.id)')
        assert shown == SECTIONS, (where, shown)
        empty = browser.evaluate('Array.from(document.querySelectorAll("section")).filter(each => '
                                 '!each.querySelector(".canvas svg")).map(each => each.id)')
        assert not empty, (where, link, empty)
        wide = browser.evaluate("document.documentElement.scrollWidth")
        assert wide <= size[0], f"{where}: {wide} pixels wide"
        misplaced = browser.evaluate(MISPLACED)
        assert not misplaced, (where, link, misplaced[:10])
        for said in browser.evaluate('Array.from(document.querySelectorAll(".says"), each => each.textContent)'):
            assert said.endswith(".") and "undefined" not in said and "NaN" not in said, (where, said)
        if SHOTS:
            name = f"{size[0]}-{scheme}-{'two' if link else 'one'}.png"
            browser.screenshot(SHOTS / name)


def check_largest_op(browser):
    """Each roofline names the op that takes longest."""
    open_page(browser)
    browser.evaluate(SEEN)
    step = predicted("--model", "llama-3-8b", "--machine", "z100", "--batch", "16", "--context", "4000")
    largest = max(step["ops"], key=lambda op: op["seconds"])["op"]
    names = browser.evaluate('Array.from(document.querySelector("#roofline svg").querySelectorAll(".labels text"), '
                             'each => each.textContent)')
    assert largest in names, (largest, names)


def check_figures(browser):
    """The figures are those of `dculab predict`, before a slider moves and after."""
    open_page(browser)
    before = browser.evaluate(FIGURE)
    step = predicted("--model", "llama-3-8b", "--machine", "z100", "--batch", "16", "--context", "4000")
    text = browser.evaluate("document.querySelector('#time-by-op .says').textContent")
    assert f"{1e3 * step['step_seconds']:.3g}"[:4] in before["Decode step"][0], (before, step["step_seconds"], text)
    assert before["Sequences that fit"][0].replace(",", "") == str(step["max_sequences"]), before
    moved(browser, "A-batch", 2)
    after = browser.evaluate(FIGURE)
    step = predicted("--model", "llama-3-8b", "--machine", "z100", "--batch", "64", "--context", "4000")
    assert f"{1e3 * step['step_seconds']:.3g}"[:4] in after["Decode step"][0], (after, step["step_seconds"])
    assert before["Decode step"] != after["Decode step"]
    assert not browser.problems, browser.problems


def check_keyboard(browser):
    """Every setting is reached by the tab key, every slider moves, and the focus stays on it."""
    open_page(browser)
    for slider, steps in (("A-batch", 1), ("A-context", -2), ("A-kv_heads", -1), ("A-block_size", 1),
                          ("A-tensor_parallel_size", 1)):
        before = browser.evaluate(f"[document.querySelector('#{slider}').value, location.hash]")
        moved(browser, slider, steps)
        after = browser.evaluate(f"[document.querySelector('#{slider}').value, location.hash]")
        assert int(after[0]) == int(before[0]) + steps and after[1] != before[1], (slider, before, after)
        assert browser.evaluate("document.activeElement.id") == slider, slider
    equation = browser.evaluate("""(() => { const figure = document.querySelector("#numbers details");
      figure.querySelector("summary").click(); return [figure.open, figure.textContent]; })()""")
    assert equation[0] and "Σ" in equation[1], equation
    moved(browser, "A-batch", 1)
    assert browser.evaluate('document.querySelector("#numbers details").open'), "an open equation closes"


def check_link(browser):
    """The address holds all settings, of two configurations too."""
    open_page(browser)
    browser.evaluate("document.querySelector('#compare').click()")
    browser.evaluate("new Promise(done => setTimeout(done, 300))")
    moved(browser, "B-batch", -2)
    browser.evaluate("""(() => { const menu = document.querySelector("#B-machine"); menu.value = "mi300x";
      menu.dispatchEvent(new Event("change")); })()""")
    browser.evaluate("new Promise(done => setTimeout(done, 300))")
    link, figures = browser.evaluate("location.hash"), browser.evaluate(FIGURE)
    assert "b.machine=mi300x" in link and len(figures["Decode step"]) == 2, (link, figures)
    open_page(browser, link)
    assert browser.evaluate(FIGURE) == figures
    open_page(browser, "#show=kv-footprint,roofline&context=2048")
    shown = browser.evaluate('Array.from(document.querySelectorAll("section"), each => each.id)')
    assert shown == ["roofline", "kv-footprint"], shown


def check_drop(browser):
    """A dropped config.json is a model, which a link takes along; a bad one is refused in words."""
    config = (ROOT / "scenarios/models/qwen2-7b/config.json").read_text()
    drop = """(async () => { const data = new DataTransfer();
      data.items.add(new File([TEXT], "config.json", { type: "application/json" }));
      document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
      await new Promise(done => setTimeout(done, 500)); })()"""
    open_page(browser)
    browser.evaluate(drop.replace("TEXT", json.dumps(config)))
    figures, link = browser.evaluate(FIGURE), browser.evaluate("location.hash")
    step = predicted("--model", "qwen2-7b", "--machine", "z100", "--batch", "16", "--context", "4000")
    assert f"{1e3 * step['step_seconds']:.3g}"[:4] in figures["Decode step"][0], (figures, step["step_seconds"])
    open_page(browser, link)
    assert browser.evaluate(FIGURE) == figures
    browser.evaluate(drop.replace("TEXT", json.dumps('{"model_type": "llama"}')))
    problem = browser.evaluate('document.querySelector(".problem:not([hidden])")?.textContent')
    assert problem and "config.json" in problem, problem
    assert not browser.problems, browser.problems


def check_speed(browser):
    """Prints how long a slider takes; nothing is asserted, for machines differ."""
    open_page(browser)
    browser.evaluate(SEEN)
    times = browser.evaluate("""(async () => { const slider = document.querySelector("#A-batch"), times = [];
      const frame = () => new Promise(done => requestAnimationFrame(done));
      for (let step = 0; step < 30; ++step) {
        slider.value = step % 9; await frame();
        const begin = performance.now(); slider.dispatchEvent(new Event("input"));
        await frame(); await new Promise(done => setTimeout(done)); times.push(performance.now() - begin); }
      return times; })()""")
    print(f"a slider is answered in {statistics.median(times):.0f} ms (median of {len(times)}; "
          f"the slowest {max(times):.0f})")


def main():
    if not shutil.which("chromium"):
        sys.exit(77)
    check_size()
    browser = Browser()
    try:
        for check in (check_figures, check_largest_op, check_keyboard, check_link, check_drop, check_speed):
            check(browser)
        for size in (PHONE, DESKTOP):
            for scheme in ("light", "dark"):
                check_layout(browser, size, scheme)
    finally:
        browser.close()


main()
