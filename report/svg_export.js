// A chart as a file of its own: the page's styles are written into each element, its heading above it.
const svgExport = (() => {
  const kept = [
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "stroke-linejoin",
    "paint-order",
    "opacity",
    "font-family",
    "font-size",
    "font-weight",
    "text-anchor",
    "dominant-baseline",
  ];
  const heading = 34;

  const inline = (from, to) => {
    const style = getComputedStyle(from);
    for (const property of kept) {
      const value = style.getPropertyValue(property);
      if (value) to.setAttribute(property, value.replace(/"/g, "'"));
    }
    for (const attribute of ["class", "style", "tabindex", "role", "aria-label", "aria-hidden"])
      to.removeAttribute(attribute);
    Array.from(from.children).forEach((child, index) => inline(child, to.children[index]));
  };

  const element = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  const text = (svg, title) => {
    const copy = svg.cloneNode(true);
    inline(svg, copy);
    const width = Number(svg.getAttribute("width")),
      height = Number(svg.getAttribute("height")) + heading;
    const page = getComputedStyle(document.body);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("viewBox", `0 ${-heading} ${width} ${height}`);
    copy.setAttribute("height", height);
    const caption = element("text", { x: 4, y: -12, fill: page.color, "font-size": "16px", "font-weight": "600" });
    caption.textContent = title;
    copy.prepend(element("rect", { y: -heading, width, height, fill: page.backgroundColor }), caption);
    return new XMLSerializer().serializeToString(copy);
  };

  const download = (svg, title, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text(svg, title)], { type: "image/svg+xml" }));
    link.download = `${name}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  return { text, download };
})();
