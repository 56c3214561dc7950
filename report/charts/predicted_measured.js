// What was predicted beside what was measured, with the interval the prediction gave.
//
// predictedMeasured({pairs, unit}, width) -> SVG
//   pairs     [{name, unit, measured, predicted, low, high, more: [[name, value]], reported}]: the interval may be
//             missing; `reported` where the measurement is a published one
import { dot, line, ruleX } from "@observablehq/plot";
import * as d3 from "d3";
import { chart } from "../chart.js";
import { facts } from "../facts.js";
import { format } from "../format.js";
import { tagged } from "../marks.js";
import { spread } from "../scales.js";

const listOf = (value) => (Array.isArray(value) ? value : []);
const valuesOf = (choices) => Object.values(choices ?? {}).join(", ");

const ofPoints = (part) =>
  listOf(part.points)
    .filter((point) => (point.measured || point.measured_seconds) > 0)
    .map((point) => ({
      name: point.id,
      unit: point.unit || "s",
      measured: point.measured || point.measured_seconds,
      predicted: point.predicted || point.predicted_seconds,
      low: point.interval_seconds ? point.interval_seconds[0] : point.low,
      high: point.interval_seconds ? point.interval_seconds[1] : point.high,
      more: [["bound", point.bound], ["basis", point.basis], ...(point.machine ? [["machine", point.machine]] : [])],
    }));

const unitOf = (metric) => {
  if (/^(ttft|tpot|itl|latency|total_time)/.test(metric)) return "s";
  if (/tokens_per_second/.test(metric)) return "tokens/s";
  return /per_second|goodput/.test(metric) ? "requests/s" : "count";
};
// `intervals`: by metric, where they do not stand beside the figures.
const ofMetrics = (metrics, of, intervals = {}) =>
  Object.entries(metrics ?? {})
    .filter(([, pair]) => pair.measured > 0 && pair.simulated > 0)
    .map(([metric, pair]) => {
      const [low, high] = pair.interval ?? intervals[metric] ?? [];
      const name = of ? `${metric}, ${of}` : metric;
      return { name, unit: unitOf(metric), measured: pair.measured, predicted: pair.simulated, low, high, more: [] };
    });
const ofServing = (part) =>
  facts.simulations(part).flatMap((each, _, all) => {
    const name = all.length > 1 ? facts.label(each.named, all.map((other) => other.named)) : "";
    return ofMetrics(each.measured, name, each.intervals);
  });
const ofServedStudy = (part) => listOf(part.points).flatMap(({ metrics, choices }) => ofMetrics(metrics, valuesOf(choices)));
const ofSpeedUps = (part) =>
  listOf(part.speed_ups).map((each) => ({
    name: `${each.variant}, ${valuesOf(each.choices)}`,
    unit: "times as fast",
    measured: each.measured_speed_up,
    predicted: each.predicted_speed_up,
    more: [],
  }));
const ofReported = (part) =>
  listOf(part.comparisons).flatMap(({ machine, choices, reported }) =>
    listOf(reported).map((each) => ({
      name: `${each.variant}, ${each.metric}, ${[machine, ...Object.values(choices)].join(", ")}`,
      unit: "% change",
      measured: 100 * each.reported_change,
      predicted: 100 * each.predicted_change,
      more: [["bound", each.bound]],
      reported: true,
    })),
  );

const hasInterval = (pair) => pair.low !== undefined && pair.low !== null;
const inside = (pair) => pair.measured >= pair.low && pair.measured <= pair.high;
// Without an interval a pair is neither: nothing was promised.
const looks = {
  holds: { text: "90 % interval holds the measurement", color: "var(--good)", shape: "circle" },
  misses: { text: "does not", color: "var(--bad)", shape: "diamond" },
  none: { text: "no interval", color: "var(--other)", shape: "square" },
};
const lookOf = (pair) => (!hasInterval(pair) ? looks.none : inside(pair) ? looks.holds : looks.misses);
const text = (pair, value) => format.inUnit(value, pair.unit === "% change" ? "%" : pair.unit);
const interval = (pair) => (hasInterval(pair) ? `${text(pair, pair.low)} to ${text(pair, pair.high)}` : "");
const source = (pairs) => (pairs.some((pair) => pair.reported) ? "reported" : "measured");

const legendOf = (pairs) => {
  const intervals = pairs.some(hasInterval),
    shown = (look) => (pairs.some((pair) => lookOf(pair) === look) ? [look] : []);
  const equal = { text: "predicted = measured", color: "var(--soft)", shape: "dashed" };
  return [...(intervals ? [looks.holds] : []), ...shown(looks.misses), ...(intervals ? shown(looks.none) : []), equal];
};

// The same scale for both axes.
const scaleOfPairs = (pairs) => {
  const values = pairs.flatMap((pair) => [
    pair.measured,
    pair.predicted,
    ...(hasInterval(pair) && pair.low > 0 ? [pair.low, pair.high] : []),
  ]);
  const [low, high] = d3.extent(values);
  const positive = pairs.every((pair) => pair.measured > 0 && pair.predicted > 0);
  if (positive && high / low > 3) return { type: "log", domain: spread(values) };
  const air = (high - low || 1) * 0.06;
  return { type: "linear", domain: [low - air, high + air] };
};

const describe = (pair) => ({
  title: pair.name,
  lines: [
    ["measured", text(pair, pair.measured)],
    ["predicted", text(pair, pair.predicted)],
    ...(hasInterval(pair) ? [["90 % interval", interval(pair)]] : []),
    ...pair.more,
  ],
});

export const predictedMeasured = ({ pairs, unit }, width = 640) => {
  const scale = scaleOfPairs(pairs),
    held = pairs.filter(hasInterval);
  const tick = (value) => text(pairs[0], value).replace(/ (tokens\/s|requests\/s|times as fast|count)$/, "");
  const color = (pair) => lookOf(pair).color;
  return chart({
    title: "Predicted against measured",
    width,
    height: Math.min(440, Math.max(280, width * 0.6)),
    left: 66,
    legend: legendOf(pairs),
    x: { ...scale, label: `${source(pairs)}, ${unit}`, text: tick },
    y: { ...scale, label: `predicted, ${unit}`, text: tick },
    marks: [
      line(scale.domain, { x: (value) => value, y: (value) => value, stroke: "var(--soft)", strokeDasharray: "5 4" }),
      ruleX(held, {
        x: "measured",
        y1: (pair) => Math.max(pair.low, scale.domain[0]),
        y2: "high",
        stroke: color,
        strokeWidth: 1.5,
        strokeOpacity: 0.35,
      }),
      dot(pairs, {
        x: "measured",
        y: "predicted",
        r: pairs.length > 60 ? 3.4 : 4.4,
        symbol: (pair) => lookOf(pair).shape,
        fill: color,
        fillOpacity: 0.8,
        stroke: null,
        sort: null,
        render: tagged(pairs, "pair", describe),
      }),
    ],
  });
};

const says = ({ pairs, unit }) => {
  const held = pairs.filter(hasInterval),
    change = unit === "% change";
  const median = d3.median(pairs, ({ predicted, measured }) =>
    Math.abs(change ? predicted - measured : predicted / measured - 1),
  );
  return (
    `On the dashed line the prediction is right, above it too ${unit === "s" ? "slow" : "high"}. Half of the ` +
    `${pairs.length} lie within ${change ? `${format.number(median, 2)} points` : format.percent(median)} of it` +
    (held.length
      ? `; ${held.filter(inside).length} of ${held.length} measurements lie inside their 90 % interval, the bar.`
      : ".")
  );
};

export const predictedMeasuredChart = {
  id: "predicted-measured",
  title: "Predicted against measured",
  views: ({ result }) => {
    const sources = [ofPoints, ofServing, ofServedStudy, ofSpeedUps, ofReported];
    const pairs = facts.parts(result).flatMap((part) => sources.flatMap((of) => of(part)));
    return d3.groups(pairs, (pair) => pair.unit).map(([unit, group]) => ({ choices: { unit }, unit, pairs: group }));
  },
  says,
  draw: predictedMeasured,
  table: ({ pairs }) => ({
    columns: ["", source(pairs), "predicted", "90 % interval", "inside"],
    rows: pairs.map((pair) => [
      pair.name,
      text(pair, pair.measured),
      text(pair, pair.predicted),
      interval(pair),
      hasInterval(pair) ? (inside(pair) ? "yes" : "no") : "",
    ]),
  }),
};
