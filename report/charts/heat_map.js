// Group size against block size: how much slower each choice is than the best one.
//
// heatMap({cells, measure, unit}, width) -> SVG
//   cells     [{heads, block, worse, shown, chosen, bound, others, fits}]: `worse` is a share (0 is the best), `shown` the
//             value itself as text, `others` {name: value} more of its mark, `fits` false where memory has no room
//   measure   what `shown` is; unit: what `worse` is a share of, beside the scale of colours
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { chart, facts, format, metrics, svg, tagged, textWidth } from "../kit.js";

const tie = 0.01; // what differs by less is alike
const fits = (cell) => cell.fits !== false;

// Points of `named` choices that differ in the two axes alone make a view, those of a search all together. `value` is
// better when it is small.
const viewsOf = (points, view, together) => {
  const cells = points
    .filter(({ named }) => named["KV heads"] !== undefined && named.block !== undefined)
    .map(({ named: { "KV heads": heads, block, ...others }, choices, ...rest }) =>
      ({ ...rest, heads: Number(heads), block: Number(block), others, choices: { ...choices, ...(!together && others) } }));
  return d3.groups(cells, (each) => JSON.stringify(each.choices)).filter(([, group]) => group.length > 1).map(([, group]) => {
    const best = d3.min(group.some(fits) ? group.filter(fits) : group, ({ value }) => value), { choices } = group[0];
    return { ...view, choices, cells: group.map((each) => ({ ...each, worse: each.value / best - 1 })) };
  });
};

const ofSweep = ({ choices, points, recommendation }) =>
  points.filter((point) => point.step_seconds > 0).map((point) => {
    const { named, bound, chosen, step_seconds: value } = point, tied = chosen && recommendation.block_sizes?.indistinguishable;
    return { named, bound, chosen, fits: point.fits, choices, value, shown: format.time(value), tied };
  });
const ofSimulation = ({ named, output_tokens_per_second: rate, best: chosen }) =>
  ({ named, choices: {}, value: 1 / rate, shown: `${format.number(rate)} tokens/s`, chosen });

// Of a search: each cell is the best point there that meets the constraints.
const ofSearch = ({ choices, pairs, objective: { goal, metric } }) => {
  const [title, text] = metrics.of(metric), less = goal === "minimize";
  const says =
    "Each cell is the best point that the search found there. In percent: " +
    (less ? `how much more ${title} it has than the best of all` : `how much more ${title} the best of all has`);
  const points = pairs.filter((point) => point[metric] > 0).map(({ [metric]: figure, named, bound, chosen, tied }) =>
    ({ named, choices, bound, shown: text(figure), chosen, tied, value: less ? figure : 1 / figure }));
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

// Lines over the cells that memory has no room for.
const hatched = (cells) => (_index, { x, y }) => {
  const wide = x.bandwidth(), tall = y.bandwidth();
  const line = (at) => `M${Math.max(0, at - tall)},${Math.min(at, tall)}L${Math.min(at, wide)},${Math.max(0, at - wide)}`;
  const lines = d3.range(8, wide + tall, 8).map(line).join("");
  const of = ({ block, heads }) =>
    svg("path", { d: lines, transform: `translate(${x(block)},${y(heads)})`, fill: "none", stroke: "var(--line)" });
  return svg("g", { class: "hatched" }, cells.map(of));
};

const describe = (measure) => (cell) => ({
  title: `${cell.heads} KV heads, block ${cell.block}`,
  lines: [
    [measure, fits(cell) ? cell.shown : "no room in memory"], ["against the best", fits(cell) ? `+${format.percent(cell.worse)}` : ""],
    ...(cell.bound ? [["bound", cell.bound]] : []), ...Object.entries(cell.others ?? {}), ...(cell.chosen ? [["recommended", "yes"]] : []),
  ],
});

// In each cell how much worse it is, where there is room in all of them; always, what does not fit.
const cellTexts = (cells, fill, room) => {
  const percent = (worse) => `+${(100 * worse).toFixed(worse < 0.0995 ? 1 : 0)}${room > 52 ? " %" : ""}`;
  const valueOf = ({ worse }) => (worse < 0.0005 ? "best" : percent(worse)), none = room > 52 ? "no room" : "no\nroom";
  const isRoom = d3.max(cells, (each) => textWidth(valueOf(each), 11)) < room - 2;
  const shown = cells.filter((each) => isRoom || !fits(each));
  const ink = { value: (each) => (fits(each) ? inkOn(fill(each)) : "var(--ink)"), scale: null };
  const halo = { value: (each) => (fits(each) ? "none" : "var(--page)"), scale: null };
  const text = (each) => (fits(each) ? valueOf(each) : none);
  return Plot.text(shown, { x: "block", y: "heads", text, className: "value", fill: ink, stroke: halo, strokeWidth: 4 });
};

export const heatMap = ({ cells, measure, unit }, width = 640) => {
  const values = (key, order) => d3.sort(new Set(cells.map((each) => each[key])), order);
  const rows = values("heads", d3.descending), columns = values("block", d3.ascending), room = (0.96 * (width - 56)) / columns.length;
  const worst = Math.max(tie, d3.max(cells.filter(fits), ({ worse }) => worse) ?? 0); // what is alike looks alike
  const color = (worse) => d3.interpolateCividis(1 - Math.log1p(Math.min(worse, worst)) / Math.log1p(worst));
  const fill = (each) => (fits(each) ? color(each.worse) : "var(--page)"), chosen = cells.filter((each) => each.chosen);
  const stroke = { value: (each) => (fits(each) ? "none" : "var(--line)"), scale: null };
  const place = { x: "block", y: "heads", rx: 3 };
  return chart({
    title: "Group size and block size", width, height: rows.length * 44, left: 44, right: 12, bottom: 88,
    x: { type: "band", domain: columns, padding: 0.04, label: "block size, tokens", text: String, bare: true },
    y: { type: "band", domain: rows, padding: 0.06, label: "KV heads", text: String, bare: true },
    marks: [
      Plot.cell(cells, { ...place, fill: { value: fill, scale: null }, stroke, render: tagged(cells, "cell", describe(measure)) }),
      hatched(cells.filter((each) => !fits(each))),
      Plot.cell(chosen, { ...place, fill: "none", render: tagged(chosen, "chosen") }),
      cellTexts(cells, fill, room),
      drawScale(color, worst, unit),
    ],
  });
};

const nameOf = (heads) => `${heads} KV head${heads === 1 ? "" : "s"}`;
const upTo = (worse) => (worse < tie ? `less than ${format.percent(tie, 1)}` : `up to ${format.percent(worse)}`);

// The best cell; where the recommended block size is as good, the one with that size.
const bestOf = (cells) => {
  const least = d3.least(cells, ({ value }) => value), { tied, block } = cells.find(({ chosen }) => chosen) ?? {};
  const like = tied?.includes(String(least.block)) && cells.find((each) => each.heads === least.heads && each.block === block);
  return like && like.worse < tie ? { best: like, within: like === least ? "" : `, within ${format.percent(tie, 1)},` } : { best: least, within: "" };
};

const noRoomFor = (cells) => {
  const missing = d3.sort(new Set(cells.filter((each) => !fits(each)).map(({ heads }) => heads)), d3.ascending);
  return missing.length ? [`Hatched cells do not fit in memory: ${missing.join(", ")} KV heads.`] : [];
};

const says = ({ cells, unit, says: intro, praise = "fastest" }) => {
  const { best, within } = bestOf(cells.some(fits) ? cells.filter(fits) : cells), like = cells.find(({ tied }) => tied?.length > 1);
  const span = (same) => d3.max(cells.filter((each) => fits(each) && each[same] === best[same]), ({ worse }) => worse) ?? 0;
  const byBlock = span("heads"), byHeads = span("block"), differ = (side) => new Set(cells.map((each) => each[side])).size > 1;
  const both = differ("heads") && differ("block");
  const sentences = [
    `${intro ?? `In percent: how much longer the ${unit} is than with the best choice`}. The frame marks the recommended one.`,
    `The ${praise} choice${within} is ${nameOf(best.heads)} with blocks of ${best.block}.`,
    ...(differ("heads") ? [`With blocks of ${best.block}, other KV heads are ${upTo(byHeads)} worse.`] : []),
    ...(differ("block") ? [`With ${nameOf(best.heads)}, other block sizes are ${upTo(byBlock)} worse.`] : []),
    ...(both ? [`The ${byHeads > byBlock ? "group size" : "block size"} matters more.`] : []),
    ...(like ? [`With ${nameOf(like.heads)}, blocks of ${like.tied.join(", ")} cannot be told apart.`] : []),
    ...noRoomFor(cells),
  ];
  return sentences.join(" ");
};

export const heatMapChart = {
  id: "heat-map", title: "Group size against block size", draw: heatMap, says,
  views: ({ result }) => [
    ...viewsOf(facts.sweeps(result).flatMap(ofSweep), { measure: "step", unit: "time of a step" }),
    ...viewsOf(facts.simulations(result).map(ofSimulation), { measure: "output", unit: "time of an output token" }),
    ...facts.searches(result).flatMap(ofSearch),
  ],
};
