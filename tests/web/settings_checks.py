"""Do the settings of the page say what is set, take what they should, and refuse in words what they should not?"""

import math
import re
import urllib.parse

from lab_page import FIGURE, ROOT, SEEN, open_page

USUAL = {"batch": 16, "context": 4000, "kv_heads": 0, "block_size": 16, "tensor_parallel_size": 1}
SETTINGS = """Object.fromEntries(Array.from(document.querySelectorAll(".slider"), each => {
  const range = each.querySelector("[type=range]"), number = each.querySelector("[type=number]");
  const value = number.hidden ? "" : Number(number.value).toLocaleString("en") + " ";
  return [range.id, [value + each.querySelector("output").textContent, range.getAttribute("aria-valuetext")]]; }))"""


def check_settings(browser, link):
    """Numbers and sliders say what the link does."""
    open_page(browser, link)
    entries = dict(urllib.parse.parse_qsl(link.lstrip("#")))
    shown = browser.evaluate(SETTINGS)
    for letter, prefix in (("A", ""), ("B", "b.")):
        if letter == "B" and not any(key.startswith("b.") for key in entries):
            continue
        for key, usual in USUAL.items():
            seen, told = shown[f"{letter}-{key}"]
            wanted = int(entries.get(prefix + key, usual))
            if wanted != 0:  # the model's own
                assert seen == told and seen.startswith(f"{wanted:,} "), (link, letter, key, seen, told)
    assert not browser.problems, browser.problems


def check_tutorial(browser):
    """The links of the tutorial open as they are written, and are not refused."""
    text = "".join(each.read_text() for each in sorted((ROOT / "docs/tutorial").glob("*.md")))
    links = re.findall(r"lab\.html(#[^` )]+)", text)
    assert len(links) >= 10, links
    for link in links:
        check_settings(browser, link)
        assert browser.evaluate("document.querySelectorAll('.problem:not([hidden])').length") == 0, link
    check_settings(browser, "#batch=17&context=4096")


def check_typing(browser):
    """A number takes any value: the context goes token by token, up to the model's longest."""
    open_page(browser, "#model=llama-2-7b&batch=32&context=1001")
    browser.evaluate("document.querySelector('#A-context-value').focus()")
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="ArrowUp", code="ArrowUp", windowsVirtualKeyCode=38)
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    assert "context=1002" in browser.evaluate("location.hash")
    set_to = """(async () => { const number = document.querySelector("#A-context-value"); number.value = "VALUE";
      number.dispatchEvent(new Event("input")); number.dispatchEvent(new Event("change"));
      await new Promise(done => setTimeout(done, 200)); return number.value; })()"""
    assert browser.evaluate(set_to.replace("VALUE", "5000")) == "4096"
    assert browser.evaluate("document.querySelectorAll('.problem:not([hidden])').length") == 0
    open_page(browser, "#model=llama-3.1-8b&context=100000")
    browser.evaluate("""(async () => { const menu = document.querySelector("#A-model"); menu.value = "bloom-7b1";
      menu.dispatchEvent(new Event("change")); await new Promise(done => setTimeout(done, 500)); })()""")
    assert "context=2048" in browser.evaluate("location.hash"), "the context is that of the model before"


def check_refused(browser):
    """A configuration that is refused says why; the other one stays."""
    open_page(browser, "#context=9000")
    assert "max_position_embeddings" in browser.evaluate("document.querySelector('#numbers').innerText")
    assert browser.evaluate("document.querySelector('#charts').checkVisibility()") is False
    assert browser.evaluate(SETTINGS)["A-kv_heads"][0] == "8 heads", "a refused context hides the KV heads"
    open_page(browser, "#context=9000&b.model=llama-3-8b&b.context=4000")
    browser.evaluate(SEEN)
    assert len(browser.evaluate(FIGURE)["Decode step"]) == 1
    assert browser.evaluate("document.querySelectorAll('#roofline .canvas svg').length") == 2
    assert not browser.problems, browser.problems


def check_fit(browser):
    """What does not fit in memory is hollow, off the front, and said to."""
    open_page(browser, "#model=llama-3-70b&machine=z100")
    browser.evaluate(SEEN)
    said = browser.evaluate("document.querySelector('#throughput-latency .says').textContent")
    figures = browser.evaluate(FIGURE)
    assert "no sequence fits" in said and figures["Tokens per second"][0].startswith("none"), (said, figures)
    solid = """Array.from(document.querySelectorAll("#throughput-latency .point"),
      each => [each.__data__.fits, Number(each.getAttribute("fill-opacity") ?? 1) > 0])"""
    assert all(not fits and not filled for fits, filled in browser.evaluate(solid))
    open_page(browser)
    browser.evaluate(SEEN)
    marks = browser.evaluate(solid)
    assert len({fits for fits, _ in marks}) == 2 and all(fits == filled for fits, filled in marks), marks


def check_room(browser):
    """The room in the chart of the KV cache is that of as many sequences as fit."""
    for kind, link in (("GQA", "#model=llama-3-8b&machine=z100&context=4000&block_size=16"),
                       ("MHA", "#model=llama-2-7b&machine=k100-ai&context=1001&block_size=256"),
                       ("MLA", "#model=deepseek-v3&machine=mi300x&context=5000&block_size=64&tensor_parallel_size=8")):
        open_page(browser, link)
        browser.evaluate(SEEN)
        context, block = (int(re.search(f"{key}=(\\d+)", link)[1]) for key in ("context", "block_size"))
        room = browser.evaluate("document.querySelector('#kv-footprint .room').__data__.bytes")
        marks = browser.evaluate("Array.from(document.querySelectorAll('#kv-footprint .here'), each => each.__data__)")
        of_batch = next(each["bytes"] for each in marks if each["text"].startswith(kind))
        sequence = of_batch / USUAL["batch"] / context * math.ceil(context / block) * block
        assert browser.evaluate(FIGURE)["Sequences that fit"] == [f"{int(room / sequence + 1e-9):,}"], (link, room, sequence)


def check_colors(browser):
    """A kind of attention has the same colour in both drawings."""
    open_page(browser, "#model=attention-8b-mla&b.model=attention-8b-mqa")
    browser.evaluate(SEEN)
    marks = browser.evaluate("""Array.from(document.querySelectorAll("#kv-footprint svg"), drawing =>
      Array.from(drawing.querySelectorAll(".here"), each => [each.__data__.text.slice(0, 3), getComputedStyle(each).fill]))""")
    first, second = (dict(each) for each in marks)
    assert {"MHA", "MLA"} <= set(first) & set(second), marks
    assert all(first[kind] == second[kind] for kind in set(first) & set(second)), marks
    said = browser.evaluate("document.querySelector('#kv-footprint .says').textContent")
    assert "A, attention-8b-mla on z100: with latents" in said and "with 1 KV head" in said, said


def check_blocks(browser):
    """Block sizes within 1 % of each other are equal; of others the fast ones are named."""
    for link, wanted in (("", "all take the same time"), ("#stack=vllm-0.3.3-dtk", "blocks of 32 tokens take the least time")):
        open_page(browser, link)
        browser.evaluate(SEEN)
        said = browser.evaluate("document.querySelector('#block-size .says').textContent")
        assert wanted in said, (link, said)
