// A chart as a file of its own: the page's styles are written into each element, its heading above it.
import { html, svg } from "./dom.js";

const strokes = ["stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order"];
const texts = ["font-family", "font-size", "font-weight", "text-anchor"];
const kept = ["fill", "fill-opacity", "opacity", ...strokes, ...texts];
const dropped = ["class", "style", "tabindex", "role", "aria-label", "aria-hidden"];
const heading = 34;

const inline = (from, to) => {
  const style = getComputedStyle(from);
  for (const name of kept) to.setAttribute(name, style.getPropertyValue(name).replace(/"/g, "'"));
  for (const name of dropped) to.removeAttribute(name);
  Array.from(from.children).forEach((child, index) => inline(child, to.children[index]));
};

export const svgText = (drawing, title) => {
  const copy = drawing.cloneNode(true);
  inline(drawing, copy);
  for (const style of copy.querySelectorAll("style")) style.remove();
  const width = Number(drawing.getAttribute("width")),
    height = Number(drawing.getAttribute("height")) + heading;
  const { backgroundColor, color } = getComputedStyle(document.body);
  copy.setAttribute("viewBox", `0 ${-heading} ${width} ${height}`);
  copy.setAttribute("height", height);
  const large = { "font-size": "16px", "font-weight": 600, "text-anchor": "start" };
  const back = svg("rect", { y: -heading, width, height, fill: backgroundColor });
  copy.prepend(back, svg("text", { x: 4, y: -12, fill: color, ...large }, title));
  return new XMLSerializer().serializeToString(copy);
};

export const download = (drawing, title, name) => {
  const href = URL.createObjectURL(new Blob([svgText(drawing, title)], { type: "image/svg+xml" }));
  html("a", { href, download: `${name}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
};
