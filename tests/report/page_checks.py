"""What holds for every page: it is drawn whole, without complaint or network, at any width and in both themes."""

import json
import struct
import xml.etree.ElementTree as ElementTree

# Texts that leave their drawing, and texts of one drawing that lie on each other.
MISPLACED = """(() => {
  const found = [];
  for (const svg of document.querySelectorAll(".canvas > svg")) {
    const frame = svg.getBoundingClientRect(), where = svg.closest("section").id + ": ";
    const texts = Array.from(svg.querySelectorAll("text")).map(text => [text.textContent, text.getBoundingClientRect(),
                                                                        text.getAttribute("transform")]);
    for (const [text, box] of texts)
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
          box.bottom > frame.bottom + 1)
        found.push(where + text + " is cut off");
    const upright = texts.filter(([, , transform]) => !/rotate/.test(transform));
    upright.forEach(([text, a], index) => upright.slice(index + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && tall > 4) found.push(where + text + " lies on " + other);
    }));
  }
  return found;
})()"""

# Labels that lie on a mark or that a ceiling goes through. Of a slanted text its own, turned box counts.
CROSSED = """(() => {
  const found = [];
  for (const svg of document.querySelectorAll(".canvas > svg")) {
    const where = svg.closest("section").id + ": ";
    const marks = Array.from(svg.querySelectorAll("path.mark, circle.mark"), mark => mark.getBoundingClientRect());
    const lines = Array.from(svg.querySelectorAll("line.level, path.level, line.peak, line.limit, line.leader"), line => {
      const turn = line.getScreenCTM(), at = (x, y) => new DOMPoint(x, y).matrixTransform(turn);
      if (line.tagName === "line")
        return [at(line.x1.baseVal.value, line.y1.baseVal.value), at(line.x2.baseVal.value, line.y2.baseVal.value)];
      const long = line.getTotalLength();
      return [line.getPointAtLength(0), line.getPointAtLength(long)].map(({ x, y }) => at(x, y));
    });
    for (const text of svg.querySelectorAll(".labels text")) {
      const box = text.getBBox(), back = text.getScreenCTM().inverse();
      const inside = (x, y) => {
        const point = new DOMPoint(x, y).matrixTransform(back);
        return point.x > box.x + 1 && point.x < box.x + box.width - 1 && point.y > box.y + 3 &&
          point.y < box.y + box.height - 3;
      };
      const meets = mark => {
        for (let x = mark.left + 1; x < mark.right; x += 2)
          for (let y = mark.top + 1; y < mark.bottom; y += 2)
            if (Math.hypot((x - mark.left) / mark.width - 0.5, (y - mark.top) / mark.height - 0.5) < 0.35 && inside(x, y))
              return true;
        return false;
      };
      if (marks.some(meets)) found.push(where + text.textContent + " lies on a mark");
      const crossed = lines.some(([a, b]) => Array.from({ length: 800 }, (_, step) => step / 799)
        .some(share => inside(a.x + share * (b.x - a.x), a.y + share * (b.y - a.y))));
      if (crossed) found.push(where + text.textContent + " is crossed by a line");
    }
  }
  return found;
})()"""

# Ops that take a twentieth of their step and have no name on the roofline.
UNNAMED = """(() => {
  const names = new Set(Array.from(document.querySelectorAll("#roofline .labels text"), text => text.textContent));
  const large = Array.from(document.querySelectorAll("#roofline .mark"), mark => mark.__data__).filter(({ share }) => share >= 0.05);
  return large.filter(({ op }) => !names.has(op.op)).map(({ op }) => `roofline: ${op.op} has no name`);
})()"""

# Chooses every entry of every menu in turn.
MENUS = """(() => {
  const found = [];
  for (const name of Array.from(document.querySelectorAll("select"),
                                menu => [menu.closest("section").id, menu.dataset.choice]))
    for (const { value } of document.querySelector(`#${name[0]} select[data-choice="${name[1]}"]`).options) {
      const menu = document.querySelector(`#${name[0]} select[data-choice="${name[1]}"]`);
      menu.value = value;
      menu.dispatchEvent(new Event("change"));
      if (menu.value !== value) found.push(`${name} does not keep ${value}`);
      found.push(...[...MISPLACED, ...CROSSED, ...UNNAMED].map(text => `${name} ${value}: ${text}`));
    }
  return found;
})()""".replace("MISPLACED", MISPLACED).replace("CROSSED", CROSSED).replace("UNNAMED", UNNAMED)

EXPORTS = """Array.from(document.querySelectorAll("#charts section")).filter(each => each.querySelector(".canvas svg"))
  .map(each => [each.id, dculab.svgText(each.querySelector(".canvas svg"),
                  { title: each.querySelector("h2").textContent, caption: each.querySelector(".caption").textContent }),
                each.querySelectorAll(".canvas .mark").length, getComputedStyle(document.body).backgroundColor,
                each.querySelector(".caption").textContent])"""

NAMESPACE = "{http://www.w3.org/2000/svg}"


def check_layout(browser, path, size, scheme, sections):
    where = f"{path} at {size[0]} pixels, {scheme}"
    browser.open(path, size, scheme)
    assert not browser.problems, (where, browser.problems)
    asked = [url for url in browser.requests if not url.startswith(("file://", "data:"))]
    assert not asked and len([url for url in browser.requests if url.startswith("file://")]) == 1, (where, asked)
    shown = browser.evaluate('Array.from(document.querySelectorAll("#charts section"), each => each.id)')
    assert shown == sections, (where, shown)
    wide = browser.evaluate("document.documentElement.scrollWidth")
    assert wide <= size[0], f"{where}: {wide} pixels wide"
    misplaced = browser.evaluate(MISPLACED) + browser.evaluate(CROSSED) + browser.evaluate(UNNAMED)
    assert not misplaced, (where, misplaced[:10])
    misplaced = browser.evaluate(MENUS)
    assert not misplaced and not browser.problems, (where, misplaced[:10], browser.problems)
    browser.open(path, size, scheme)
    for section in sections:
        said = browser.evaluate(f'document.querySelector("#{section} .says").textContent')
        assert said.endswith(".") and "undefined" not in said and "NaN" not in said, (where, section, said)
        rows = browser.evaluate(f'document.querySelectorAll("#{section} table tbody tr").length')
        assert rows > 0, f"{where}: {section} has no table"


def check_exports(browser):
    """Each chart of the open page as a file: XML that stands alone, with every mark in it and what it says, no style of
    the page, and its heading and what it is about on the background of the theme that is shown."""
    for section, text, count, background, caption in browser.evaluate(EXPORTS):
        root = ElementTree.fromstring(text)
        assert root.tag == NAMESPACE + "svg", section
        assert "var(--" not in text and "class=" not in text and "url(" not in text, section
        assert root[0].get("fill") == background != root[1].get("fill"), (section, root[1].text, background)
        texts = [each.text for each in root if each.tag == NAMESPACE + "text"]
        assert " ".join(texts[1:]).startswith(caption), (section, texts, caption)
        drawn = [each for each in root.iter() if each.tag in (NAMESPACE + "path", NAMESPACE + "rect")]
        assert len(drawn) >= count > 0, (section, len(drawn), count)
        assert len(root.findall(f".//{NAMESPACE}title")) > count, section
        assert root.get("fill").startswith("rgb") and root.get("stroke") == "none", section  # for all that have no other
        for each in root.iter():
            for paint in (each.get("fill", "none"), each.get("stroke", "none")):
                assert paint == "none" or paint.startswith("rgb"), (section, paint)


def check_download(browser, path, section):
    """The buttons below a chart save what is exported, and a picture of it."""
    browser.open(path)
    exported = {name: text for name, text, *_ in browser.evaluate(EXPORTS)}
    name, content = browser.download(f"#{section} button.download")
    assert name == f"dculab-{section}.svg" and content.decode() == exported[section], (name, content[:200])
    name, content = browser.download(f"#{section} button.download + button.download")
    width, height = struct.unpack(">II", content[16:24])
    drawing = ElementTree.fromstring(exported[section])
    assert name == f"dculab-{section}.png" and content.startswith(b"\x89PNG"), (name, content[:20])
    assert (width, height) == (3 * int(drawing.get("width")), 3 * int(float(drawing.get("height")))), (width, height)
    assert not browser.problems, browser.problems


def check_theme(browser, path):
    """The button goes from the system's theme to light, dark and back."""
    background = "getComputedStyle(document.body).backgroundColor"
    browser.open(path, scheme="dark")
    seen = [browser.evaluate(background)]
    for _ in range(3):
        browser.evaluate('document.querySelector("#theme").click()')
        seen.append(browser.evaluate(background))
    dark, light = seen[0], seen[1]
    assert dark != light and seen == [dark, light, dark, dark], seen


def check_keyboard(browser, path):
    """A chart is one stop of the tab key; arrow keys go through its marks, and each one says what it is."""
    browser.open(path)
    stops = browser.evaluate("""Array.from(document.querySelectorAll(".canvas > svg"),
      svg => svg.querySelectorAll(".mark[tabindex='0']").length)""")
    assert stops and all(count == 1 for count in stops), stops
    browser.evaluate("""document.querySelector(".mark[tabindex='0']").focus()""")
    label = """document.activeElement.getAttribute("aria-label")"""
    first = browser.evaluate(label)
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight")
    second = browser.evaluate(label)
    assert first and second and first != second, (first, second)
    shown = browser.evaluate('document.querySelector("#tooltip:not([hidden]) strong").textContent')
    assert second.startswith(shown), (second, shown)


def axis(browser, section, which):
    """Where values of a section's axis stand, from the numbers on it: [(value, pixels)]."""
    ticks = browser.evaluate(f"""Array.from(document.querySelectorAll("#{section} .tick-{which}"),
      tick => [tick.__data__, tick.getAttribute("transform")])""")
    coordinate = 0 if which == "x" else 1
    return [(value, float(place[len("translate("):-1].split(",")[coordinate])) for value, place in ticks]


def data_of(browser, selector):
    """Of each mark: what it stands for, and its place."""
    return browser.evaluate(f"""Array.from(document.querySelectorAll({json.dumps(selector)}), mark =>
      ({{datum: mark.__data__, transform: mark.getAttribute("transform"),
         box: ["x", "y", "width", "height"].map(each => Number(mark.getAttribute(each)))}}))""")


def text_of(browser, selector):
    return browser.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")
