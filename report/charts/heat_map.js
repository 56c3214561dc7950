// Group size against block size: how much slower each choice is than the best one.
//
// heatMap({cells, measure, unit}, width) -> SVG
//   cells     [{heads, block, worse, shown, chosen, bound, others}]: `worse` is a share (0 is the best), `shown` the
//             value itself as text, `others` {name: value} more of its mark
//   measure   what `shown` is; unit: what `worse` is a share of, beside the scale of colours
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { chart, facts, format, metrics, svg, tagged, textWidth } from "../kit.js";

// Points of `named` choices that differ in the two axes alone make a view, those of a search all together. `value` is
// better when it is small.
const viewsOf = (points, view, together) => {
  const cells = points
    .filter(({ named }) => named["KV heads"] !== undefined && named.block !== undefined)
    .map(({ named: { "KV heads": heads, block, ...others }, choices, ...rest }) =>
      ({ ...rest, heads: Number(heads), block: Number(block), others, choices: { ...choices, ...(!together && others) } }));
  return d3.groups(cells, (each) => JSON.stringify(each.choices)).filter(([, group]) => group.length > 1).map(([, group]) => {
    const best = d3.min(group, ({ value }) => value), { choices } = group[0];
    return { ...view, choices, cells: group.map((each) => ({ ...each, worse: each.value / best - 1 })) };
  });
};

const ofSweep = ({ choices, points, recommendation }) =>
  points.filter((point) => point.step_seconds > 0).map((point) => {
    const value = point.step_seconds, tied = point.chosen && recommendation.block_sizes?.indistinguishable;
    return { named: point.named, bound: point.bound, chosen: point.chosen, choices, value, shown: format.time(value), tied };
  });
const ofSimulation = ({ named, output_tokens_per_second: rate, best: chosen }) =>
  ({ named, choices: {}, value: 1 / rate, shown: `${format.number(rate)} tokens/s`, chosen });

// Of a search: each cell is the best point there that meets the constraints.
const ofSearch = ({ choices, best, pairs, objective: { goal, metric } }) => {
  const [title, text] = metrics.of(metric), less = goal === "minimize";
  const says =
    "Each cell is the best point that the search found there: in percent, " +
    (less ? `how much more ${title} it has than the best of all` : `how much more ${title} the best of all has`) +
    "; the frame marks that one. ";
  const points = pairs.filter((point) => point[metric] > 0).map(({ [metric]: figure, point, named, bound }) => {
    const value = less ? figure : 1 / figure;
    return { named, choices, bound, shown: text(figure), chosen: point === best[0].point, value };
  });
  return viewsOf(points, { measure: title, unit: "behind the best", says, praise: "best" }, true);
};

// Black or white, whichever is told apart better (luminance as WCAG defines it).
const inkOn = (background) => {
  const light = (each) => (each / 255 <= 0.04045 ? each / 3294.6 : ((each / 255 + 0.055) / 1.055) ** 2.4);
  const { r, g, b } = d3.rgb(background);
  return 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b) > 0.179 ? "#000000" : "#ffffff";
};

// The scale of colours below the axis.
const drawScale = (color, worst, unit) => (_index, _scales, _values, { width, height, marginLeft, marginRight }) => {
  const long = Math.min(260, width - marginLeft - marginRight - 8), share = (step) => Math.expm1((step / 39) * Math.log1p(worst));
  const bar = (step) => svg("rect", { x: (step * long) / 40, width: long / 40 + 0.5, height: 10, fill: color(share(step)) });
  const text = (x, anchor, words) => svg("text", { x, y: 24, "text-anchor": anchor }, words);
  const ends = [text(0, "start", "best"), text(long, "end", `+${format.percent(worst)} ${unit}`)];
  return svg("g", { transform: `translate(${marginLeft},${height - 30})`, class: "soft" }, d3.range(40).map(bar), ends);
};

export const heatMap = ({ cells, measure, unit }, width = 640) => {
  const values = (key, order) => d3.sort(new Set(cells.map((each) => each[key])), order);
  const rows = values("heads", d3.descending), columns = values("block", d3.ascending);
  const worst = Math.max(1e-6, d3.max(cells, ({ worse }) => worse)), room = (0.96 * (width - 56)) / columns.length;
  const color = (worse) => d3.interpolateCividis(1 - Math.log1p(worse) / Math.log1p(worst)), fill = ({ worse }) => color(worse);
  // In each cell how much worse it is, where there is room in all of them.
  const percent = (worse) => `+${(100 * worse).toFixed(worse < 0.0995 ? 1 : 0)}${room > 52 ? " %" : ""}`;
  const text = ({ worse }) => (worse === 0 ? "best" : percent(worse)), ink = (each) => inkOn(fill(each));
  const fits = d3.max(cells, (each) => textWidth(text(each), 11)) < room - 2, chosen = cells.filter((each) => each.chosen);
  const describe = ({ heads, block, shown, worse, bound, others, chosen: recommended }) => ({
    title: `${heads} KV heads, block ${block}`,
    lines: [
      [measure, shown], ["against the best", `+${format.percent(worse)}`], ...(bound ? [["bound", bound]] : []),
      ...Object.entries(others ?? {}), ...(recommended ? [["recommended", "yes"]] : []),
    ],
  });
  const place = { x: "block", y: "heads", rx: 3 };
  return chart({
    title: "Group size and block size", width, height: rows.length * 44, left: 44, right: 12, bottom: 88,
    x: { type: "band", domain: columns, padding: 0.04, label: "block size, tokens", text: String, bare: true },
    y: { type: "band", domain: rows, padding: 0.06, label: "KV heads", text: String, bare: true },
    marks: [
      Plot.cell(cells, { ...place, fill: { value: fill, scale: null }, render: tagged(cells, "cell", describe) }),
      Plot.cell(chosen, { ...place, fill: "none", render: tagged(chosen, "chosen") }),
      fits ? Plot.text(cells, { x: "block", y: "heads", text, className: "value", fill: ink }) : [],
      drawScale(color, worst, unit),
    ],
  });
};

const says = ({ cells, unit, says: intro, praise = "fastest" }) => {
  const best = d3.least(cells, ({ value }) => value), like = cells.find(({ tied }) => tied?.length > 1);
  const span = (same) => d3.max(cells.filter((each) => each[same] === best[same]), ({ worse }) => worse);
  const byBlock = span("heads"), byHeads = span("block"), differ = (side) => new Set(cells.map((each) => each[side])).size > 1;
  const costs = [
    ...(differ("heads") ? [`other KV heads cost up to +${format.percent(byHeads)}`] : []),
    ...(differ("block") ? [`other block sizes up to +${format.percent(byBlock)}`] : []),
  ];
  const matters = costs.length > 1 ? `: ${byHeads > byBlock ? "the group size" : "the block size"} matters more` : "";
  const usual = `How much longer the ${unit} is than with the best choice, in percent; the frame marks the recommended one. `;
  return (
    `${intro ?? usual}${best.heads} KV head${best.heads === 1 ? "" : "s"} in blocks of ${best.block} are ${praise}; ` +
    `from there ${costs.join(", ")}${matters}.` +
    (like ? ` With ${like.heads} KV heads blocks of ${like.tied.join(", ")} cannot be told apart.` : "")
  );
};

export const heatMapChart = {
  id: "heat-map", title: "Group size against block size", draw: heatMap, says,
  views: ({ result }) => [
    ...viewsOf(facts.sweeps(result).flatMap(ofSweep), { measure: "step", unit: "time of a step" }),
    ...viewsOf(facts.simulations(result).map(ofSimulation), { measure: "output", unit: "time of an output token" }),
    ...facts.searches(result).flatMap(ofSearch),
  ],
};
