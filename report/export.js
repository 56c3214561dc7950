// A chart as a file of its own, SVG or PNG: the page's styles are written into each element, its heading above it.
import { html, svg, textWidth } from "./dom.js";

const strokes = ["stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linejoin", "paint-order"];
const texts = ["font-family", "font-size", "font-weight", "text-anchor"];
const kept = ["fill", "fill-opacity", "opacity", ...strokes, ...texts]; // all but opacity are inherited
const dropped = ["class", "style", "tabindex", "role", "aria-label", "aria-hidden"];
const heading = 34, captionLine = 17;

// What an element has from its parent is written there alone. A mark says what it said on the page: as its title.
const inline = (from, to, parent) => {
  const style = getComputedStyle(from), said = from.getAttribute("aria-label");
  for (const name of kept) {
    const value = style.getPropertyValue(name), usual = name === "opacity" ? "1" : parent?.getPropertyValue(name);
    if (value === usual) to.removeAttribute(name);
    else to.setAttribute(name, value.replace(/"/g, "'"));
  }
  for (const name of dropped) to.removeAttribute(name);
  Array.from(from.children).forEach((child, index) => inline(child, to.children[index], style));
  if (from.matches(".mark")) to.prepend(svg("title", {}, said));
};

// The caption in lines that have room.
const linesOf = (caption, room) => {
  const lines = [];
  for (const word of caption ? caption.split(" ") : []) {
    const longer = [lines.at(-1), word].filter(Boolean).join(" ");
    if (lines.length && textWidth(longer, 13) <= room) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
};

// told: {title, caption}, caption what the chart is about, if anything.
export const svgText = (drawing, { title, caption }) => {
  const copy = drawing.cloneNode(true);
  inline(drawing, copy);
  for (const style of copy.querySelectorAll("style")) style.remove();
  const width = Number(drawing.getAttribute("width")), lines = linesOf(caption, width - 12);
  const top = heading + captionLine * lines.length, height = Number(drawing.getAttribute("height")) + top;
  const { backgroundColor, color } = getComputedStyle(document.body);
  copy.setAttribute("viewBox", `0 ${-top} ${width} ${height}`);
  copy.setAttribute("height", height);
  const large = { "font-size": "16px", "font-weight": 600, "text-anchor": "start" };
  const small = { "font-size": "13px", "text-anchor": "start" };
  const back = svg("rect", { y: -top, width, height, fill: backgroundColor });
  const below = lines.map((line, index) => svg("text", { x: 4, y: heading - top + captionLine * index + 5, fill: color, ...small }, line));
  copy.prepend(back, svg("text", { x: 4, y: heading - top - 12, fill: color, ...large }, title), ...below);
  if (caption) copy.append(svg("desc", {}, caption));
  return new XMLSerializer().serializeToString(copy);
};

const save = (blob, name) => {
  const href = URL.createObjectURL(blob);
  html("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
};

export const saveSvg = (drawing, told, name) =>
  save(new Blob([svgText(drawing, told)], { type: "image/svg+xml" }), `${name}.svg`);

// For slides: `scale` times as many pixels as on the page.
export const savePng = async (drawing, told, name, scale = 3) => {
  const image = new Image(), canvas = html("canvas", {});
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(drawing, told))}`;
  await image.decode();
  Object.assign(canvas, { width: image.width * scale, height: image.height * scale });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
};
