// How long users wait against how much is served: throughput to the right is better, latency further down is better.
//
// throughputLatency({points, latency, served}, width) -> SVG
//   points    [{x: tokens a second, y: seconds, text, series, lines}], as scatter.js has them;
//             pointsOfSimulations(simulations, latency) makes them
//   latency   what y is: one of the names in `latencies`, or "step"
//   served    true where x counts output tokens alone, as a simulation does
import * as d3 from "d3";
import { facts } from "../facts.js";
import { format } from "../format.js";
import { frontOf, scatter } from "./scatter.js";

export const latencies = {
  "TTFT, P99": "ttft_p99",
  "TTFT, median": "ttft_p50",
  "TPOT, P99": "tpot_p99",
  "TPOT, median": "tpot_p50",
  "whole request, P99": "latency_p99",
  "whole request, median": "latency_p50",
};
// Of a step all its tokens count, of a prefill the prompts'.
const rateTitle = ({ served }) => (served ? "output tokens/s" : "tokens/s");

// simulations: entries of `simulations` with `named`, {name: choice}, by which they are told apart.
export const pointsOfSimulations = (simulations, latency) =>
  simulations
    .map((each) => ({ each, seconds: each[latencies[latency]], rate: each.output_tokens_per_second }))
    .filter(({ seconds }) => seconds > 0)
    .map(({ each, seconds, rate }) => ({
      x: rate,
      y: seconds,
      text: facts.label(each.named, simulations.map((other) => other.named)),
      series: each.machine,
      lines: [
        ["output tokens/s", format.number(rate)],
        [latency, format.time(seconds)],
        ["goodput", `${format.number(each.goodput)} requests/s`],
      ],
    }));

const ofSimulations = (result) => {
  const all = facts.simulations(result);
  return Object.keys(latencies)
    .map((latency) => ({ choices: { latency }, latency, served: true, points: pointsOfSimulations(all, latency) }))
    .filter((view) => view.points.length > 1);
};

// With one batch for all, throughput is the inverse of the step: nothing to weigh.
const isWeighed = (points) =>
  points.length > 1 && new Set(points.map((each) => Math.round(each.tokens_per_second * each.step_seconds))).size > 1;
const ofSweeps = (result) =>
  facts
    .sweeps(result)
    .map((sweep) => ({ ...sweep, points: sweep.points.filter((each) => each.step_seconds > 0 && each.tokens_per_second > 0) }))
    .filter(({ points }) => isWeighed(points))
    .map(({ choices, machine, points }) => ({
      choices,
      latency: "step",
      served: false,
      points: points.map((point) => ({
        x: point.tokens_per_second,
        y: point.step_seconds,
        text: facts.label(point.named, points.map((each) => each.named)),
        series: machine,
        lines: [
          ["tokens/s", format.number(point.tokens_per_second)],
          ["step", format.time(point.step_seconds)],
          ["bound", point.bound],
        ],
      })),
    }));

const front = (view) => frontOf(view.points, 1, -1);

export const throughputLatency = (view, width) =>
  scatter(
    {
      title: "Throughput against latency",
      points: view.points,
      front: front(view),
      xLabel: rateTitle(view),
      yLabel: view.latency,
      xText: (value) => format.number(value),
      yText: format.time,
      xBest: 1,
    },
    width,
  );

export const throughputLatencyChart = {
  id: "throughput-latency",
  title: "Throughput against latency",
  views: ({ result }) => [...ofSimulations(result), ...ofSweeps(result)],
  says: (view) => {
    const most = d3.greatest(view.points, (point) => point.x),
      quickest = d3.least(view.points, (point) => point.y),
      solid = front(view).length;
    return (
      `Tokens a second to the right, ${view.latency} upwards: down and right is better, and only the ${solid} solid ` +
      `${solid === 1 ? "point is" : "points are"} worth choosing. ` +
      (most === quickest
        ? `${most.text} is best in both.`
        : `${quickest.text} waits least (${format.time(quickest.y)}); ${most.text} serves ` +
          `${format.number(most.x / quickest.x)} times its tokens at ${format.number(most.y / quickest.y)} times its wait.`)
    );
  },
  draw: throughputLatency,
  table: (view) => {
    const best = front(view);
    return {
      columns: ["", rateTitle(view), view.latency, "on the front"],
      rows: view.points.map((point) => [
        point.text,
        format.number(point.x),
        format.time(point.y),
        best.includes(point) ? "yes" : "",
      ]),
    };
  },
};
