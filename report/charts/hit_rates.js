// How much of what reaches each cache is found there.
//
// hitRates({ops}, width) -> SVG
//   ops       `ops` of a step: [{op, bytes: {level: bytes}, hit_rate: {level: share}}], the levels with DRAM last
import * as d3 from "d3";
import { boundColor, chart, dots, facts, format, rowsOf } from "../kit.js";

const shapes = ["triangle", "square", "diamond", "star"];
// DRAM has everything.
const cachesOf = ({ ops }) => Object.keys(ops[0].hit_rate).slice(0, -1);

export const hitRates = ({ ops }, width = 640) => {
  const looks = cachesOf({ ops }).map((text, index) => ({ text, color: boundColor(text), shape: shapes[index] }));
  const places = ops.flatMap((op, index) => looks.map((look) => ({ op, index, level: look.text, look })));
  const x = ({ op, level }) => op.hit_rate[level], symbol = ({ look }) => look.shape, fill = ({ look }) => look.color;
  const describe = ({ op, level }) => ({
    title: `${op.op}, ${level}`,
    lines: [["hit rate", format.percent(op.hit_rate[level])], ["bytes asked of it", format.bytes(op.bytes[level])]],
  });
  const label = width < 600 ? "found in the cache" : "share of the bytes asked for that is found in the cache";
  return chart({
    title: "Hit rates", width, legend: looks, ...rowsOf(ops.map(({ op }) => op), width, "point"),
    x: { type: "linear", domain: [-0.03, 1.02], ticks: d3.range(0, 1.01, width < 600 ? 0.5 : 0.1), label, text: (value) => `${Math.round(100 * value)} %` },
    marks: dots(places, "rate", { x, y: "index", r: 5, symbol, fill, describe }),
  });
};

export const hitRatesChart = {
  id: "hit-rates", title: "Hit rates by cache", draw: hitRates,
  views: ({ result }) => facts.steps(result).filter((view) => view.ops.length && cachesOf(view).length),
  says: (view) => {
    const last = cachesOf(view).at(-1), asked = d3.sum(view.ops, (op) => op.bytes[last]);
    const hit = d3.sum(view.ops, (op) => op.bytes[last] * op.hit_rate[last]);
    return (
      `The share of each op's bytes that a cache already has. Of all that reaches ${last}, ` +
      `${format.percent(asked ? hit / asked : 0)} is found there; the rest comes from DRAM, whatever the size of the cache above.`
    );
  },
};
