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
  if (!met.length) return "Each point is a load. None of them is served within the SLO.";
  if (met.length === points.length) return "Each point is a load. All of them are served within the SLO.";
  const most = d3.greatest(met, ({ x }) => x);
  return `Each point is a load. ${points.length - met.length} of ${points.length} miss the SLO. The largest that meets it: ${most.text}.`;
};

// The constraints of a search are not its SLO: a point may meet one and miss the other.
const ofMissed = ({ points, slo }) => {
  const best = d3.greatest(points, ({ share, chosen }) => share + (chosen ? 1e-9 : 0)), all = points.length;
  const met = points.filter((point) => point.meets_constraints).length;
  if (!hasLimits(slo)) return "None of the points meets the constraints: all are hollow.";
  const told = points.some((point) => point.meets_constraints !== undefined);
  return [
    `The SLO asks for ${format.percent(slo.share)} of the requests within its limits; the best point, ${best.text}, has ${format.percent(best.share)}.`,
    ...(told ? [`${met} of the ${all} points meet the search's constraints, which are not the SLO.`] : []),
    "All points are hollow.",
  ].join(" ");
};

// What the front offers.
const ofFront = (view, fitting) => {
  const most = d3.greatest(fitting, ({ x }) => x), quickest = d3.least(fitting, ({ y }) => y), solid = front(view).length;
  const some = `Only the ${solid === 1 ? "solid point is" : `${solid} solid points are`} worth choosing.`;
  const worth = solid < view.points.length ? some : `None of the ${solid} points is beaten in both.`;
  if (most === quickest) return `${worth} ${most.text} is best in both.`;
  return (
    `${worth} The shortest wait is that of ${quickest.text}: ${format.time(quickest.y)}. ${most.text} serves ` +
    `${number(most.x / quickest.x)} times its tokens at ${number(most.y / quickest.y)} times its wait.`
  );
};

// "TTFT, P90" -> "the P90 of TTFT"
const inWords = (latency) => {
  const [what, percentile] = latency.split(", ");
  return percentile ? `the ${percentile} of ${what === "whole request" ? "the time of a whole request" : what}` : `the time of a ${what}`;
};
const noRoom = "does not fit in memory";
const plural = (verb) => verb.replace(/^misses/, "miss").replace(/^does/, "do");
const saysOfMissing = ({ hollow = noRoom, slo }, missing) => {
  const share = hasLimits(slo) ? `, ${format.percent(slo.share)} of the requests within it` : "";
  return `${missing} hollow ${missing === 1 ? `point ${hollow}` : `points ${plural(hollow)}`}${share}.`;
};
const says = (view) => {
  const { points, latency, rate, limit, slo } = view, fitting = points.filter(fits), missing = points.length - fitting.length;
  const isMissed = view.served && !view.joined && !fitting.length;
  const axes = `The x axis has ${rate.replace(/^highest/, "the highest")}, the y axis ${inWords(latency)}: down and right is better.`;
  const sentences = [
    ...(isMissed && hasLimits(slo) ? ["No setting serves this load within the SLO."] : []), axes,
    ...(limit ? [`The shaded part keeps ${limit.text.replace(/^SLO: (.*) ([^ ]+)$/, "the SLO's $1 of $2")}.`] : []),
    view.joined ? ofLoads(view) : isMissed ? ofMissed(view) : fitting.length ? ofFront(view, fitting) : "No point fits in memory.",
    ...(fitting.length && missing && !view.joined ? [saysOfMissing(view, missing)] : []),
  ];
  const tied = points.find((point) => point.chosen)?.tied;
  if (tied) sentences.push(`Blocks of ${tied.join(", ")} cannot be told apart: their points lie on each other.`);
  return sentences.join(" ") + facts.keyOf(points);
};

export const throughputLatencyChart = {
  id: "throughput-latency", title: "Throughput against latency", draw: throughputLatency, says,
  views: ({ result }) =>
    [...served(result).flatMap(servedViews), ...facts.sweeps(result).filter((sweep) => !sweepsPhase(sweep)).map(ofSweep)].filter(isWeighed),
};
