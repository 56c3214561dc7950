// Points of two values that are weighed against each other, and the front of those worth choosing.
//
// scatter({title, points, front, xLabel, yLabel, xText, yText, xTicks, xBest}, width) -> SVG
//   points    [{x, y, text, series, lines}]: `text` is the point's name, `series` sets colour and shape, `lines`
//             [[name, value]] is what its mark says; `fits`: false where there is no room for it: a hollow mark
//   front     those of `points` that are on it, joined by a dashed line: frontOf(points, xBest, yBest)
//   xBest     1 where more to the right is better, -1 where less is
//   xText, yText   value -> text with its unit; xTicks: the ticks across, where they are given
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { boxAroundSymbol, chart, dots, names, roomOf, scaleOf } from "../kit.js";

const shapes = ["circle", "square", "triangle", "diamond", "star"];

export const fits = (point) => point.fits !== false;

// Those that no other is at least as good as in both.
export const frontOf = (points, xBest, yBest) => {
  const differ = (a, b) => a.x !== b.x || a.y !== b.y;
  const asGood = (a, b) => xBest * a.x >= xBest * b.x && yBest * a.y >= yBest * b.y;
  return points.filter((point, index) =>
    points.every((other, at) => at === index || !asGood(other, point) || (!differ(other, point) && at > index)),
  );
};

export const scatter = ({ title, points, front, xLabel, yLabel, xText, yText, xTicks, xBest }, width = 640) => {
  const series = Array.from(new Set(points.map((point) => point.series)));
  const looks = series.map((text, index) => ({ text, color: `var(--series-${index % 5})`, shape: shapes[index % 5] }));
  const look = (point) => looks[series.indexOf(point.series)], color = (point) => look(point).color;
  const ordered = d3.sort(front, (point) => point.x), isBest = (point) => front.includes(point);
  // Of many points only those worth choosing have room for a name.
  const named = points.length > 16 ? ordered : d3.sort(points, (point) => !isBest(point));
  const texts = (_index, { x, y }, _values, frame) => {
    const room = roomOf(frame), at = (point) => ({ x: x(point.x), y: y(point.y), text: point.text });
    room.take(...points.map((point) => boxAroundSymbol(x(point.x), y(point.y), 6, look(point).shape)));
    return names(room, named.map(at), { corners: true });
  };
  const describe = (point) => ({ title: point.text, lines: [...point.lines, ["on the front", isBest(point) ? "yes" : "no"]] });
  const hollow = { text: "does not fit in memory", color: "var(--soft)", shape: "circle", hollow: true };
  const best = { text: "Pareto front", color: "var(--soft)", shape: "dashed" };
  const solid = (point) => (isBest(point) ? 1 : fits(point) ? 0.4 : 0);
  const stairs = { curve: xBest > 0 ? "step-before" : "step-after", stroke: best.color, strokeDasharray: "5 4" };
  const mark = { r: 5.4, symbol: (point) => look(point).shape, fill: color, stroke: color, strokeWidth: 1 };
  return chart({
    title, width, height: Math.min(400, 260 + width / 8), left: 62,
    legend: [
      ...(series.length > 1 ? looks : []), ...(front.length > 1 ? [best] : []), ...(points.every(fits) ? [] : [hollow]),
    ],
    x: { ...scaleOf(points.map(({ x }) => x)), label: xLabel, text: xText, ticks: xTicks },
    y: { ...scaleOf(points.map(({ y }) => y)), label: yLabel, text: yText },
    marks: [
      Plot.line(ordered, { x: "x", y: "y", ...stairs }),
      dots(points, "point", { x: "x", y: "y", ...mark, solid, describe }),
      texts,
    ],
  });
};
