// Group size against block size: how much slower each choice is than the best one.
//
// heatMap({cells, measure, unit}, width) -> SVG
//   cells     [{heads, block, worse, shown, chosen, bound, others}]: `worse` is a share (0 is the best), `shown` the
//             value itself as text, `others` more [[name, value]] of its mark
//   measure   what `shown` is; unit: what `worse` is a share of, beside the scale of colours
import { cell, text } from "@observablehq/plot";
import * as d3 from "d3";
import { chart } from "../chart.js";
import { svg, textWidth } from "../dom.js";
import { facts } from "../facts.js";
import { format, metrics } from "../format.js";
import { tagged } from "../marks.js";

const heads = "KV heads",
  block = "block";
const isBoth = ({ named }) => named[heads] !== undefined && named[block] !== undefined;
const othersOf = (named) => Object.fromEntries(Object.entries(named).filter(([key]) => key !== heads && key !== block));

// Points that differ in the two axes alone make a view. `value` is better when it is small.
const viewsOf = (points, describe) =>
  d3
    .groups(points, (point) => JSON.stringify(point.choices))
    .map(([, values]) => {
      const best = d3.min(values, (each) => each.value);
      const cells = values.map((each) => ({ ...each, worse: each.value / best - 1 }));
      return { choices: values[0].choices, cells, ...describe };
    })
    .filter(({ cells }) => cells.length > 1);
const cellOf = (named, rest) => ({ heads: Number(named[heads]), block: Number(named[block]), ...rest });

const ofSweeps = (result) => {
  const points = facts.sweeps(result).flatMap((sweep) =>
    sweep.points.filter(isBoth).map((point) =>
      cellOf(point.named, {
        choices: { ...sweep.choices, ...othersOf(point.named) },
        value: point.step_seconds,
        shown: format.time(point.step_seconds),
        chosen: facts.isChosen(point, sweep),
        tied: facts.isChosen(point, sweep) && sweep.recommendation.block_sizes?.indistinguishable,
        bound: point.bound,
      }),
    ),
  );
  return viewsOf(points, { measure: "step", unit: "time of a step" });
};

const ofSimulations = (result) => {
  const points = facts
    .simulations(result)
    .filter(isBoth)
    .map((each) =>
      cellOf(each.named, {
        choices: othersOf(each.named),
        value: 1 / each.output_tokens_per_second,
        shown: `${format.number(each.output_tokens_per_second)} tokens/s`,
        chosen: each.best,
      }),
    );
  return viewsOf(points, { measure: "output", unit: "time of an output token" });
};

// Of a search: each cell is the best point there that meets the constraints.
const ofSearches = (result) =>
  facts.searches(result).flatMap(({ choices, best, pairs, objective: { goal, metric } }) => {
    const [title, shown] = metrics.of(metric),
      less = goal === "minimize";
    const says =
      "Each cell is the best point that the search found there: in percent, " +
      (less ? `how much more ${title} it has than the best of all` : `how much more ${title} the best of all has`) +
      "; the frame marks that one. ";
    const cells = pairs
      .filter((point) => point[metric] > 0)
      .map((point) => {
        const named = facts.titled(point.choices);
        return cellOf(named, {
          choices,
          value: less ? point[metric] : 1 / point[metric],
          shown: shown(point[metric]),
          chosen: point.point === best[0].point,
          bound: point.bound,
          others: Object.entries(othersOf(named)),
        });
      });
    return viewsOf(cells, { measure: title, unit: "behind the best", says, praise: "best" });
  });

// Black or white, whichever is told apart better (luminance as WCAG defines it).
const inkOn = (background) => {
  const { r, g, b } = d3.rgb(background);
  const [red, green, blue] = [r, g, b].map((each) =>
    each / 255 <= 0.04045 ? each / 3294.6 : ((each / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
};

// The scale of colours below the axis.
const drawScale = (color, worst, unit) => (_index, _scales, _values, frame) => {
  const long = Math.min(260, frame.width - frame.marginLeft - frame.marginRight - 8),
    steps = 40;
  const at = `translate(${frame.marginLeft},${frame.height - 30})`;
  const bars = d3.range(steps).map((step) =>
    svg("rect", {
      x: (step * long) / steps,
      width: long / steps + 0.5,
      height: 10,
      fill: color(Math.expm1((step / (steps - 1)) * Math.log1p(worst))),
    }),
  );
  return svg(
    "g",
    { transform: at, class: "soft" },
    bars,
    svg("text", { y: 24, "text-anchor": "start" }, "best"),
    svg("text", { y: 24, x: long, "text-anchor": "end" }, `+${format.percent(worst)} ${unit}`),
  );
};

export const heatMap = ({ cells, measure, unit }, width = 640) => {
  const rows = d3.sort(new Set(cells.map((each) => each.heads)), d3.descending),
    columns = d3.sort(new Set(cells.map((each) => each.block)), d3.ascending);
  const worst = Math.max(1e-6, d3.max(cells, (each) => each.worse));
  const color = (worse) => d3.interpolateCividis(1 - Math.log1p(worse) / Math.log1p(worst));
  const left = 44,
    right = 12,
    band = ((width - left - right) / columns.length) * 0.96;
  // In each cell how much worse it is, where there is room in all of them.
  const percent = ({ worse }) =>
    worse === 0 ? "best" : `+${(100 * worse).toFixed(worse < 0.0995 ? 1 : 0)}${band > 52 ? " %" : ""}`;
  const fit = d3.max(cells, (each) => textWidth(percent(each), 11)) < band - 2;
  const place = { x: "block", y: "heads" };
  const chosen = cells.filter((each) => each.chosen);
  const describe = (each) => ({
    title: `${each.heads} KV heads, block ${each.block}`,
    lines: [
      [measure, each.shown],
      ["against the best", `+${format.percent(each.worse)}`],
      ...(each.bound ? [["bound", each.bound]] : []),
      ...(each.others ?? []),
      ...(each.chosen ? [["", "recommended"]] : []),
    ],
  });
  return chart({
    title: "Group size and block size",
    width,
    height: rows.length * 44,
    left,
    right,
    bottom: 88,
    x: { type: "band", domain: columns, padding: 0.04, label: "block size, tokens", text: String, bare: true },
    y: { type: "band", domain: rows, padding: 0.06, label: "KV heads", text: String, bare: true },
    marks: [
      cell(cells, {
        ...place,
        rx: 3,
        fill: { value: (each) => color(each.worse), scale: null },
        render: tagged(cells, "cell", describe),
      }),
      cell(chosen, { ...place, rx: 3, fill: "none", render: tagged(chosen, "chosen") }),
      fit
        ? text(cells, { ...place, text: percent, className: "value", fill: (each) => inkOn(color(each.worse)) })
        : [],
      drawScale(color, worst, unit),
    ],
  });
};

const spanOf = (cells, best, other) =>
  d3.max(
    cells.filter((each) => each[other] === best[other]),
    (each) => each.worse,
  );

const says = (view) => {
  const { cells } = view,
    best = d3.least(cells, (each) => each.value);
  const byBlock = spanOf(cells, best, "heads"),
    byHeads = spanOf(cells, best, "block");
  const differ = (side) => new Set(cells.map((each) => each[side])).size > 1;
  const costs = [
    ...(differ("heads") ? [`other KV heads cost up to +${format.percent(byHeads)}`] : []),
    ...(differ("block") ? [`other block sizes up to +${format.percent(byBlock)}`] : []),
  ];
  const like = cells.find(({ tied }) => tied?.length > 1);
  const intro =
    view.says ??
    `How much longer the ${view.unit} is than with the best choice, in percent; the frame marks the recommended one. `;
  const matters = costs.length > 1 ? `: ${byHeads > byBlock ? "the group size" : "the block size"} matters more` : "";
  return (
    `${intro}${best.heads} KV head${best.heads === 1 ? "" : "s"} in blocks of ${best.block} are ` +
    `${view.praise ?? "fastest"}; from there ${costs.join(", ")}${matters}.` +
    (like ? ` With ${like.heads} KV heads blocks of ${like.tied.join(", ")} cannot be told apart.` : "")
  );
};

export const heatMapChart = {
  id: "heat-map",
  title: "Group size against block size",
  views: ({ result }) => [...ofSweeps(result), ...ofSimulations(result), ...ofSearches(result)],
  says,
  draw: heatMap,
  table: (view) => ({
    columns: ["KV heads", "block", view.measure, "against the best"],
    rows: view.cells.map((each) => [each.heads, each.block, each.shown, `+${format.percent(each.worse)}`]),
  }),
};
