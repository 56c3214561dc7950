// What is gained against what it costs: accuracy where it was measured, KV heads where it was not, or the aims that a
// search was given. A view is what scatter.js draws, and its sentence.
import * as d3 from "d3";
import { facts } from "../facts.js";
import { format, metrics } from "../format.js";
import { frontOf, scatter } from "./scatter.js";

const name = (count) => `${count} KV head${Number(count) === 1 ? "" : "s"}`;
const ends = (front) => d3.extent(front, (point) => point.x).map((x) => front.find((point) => point.x === x));
const number = (value) => format.number(value);

// Of a study with `accuracy`: loss against output.
const ofAccuracy = (result) =>
  facts
    .sweeps(result)
    .filter(({ points }) => points.some((point) => point.pareto))
    .map((sweep) => {
    const points = sweep.points
      .filter((point) => point.loss !== undefined && point.output_tokens_per_second > 0)
      .map((point) => ({
        x: point.loss,
        y: point.output_tokens_per_second,
        text: name(point.num_key_value_heads),
        series: sweep.machine,
        front: point.pareto,
        lines: [
          ["output", `${number(point.output_tokens_per_second)} tokens/s`],
          ["accuracy lost", format.signedPercent(point.loss)],
          ["method", point.method],
        ],
      }));
    const front = points.filter((point) => point.front),
      [first, last] = ends(front);
    return {
      choices: sweep.choices,
      points,
      front,
      xBest: -1,
      xLabel: "accuracy lost",
      yLabel: "output tokens/s",
      xText: (value) => format.percent(value),
      yText: number,
      says:
        "Accuracy lost to the right, tokens a second upwards: only the solid points are worth choosing, every other " +
        `one is beaten in both. The front goes from ${first.text} to ${last.text}, ${number(last.y / first.y)} ` +
        `times as fast for ${format.number(100 * (last.x - first.x), 2)} points more loss.`,
    };
  });

// Of a sweep over KV heads: how many are kept against the step, for each workload.
const ofHeads = (result) =>
  facts
    .sweeps(result)
    .filter(({ points }) => new Set(points.map(({ named }) => named["KV heads"])).size > 1 && points[0].step_seconds > 0)
    .flatMap(({ choices, machine, points }) => {
      const rest = ({ named: { "KV heads": _heads, block: _block, ...others } }) => others;
      return d3
        .groups(points, (point) => JSON.stringify(rest(point)))
        .map(([, group]) => headsView({ ...choices, ...rest(group[0]) }, machine, group));
    });
const headsView = (choices, machine, group) => {
  const points = group.map((point) => ({
    x: Number(point.named["KV heads"]),
    y: point.step_seconds,
    text: `${name(point.named["KV heads"])}${point.named.block ? `, block ${point.named.block}` : ""}`,
    series: machine,
    lines: [
      ["step", format.time(point.step_seconds)],
      ["sequences that fit", point.max_sequences],
      ["bound", point.bound],
    ],
  }));
  const front = frontOf(points, 1, -1),
    [first, last] = ends(front);
  return {
    choices,
    points,
    front,
    xBest: 1,
    xLabel: "KV heads kept",
    yLabel: "time of a step",
    xText: number,
    yText: format.time,
    xTicks: d3.sort(new Set(points.map((point) => point.x))),
    says:
      "KV heads kept to the right (accuracy is kept with them), time of a step upwards: the solid points are the " +
      `fastest that keep so many. Keeping ${last.x} instead of ${first.x} makes the step ${number(last.y / first.y)} ` +
      "times as long.",
  };
};

// Of a search with several aims: `pareto[]`, any two of `aims[]`; what is to be large goes to the right.
const best = (aim) => (aim.goal === "maximize" ? 1 : -1);
const ofSearch = (result) =>
  facts
    .parts(result)
    .filter((part) => Array.isArray(part.aims) && part.pareto.length > 1) // simulate's fronts are its own view
    .flatMap(({ pareto, aims }) => {
      const ordered = d3.sort(aims, (aim) => -best(aim));
      return ordered.flatMap((a, index) => ordered.slice(index + 1).map((b) => searchView(pareto, ordered, a, b)));
    });
const searchView = (pareto, aims, a, b) => {
  const [xLabel, xText] = metrics.of(a.metric),
    [yLabel, yText] = metrics.of(b.metric);
  const named = pareto.map((point) => facts.titled(point.choices));
  const told = Array.from(new Set([...metrics.ofSteps, ...aims.map((aim) => aim.metric)]));
  const points = pareto.map((point, index) => ({
    x: point[a.metric],
    y: point[b.metric],
    text: facts.label(named[index], named),
    series: "",
    lines: [
      ...told.filter((key) => point[key] !== undefined).map((key) => [metrics.of(key)[0], metrics.of(key)[1](point[key])]),
      ["bound", point.bound],
    ],
  }));
  const front = frontOf(points, best(a), best(b));
  return {
    choices: { right: xLabel, up: yLabel },
    points,
    front,
    xBest: best(a),
    xLabel,
    yLabel,
    xText,
    yText,
    says:
      `The ${points.length} points that no other one beats in every aim; the ${front.length} solid ones are unbeaten ` +
      `in ${xLabel} and ${yLabel} alone, so choosing another one is for the sake of the remaining aims.`,
  };
};

export const paretoChart = {
  id: "pareto",
  title: "Pareto front",
  views: ({ result }) =>
    [...ofAccuracy(result), ...ofHeads(result), ...ofSearch(result)].filter(
      ({ points, front }) => points.length > 1 && front.length,
    ),
  says: (view) => view.says,
  draw: (view, width) => scatter({ ...view, title: "Pareto front" }, width),
  table: ({ points, front, xLabel, yLabel, xText, yText }) => ({
    columns: ["", xLabel, yLabel, "on the front"],
    rows: points.map((point) => [point.text, xText(point.x), yText(point.y), front.includes(point) ? "yes" : ""]),
  }),
};
