// What the size of KV blocks costs: the step against the recommended size, the slots of blocks that hold no token, and
// the look-ups in block tables.
//
// blockSize({curves}, width) -> SVG
//   curves    [{text, points: [{size, seconds, against, empty, lookUps, chosen}]}], some five at most: `against` is the
//             step over that with the recommended size - 1, `empty` a share, `lookUps` seconds of the step
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { below, chart, dots, facts, format } from "../kit.js";

const isAttention = ({ op }) => /attention/.test(op);

// Points of a study over kv_cache.block_size, op by op: [{size, lookUps, attention, rest, seconds, empty}].
export const blockCosts = ({ points }) =>
  points.map((point) => {
    const { fits } = point, lookUps = d3.sum(point.ops, (op) => op.terms_seconds.look_ups);
    const attention = d3.sum(point.ops.filter(isAttention), (op) => op.seconds);
    const inAttention = d3.sum(point.ops.filter(isAttention), (op) => op.terms_seconds.look_ups);
    return {
      size: Number(point.choices["kv_cache.block_size"]),
      fits,
      lookUps,
      attention: attention - inAttention,
      rest: point.step_seconds - attention - (lookUps - inAttention),
      seconds: point.step_seconds,
      empty: Math.max(0, d3.max(point.ops, (op) => op.empty_slots ?? 0)),
    };
  });

const symbols = ["circle", "square", "triangle", "diamond", "star"];
const lookOf = (index) => ({ color: `var(--series-${index})`, shape: symbols[index] });

const panels = [
  { key: "against", label: "step, against the recommended size", text: (value) => (value ? format.signedPercent(value) : "0"), least: 0.02 },
  { key: "empty", label: "slots of the blocks that hold no token", text: (value) => format.percent(value), least: 0.02 },
  { key: "lookUps", label: "look-ups in block tables, of a step", text: format.time, least: 1e-6 },
];

// Each panel has zero in it, and is tall enough for differences that matter not to look large.
const domainOf = (values, least, signed) => {
  const [low, high] = d3.extent(values), reach = Math.max(least, high * 1.15);
  return signed ? [Math.min(-least, low * 1.15), reach] : [0, reach];
};

const panel = ({ key, label, text, least }, curves, sizes, common, isLast) => {
  const pointsOf = ({ points: all, text: curve }, index) => all.map((each) => ({ ...each, curve, look: lookOf(index) }));
  const points = curves.flatMap(pointsOf);
  const describe = ({ curve, size, seconds, against, empty, lookUps, chosen }) => ({
    title: `block size ${size}${curve ? `, ${curve}` : ""}`,
    lines: [
      ["step", format.time(seconds)], ["against the recommended size", panels[0].text(against)], ["empty slots", panels[1].text(empty)],
      ["look-ups", format.time(lookUps)], ["recommended", chosen ? "yes" : "no"],
    ],
  });
  const chosen = d3.union(points.filter((each) => each.chosen).map(({ size }) => size));
  const symbol = ({ look }) => look.shape, fill = ({ look }) => look.color;
  const alike = key === "against" ? [Plot.rect([0], { y1: -0.01, y2: 0.01, fill: "var(--soft)", fillOpacity: 0.2 })] : [];
  return chart({
    ...common, height: 110, top: 30, bottom: isLast ? 48 : 14,
    legend: common.legend,
    x: { ...common.x, domain: sizes, hidden: !isLast, label: isLast ? "block size, tokens" : "" },
    y: { type: "linear", domain: domainOf(points.map((each) => each[key]), least, key === "against"), label, text },
    marks: [
      ...alike,
      Plot.ruleX(chosen, { stroke: "var(--chosen)", strokeWidth: 1.5 }),
      Plot.line(points, { x: "size", y: key, z: "curve", stroke: fill, strokeWidth: 2 }),
      dots(points, `size-${key}`, { x: "size", y: key, r: 4.5, symbol, fill, describe }),
    ],
  });
};

export const blockSize = ({ curves }, width = 640) => {
  const sizes = d3.sort(d3.union(curves.flatMap(({ points }) => points.map(({ size }) => size))));
  const x = { type: "point", text: String, padding: 0.3 }, common = { title: "Block size", width, left: 66, x };
  const named = curves.length > 1 ? curves.map(({ text }, index) => ({ text, ...lookOf(index) })) : [];
  const rules = [
    { text: "recommended", color: "var(--chosen)", shape: "line" },
    { text: "within 1 %", color: "var(--soft)", opacity: 0.2 },
  ];
  const looksUp = curves.some(({ points }) => points.some(({ lookUps }) => lookUps > 0));
  const shown = panels.filter(({ key }) => key !== "lookUps" || looksUp);
  return below("Block size", shown.map((each, index) =>
    panel(each, curves, sizes, { ...common, legend: index ? [] : [...named, ...rules] }, index === shown.length - 1)));
};

// The points of a sweep with one number of KV heads, a curve for each of the other choices; too many are views of their
// own.
const mostCurves = symbols.length;
const viewsOf = ({ choices, points, recommendation }) => {
  const sized = points.filter(({ named, ops }) => named.block !== undefined && ops?.some((op) => op.terms_seconds));
  const restOf = ({ named: { block: _block, "KV heads": _heads, ...rest } }) => rest;
  const nameOf = (rest) => Object.entries(rest).map(([key, value]) => `${key} ${value}`).join(", ");
  const curveOf = (rest, group) => {
    const costs = blockCosts({ points: group }), is = ({ size }) => size === recommendation?.block_size;
    const base = costs.find(is) ?? costs[0];
    const ofCost = (cost) => ({ ...cost, against: cost.seconds / base.seconds - 1, chosen: cost === base });
    return { rest, text: nameOf(rest), points: costs.map(ofCost) };
  };
  return d3.groups(sized, ({ named }) => named["KV heads"]).flatMap(([heads, ofHeads]) => {
    const curves = d3.groups(ofHeads, (point) => JSON.stringify(restOf(point))).map(([, group]) => curveOf(restOf(group[0]), group));
    const whose = heads === undefined ? choices : { ...choices, "KV heads": heads };
    const chosen = recommendation && String(recommendation.num_key_value_heads) === String(heads);
    if (curves.length <= mostCurves) return [{ choices: whose, chosen, recommendation, curves }];
    return curves.map((curve) => ({ choices: { ...whose, ...curve.rest }, chosen, recommendation, curves: [curve] }));
  });
};

export const blockSizeChart = {
  id: "block-size", title: "Block size: step, waste and look-ups", draw: blockSize,
  views: ({ result }) => {
    const swept = facts.sweeps(result).filter(({ points }) => new Set(points.map(({ named }) => named.block)).size > 1);
    return swept.flatMap(viewsOf).filter(({ curves }) => curves[0].points.length > 1);
  },
  says: ({ curves, recommendation, chosen }) => {
    const all = curves.flatMap(({ points }) => points), [low, high] = d3.extent(all, ({ against }) => against);
    const emptiest = d3.greatest(all, ({ empty }) => empty), most = d3.greatest(all, ({ lookUps }) => lookUps);
    const tied = chosen ? recommendation.block_sizes?.indistinguishable : undefined, looksUp = most.lookUps > 0;
    const differ = `Other sizes change the step by ${format.signedPercent(low)} to ${format.signedPercent(high)}.`;
    const sentences = [
      ...(all.every((point) => point.fits === false) ? ["None of these fits in memory: the times are as if they did."] : []),
      `${looksUp ? "Small blocks need more look-ups, large ones" : "Large blocks"} waste memory in the last block of each sequence.`,
      Math.max(-low, high) < 0.01 ? "All sizes take the same time within 1 %." : differ,
      ...(tied?.length > 1 ? [`${tied.join(", ")} cannot be told apart: they differ by less than 1 %, or by less than the prediction is certain of.`] : []),
      ...(emptiest.empty > 0 ? [`Blocks of ${emptiest.size} leave up to ${format.percent(emptiest.empty)} of the KV cache empty.`] : []),
      looksUp ? `Look-ups take up to ${format.time(most.lookUps)} of a step, with blocks of ${most.size}.`
        : "Look-ups in block tables take no time of their own with these kernels.",
    ];
    return sentences.join(" ");
  },
};
