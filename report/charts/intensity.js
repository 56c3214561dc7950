// How much arithmetic each op of a layer does for a byte of memory traffic.
//
// intensity({rows, total}, width) -> SVG
//   rows      `rows` of `dculab tables intensity`, without ops that do no arithmetic or move nothing; total: of the layer
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { chart, dots, format, rowsOf, spread, tagged } from "../kit.js";

const unit = "FLOP/byte";
const inUnit = (value) => `${format.number(value)} ${unit}`;

export const intensity = ({ rows, total }, width = 640) => {
  const frame = rowsOf(rows.map(({ op }) => op), width, "point"), right = 62;
  const places = rows.map((row, index) => ({ ...row, index }));
  const [low, high] = spread(rows.map((row) => row.intensity), 1.6);
  const describe = ({ op, computation, flops, bytes, intensity: value, lecture_formula: formula }) => ({
    title: op,
    lines: [["computation", computation], ["arithmetic", format.flops(flops)], ["memory traffic", format.bytes(bytes)],
      ["intensity", inUnit(value)], ...(formula ? [["the lecture's formula", formula]] : [])],
  });
  const at = { x: "intensity", y: "index" }, line = { stroke: "var(--series-0)", strokeWidth: 2 };
  const beside = { text: (row) => format.number(row.intensity), textAnchor: "start", dx: 9, fill: "var(--soft)", stroke: "var(--page)" };
  const ofLayer = { stroke: "var(--soft)", strokeDasharray: "5 4", strokeWidth: 1.5, render: tagged([total], "layer") };
  return chart({
    title: "Arithmetic intensity", width, ...frame, right,
    legend: [{ text: `the layer: ${inUnit(total.intensity)}`, color: "var(--soft)", shape: "dashed" }],
    x: { type: "log", domain: [low, high], label: `arithmetic intensity in ${unit}`, text: (value) => format.number(value, 1) },
    marks: [
      Plot.ruleX([total], { x: "intensity", ...ofLayer }),
      Plot.ruleY(places, { y: "index", x1: () => low, x2: "intensity", ...line }),
      dots(places, "op", { ...at, r: 5, symbol: () => "circle", fill: () => "var(--series-0)", describe }),
      Plot.text(places, { ...at, ...beside }),
    ],
  });
};

export const intensityChart = {
  id: "intensity", title: "Arithmetic intensity by op", draw: intensity,
  views: ({ result }) => {
    if (!result.total?.intensity || !result.rows) return [];
    return [{ choices: {}, phase: result.phase, total: result.total, rows: result.rows.filter((row) => row.intensity > 0) }];
  },
  says: ({ rows, total, phase }) => {
    const most = d3.greatest(rows, (row) => row.intensity), least = d3.least(rows, (row) => row.intensity);
    return (
      `The arithmetic of each op in a ${phase} for each byte that it reads or writes: the layer's is ${inUnit(total.intensity)}, ` +
      `from ${inUnit(least.intensity)} of ${least.op} to ${inUnit(most.intensity)} of ${most.op}. An op waits for memory where ` +
      "this is less than the machine's peak arithmetic divided by its bandwidth (the ridge of the roofline)."
    );
  },
};
