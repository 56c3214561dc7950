// The hierarchical roofline: a ceiling for each memory level and each compute peak, and every op at each level it
// moves bytes through (Williams, Waterman and Patterson 2009; Yang, Kurth and Williams 2020 for the hierarchy).
//
// roofline({machine, ops, seconds, domain}, width) -> SVG
//   machine   an entry of `machine_facts`: {memory: [{level, bytes_per_second}], peaks: [{dtype, unit,
//             flop_per_second}]}
//   ops       `ops` of a step: [{op, flops, seconds, bound, bytes: {level: bytes}}]
//   seconds   of the step; the sum of the ops' where it is missing
//   domain    rooflineDomain([{machine, ops}, ...]), where several drawings are to have the same axes
import { dot, link, ruleY } from "@observablehq/plot";
import * as d3 from "d3";
import { boundColor, chart } from "../chart.js";
import { svg, textWidth } from "../dom.js";
import { facts } from "../facts.js";
import { format } from "../format.js";
import { boxAround, nameAlong, names, roomOf } from "../labels.js";
import { tagged } from "../marks.js";

const symbols = { DRAM: "circle", L1: "triangle", L2: "square", L3: "diamond", LLC: "diamond" };
const symbolOf = (level) => symbols[level] ?? "star";
const advice = {
  compute: "only less arithmetic or a faster format makes it shorter",
  launch: "starting kernels costs more than running them, so larger batches are nearly free",
  latency: "too few bytes are in flight, so more work at a time helps, not less traffic",
};

// Every op at every level that it moves bytes through: {op, level, x, y}. An op without arithmetic has no place, and a
// level that less than a thousandth of its bytes reach would only stretch the axis.
const placesOf = ({ ops }) =>
  ops
    .filter((op) => op.flops > 0 && op.seconds > 0)
    .flatMap((op) =>
      Object.entries(op.bytes)
        .filter(([, bytes]) => bytes > d3.max(Object.values(op.bytes)) / 1000)
        .map(([level, bytes]) => ({ op, level, x: op.flops / bytes, y: op.flops / op.seconds })),
    );

// Peaks of one rate are one line: [{rate, text}], the highest first.
const peaksOf = (machine) =>
  d3
    .groups(machine.peaks, (peak) => peak.flop_per_second)
    .map(([rate, peaks]) => ({
      rate,
      text: `${peaks.map(({ dtype, unit }) => dtype + (unit === "matrix" ? " matrix" : "")).join(", ")}: ${format.flopRate(rate)}`,
    }))
    .sort((a, b) => b.rate - a.rate);

export const rooflineDomain = (views) => {
  const places = views.flatMap(placesOf);
  const roof = d3.max(views, ({ machine }) => d3.max(machine.peaks, (peak) => peak.flop_per_second)),
    slowest = d3.min(views, ({ machine }) => d3.min(machine.memory, (level) => level.bytes_per_second));
  const left = d3.min(places, (place) => place.x) / 2;
  return {
    x: [left, Math.max(d3.max(places, (place) => place.x) * 2, (4 * roof) / slowest)],
    y: [Math.min(d3.min(places, (place) => place.y) / 3, left * slowest), roof * 2],
  };
};

// Names of the largest op, of the ceilings, and of the other ops where there is room.
const texts = ({ machine, ops, seconds }, places, levels, peaks, radius) => (_index, scales, _values, frame) => {
  const room = roomOf(frame),
    right = frame.width - frame.marginRight;
  const { x, y } = scales;
  for (const place of places) room.take(boxAround(x(place.x), y(place.y), radius(place)));
  const last = machine.memory.at(-1).level;
  const named = d3
    .sort(places.filter((place) => place.level === last), (place) => -place.op.seconds)
    .map((place) => ({ x: x(place.x), y: y(place.y), text: place.op.op, radius: radius(place) }));
  const group = svg("g", {}, names(room, named.slice(0, 1).map((each) => ({ ...each, must: true }))));
  levels.forEach(({ level, bandwidth, x1, y1, x2, y2 }, index) => {
    const text = `${level} ${format.byteRate(bandwidth)}`;
    const name = nameAlong(room, [x(x1), y(y1)], [x(x2), y(y2)], text, { below: index + 1 === levels.length });
    if (name) group.append(name);
  });
  for (const { rate, text } of peaks) {
    const long = textWidth(text, 11);
    const place = { x0: right - long - 2, x1: right, y0: y(rate) - 14, y1: y(rate) - 1 };
    if (!room.first([{ boxes: [place] }])) continue;
    const at = { x: right - 2, y: y(rate) - 4, "text-anchor": "end", class: "halo", style: "font-size: 11px" };
    group.append(svg("text", at, text));
  }
  group.append(names(room, named.slice(1)));
  return group;
};

export const roofline = (view, width = 640) => {
  const { machine, ops } = view,
    seconds = view.seconds ?? d3.sum(ops, (op) => op.seconds);
  const domain = view.domain ?? rooflineDomain([view]),
    places = placesOf(view),
    peaks = peaksOf(machine);
  const fastest = d3.max(machine.memory, (level) => level.bytes_per_second);
  const levels = machine.memory.map(({ level, bytes_per_second: bandwidth }) => {
    const x1 = Math.max(domain.x[0], domain.y[0] / bandwidth);
    return { level, bandwidth, x1, y1: x1 * bandwidth, x2: peaks[0].rate / bandwidth, y2: peaks[0].rate };
  });
  const radius = ({ op }) => Math.sqrt((40 + (260 * op.seconds) / seconds) / Math.PI);
  const joins = d3.groups(places, (place) => place.op).map(([, each]) => each);
  const describe = ({ op, level, x, y }) => ({
    title: `${op.op} at ${level}`,
    lines: [
      ["time", `${format.time(op.seconds)} of ${format.time(seconds)}`],
      ["bound", op.bound],
      ["intensity", `${format.number(x)} FLOP/byte`],
      ["speed", format.flopRate(y)],
      ["bytes", format.bytes(op.bytes[level])],
    ],
  });
  return chart({
    title: "Roofline",
    width,
    height: Math.min(460, 300 + width / 8),
    left: 66,
    legend: machine.memory.map(({ level }) => ({ text: `at ${level}`, color: boundColor(level), shape: symbolOf(level) })),
    x: { type: "log", domain: domain.x, label: "FLOP per byte", text: (value) => format.number(value) },
    y: { type: "log", domain: domain.y, label: "FLOP/s", text: (value) => format.flops(value).replace("FLOP", "") },
    marks: [
      link(levels, {
        x1: "x1",
        y1: "y1",
        x2: "x2",
        y2: "y2",
        stroke: ({ level }) => boundColor(level),
        strokeWidth: 2,
        render: tagged(levels, "level"),
      }),
      ruleY(peaks, {
        x1: ({ rate }) => Math.max(domain.x[0], rate / fastest),
        x2: domain.x[1],
        y: "rate",
        stroke: "var(--compute)",
        strokeWidth: 2,
        render: tagged(peaks, "peak"),
      }),
      ruleY(joins, {
        x1: (each) => d3.min(each, (place) => place.x),
        x2: (each) => d3.max(each, (place) => place.x),
        y: ([place]) => place.y,
        stroke: "var(--line)",
      }),
      dot(places, {
        x: "x",
        y: "y",
        r: radius,
        symbol: ({ level }) => symbolOf(level),
        fill: ({ level }) => boundColor(level),
        fillOpacity: { value: ({ op, level }) => (op.bound === level ? 1 : 0.35), scale: null },
        stroke: null,
        render: tagged(places, "place", describe),
      }),
      texts({ machine, ops, seconds }, places, levels, peaks, radius),
    ],
  });
};

const views = ({ result }) => {
  const machines = facts.machines(result);
  const found = facts
    .steps(result)
    .filter((step) => machines[step.machine])
    .map((step) => ({ ...step, machine: machines[step.machine] }))
    .filter((view) => placesOf(view).length);
  const domain = found.length ? rooflineDomain(found) : undefined;
  return found.map((view) => ({ ...view, domain }));
};

const says = ({ ops, seconds }) => {
  const [[bound, most]] = facts.byBound(ops);
  return (
    "Each op stands at the arithmetic it does per byte that reaches a memory level and at the speed it is priced at; " +
    "larger marks take more time, solid ones lie under the ceiling that holds them back. " +
    `${format.percent(most / seconds)} of the step is bound by ${bound}: ` +
    `${advice[bound] ?? `only fewer bytes from ${bound} make it shorter, faster arithmetic does not`}.`
  );
};

export const rooflineChart = {
  id: "roofline",
  title: "Roofline of the ops",
  views,
  says,
  draw: roofline,
  table: (view) => ({
    columns: ["op", "level", "FLOP/byte", "FLOP/s", "bytes", "bound"],
    rows: placesOf(view).map(({ op, level, x, y }) => [
      op.op,
      level,
      format.number(x),
      format.flopRate(y),
      format.bytes(op.bytes[level]),
      op.bound,
    ]),
  }),
};
