// A chart: Plot's marks with this tool's axes, a legend inside the drawing, and marks that speak.
import { axisX, axisY, gridX, gridY, plot, text } from "@observablehq/plot";
import * as d3 from "d3";
import { svg, textWidth } from "./dom.js";
import { listen, tagged } from "./marks.js";
import { plain, ticksOf } from "./scales.js";

const symbols = {
  circle: d3.symbolCircle,
  square: d3.symbolSquare,
  triangle: d3.symbolTriangle,
  diamond: d3.symbolDiamond,
  star: d3.symbolStar,
};

// The colour of a memory level or another bound; charts.css knows the usual ones.
export const boundColor = (bound) => {
  const known = /^\w+$/.test(bound) && getComputedStyle(document.documentElement).getPropertyValue(`--${bound}`);
  return `var(--${known ? bound : "other"})`;
};

const sample = ({ color, shape }) => {
  if (shape === "line" || shape === "dashed")
    return svg("path", { d: "M0,0H15", stroke: color, "stroke-width": 2, "stroke-dasharray": shape === "dashed" && "4 3" });
  if (!shape) return svg("rect", { width: 12, height: 12, x: 1, y: -6, fill: color });
  return svg("path", { d: d3.symbol(symbols[shape], 60)(), transform: "translate(7,0)", fill: color });
};

// The legend wraps: {height, draw}.
const legendOf = (entries, width) => {
  let x = 4,
    y = 10;
  const items = entries.map((entry) => {
    const needed = 34 + textWidth(entry.text);
    if (x > 4 && x + needed > width) [x, y] = [4, y + 18];
    const item = svg("g", { transform: `translate(${x},${y})` }, sample(entry));
    item.append(svg("text", { x: 19, dy: "0.35em", "text-anchor": "start" }, entry.text));
    x += needed;
    return item;
  });
  return { height: entries.length ? y + 12 : 0, draw: () => svg("g", { class: "legend" }, items) };
};

const axes = ({ x, y, left, bottom, inner, height }) => {
  const across = ticksOf(x, inner, inner < 500 ? 4 : 8, true),
    up = ticksOf(y, height, 6, false);
  const values = (ticks) => ticks.map(({ value }) => value);
  const common = { tickSize: 0, label: null, fill: "var(--soft)" };
  const line = { stroke: "var(--line)", strokeOpacity: 1 };
  const ofAxis = (ticks, name) => ({ ...common, text: ticks.map((tick) => tick.text), render: tagged(values(ticks), name) });
  const label = { className: "axis-label", fill: "var(--soft)" };
  return [
    x.bare ? [] : gridX(values(across), line),
    y.bare ? [] : gridY(values(up), line),
    x.label === undefined ? [] : axisX(values(across), { ...ofAxis(across, "tick-x"), tickPadding: 8 }),
    axisY(values(up), { ...ofAxis(up, "tick-y"), tickPadding: 8 }),
    x.label === undefined ? [] : text([x.label], { ...label, frameAnchor: "bottom", dy: Math.min(42, bottom - 4) }),
    text([y.label ?? ""], { ...label, frameAnchor: "top-left", lineAnchor: "bottom", dx: 4 - left, dy: -10 }),
  ];
};

// x, y: {type, domain, label, text(value), ticks: how many or which, bare: without lines}; `height` is that of the
// plot inside its margins. legend: [{text, color, shape}], shape a symbol's name, "line", "dashed", or none for a box.
export const chart = ({ title, width, height, left, right = 28, top = 28, bottom = 48, legend = [], x, y, marks }) => {
  const key = legendOf(legend, width);
  const drawing = plot({
    className: "chart",
    ariaLabel: title,
    width,
    height: height + top + bottom + key.height,
    marginLeft: left,
    marginRight: right,
    marginTop: top + key.height,
    marginBottom: bottom,
    x: { ...plain(x), axis: null },
    y: { ...plain(y), axis: null },
    r: { type: "identity" },
    marks: [axes({ x, y, left, bottom, inner: width - left - right, height }), marks, key.draw],
  });
  drawing.prepend(svg("title", {}, title));
  drawing.setAttribute("role", "group");
  return listen(drawing);
};

// One drawing of several, each below the one before.
export const below = (title, drawings) => {
  const whole = svg("svg", { class: "chart", role: "group", "aria-label": title });
  let height = 0;
  for (const each of drawings) {
    each.setAttribute("y", height);
    each.setAttribute("overflow", "visible");
    height += Number(each.getAttribute("height"));
    whole.append(each);
  }
  const width = drawings[0].getAttribute("width");
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` }))
    whole.setAttribute(name, value);
  return whole;
};
