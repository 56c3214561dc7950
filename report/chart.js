// A chart: Plot's marks with this tool's axes, a legend inside the drawing, and marks that speak.
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { shortened, svg, textWidth } from "./dom.js";
import { listen, tagged } from "./marks.js";
import { plain, ticksOf } from "./scales.js";

const colors = new Map(); // by bound: asking for a style makes the browser settle the page's
// The colour of a memory level or another bound; charts.css knows the usual ones.
export const boundColor = (bound) => {
  if (!colors.has(bound)) {
    const known = /^[\w-]+$/.test(bound) && getComputedStyle(document.documentElement).getPropertyValue(`--${bound}`);
    colors.set(bound, `var(--${known ? bound : "other"})`);
  }
  return colors.get(bound);
};

// Dots in the order of their data, as opaque as `solid` says.
export const dots = (data, name, { solid = () => 1, describe, ...options }) => {
  const fillOpacity = { value: solid, scale: null };
  return Plot.dot(data, { stroke: null, sort: null, ...options, fillOpacity, render: tagged(data, name, describe) });
};

const symbols = {
  circle: d3.symbolCircle, square: d3.symbolSquare, triangle: d3.symbolTriangle, diamond: d3.symbolDiamond, star: d3.symbolStar,
};
const sample = ({ color, shape, hollow, opacity }) => {
  const line = { d: "M0,0H15", stroke: color, "stroke-width": 2, "stroke-dasharray": shape === "dashed" && "4 3" };
  if (shape === "line" || shape === "dashed") return svg("path", line);
  if (!shape) return svg("rect", { width: 12, height: 12, x: 1, y: -6, fill: color, "fill-opacity": opacity });
  const d = d3.symbol(symbols[shape], 60)();
  return svg("path", { d, transform: "translate(7,0)", fill: hollow ? "none" : color, stroke: hollow && color });
};

// The legend wraps: {height, draw}.
const legendOf = (entries, width) => {
  let [x, y] = [4, 10];
  const items = entries.map((entry) => {
    const needed = 34 + textWidth(entry.text);
    if (x > 4 && x + needed > width) [x, y] = [4, y + 18];
    const text = svg("text", { x: 19, dy: "0.35em", "text-anchor": "start" }, entry.text);
    x += needed;
    return svg("g", { transform: `translate(${x - needed},${y})` }, sample(entry), text);
  });
  return { height: entries.length ? y + 12 : 0, draw: () => svg("g", { class: "legend" }, items) };
};

const axisMarks = (which, axis, ticks) => {
  const [grid, numbers] = which === "x" ? [Plot.gridX, Plot.axisX] : [Plot.gridY, Plot.axisY];
  const values = ticks.map(({ value }) => value), text = ticks.map((tick) => tick.text);
  const options = { tickSize: 0, tickPadding: 8, label: null, fill: "var(--soft)", text };
  return [
    axis.bare ? [] : grid(values, { stroke: "var(--line)", strokeOpacity: 1 }),
    axis.hidden ? [] : numbers(values, { ...options, render: tagged(values, `tick-${which}`) }),
  ];
};

// x, y: {type, domain, label, text(value), ticks: which, bare: without lines, hidden: without numbers}; `height` is
// that of the plot inside its margins; top and bottom are margins, which axes need. legend: [{text, color, shape, hollow,
// opacity}], shape a symbol's name, "line", "dashed", or none for a box.
export const chart = ({ title, width, height, left, right = 28, top = 28, bottom = 48, legend = [], x, y, marks }) => {
  const key = legendOf(legend, width), inner = width - left - right;
  const label = { className: "axis-label", fill: "var(--soft)" }, above = { lineAnchor: "bottom", dx: 4 - left, dy: -10 };
  const drawing = Plot.plot({
    className: "chart", ariaLabel: title, width, height: height + top + bottom + key.height,
    marginLeft: left, marginRight: right, marginTop: top + key.height, marginBottom: bottom,
    x: { ...plain(x), axis: null }, y: { ...plain(y), axis: null }, r: { type: "identity" },
    marks: [
      axisMarks("x", x, ticksOf(x, inner, inner < 500 ? 4 : 8, true)),
      axisMarks("y", y, ticksOf(y, height, height < 200 ? 4 : 6, false)),
      Plot.text([x.label ?? ""], { ...label, frameAnchor: "bottom", dy: 42 }),
      Plot.text([y.label ?? ""], { ...label, frameAnchor: "top-left", ...above }),
      marks,
      key.draw,
    ],
  });
  drawing.prepend(svg("title", {}, title));
  drawing.setAttribute("role", "group");
  return listen(drawing);
};

// What chart() needs for rows of these names, numbered in `y`.
export const rowsOf = (labels, width, type = "band") => {
  const left = Math.min(14 + d3.max(labels, (label) => textWidth(label)), width * 0.48);
  const text = (row) => shortened(labels[row], left - 10);
  return { left, top: 8, height: labels.length * 24, y: { type, domain: d3.range(labels.length), padding: 0.2, text } };
};

// One drawing of several, each below the one before.
export const below = (title, drawings) => {
  const ends = d3.cumsum(drawings, (each) => Number(each.getAttribute("height")));
  drawings.forEach((each, index) => {
    each.setAttribute("y", index ? ends[index - 1] : 0);
    each.setAttribute("overflow", "visible");
  });
  const width = drawings[0].getAttribute("width"), height = ends.at(-1);
  const frame = { width, height, viewBox: `0 0 ${width} ${height}` };
  return svg("svg", { class: "chart", role: "group", "aria-label": title, ...frame }, drawings);
};
