// Where the time goes: bars of ops, of points of a sweep or of simulations, stacked and coloured by what bounds them.
//
// timeByBound({rows}, width) -> SVG
//   rows      [{label, parts: [{name, bound, seconds}]}]; `bound` is a memory level, "compute", "latency", "launch",
//             "host" ..., as `bound` of an op or a key of a simulation's `seconds_by_bound`; `name` may be missing
// timeByOp({ops, host}, width) -> SVG
//   ops       `ops` of a step: [{op, bound, seconds}]
//   host      seconds of the step that no op has (`host_seconds`), if any
// rowOf(label, seconds) -> a row of timeByBound
//   seconds   {bound: seconds}, as `seconds_by_bound` of a simulation
import { barX, text } from "@observablehq/plot";
import * as d3 from "d3";
import { boundColor, chart } from "../chart.js";
import { shortened, textWidth } from "../dom.js";
import { facts } from "../facts.js";
import { format } from "../format.js";
import { tagged } from "../marks.js";

export const rowOf = (label, seconds) => ({
  label,
  parts: d3
    .sort(Object.entries(seconds), ([, each]) => -each)
    .map(([bound, each]) => ({ name: `${label}: ${bound}`, bound, seconds: each })),
});

// The parts of all rows, each with where it begins and ends in its row.
const placed = (rows) =>
  rows.flatMap(({ label: row, parts }, index) => {
    const ends = d3.cumsum(parts, (part) => part.seconds);
    return parts
      .map((part, at) => ({ ...part, row, index, total: ends.at(-1), from: ends[at] - part.seconds, to: ends[at] }))
      .filter((part) => part.seconds > 0);
  });

export const timeByBound = ({ rows }, width = 640, title = "Time by bound") => {
  const totals = rows.map((row) => d3.sum(row.parts, (part) => part.seconds)),
    parts = placed(rows);
  const left = Math.min(14 + d3.max(rows, (row) => textWidth(row.label)), width * 0.42);
  const describe = (part) => ({
    title: part.name ?? part.row,
    lines: [
      ["time", format.time(part.seconds)],
      ["bound", part.bound],
      [`share of ${part.row}`, format.percent(part.seconds / part.total)],
    ],
  });
  const right = 62,
    pixel = d3.max(totals) / (width - left - right);
  return chart({
    title,
    width,
    height: rows.length * 24,
    left,
    right,
    top: 8,
    legend: Array.from(d3.union(parts.map((part) => part.bound)), (bound) => ({ text: bound, color: boundColor(bound) })),
    x: { type: "linear", domain: [0, d3.max(totals) || 1], label: "time", text: format.time },
    y: {
      type: "band",
      domain: d3.range(rows.length),
      padding: 0.2,
      text: (index) => shortened(rows[index].label, left - 10),
      bare: true,
    },
    marks: [
      barX(parts, {
        x1: "from",
        x2: (part) => Math.max(part.to, part.from + pixel), // a bar is seen, however short
        y: "index",
        fill: ({ bound }) => boundColor(bound),
        render: tagged(parts, "part", describe),
      }),
      text(totals, { x: (total) => total, y: (_, index) => index, text: format.time, textAnchor: "start", dx: 5, fill: "var(--soft)" }),
    ],
  });
};

const rowsOfStep = ({ ops, host }) => {
  const idle = host > 0 ? [{ name: "host, between steps", bound: "host", seconds: host }] : [];
  const whole = facts.byBound(ops).map(([bound, seconds]) => ({ name: `whole step: ${bound}`, bound, seconds }));
  return [
    { label: "whole step", parts: [...whole, ...idle] },
    ...d3
      .sort(ops, (op) => -op.seconds)
      .map(({ op, bound, seconds }) => ({ label: op, parts: [{ name: op, bound, seconds }] })),
    ...idle.map((part) => ({ label: "host", parts: [part] })),
  ];
};

export const timeByOp = (step, width) => timeByBound({ rows: rowsOfStep(step) }, width, "Time by op and bound");

const table = ({ rows }) => ({
  columns: ["", "part", "bound", "time"],
  rows: rows.flatMap(({ label, parts }) =>
    parts.map((part) => [label, part.name ?? "", part.bound, format.time(part.seconds)]),
  ),
});

export const timeByOpChart = {
  id: "time-by-op",
  title: "Time by op and bound",
  views: ({ result }) => facts.steps(result),
  says: ({ ops, seconds }) => {
    const largest = d3.greatest(ops, (op) => op.seconds);
    return (
      "How long each op takes in all its executions, coloured by what bounds it. " +
      `${largest.op} is the largest with ${format.percent(largest.seconds / seconds)} of ${format.time(seconds)}, ` +
      `bound by ${largest.bound}: begin there.`
    );
  },
  draw: timeByOp,
  table: (view) => table({ rows: rowsOfStep(view) }),
};

const mostRows = 48;
const ofSweeps = (result) =>
  facts
    .sweeps(result)
    .filter(({ points }) => points.length > 1 && points.length <= mostRows && points.every((point) => point.ops))
    .map(({ choices, points }) => ({
      choices,
      what: "point",
      rows: points.map((point) => {
        const label = facts.label(point.named, points.map((each) => each.named));
        const host = Math.max(0, point.step_seconds - d3.sum(point.ops, (op) => op.seconds));
        return rowOf(label, { ...Object.fromEntries(facts.byBound(point.ops)), host });
      }),
    }));
const ofSimulations = (result) => {
  const all = facts.simulations(result).filter((each) => each.seconds_by_bound);
  const label = (each) => facts.label(each.named, all.map((other) => other.named));
  const rows = all.map((each) => rowOf(label(each), each.seconds_by_bound));
  return rows.length && rows.length <= mostRows ? [{ choices: {}, what: "simulation", rows }] : [];
};

export const timeByBoundChart = {
  id: "time-by-bound",
  title: "Time by bound",
  views: ({ result }) => [...ofSweeps(result), ...ofSimulations(result)],
  says: ({ what, rows }) => {
    const first = d3.union(rows.map((row) => row.parts[0].bound));
    return (
      `What the time of each ${what} is spent waiting for. ` +
      (first.size === 1
        ? `In all of them ${[...first][0]} holds most of it.`
        : `What holds most of it changes between them: ${[...first].join(", ")}.`)
    );
  },
  draw: timeByBound,
  table,
};
