// What was predicted beside what was measured, with the interval the prediction gave.
//
// predictedMeasured({pairs, unit}, width) -> SVG
//   pairs     [{name, unit, measured, predicted, low, high, more: [[name, value]], reported}]: the interval and `more`
//             may be missing; `reported` where the measurement is a published one
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { chart, dots, facts, format, spread } from "../kit.js";

const listOf = (value) => (Array.isArray(value) ? value : []);
const valuesOf = (choices) => Object.values(choices ?? {}).join(", ");

const pairOfPoint = ({ id: name, unit = "s", interval_seconds, bound, basis, machine, ...point }) => {
  const [low, high] = interval_seconds ?? [point.low, point.high];
  const { measured = point.measured_seconds, predicted = point.predicted_seconds } = point;
  const more = [["bound", bound], ["basis", basis], ...(machine ? [["machine", machine]] : [])];
  return { name, unit, measured, predicted, low, high, more };
};
const unitOf = (metric) => {
  if (/^(ttft|tpot|itl|latency|total_time)/.test(metric)) return "s";
  if (/tokens_per_second/.test(metric)) return "tokens/s";
  return /per_second|goodput/.test(metric) ? "requests/s" : "count";
};
// `intervals`: by metric, where they do not stand beside the figures.
const ofMetrics = (metrics, of, intervals = {}) =>
  Object.entries(metrics ?? {})
    .filter(([, { measured, simulated }]) => measured > 0 && simulated > 0)
    .map(([metric, { measured, simulated: predicted, interval = intervals[metric] ?? [] }]) => {
      const [low, high] = interval, name = of ? `${metric}, ${of}` : metric;
      return { name, unit: unitOf(metric), measured, predicted, low, high };
    });
const ofSimulation = ({ measured, text, intervals }, _, all) => ofMetrics(measured, all.length > 1 ? text : "", intervals);
const pairOfSpeedUp = ({ variant, choices, measured_speed_up: measured, predicted_speed_up: predicted }) =>
  ({ name: `${variant}, ${valuesOf(choices)}`, unit: "times as fast", measured, predicted });
const ofComparison = ({ machine, choices, reported }) =>
  listOf(reported).map(({ variant, metric, bound, reported_change: measured, predicted_change: predicted }) => {
    const name = [variant, metric, machine, ...Object.values(choices)].join(", "), more = [["bound", bound]];
    return { name, unit: "% change", measured: 100 * measured, predicted: 100 * predicted, more, reported: true };
  });
const pairsOf = (part) => [
  ...listOf(part.points).map(pairOfPoint).filter(({ measured }) => measured > 0),
  ...facts.simulations(part).flatMap(ofSimulation),
  ...listOf(part.points).flatMap(({ metrics, choices }) => ofMetrics(metrics, valuesOf(choices))),
  ...listOf(part.speed_ups).map(pairOfSpeedUp),
  ...listOf(part.comparisons).flatMap(ofComparison),
];

const hasInterval = ({ low }) => low !== undefined && low !== null;
const inside = ({ measured, low, high }) => measured >= low && measured <= high;
// Without an interval a pair is neither: nothing was promised.
const looks = {
  holds: { text: "90 % interval holds the measurement", color: "var(--good)", shape: "circle" },
  misses: { text: "does not", color: "var(--bad)", shape: "diamond" },
  none: { text: "no interval", color: "var(--other)", shape: "square" },
};
const lookOf = (pair) => looks[!hasInterval(pair) ? "none" : inside(pair) ? "holds" : "misses"];
const sourceOf = (pairs) => (pairs.some(({ reported }) => reported) ? "reported" : "measured");
const textOf = ({ unit }, value) => format.inUnit(value, unit === "% change" ? "%" : unit);

const legendOf = (pairs) => {
  const shown = (look) => (pairs.some((pair) => lookOf(pair) === look) ? [look] : []);
  const intervals = pairs.some(hasInterval) ? [looks.holds, ...shown(looks.misses), ...shown(looks.none)] : [];
  return [...intervals, { text: "predicted = measured", color: "var(--soft)", shape: "dashed" }];
};

// The same scale for both axes.
const scaleOfPairs = (pairs) => {
  const positive = pairs.every(({ measured, predicted }) => measured > 0 && predicted > 0);
  const ends = (pair) => (hasInterval(pair) && pair.low > 0 ? [pair.low, pair.high] : []);
  const values = pairs.flatMap((pair) => [pair.measured, pair.predicted, ...ends(pair)]);
  const [low, high] = d3.extent(values), air = (high - low || 1) * 0.06;
  return positive && high / low > 3 ? { type: "log", domain: spread(values) } : { type: "linear", domain: [low - air, high + air] };
};

const describe = (pair) => {
  const interval = () => `${textOf(pair, pair.low)} to ${textOf(pair, pair.high)}`;
  const both = [[sourceOf([pair]), textOf(pair, pair.measured)], ["predicted", textOf(pair, pair.predicted)]];
  const promised = hasInterval(pair) ? [["90 % interval", interval()], ["inside", inside(pair) ? "yes" : "no"]] : [];
  return { title: pair.name, lines: [...both, ...promised, ...(pair.more ?? [])] };
};

export const predictedMeasured = ({ pairs, unit }, width = 640) => {
  const scale = scaleOfPairs(pairs), { domain } = scale;
  const text = (value) => textOf(pairs[0], value).replace(/\s(tokens\/s|requests\/s|times as fast|count)$/, "");
  const color = (pair) => lookOf(pair).color, symbol = (pair) => lookOf(pair).shape, lowest = ({ low }) => Math.max(low, domain[0]);
  const bar = { x: "measured", y1: lowest, y2: "high", stroke: color, strokeWidth: 1.5, strokeOpacity: 0.35 };
  const mark = { x: "measured", y: "predicted", r: pairs.length > 60 ? 3.4 : 4.4, symbol, fill: color, solid: () => 0.8 };
  return chart({
    title: "Predicted against measured", width, height: Math.min(440, Math.max(280, width * 0.6)), left: 66,
    legend: legendOf(pairs),
    x: { ...scale, label: `${sourceOf(pairs)}, ${unit}`, text },
    y: { ...scale, label: `predicted, ${unit}`, text },
    marks: [
      Plot.line(domain, { x: domain, y: domain, stroke: "var(--soft)", strokeDasharray: "5 4" }),
      Plot.ruleX(pairs.filter(hasInterval), bar),
      dots(pairs, "pair", { ...mark, describe }),
    ],
  });
};

export const predictedMeasuredChart = {
  id: "predicted-measured", title: "Predicted against measured", draw: predictedMeasured,
  views: ({ result }) => {
    const groups = d3.groups(facts.parts(result).flatMap(pairsOf), ({ unit }) => unit);
    return groups.map(([unit, pairs]) => ({ choices: { unit }, unit, pairs }));
  },
  says: ({ pairs, unit }) => {
    const held = pairs.filter(hasInterval), change = unit === "% change";
    const error = ({ predicted, measured }) => Math.abs(change ? predicted - measured : predicted / measured - 1);
    const half = d3.median(pairs, error), near = change ? `${format.number(half, 2)} points` : format.percent(half);
    const bars = `; ${held.filter(inside).length} of ${held.length} measurements lie inside their 90 % interval, the bar`;
    return (
      `On the dashed line the prediction is right, above it too ${unit === "s" ? "slow" : "high"}. Half of the ` +
      `${pairs.length} lie within ${near} of it${held.length ? bars : ""}.`
    );
  },
};
