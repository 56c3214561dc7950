// Points of two values that are weighed against each other, and the front of those worth choosing.
//
// scatter({title, points, front, limit, hollow, joined, xLabel, yLabel, xText, yText, xTicks, xBest}, width) -> SVG
//   points    [{x, y, text, short, series, lines, chosen}]: `text` is the point's name, `short` what is written beside it
//             where that differs, `series` sets colour and shape, `lines` [[name, value]] is what its mark says, `chosen`
//             has a ring; `fits`: false where it cannot be had: a hollow mark
//   front     those of `points` that are on it, joined by a dashed line: frontOf(points, xBest, yBest)
//   limit     {y, text}: what y must not exceed, a line with what is below it shaded
//   hollow    what hollow marks are: "does not fit in memory"
//   joined    true where points are one load after the other, not choices: a line through those of a series
//   xBest     1 where more to the right is better, -1 where less is
//   xText, yText   value -> text with its unit; xTicks: the ticks across, where they are given
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { boxAroundSymbol, chart, dots, names, roomOf, scaleOf, svg, tagged, textWidth } from "../kit.js";

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

// The limit's name, above its line or below, from the right.
const limitName = (room, at, text, { width, marginLeft, marginRight }) => {
  const long = textWidth(text, 11), ends = d3.range(width - marginRight - 4, marginLeft + long, -16);
  const place = (end, y) =>
    ({ boxes: [{ x0: end - long, x1: end, y0: y - 7, y1: y + 7 }], attributes: { x: end, y, "text-anchor": "end" } });
  return room.text(text, [-9, 9].flatMap((off) => ends.map((end) => place(end, at + off))), true);
};

const limitMarks = ({ y, text }, xs, ys) => [
  Plot.rect([text], { x1: xs[0], x2: xs[1], y1: ys[0], y2: y, fill: "var(--good)", fillOpacity: 0.08 }),
  Plot.ruleY([y], { stroke: "var(--good)", strokeWidth: 1.5, render: tagged([y], "limit") }),
];

export const scatter = (view, width = 640) => {
  const { title, points, front, limit, hollow = "does not fit in memory", joined, xLabel, yLabel, xText, yText, xTicks, xBest } = view;
  const series = Array.from(new Set(points.map((point) => point.series)));
  const looks = series.map((text, index) => ({ text, color: `var(--series-${index % 5})`, shape: shapes[index % 5] }));
  const look = (point) => looks[series.indexOf(point.series)], color = (point) => look(point).color;
  const ordered = d3.sort(front, (point) => point.x), isBest = (point) => front.includes(point);
  const x = scaleOf(points.map((point) => point.x)), y = scaleOf([...points.map((point) => point.y), ...(limit ? [limit.y] : [])]);
  // Of many points only those worth choosing have room for a name; the chosen one always has, as have a few loads.
  const chosen = points.filter((point) => point.chosen);
  const others = points.length > 16 ? ordered : d3.sort(points, (point) => !isBest(point));
  const named = [...chosen, ...others.filter((point) => !point.chosen)];
  const texts = (_index, scales, _values, frame) => {
    const room = roomOf(frame);
    const at = (point) => ({
      x: scales.x(point.x), y: scales.y(point.y), text: point.short ?? point.text, radius: point.chosen ? 9 : 4,
      must: point.chosen || (joined && points.length <= 8),
    });
    room.take(...points.map((point) => boxAroundSymbol(scales.x(point.x), scales.y(point.y), point.chosen ? 8 : 6, look(point).shape)));
    if (joined)
      for (const [, all] of d3.groups(d3.sort(points, (point) => point.x), (point) => point.series))
        room.takeLines(...d3.pairs(all.map((point) => [scales.x(point.x), scales.y(point.y)])));
    if (limit) room.takeLines([[frame.marginLeft, scales.y(limit.y)], [width - frame.marginRight, scales.y(limit.y)]]);
    const limitText = limit ? [limitName(room, scales.y(limit.y), limit.text, frame)] : [];
    return svg("g", { class: "labels" }, limitText, names(room, named.map(at), { corners: true }));
  };
  const role = (point) => [["on the front", isBest(point) ? "yes" : "no"], ...(fits(point) ? [] : [[hollow, "yes"]])];
  const describe = (point) => ({ title: point.text, lines: [...point.lines, ...(joined ? [] : role(point))] });
  const outline = { text: hollow, color: "var(--soft)", shape: "circle", hollow: true };
  const best = { text: "Pareto front", color: "var(--soft)", shape: "dashed" };
  const ring = { text: "recommended", color: "var(--chosen)", shape: "circle", hollow: true };
  const solid = (point) => (fits(point) ? (joined || isBest(point) ? 1 : 0.4) : 0);
  const stairs = { curve: xBest > 0 ? "step-before" : "step-after", stroke: best.color, strokeDasharray: "5 4" };
  const through = { z: "series", stroke: color, strokeOpacity: 0.6, sort: "x" };
  const mark = { r: 5.4, symbol: (point) => look(point).shape, fill: color, stroke: color, strokeWidth: 1 };
  return chart({
    title, width, height: Math.min(400, 260 + width / 8), left: 62,
    legend: [
      ...(series.length > 1 ? looks : []), ...(front.length > 1 && !joined ? [best] : []), ...(points.every(fits) ? [] : [outline]),
      ...(chosen.length ? [ring] : []),
    ],
    x: { ...x, label: xLabel, text: xText, ticks: xTicks },
    y: { ...y, label: yLabel, text: yText },
    marks: [
      limit ? limitMarks(limit, x.domain, y.domain) : [],
      Plot.line(joined ? points : ordered, { x: "x", y: "y", ...(joined ? through : stairs) }),
      Plot.dot(chosen, { x: "x", y: "y", r: 9, fill: "none", stroke: "var(--chosen)", strokeWidth: 2, render: tagged(chosen, "ring") }),
      dots(points, "point", { x: "x", y: "y", ...mark, solid, describe }),
      texts,
    ],
  });
};
