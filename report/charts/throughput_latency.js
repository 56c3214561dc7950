// How long users wait against how much is served: throughput to the right is better, latency further down is better.
//
// throughputLatency({points, latency, rate, limit, hollow, joined}, width) -> SVG
//   points    [{x: tokens a second, y: seconds, text, series, lines, fits}], as scatter.js has them
//   latency   what y is: "TTFT, P90"; rate: what x is: "output tokens/s"
//   limit, hollow, joined   as scatter.js has them
import * as d3 from "d3";
import { facts, format } from "../kit.js";
import { areLoads, hasLimits, latencies, served } from "../serving.js";
import { fits, frontOf, scatter } from "./scatter.js";

const number = (value) => format.number(value);
const linesOf = (rate, x, latency, y) => [[rate, number(x)], [latency, format.time(y)]];

// Of a set of served points with each latency that they have; the percentile that the SLO's share asks for is shown first.
const servedViews = ({ choices, points: all, perDevice, atMost }) => {
  const rate = perDevice ? "output tokens/s per device" : atMost ? "highest output tokens/s" : "output tokens/s";
  const slo = all[0]?.slo, limited = hasLimits(slo), joined = areLoads(all);
  return latencies.map(({ name: latency, key, limit }) => {
    const points = all.filter(({ times }) => times[key] > 0).map((each) => {
      const { text, short, series, rate: x, times: { [key]: y }, lines } = each;
      return { ...each, x, y, text, short, series, fits: each.met, lines: [...linesOf(rate, x, latency, y), ...lines] };
    });
    const most = slo?.[limit], line = most && { y: most, text: `SLO: ${latency.split(",")[0]} ${format.time(most)}` };
    const chosen = limited && slo.share > 0.9 && key === "ttft_p99";
    const hollow = limited ? "misses the SLO" : "does not meet the constraints";
    return { choices: { ...choices, latency }, latency, rate, slo, points, limit: line, hollow, joined, served: true, chosen };
  });
};

// Of a step all its tokens count.
const pointsOfSweep = ({ machine: series, points }) => {
  const pointOf = ({ text, tokens_per_second: x, step_seconds: y, bound, max_sequences: most, fits: isRoom }) => {
    const lines = [...linesOf("tokens/s", x, "step", y), ["bound", bound], ["sequences that fit", number(most)]];
    return { x, y, text, series, lines, fits: isRoom };
  };
  return points.filter((point) => point.step_seconds > 0 && point.tokens_per_second > 0).map(pointOf);
};
const sweepsPhase = ({ points }) => new Set(points.map(({ named }) => named.phase)).size > 1;
const ofSweep = (sweep) => ({ choices: sweep.choices, latency: "step", rate: "tokens/s", points: pointsOfSweep(sweep) });

const front = ({ points }) => frontOf(points.filter(fits), 1, -1);

export const throughputLatency = (view, width) => {
  const axes = { xLabel: view.rate, yLabel: view.latency, xText: number, yText: format.time, xBest: 1 };
  return scatter({ ...view, title: "Throughput against latency", front: front(view), ...axes }, width);
};

// With one batch for all, throughput is the inverse of the step, and nobody chooses the phase: nothing to weigh.
const isWeighed = ({ points, served: isServed }) =>
  points.length > 1 && (isServed || new Set(points.map(({ x, y }) => Math.round(x * y))).size > 1);

const ofLoads = ({ points, slo }) => {
  const met = points.filter(fits);
  if (!hasLimits(slo)) return "Each point is a load.";
  if (!met.length) return "Each point is a load; none of them is served within the SLO.";
  if (met.length === points.length) return "Each point is a load; all of them are served within the SLO.";
  const most = d3.greatest(met, ({ x }) => x);
  return `Each point is a load; ${points.length - met.length} of ${points.length} miss the SLO. The largest that meets it: ${most.text}.`;
};

const ofMissed = ({ points, slo }) => {
  const best = d3.greatest(points, ({ share }) => share);
  if (!hasLimits(slo)) return "None of the points meets the constraints: all are hollow.";
  return `None of the ${points.length} points meets the SLO, ${format.percent(slo.share)} of the requests within it: all are hollow. ` +
    `${best.text} comes nearest, with ${format.percent(best.share)}.`;
};

// What the front offers.
const ofFront = (view, fitting) => {
  const most = d3.greatest(fitting, ({ x }) => x), quickest = d3.least(fitting, ({ y }) => y), solid = front(view).length;
  const both =
    `${quickest.text} waits least (${format.time(quickest.y)}); ${most.text} serves ${number(most.x / quickest.x)} ` +
    `times its tokens at ${number(most.y / quickest.y)} times its wait.`;
  const worth = `only the ${solid === 1 ? "solid point is" : `${solid} solid points are`} worth choosing.`;
  return `${worth} ${most === quickest ? `${most.text} is best in both.` : both}`;
};

const noRoom = "does not fit in memory";
const plural = (verb) => verb.replace(/^misses/, "miss").replace(/^does/, "do");
const says = (view) => {
  const { points, latency, rate, limit, slo, hollow = noRoom } = view, fitting = points.filter(fits), missing = points.length - fitting.length;
  const axes = `${rate[0].toUpperCase()}${rate.slice(1)} to the right, ${latency} upwards: down and right is better`;
  const under = limit ? `; in the shaded part ${limit.text.replace("SLO: ", "the SLO's ")} is kept` : "";
  if (view.joined) return `${axes}${under}. ${ofLoads(view)}`;
  if (!fitting.length) return view.served ? `${axes}${under}. ${ofMissed(view)}` : "None of the points fits in memory: all are hollow.";
  const why = missing === 1 ? `hollow point ${hollow}` : `hollow points ${plural(hollow)}`;
  const share = hasLimits(slo) ? ` (${format.percent(slo.share)} of the requests within it)` : "";
  return `${axes}${under}; ${ofFront(view, fitting)}${missing ? ` ${missing} ${why}${share}.` : ""}`;
};

export const throughputLatencyChart = {
  id: "throughput-latency", title: "Throughput against latency", draw: throughputLatency, says,
  views: ({ result }) =>
    [...served(result).flatMap(servedViews), ...facts.sweeps(result).filter((sweep) => !sweepsPhase(sweep)).map(ofSweep)].filter(isWeighed),
};
