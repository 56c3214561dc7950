// Where the time goes: bars of ops, of points of a sweep or of simulations, stacked and coloured by what bounds them.
//
// timeByBound({rows, legend, shares}, width) -> SVG
//   rows      [{label, parts: [{name, bound, seconds}], fits}]; `bound` is a memory level, "compute", "latency", "launch",
//             "host" ..., as `bound` of an op or a key of a simulation's `seconds_by_bound`; `name` may be missing; `fits`
//             is false where memory has no room
//   legend    the bounds in it, where also those without time are to be named
//   shares    true for bars of the same length, each with its time beside it
// timeByOp({ops, host}, width) -> SVG
//   ops       `ops` of a step: [{op, bound, seconds}]; host: seconds of the step that no op has (`host_seconds`), if any
// rowOf(label, {bound: seconds}) -> a row of timeByBound, as of `seconds_by_bound` of a simulation
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { boundColor, chart, facts, format, rowsOf, tagged } from "../kit.js";

export const rowOf = (label, seconds) => {
  const parts = Object.entries(seconds).map(([bound, each]) => ({ name: `${label}: ${bound}`, bound, seconds: each }));
  return { label, parts: d3.sort(parts, (part) => -part.seconds) };
};
const largestOf = ({ parts }) => d3.greatest(parts, ({ seconds }) => seconds)?.bound;

// The same order in every row, so that eyes can follow a bound: arithmetic, memory levels, what waits; others last.
const order = ["compute", "DRAM", "LLC", "L3", "L2", "L1", "latency", "launch", "exchange", "host"];
const rank = (bound) => order.indexOf(bound) + 1 || order.length + 1;
const inOrder = (row) => ({ ...row, parts: d3.sort(row.parts, ({ bound }) => rank(bound)) });

// The parts of all rows, each with where it begins and ends in its row, in seconds or as a share of it.
const placed = (rows, shares) =>
  rows.flatMap(({ label: row, parts }, index) => {
    const ends = d3.cumsum(parts, (part) => part.seconds), total = ends.at(-1), whole = shares ? total || 1 : 1;
    const all = parts.map((part, at) => ({ ...part, row, index, total, from: (ends[at] - part.seconds) / whole, to: ends[at] / whole }));
    return all.filter((part) => part.seconds > 0);
  });

export const timeByBound = ({ rows, legend, shares }, width = 640, title = "Time by bound") => {
  const parts = placed(rows.map(inOrder), shares), frame = rowsOf(rows.map((row) => row.label), width), right = 62;
  const totals = rows.map((row) => d3.sum(row.parts, (part) => part.seconds)), longest = shares ? 1 : d3.max(totals) || 1;
  const end = ({ from, to }) => Math.max(to, from + longest / (width - frame.left - right)); // a pixel
  const describe = ({ name, row, bound, seconds, total }) => {
    const lines = [["time", format.time(seconds)], ["bound", bound], ["share of the bar", format.percent(seconds / total)]];
    return { title: name ?? row, lines };
  };
  const bar = { x1: "from", x2: end, y: "index", fill: ({ bound }) => boundColor(bound) };
  const beside = (total, index) => (rows[index].fits === false ? "no room" : format.time(total));
  const text = { text: beside, textAnchor: "start", dx: 5, fill: "var(--soft)", stroke: "var(--page)" };
  const axis = shares ? { label: "share of the time", text: (value) => `${Math.round(100 * value)} %` } : { label: "time", text: format.time };
  return chart({
    title, width, ...frame, right,
    legend: d3.sort(d3.union(legend ?? parts.map(({ bound }) => bound)), rank).map((bound) => ({ text: bound, color: boundColor(bound) })),
    x: { type: "linear", domain: [0, longest], ...axis },
    y: { ...frame.y, bare: true },
    marks: [
      Plot.barX(parts, { ...bar, render: tagged(parts, "part", describe) }),
      Plot.text(totals, { x: shares ? () => 1 : totals, y: d3.range(rows.length), ...text }),
    ],
  });
};

export const timeByOp = ({ ops, host }, width) => {
  const idle = host > 0 ? [{ name: "host, between steps", bound: "host", seconds: host }] : [];
  const whole = rowOf("whole step", Object.fromEntries(facts.byBound(ops)));
  const rows = d3.sort(ops, (op) => -op.seconds).map((op) => ({ label: op.op, parts: [{ ...op, name: op.op }] }));
  const hostRow = idle.map((part) => ({ label: "host", parts: [part] }));
  const step = { ...whole, parts: [...whole.parts, ...idle] };
  return timeByBound({ rows: [step, ...rows, ...hostRow] }, width, "Time by op and bound");
};

export const timeByOpChart = {
  id: "time-by-op", title: "Time by op and bound", draw: timeByOp,
  views: ({ result }) => facts.steps(result),
  says: ({ ops, seconds: step }) => {
    const { op, seconds, bound } = d3.greatest(ops, (each) => each.seconds);
    return (
      "How long each op takes in all its executions, coloured by what bounds it. " +
      `${op} is the largest with ${format.percent(seconds / step)} of ${format.time(step)}, bound by ${bound}: begin there.`
    );
  },
};

const mostRows = 48, uneven = 10; // how many times as long as the shortest bar the longest may be for both to be seen
const rowOfPoint = ({ text, ops, step_seconds: seconds, fits }) => {
  const byBound = { ...Object.fromEntries(facts.byBound(ops)), host: facts.hostOf(seconds, ops) };
  return { ...rowOf(text, byBound), fits };
};

// Where a bar would be a sliver beside the longest, first as shares, then in time.
const viewsOf = ({ what, choices, rows }) => {
  const [shortest, longest] = d3.extent(rows, ({ parts }) => d3.sum(parts, ({ seconds }) => seconds));
  if (longest <= uneven * shortest) return [{ what, choices, rows }];
  const bars = [[`share of the ${what === "point" ? "step" : "time"}`, true], ["time", false]];
  return bars.map(([name, shares]) => ({ what, choices: { ...choices, bars: name }, rows, shares }));
};

const mostOf = (rows) => {
  const first = d3.groups(rows, largestOf);
  if (rows.length === 2 && first.length === 2)
    return `${rows.map((row, index) => `${row.label.replace(/^phase /, "")} ${index ? "" : "waits "}for ${largestOf(row)}`).join(", ")}.`;
  if (first.length === 1) return `In every bar most time goes to ${first[0][0]}.`;
  const counts = d3.sort(first, ([, same]) => -same.length).map(([bound, same]) => `to ${bound} in ${same.length}`);
  return `Most time goes ${counts.join(", ")} of the bars.`;
};

export const timeByBoundChart = {
  id: "time-by-bound", title: "Time by bound", draw: timeByBound,
  views: ({ result }) => {
    const swept = facts.sweeps(result).filter(({ points }) => points.length > 1 && points.every((point) => point.ops));
    const simulated = facts.simulations(result).filter((each) => each.seconds_by_bound);
    const ofSimulations = simulated.map((each) => rowOf(each.text, each.seconds_by_bound));
    const views = swept.map(({ choices, points }) => ({ what: "point", choices, rows: points.map(rowOfPoint) }));
    const all = [...views, { what: "simulation", choices: {}, rows: ofSimulations }];
    return all.filter(({ rows }) => rows.length && rows.length <= mostRows).flatMap(viewsOf);
  },
  says: ({ what, rows, shares }) => {
    const beside = shares ? " All bars have the same length; their times stand beside them." : "";
    return `Each bar is a ${what}. Its colours show what limits its time.${beside} ${mostOf(rows)}`;
  },
};
