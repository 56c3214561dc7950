// How much of what reaches each cache is found there.
//
// hitRates({ops}, width) -> SVG
//   ops       `ops` of a step: [{op, bytes: {level: bytes}, hit_rate: {level: share}}], the levels with DRAM last
import { dot, ruleY } from "@observablehq/plot";
import * as d3 from "d3";
import { boundColor, chart } from "../chart.js";
import { shortened, textWidth } from "../dom.js";
import { facts } from "../facts.js";
import { format } from "../format.js";
import { tagged } from "../marks.js";

const symbols = ["triangle", "square", "diamond", "star"];
// DRAM has everything.
const cachesOf = ({ ops }) => Object.keys(ops[0].hit_rate).slice(0, -1);

const describe = ({ op, level, rate }) => ({
  title: `${op.op}, ${level}`,
  lines: [
    ["hit rate", format.percent(rate)],
    [`bytes asked of ${level}`, format.bytes(op.bytes[level])],
  ],
});

export const hitRates = ({ ops }, width = 640) => {
  const levels = cachesOf({ ops }),
    symbolOf = (level) => symbols[levels.indexOf(level)];
  const places = ops.flatMap((op, index) => levels.map((level) => ({ op, index, level, rate: op.hit_rate[level] })));
  const left = Math.min(14 + d3.max(ops, (op) => textWidth(op.op)), width * 0.42);
  return chart({
    title: "Hit rates",
    width,
    height: ops.length * 24,
    left,
    top: 8,
    legend: levels.map((level) => ({ text: level, color: boundColor(level), shape: symbolOf(level) })),
    x: {
      type: "linear",
      domain: [0, 1],
      label: width < 600 ? "found in the cache" : "share of the bytes asked for that is found in the cache",
      text: (value) => `${Math.round(100 * value)} %`,
    },
    y: {
      type: "point",
      domain: d3.range(ops.length),
      padding: 0.5,
      text: (index) => shortened(ops[index].op, left - 10),
    },
    marks: [
      dot(places, {
        x: "rate",
        y: "index",
        r: 5,
        symbol: ({ level }) => symbolOf(level),
        fill: ({ level }) => boundColor(level),
        stroke: null,
        sort: null,
        render: tagged(places, "rate", describe),
      }),
    ],
  });
};

export const hitRatesChart = {
  id: "hit-rates",
  title: "Hit rates by cache",
  views: ({ result }) => facts.steps(result).filter((view) => view.ops.length && cachesOf(view).length),
  says: (view) => {
    const last = cachesOf(view).at(-1);
    const asked = d3.sum(view.ops, (op) => op.bytes[last]),
      hit = d3.sum(view.ops, (op) => op.bytes[last] * op.hit_rate[last]);
    return (
      `The share of each op's bytes that a cache already has. Of all that reaches ${last}, ` +
      `${format.percent(asked ? hit / asked : 0)} is found there; the rest comes from DRAM, whatever the size of the ` +
      "cache above."
    );
  },
  draw: hitRates,
  table: (view) => ({
    columns: ["op", ...cachesOf(view)],
    rows: view.ops.map((op) => [op.op, ...cachesOf(view).map((level) => format.percent(op.hit_rate[level]))]),
  }),
};
