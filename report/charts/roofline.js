// The hierarchical roofline: a ceiling for each memory level and each compute peak, and every op at each level it
// moves bytes through (Williams, Waterman and Patterson 2009; Yang, Kurth and Williams 2020 for the hierarchy).
//
// roofline({machine, ops, seconds, domain}, width) -> SVG
//   machine   an entry of `machine_facts`: {memory: [{level, bytes_per_second}], peaks: [{dtype, unit, flop_per_second}]}
//   ops       `ops` of a step: [{op, flops, seconds, bound, bytes: {level: bytes}}]
//   seconds   of the step; the sum of the ops' where it is missing
//   domain    rooflineDomain([{machine, ops}, ...]), where several drawings are to have the same axes
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { boundColor, boxAroundSymbol, chart, dots, facts, format, nameAlong, names, roomOf, svg, tagged, textWidth } from "../kit.js";

const symbols = { DRAM: "circle", L1: "triangle", L2: "square", L3: "diamond", LLC: "diamond" };
const lookOf = ({ level }) => ({ color: boundColor(level), shape: symbols[level] ?? "star" });

// Every op at every level that it moves bytes through: {op, level, x, y}. An op without arithmetic has no place, and a
// level that less than a thousandth of its bytes reach would only stretch the axis.
const placesOf = ({ ops }) =>
  ops.filter((op) => op.flops > 0 && op.seconds > 0).flatMap((op) => {
    const reached = Object.entries(op.bytes).filter(([, bytes]) => bytes > d3.max(Object.values(op.bytes)) / 1000);
    return reached.map(([level, bytes]) => ({ op, level, x: op.flops / bytes, y: op.flops / op.seconds }));
  });

// Peaks of one rate are one line: [{rate, text}], the highest first.
const peaksOf = ({ peaks }) => {
  const name = ({ dtype, unit }) => dtype + (unit === "matrix" ? " matrix" : "");
  const rates = d3.sort(d3.group(peaks, (peak) => peak.flop_per_second), ([rate]) => -rate);
  return rates.map(([rate, same]) => ({ rate, text: `${same.map(name).join(", ")}: ${format.flopRate(rate)}` }));
};

export const rooflineDomain = (views) => {
  const places = views.flatMap(placesOf), left = d3.min(places, ({ x }) => x) / 2;
  const roof = d3.max(views, ({ machine }) => d3.max(machine.peaks, (peak) => peak.flop_per_second));
  const slowest = d3.min(views, ({ machine }) => d3.min(machine.memory, (level) => level.bytes_per_second));
  return {
    x: [left, Math.max(d3.max(places, ({ x }) => x) * 2, (4 * roof) / slowest)],
    y: [Math.min(d3.min(places, ({ y }) => y) / 3, left * slowest), roof * 2],
  };
};

// Names of the largest op, which always has one, of the ceilings, and of the other ops: each where it lies neither on a
// mark nor on a ceiling, or nowhere.
const texts = (places, levels, peaks, radius) => (_index, { x, y }, _values, frame) => {
  const room = roomOf(frame), right = frame.width - frame.marginRight, last = levels.at(-1).level;
  room.take(...places.map((place) => boxAroundSymbol(x(place.x), y(place.y), radius(place), lookOf(place).shape)));
  room.takeLines(...peaks.map(({ rate, from }) => [[x(from), y(rate)], [right, y(rate)]]));
  room.takeLines(...levels.map(({ x1, y1, x2, y2 }) => [[x(x1), y(y1)], [x(x2), y(y2)]]));
  const [largest, ...others] = d3
    .sort(places.filter(({ level }) => level === last), (place) => -place.op.seconds)
    .map((place) => ({ x: x(place.x), y: y(place.y), text: place.op.op, radius: radius(place) }));
  const levelName = ({ level, bandwidth, x1, y1, x2, y2 }) =>
    nameAlong(room, [x(x1), y(y1)], [x(x2), y(y2)], [`${level} ${format.byteRate(bandwidth)}`, level], level === last);
  // Above its line: below, it would seem to name the next one.
  const peakName = ({ rate, from, text }) => {
    const named = (each) => {
      const long = textWidth(each, 11), middle = y(rate) - 8;
      const place = (end) => ({
        boxes: [{ x0: end - long, x1: end, y0: middle - 6.5, y1: middle + 6.5 }],
        attributes: { x: end, y: middle, "text-anchor": "end" },
      });
      return room.text(each, [right - 2, ...d3.range(right - 14, x(from) + long, -12)].map(place));
    };
    return named(text) ?? named(format.flopRate(rate));
  };
  const first = names(room, largest ? [{ ...largest, must: true }] : []);
  return svg("g", { class: "labels" }, first, levels.map(levelName), peaks.map(peakName), names(room, others));
};

export const roofline = (view, width = 640) => {
  const { machine, ops, seconds = d3.sum(ops, (op) => op.seconds), domain = rooflineDomain([view]) } = view;
  const fastest = d3.max(machine.memory, (level) => level.bytes_per_second), places = placesOf(view);
  const peaks = peaksOf(machine).map((peak) => ({ ...peak, from: Math.max(domain.x[0], peak.rate / fastest) }));
  const levels = machine.memory.map(({ level, bytes_per_second: bandwidth }) => {
    const x1 = Math.max(domain.x[0], domain.y[0] / bandwidth), y2 = peaks[0].rate;
    return { level, bandwidth, x1, y1: x1 * bandwidth, x2: y2 / bandwidth, y2 };
  });
  const radius = ({ op }) => Math.sqrt((40 + (260 * op.seconds) / seconds) / Math.PI);
  const color = (each) => lookOf(each).color, shape = (each) => lookOf(each).shape;
  const describe = ({ op, level, x, y }) => ({
    title: `${op.op} at ${level}`,
    lines: [
      ["time", `${format.time(op.seconds)} of ${format.time(seconds)}`], ["bound", op.bound],
      ["intensity", `${format.number(x)} FLOP/byte`], ["speed", format.flopRate(y)],
      ["bytes", format.bytes(op.bytes[level])],
    ],
  });
  const joins = d3.groups(places, ({ op }) => op).map(([, same]) => [...d3.extent(same, ({ x }) => x), same[0].y]);
  const slope = { x1: "x1", x2: "x2", y1: "y1", y2: "y2", stroke: color, strokeWidth: 2 };
  const peak = { x1: "from", x2: domain.x[1], y: "rate", stroke: "var(--compute)", strokeWidth: 2 };
  const solid = ({ op, level }) => (op.bound === level ? 1 : 0.35), sort = { channel: "-r" };
  return chart({
    title: "Roofline", width, height: Math.min(460, 300 + width / 8), left: 66,
    legend: machine.memory.map((level) => ({ text: `at ${level.level}`, ...lookOf(level) })),
    x: { type: "log", domain: domain.x, label: "FLOP per byte", text: (value) => format.number(value) },
    y: { type: "log", domain: domain.y, label: "FLOP/s", text: (value) => format.flops(value).replace("FLOP", "") },
    marks: [
      Plot.link(levels, { ...slope, render: tagged(levels, "level") }),
      Plot.ruleY(peaks, { ...peak, render: tagged(peaks, "peak") }),
      Plot.ruleY(joins, { x1: "0", x2: "1", y: "2", stroke: "var(--line)" }),
      dots(places, "place", { x: "x", y: "y", r: radius, sort, symbol: shape, fill: color, solid, describe }),
      texts(places, levels, peaks, radius),
    ],
  });
};

const advice = {
  compute: "only less arithmetic or a faster format makes it shorter",
  launch: "starting kernels costs more than running them, so larger batches are nearly free",
  latency: "too few bytes are in flight, so more work at a time helps, not less traffic",
};

export const rooflineChart = {
  id: "roofline", title: "Roofline of the ops", draw: roofline,
  views: ({ result }) => {
    const machines = facts.machines(result), steps = facts.steps(result);
    const all = steps.map((step) => ({ ...step, machine: machines[step.machine] }));
    const found = all.filter((view) => view.machine && placesOf(view).length);
    const domain = found.length ? rooflineDomain(found) : undefined;
    return found.map((view) => ({ ...view, domain }));
  },
  says: ({ ops, seconds }) => {
    const [[bound, most]] = facts.byBound(ops);
    return (
      "Each op stands at the arithmetic it does per byte that reaches a memory level and at the speed that is predicted; " +
      "larger marks take more time, solid ones lie under the ceiling that holds them back. " +
      `${format.percent(most / seconds)} of the step is bound by ${bound}: ` +
      `${advice[bound] ?? `only fewer bytes from ${bound} make it shorter, faster arithmetic does not`}.`
    );
  },
};
