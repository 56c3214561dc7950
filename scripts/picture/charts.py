"""Charts of a page of `--report` as pictures: SVG for documents, which follows the reader's theme, and PNG for slides."""

import base64
import json
import re
import xml.etree.ElementTree as ElementTree

SVG = "http://www.w3.org/2000/svg"
PAINTS = ("fill", "stroke")

# Chooses from the menus of a chart and draws it `width` pixels wide, as a file of its own.
DRAW = """((id, width, choices) => {
  const section = document.getElementById(id);
  if (!section) throw new Error(`the page has no chart ${id}; it has ` +
    Array.from(document.querySelectorAll("#charts section"), each => each.id).join(", "));
  section.style.width = `${width}px`;
  for (const [name, value] of Object.entries(choices)) {
    const menu = section.querySelector(`select[data-choice="${name}"]`);
    const values = menu ? Array.from(menu.options, option => option.value) : [];
    if (!values.includes(value)) throw new Error(`${id} has no ${name} ${value}; it has ${values.join(", ")}`);
    menu.value = value;
    menu.dispatchEvent(new Event("change"));
  }
  return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>
    done(dculab.svgText(section.querySelector(".canvas svg"),
      { title: section.querySelector("h2").textContent, caption: section.querySelector(".caption").textContent })))));
})"""


def drawn(browser, page, chart, choices, width, scheme):
    """The SVG of a chart in one theme."""
    browser.open(page, (width + 32, 900), scheme)
    return browser.evaluate(f"{DRAW}({json.dumps(chart)}, {width}, {json.dumps(choices)})")


def adaptive(light, dark, made_by):
    """One SVG of both: where they differ, which is in paints alone, a style follows the reader's theme."""
    ElementTree.register_namespace("", SVG)
    root, other = ElementTree.fromstring(light), ElementTree.fromstring(dark)
    classes = {}
    for element, twin in zip(root.iter(), other.iter(), strict=True):
        for paint in PAINTS:
            pair = (paint, element.get(paint), twin.get(paint))
            if pair[1] == pair[2]:
                continue
            del element.attrib[paint]
            name = classes.setdefault(pair, f"{paint[0]}{len(classes)}")
            element.set("class", f"{element.get('class', '')} {name}".strip())
    rules = [[f".{name} {{ {paint}: {pair[index]} }}" for (paint, *pair), name in classes.items()] for index in (0, 1)]
    style = ElementTree.Element(f"{{{SVG}}}style")
    style.text = "\n".join([*rules[0], "@media (prefers-color-scheme: dark) {", *rules[1], "}"])
    description = ElementTree.Element(f"{{{SVG}}}desc")
    description.text = made_by
    root.insert(0, style)
    root.insert(0, description)
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r"(\d+\.\d\d)\d+", r"\1", text).replace("><", ">\n<") + "\n"


def said(svg):
    """What a picture shows, wherever its marks stand: its heading, what it is about, the command and the values of all marks."""
    root = ElementTree.fromstring(svg)
    return [element.text for element in root.iter() if element.tag in (f"{{{SVG}}}title", f"{{{SVG}}}desc")]


def png(browser, svg, scale=3):
    """The SVG as the bytes of a PNG."""
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    address = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    browser.call("Page.navigate", url=address)
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    browser.call("Emulation.setDeviceMetricsOverride", width=int(width), height=int(height), deviceScaleFactor=1, mobile=False)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
    return base64.b64decode(browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])
