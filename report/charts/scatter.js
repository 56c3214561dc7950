// Points of two values that are weighed against each other, and the front of those worth choosing.
//
// scatter({points, front, xLabel, yLabel, xText, yText, xTicks, xBest}, width) -> SVG
//   points    [{x, y, text, series, lines}]: `text` is the point's name, `series` sets colour and shape, `lines`
//             [[name, value]] is what its mark says
//   front     those of `points` that are on it, joined by a dashed line: frontOf(points, xBest, yBest)
//   xBest     1 where more to the right is better, -1 where less is
//   xText, yText   value -> text with its unit; xTicks: the ticks across, where they are given
import { dot, line } from "@observablehq/plot";
import * as d3 from "d3";
import { chart } from "../chart.js";
import { boxAround, names, roomOf } from "../labels.js";
import { tagged } from "../marks.js";
import { scaleOf } from "../scales.js";

const shapes = ["circle", "square", "triangle", "diamond", "star"];

// Those that no other is at least as good as in both.
export const frontOf = (points, xBest, yBest) =>
  points.filter(
    (point, index) =>
      !points.some(
        (other, at) =>
          at !== index &&
          xBest * other.x >= xBest * point.x &&
          yBest * other.y >= yBest * point.y &&
          (other.x !== point.x || other.y !== point.y || at < index),
      ),
  );

export const scatter = ({ title, points, front, xLabel, yLabel, xText, yText, xTicks, xBest }, width = 640) => {
  const series = Array.from(new Set(points.map((point) => point.series)));
  const look = (name) => ({ color: `var(--series-${series.indexOf(name) % 5})`, shape: shapes[series.indexOf(name) % 5] });
  const ordered = d3.sort(front, (point) => point.x);
  const color = (point) => look(point.series).color;
  // Of many points only those worth choosing have room for a name.
  const named = points.length > 16 ? ordered : d3.sort(points, (point) => !front.includes(point));
  const texts = (_index, { x, y }, _values, frame) => {
    const room = roomOf(frame);
    room.take(...points.map((point) => boxAround(x(point.x), y(point.y), 6)));
    const wanted = named.map((point) => ({ x: x(point.x), y: y(point.y), text: point.text }));
    return names(room, wanted, { beside: "corners" });
  };
  return chart({
    title,
    width,
    height: Math.min(400, 260 + width / 8),
    left: 62,
    legend: [
      ...(series.length > 1 ? series.map((text) => ({ text, ...look(text) })) : []),
      ...(front.length > 1 ? [{ text: "Pareto front", color: "var(--soft)", shape: "dashed" }] : []),
    ],
    x: { ...scaleOf(points.map((point) => point.x)), label: xLabel, text: xText, ticks: xTicks },
    y: { ...scaleOf(points.map((point) => point.y)), label: yLabel, text: yText },
    marks: [
      line(ordered, {
        x: "x",
        y: "y",
        curve: xBest > 0 ? "step-before" : "step-after",
        stroke: "var(--soft)",
        strokeDasharray: "5 4",
      }),
      dot(points, {
        x: "x",
        y: "y",
        r: 5.4,
        symbol: (point) => look(point.series).shape,
        fill: color,
        stroke: color,
        strokeWidth: 1,
        fillOpacity: { value: (point) => (front.includes(point) ? 1 : 0.4), scale: null },
        sort: null,
        render: tagged(points, "point", ({ text, lines }) => ({ title: text, lines })),
      }),
      texts,
    ],
  });
};
