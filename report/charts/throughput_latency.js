// How long users wait against how much is served: throughput to the right is better, latency further down is better.
//
// throughputLatency({points, latency, served}, width) -> SVG
//   points    [{x: tokens a second, y: seconds, text, series, lines, fits}], as scatter.js has them;
//             pointsOfSimulations(simulations, latency) makes them
//   latency   what y is: one of the names in `latencies`, or "step"
//   served    true where x counts output tokens alone, as a simulation does
import * as d3 from "d3";
import { facts, format } from "../kit.js";
import { fits, frontOf, scatter } from "./scatter.js";

export const latencies = {
  "TTFT, P99": "ttft_p99", "TTFT, median": "ttft_p50", "TPOT, P99": "tpot_p99", "TPOT, median": "tpot_p50",
  "whole request, P99": "latency_p99", "whole request, median": "latency_p50",
};
const number = (value) => format.number(value);
// Of a step all its tokens count, of a prefill the prompts'.
const rateTitle = (served) => (served ? "output tokens/s" : "tokens/s");
const linesOf = (served, rate, latency, seconds) => [[rateTitle(served), number(rate)], [latency, format.time(seconds)]];

// simulations: entries of `simulations` with `named`, {name: choice}, by which they are told apart.
export const pointsOfSimulations = (simulations, latency) => {
  const pointOf = ({ text, machine: series, output_tokens_per_second: x, goodput, [latencies[latency]]: y }) =>
    ({ x, y, text, series, lines: [...linesOf(true, x, latency, y), ["goodput", `${number(goodput)} requests/s`]] });
  return facts.labelled(simulations).map(pointOf).filter(({ y }) => y > 0);
};
// A batch fits whose sequences fit; of a sweep of something else at least one has to.
const pointsOfSweep = ({ machine: series, points }) => {
  const pointOf = ({ text, choices, tokens_per_second: x, step_seconds: y, bound, max_sequences: most }) => {
    const lines = [...linesOf(false, x, "step", y), ["bound", bound], ["sequences that fit", number(most)]];
    return { x, y, text, series, lines, fits: most >= Number(choices["workload.batch"] ?? 1) };
  };
  return points.filter((point) => point.step_seconds > 0 && point.tokens_per_second > 0).map(pointOf);
};

const front = ({ points }) => frontOf(points.filter(fits), 1, -1);

export const throughputLatency = (view, width) => {
  const axes = { xLabel: rateTitle(view.served), yLabel: view.latency, xText: number, yText: format.time, xBest: 1 };
  return scatter({ title: "Throughput against latency", points: view.points, front: front(view), ...axes }, width);
};

// With one batch for all, throughput is the inverse of the step: nothing to weigh.
const isWeighed = ({ points, served }) =>
  points.length > 1 && (served || new Set(points.map(({ x, y }) => Math.round(x * y))).size > 1);

export const throughputLatencyChart = {
  id: "throughput-latency", title: "Throughput against latency", draw: throughputLatency,
  views: ({ result }) => {
    const all = facts.simulations(result), served = true;
    const ofLatency = (latency) => ({ choices: { latency }, latency, served, points: pointsOfSimulations(all, latency) });
    const ofSweep = (sweep) => ({ choices: sweep.choices, latency: "step", points: pointsOfSweep(sweep) });
    return [...Object.keys(latencies).map(ofLatency), ...facts.sweeps(result).map(ofSweep)].filter(isWeighed);
  },
  says: (view) => {
    const fitting = view.points.filter(fits), hollow = view.points.length - fitting.length;
    if (!fitting.length) return "None of the points fits in memory: all are hollow.";
    const most = d3.greatest(fitting, ({ x }) => x), quickest = d3.least(fitting, ({ y }) => y);
    const solid = front(view).length;
    const both =
      `${quickest.text} waits least (${format.time(quickest.y)}); ${most.text} serves ${number(most.x / quickest.x)} ` +
      `times its tokens at ${number(most.y / quickest.y)} times its wait.`;
    return (
      `Tokens a second to the right, ${view.latency} upwards: down and right is better, and only the ${solid} solid ` +
      `${solid === 1 ? "point is" : "points are"} worth choosing. ${most === quickest ? `${most.text} is best in both.` : both}` +
      (hollow ? ` ${hollow} hollow ${hollow === 1 ? "point does" : "points do"} not fit in memory.` : "")
    );
  },
};
