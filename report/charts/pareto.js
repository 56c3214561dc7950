// What is gained against what it costs: accuracy where it was measured, KV heads where it was not, or the aims that a
// search was given. A view is what scatter.js draws, and its sentence.
import * as d3 from "d3";
import { facts, format, metrics } from "../kit.js";
import { fits, frontOf, scatter } from "./scatter.js";

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
    "The x axis has the accuracy that is lost, the y axis output tokens a second. Only the solid points are worth choosing: " +
    `every other one is beaten in both. From ${first.text} to ${last.text} the front gets ${number(last.y / first.y)} times as ` +
    `fast and loses ${format.number(100 * (last.x - first.x), 2)} points more.`;
  const axes = { xLabel: "accuracy lost", yLabel: "output tokens/s", xText: (value) => format.percent(value), yText: number };
  return { choices, points, front, xBest: -1, ...axes, says };
};

// The fastest with each number of KV heads or more; with the recommended block size, where no other one is faster by
// more than `tie`.
const tie = 0.01;
const frontOfHeads = (points, size) => {
  const fitting = points.filter(fits), fastest = d3.rollup(fitting, (same) => d3.min(same, ({ y }) => y), ({ x }) => x);
  const sized = fitting.filter(({ block }) => Number(block) === size), isLike = ({ x, y }) => y <= fastest.get(x) * (1 + tie);
  const areAlike = sized.length === fastest.size && sized.every(isLike);
  return frontOf(areAlike ? sized : fitting, 1, -1);
};

// Of a sweep over KV heads: how many are kept against the step, for each workload.
const restOf = ({ named: { "KV heads": _heads, block: _block, ...rest } }) => rest;
const saysOfHeads = (points, front) => {
  const [first, last] = ends(front), missing = points.filter((point) => !fits(point)).length;
  const keeping = `Keeping ${last.x} KV heads instead of ${first.x} makes the step ${number(last.y / first.y)} times as long.`;
  return [
    "The x axis has the KV heads that are kept: more of them keep more of the accuracy. The y axis has the time of a step.",
    "A solid point has the shortest step of all with as many KV heads or more.", ...(last === first ? [] : [keeping]),
    ...(missing ? ["Hollow points do not fit in memory."] : []),
  ].join(" ");
};
const headsView = (choices, series, group, size) => {
  const points = group.map(({ named: { "KV heads": heads, block }, step_seconds: y, max_sequences, bound, chosen, fits: isRoom }) => {
    const lines = [["step", format.time(y)], ["sequences that fit", max_sequences], ["bound", bound]];
    const text = `${name(heads)}${block ? `, block ${block}` : ""}`;
    return { x: Number(heads), y, block, text, series, lines, chosen, fits: isRoom };
  });
  const front = frontOfHeads(points, size), says = front.length ? saysOfHeads(points, front) : "";
  const xTicks = d3.sort(new Set(points.map(({ x }) => x)));
  const axes = { xLabel: "KV heads kept", yLabel: "time of a step", xText: number, yText: format.time, xTicks };
  return { choices: { ...choices, ...restOf(group[0]) }, points, front, xBest: 1, ...axes, says };
};
const headsViews = ({ choices, machine, points, recommendation }) => {
  const over = new Set(points.map(({ named }) => named["KV heads"])).size > 1 && points[0].step_seconds > 0;
  const groups = d3.groups(over ? points : [], (point) => JSON.stringify(restOf(point)));
  return groups.map(([, group]) => headsView(choices, machine, group, recommendation?.block_size));
};

// Of a search with several aims: any two of them; what is to be large goes to the right.
const best = (aim) => (aim.goal === "maximize" ? 1 : -1);
const searchView = (found, aims, [a, b]) => {
  const [xLabel, xText] = metrics.of(a.metric), [yLabel, yText] = metrics.of(b.metric);
  const told = Array.from(d3.union(metrics.ofSteps, aims.map((aim) => aim.metric)), (key) => [key, ...metrics.of(key)]);
  const points = found.map((point) => {
    const known = told.filter(([key]) => point[key] !== undefined).map(([key, title, text]) => [title, text(point[key])]);
    const { text, short, parts } = point;
    return { x: point[a.metric], y: point[b.metric], text, short, parts, series: "", lines: [...known, ["bound", point.bound]] };
  });
  const front = frontOf(points, best(a), best(b));
  const others = aims.filter((aim) => aim !== a && aim !== b).map((aim) => metrics.of(aim.metric)[0]);
  const solid = front.length === 1 ? "The solid one is" : `The ${front.length} solid ones are`;
  const faint =
    ` ${solid} unbeaten, too, if only ${xLabel} and ${yLabel} count.` + (others.length ? ` A faint one is better in ${others.join(" or ")}.` : "");
  const says =
    `None of these ${points.length} points is beaten in every aim.${front.length < points.length ? faint : ""}${facts.keyOf(points)}`;
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
