"""Opens the page of the simulator in headless Chromium: are its figures those of the program, do sliders, keyboard, links
and dropped files work, and does it fit at 390 and 1440 pixels, light and dark?

Usage: page_test.py LAB.html DCULAB SOURCE_DIR [FOLDER_FOR_SCREENSHOTS]. Exits with 77 (skipped) without `chromium`.
"""

import json
import math
import pathlib
import shutil
import statistics
import subprocess
import sys

from lab_page import FIGURE, PAGE, PROGRAM, ROOT, SEEN, moved, open_page
from settings_checks import check_blocks, check_colors, check_fit, check_refused, check_room, check_tutorial, check_typing

from browser import DESKTOP, PHONE, Browser  # found by lab_page
from page_checks import CROSSED, MISPLACED

SHOTS = pathlib.Path(sys.argv[4]) if len(sys.argv) > 4 else None
SECTIONS = ["roofline", "time-by-op", "hit-rates", "kv-footprint", "block-size", "throughput-latency"]
LINKS = ["", "#model=deepseek-v3&machine=mi300x&tensor_parallel_size=8&b.model=llama-3-70b&b.machine=h100-sxm",
         "#machine=k100-ai&b.machine=mi300x&b.model=mixtral-8x7b"]


def predicted(*options):
    done = subprocess.run([PROGRAM, "predict", *options, "--format", "json"], cwd=ROOT, capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def time_text(seconds):
    """As the page writes it: three digits and a unit."""
    size, unit = next(((size, unit) for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")) if seconds >= size * 0.9995),
                      (1e-9, "ns"))
    return f"{number_text(seconds / size)}\u00a0{unit}"


def number_text(value):
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}"


def check_step(figures, step, batch):
    assert figures["Decode step"] == [time_text(step["step_seconds"])], (figures, step["step_seconds"])
    assert figures["Sequences that fit"] == [f"{step['max_sequences']:,}"], (figures, step["max_sequences"])
    tokens = figures["Tokens per second"][0]
    if step["max_sequences"] >= batch:
        assert tokens == number_text(batch / step["step_seconds"]), (tokens, step["step_seconds"])
    else:
        assert tokens.startswith("none: "), tokens


def check_size():
    size = PAGE.stat().st_size
    assert size < 2_000_000, f"{size} bytes"
    print(f"{PAGE.name}: {size / 1e6:.2f} MB")


def check_layout(browser, size, scheme):
    where = f"at {size[0]} pixels, {scheme}"
    for link in LINKS:
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
        misplaced = browser.evaluate(MISPLACED) + browser.evaluate(CROSSED)
        assert not misplaced, (where, link, misplaced[:10])
        for said in browser.evaluate('Array.from(document.querySelectorAll(".says"), each => each.textContent)'):
            assert said.endswith(".") and "undefined" not in said and "NaN" not in said, (where, said)
        if SHOTS:
            name = f"{size[0]}-{scheme}-{LINKS.index(link)}.png"
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
    check_step(before, step, 16)
    moved(browser, "A-batch", 2)
    after = browser.evaluate(FIGURE)
    step = predicted("--model", "llama-3-8b", "--machine", "z100", "--batch", "64", "--context", "4000")
    check_step(after, step, 64)
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
    check_step(figures, step, 16)
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
        await frame(); await new Promise(done => setTimeout(done)); times.push(performance.now() - begin);
        for (let rest = 0; rest < 8; ++rest) await frame(); }
      return times; })()""")
    print(f"a slider is answered in {statistics.median(times):.0f} ms (median of {len(times)}; "
          f"the slowest {max(times):.0f})")


def main():
    if not shutil.which("chromium"):
        sys.exit(77)
    check_size()
    browser = Browser()
    try:
        for check in (check_figures, check_largest_op, check_keyboard, check_link, check_tutorial, check_typing, check_refused,
                      check_fit, check_room, check_colors,
                      check_blocks, check_drop, check_speed):
            check(browser)
        for size in (PHONE, DESKTOP):
            for scheme in ("light", "dark"):
                check_layout(browser, size, scheme)
    finally:
        browser.close()


main()
