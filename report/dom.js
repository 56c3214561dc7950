// Elements of the page and of a drawing. Attributes that are null or false are left out; functions are listeners.
const made = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes ?? {}))
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
};

export const html = (tag, attributes, ...children) => made(document.createElement(tag), attributes, children);

export const svg = (tag, attributes, ...children) =>
  made(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const widths = new Map(); // of texts, by size: measuring takes longer than all else of a label
// The width of a text in pixels, in the font of the charts (charts.css).
export const textWidth = (text, size = innerWidth > 600 ? 12 : 11) => {
  const key = `${size} ${text}`;
  if (!widths.has(key)) {
    textWidth.context ??= document.createElement("canvas").getContext("2d");
    textWidth.context.font = `${size}px system-ui, "DejaVu Sans", sans-serif`;
    if (widths.size > 20000) widths.clear();
    widths.set(key, textWidth.context.measureText(text).width);
  }
  return widths.get(key);
};

// The text, cut with "…" where it is wider than its room.
export const shortened = (text, room) => {
  let shown = text;
  for (let length = text.length - 1; length > 3 && textWidth(shown) > room; --length) shown = `${text.slice(0, length)}…`;
  return shown;
};
