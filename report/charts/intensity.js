// How much arithmetic each op of a layer does for a byte of memory traffic, in a phase or in both, and from where on
// machines wait for arithmetic.
//
// intensity({phases, ridges}, width) -> SVG
//   phases    one or two, the one of more arithmetic first: [{phase, rows, total}] as `dculab tables intensity` has them,
//             without ops that do no arithmetic or move nothing; total: of the layer
//   ridges    [{machine, intensity}]: each a dashed line
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { chart, dots, format, rowsOf, spread, svg, tagged, textWidth } from "../kit.js";

const unit = "FLOP/byte";
const inUnit = (value) => `${format.numberBelow(value)} ${unit}`; // FLOP/byte of a head near its bound: 0.9995, not 1.00
// Of prefill and decode as on the roofline.
const looks = [{ color: "var(--series-3)", shape: "square" }, { color: "var(--ink)", shape: "circle" }], only = { color: "var(--series-0)", shape: "circle" };
const whole = "the layer";

// Of two phases each row has a place in both; the layer is a row of its own, where one phase has a line.
const placesOf = (phases) => {
  const told = phases.map(({ phase, rows, total }, index) => {
    const all = phases.length > 1 ? [...rows, { ...total, op: whole }] : rows;
    return all.map((row) => ({ ...row, phase, look: phases.length > 1 ? looks[index] : only }));
  });
  const ops = Array.from(d3.union(told.flat().map(({ op }) => op).filter((op) => op !== whole), phases.length > 1 ? [whole] : []));
  return { ops, places: told.flat().map((place) => ({ ...place, index: ops.indexOf(place.op) })) };
};

const describe = (several) => ({ op, phase, computation, flops, bytes, intensity: value, lecture_formula: formula }) => ({
  title: several ? `${op}, ${phase}` : op,
  lines: [...(computation ? [["computation", computation]] : []), ["arithmetic", format.flops(flops)], ["memory traffic", format.bytes(bytes)],
    ["intensity", inUnit(value)], ...(formula ? [["the lecture's formula", formula]] : [])],
});

// Beside each row's outer places, on the outer sides.
const values = (places, op) => {
  const [least, most] = d3.extent(places.filter(({ index }) => index === op), ({ intensity: value }) => value);
  const right = [{ at: most, index: op, side: 1 }];
  return most > 1.05 * least ? [{ at: least, index: op, side: -1 }, ...right] : right;
};

// Names of machines above their lines, in as many rows as keep them apart.
const rowsOfRidges = (ridges, place, [left, right]) => {
  const ends = [];
  return d3.sort(ridges, (ridge) => ridge.intensity).map((ridge) => {
    const text = `${ridge.machine} ${format.number(ridge.intensity)}`, half = textWidth(text, 11) / 2;
    const x = Math.max(left + half, Math.min(right - half, place(ridge.intensity)));
    const found = ends.findIndex((end) => end < x - half), row = found < 0 ? ends.length : found;
    ends[row] = x + half + 8;
    return { text, x, row };
  });
};
const ridgeNames = (ridges) => (_index, { x }, _values, { width, marginTop }) => {
  const all = rowsOfRidges(ridges, x, [4, width - 4]);
  return svg("g", { class: "labels" }, all.map(({ text, x: middle, row }) =>
    svg("text", { class: "halo", x: middle, y: marginTop - 8 - 14 * row, "text-anchor": "middle" }, text)));
};

export const intensity = ({ phases, ridges = [] }, width = 640) => {
  const { ops, places } = placesOf(phases), several = phases.length > 1, frame = rowsOf(ops, width, "point");
  const domain = spread([...places, ...ridges].map((each) => each.intensity), several ? 5 : 1.6);
  const beside = (side) => ({ text: ({ at }) => format.numberBelow(at), textAnchor: side > 0 ? "start" : "end", dx: 9 * side, fill: "var(--soft)", stroke: "var(--page)" });
  const texts = d3.range(ops.length).flatMap((op) => values(places, op));
  const joins = d3.range(ops.length).map((op) => d3.extent(places.filter(({ index }) => index === op), (place) => place.intensity));
  const dashed = { strokeDasharray: "5 4", strokeWidth: 1.5 }, [{ total }] = phases;
  return chart({
    title: "Arithmetic intensity", width, ...frame, top: 8 + 14 * ridges.length, right: several ? 28 : 62,
    legend: [
      ...(several ? phases.map(({ phase: text }, index) => ({ text, ...looks[index] })) : [{ text: `the layer: ${inUnit(total.intensity)}`, color: "var(--soft)", shape: "dashed" }]),
      ...(ridges.length ? [{ text: "ridge: to its left an op waits for memory", color: "var(--compute)", shape: "dashed" }] : []),
    ],
    x: { type: "log", domain, label: `arithmetic intensity in ${unit}`, text: (value) => format.number(value, 1) },
    marks: [
      several ? [] : Plot.ruleX([total], { x: "intensity", stroke: "var(--soft)", ...dashed, render: tagged([total], "layer") }),
      Plot.ruleX(ridges, { x: "intensity", stroke: "var(--compute)", ...dashed, render: tagged(ridges, "ridge") }),
      Plot.ruleY(joins, { y: d3.range(ops.length), x1: ([least]) => (several ? least : domain[0]), x2: "1", stroke: several ? "var(--soft)" : only.color, strokeWidth: 2 }),
      dots(places, "op", { x: "intensity", y: "index", r: 5, symbol: ({ look }) => look.shape, fill: ({ look }) => look.color, describe: describe(several) }),
      [1, -1].map((side) => Plot.text(texts.filter((each) => each.side === side), { x: "at", y: "index", ...beside(side) })),
      ridgeNames(ridges),
    ],
  });
};

// What of a phase lies to the right of each ridge.
const saysOfRidges = (ridges, phases) => {
  if (!ridges.length) return "An op waits for memory where this is less than the machine's peak arithmetic divided by its bandwidth (the ridge of the roofline).";
  const named = ridges.map(({ machine, intensity: value }) => `${format.number(value)} on ${machine}`).join(", ");
  const waiting = phases.map(({ phase, rows }) => {
    const right = ridges.map(({ machine, intensity: value }) => ({ machine, count: rows.filter((row) => row.intensity > value).length }));
    if (right.every(({ count }) => count === 0)) return `all ops of the ${phase} wait for memory`;
    const counts = right.map(({ machine, count }) => `${count}${ridges.length > 1 ? ` on ${machine}` : ""}`).join(", ");
    return `of the ${rows.length} ops of the ${phase}, ${counts} wait for arithmetic`;
  });
  return `With less than the ridge an op waits for memory, with more for arithmetic (${named}): ${waiting.join("; ")}.`;
};

export const intensityChart = {
  id: "intensity", title: "Arithmetic intensity by op", draw: intensity,
  views: ({ result }) => {
    const { phase, total, decode_total: decode, rows, ridges } = result;
    if (!total?.intensity || !rows) return [];
    const of = (name, all) => ({ phase: name, total: all, rows: rows.filter((row) => row.phase === name && row.intensity > 0) });
    return [{ choices: {}, ridges, phases: decode ? [of("prefill", total), of("decode", decode)] : [of(phase, total)] }];
  },
  says: ({ phases, ridges = [] }) => {
    const [{ rows, total, phase }, other] = phases;
    const most = d3.greatest(rows, (row) => row.intensity), least = d3.least(rows, (row) => row.intensity);
    const first = other
      ? `For each byte that the layer reads or writes, a ${phase} does ${format.numberBelow(total.intensity)} FLOP and a ${other.phase} ${format.numberBelow(other.total.intensity)}. `
      : `The arithmetic of each op in a ${phase} for each byte that it reads or writes: the layer's is ${inUnit(total.intensity)}, ` +
        `from ${inUnit(least.intensity)} of ${least.op} to ${inUnit(most.intensity)} of ${most.op}. `;
    return first + saysOfRidges(ridges, phases);
  },
};
