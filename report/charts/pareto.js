// What is gained against what it costs: accuracy where it was measured, KV heads where it was not, or the aims that a
// search was given. A view is what scatter.js draws, and its sentence.
import * as d3 from "d3";
import { facts, format, metrics } from "../kit.js";
import { frontOf, scatter } from "./scatter.js";

const number = (value) => format.number(value);
const name = (count) => `${count} KV head${Number(count) === 1 ? "" : "s"}`;
const ends = (front) => [d3.least(front, ({ x }) => x), d3.greatest(front, ({ x }) => x)];

// Of a study with `accuracy`: loss against output.
const accuracyView = ({ machine: series, choices, points: all }) => {
  const measured = all.filter((point) => point.loss !== undefined && point.output_tokens_per_second > 0);
  const points = measured.map(({ loss: x, output_tokens_per_second: y, num_key_value_heads, method, pareto: front }) => {
    const lines = [["output", `${number(y)} tokens/s`], ["accuracy lost", format.signedPercent(x)], ["method", method]];
    return { x, y, text: name(num_key_value_heads), series, front, lines };
  });
  const front = points.filter((point) => point.front), [first, last] = ends(front);
  const says =
    "Accuracy lost to the right, tokens a second upwards: only the solid points are worth choosing, every other " +
    `one is beaten in both. The front goes from ${first.text} to ${last.text}, ${number(last.y / first.y)} times as ` +
    `fast for ${format.number(100 * (last.x - first.x), 2)} points more loss.`;
  const axes = { xLabel: "accuracy lost", yLabel: "output tokens/s", xText: (value) => format.percent(value), yText: number };
  return { choices, points, front, xBest: -1, ...axes, says };
};

// Of a sweep over KV heads: how many are kept against the step, for each workload.
const restOf = ({ named: { "KV heads": _heads, block: _block, ...rest } }) => rest;
const headsView = (choices, series, group) => {
  const points = group.map(({ named: { "KV heads": heads, block }, step_seconds: y, max_sequences, bound }) => {
    const lines = [["step", format.time(y)], ["sequences that fit", max_sequences], ["bound", bound]];
    return { x: Number(heads), y, text: `${name(heads)}${block ? `, block ${block}` : ""}`, series, lines };
  });
  const front = frontOf(points, 1, -1), [first, last] = ends(front);
  const says =
    "KV heads kept to the right (accuracy is kept with them), time of a step upwards: the solid points are the fastest that " +
    `keep so many. Keeping ${last.x} instead of ${first.x} makes the step ${number(last.y / first.y)} times as long.`;
  const xTicks = d3.sort(new Set(points.map(({ x }) => x)));
  const axes = { xLabel: "KV heads kept", yLabel: "time of a step", xText: number, yText: format.time, xTicks };
  return { choices: { ...choices, ...restOf(group[0]) }, points, front, xBest: 1, ...axes, says };
};
const headsViews = ({ choices, machine, points }) => {
  const over = new Set(points.map(({ named }) => named["KV heads"])).size > 1 && points[0].step_seconds > 0;
  const groups = d3.groups(over ? points : [], (point) => JSON.stringify(restOf(point)));
  return groups.map(([, group]) => headsView(choices, machine, group));
};

// Of a search with several aims: any two of them; what is to be large goes to the right.
const best = (aim) => (aim.goal === "maximize" ? 1 : -1);
const searchView = (found, aims, [a, b]) => {
  const [xLabel, xText] = metrics.of(a.metric), [yLabel, yText] = metrics.of(b.metric);
  const told = Array.from(d3.union(metrics.ofSteps, aims.map((aim) => aim.metric)), (key) => [key, ...metrics.of(key)]);
  const points = found.map((point) => {
    const known = told.filter(([key]) => point[key] !== undefined).map(([key, title, text]) => [title, text(point[key])]);
    return { x: point[a.metric], y: point[b.metric], text: point.text, series: "", lines: [...known, ["bound", point.bound]] };
  });
  const front = frontOf(points, best(a), best(b));
  const says =
    `The ${points.length} points that no other one beats in every aim; ${front.length === 1 ? "the solid one is" : `the ${front.length} solid ones are`} unbeaten ` +
    `in ${xLabel} and ${yLabel} alone, so choosing another one is for the sake of the remaining aims.`;
  return { choices: { right: xLabel, up: yLabel }, points, front, xBest: best(a), xLabel, yLabel, xText, yText, says };
};
const searchViews = ({ aims, points }) => {
  const ordered = d3.sort(aims, (aim) => -best(aim));
  const pairs = ordered.flatMap((a, index) => ordered.slice(index + 1).map((b) => [a, b]));
  return pairs.map((pair) => searchView(points, ordered, pair));
};

export const paretoChart = {
  id: "pareto", title: "Pareto front", says: (view) => view.says,
  draw: (view, width) => scatter({ ...view, title: "Pareto front" }, width),
  views: ({ result }) => {
    const sweeps = facts.sweeps(result), lossy = sweeps.filter(({ points }) => points.some((point) => point.pareto));
    const all = [lossy.map(accuracyView), sweeps.flatMap(headsViews), facts.fronts(result).flatMap(searchViews)].flat();
    return all.filter(({ points, front }) => points.length > 1 && front.length);
  },
};
