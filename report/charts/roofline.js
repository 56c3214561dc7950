// The hierarchical roofline: a ceiling for each memory level and each compute peak, and every op at each level it
// moves bytes through (Williams, Waterman and Patterson 2009; Yang, Kurth and Williams 2020 for the hierarchy).
//
// roofline({machine, ops, seconds, domain}, width) -> SVG
// roofline({machine, steps, domain}, width) -> SVG
//   machine   an entry of `machine_facts`: {memory: [{level, bytes_per_second}], peaks: [{dtype, unit, flop_per_second}]}
//             levels and peaks that it leaves out are not drawn
//   ops       `ops` of a step: [{op, flops, seconds, bound, bytes: {level: bytes}, peak_flop_per_second}]
//   seconds   of the step; the sum of the ops' where it is missing
//   steps     several of them, [{text, ops, seconds}], each with a look of its own: their ops at the last level alone
//   domain    rooflineDomain([view, ...]), where several drawings are to have the same axes
// mainOf(view) -> the view without small ops and ceilings that hold none of the others back
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { boundColor, boxAround, boxAroundSymbol, chart, dots, facts, format, nameAlong, names, roomOf, svg, tagged, textWidth } from "../kit.js";

const symbols = { DRAM: "circle", L1: "triangle", L2: "square", L3: "diamond", LLC: "diamond" };
const lookOf = (level) => ({ color: boundColor(level), shape: symbols[level] ?? "star" });
const looksOfSteps = [{ color: "var(--series-3)", shape: "square" }, { color: "var(--ink)", shape: "circle" }];

const apart = 16; // pixels between the name of a peak and what stands before it
const large = 0.05; // the share of its step from which an op always has a name
const small = 0.01; // and up to which it is left out at first

// Every op at every level that it moves bytes through: {op, level, x, y, share, look}. An op without arithmetic has no
// place, and a level that less than a thousandth of its bytes reach would only stretch the axis.
const reachedBy = ({ bytes }) => Object.entries(bytes).filter(([, each]) => each > d3.max(Object.values(bytes)) / 1000);
const placesOfStep = ({ ops, seconds = d3.sum(ops, (op) => op.seconds) }) =>
  ops.filter((op) => op.flops > 0 && op.seconds > 0).flatMap((op) => {
    const reached = reachedBy(op), [last] = reached.at(-1) ?? [], share = op.seconds / seconds;
    const solid = (level) => op.bound === level || (level === last && !(op.bound in op.bytes)); // no level holds it back
    const y = op.flops / op.seconds;
    return reached.map(([level, bytes]) =>
      ({ op, level, x: op.flops / bytes, y, share, seconds, last: level === last, solid: solid(level), look: lookOf(level) }));
  });
const placesOf = ({ machine, steps, ...step }) => {
  if (!steps) return placesOfStep(step).filter(({ level }) => machine.memory.some((each) => each.level === level));
  return steps.flatMap((each, index) =>
    placesOfStep(each).filter(({ last }) => last).map((place) => ({ ...place, solid: true, step: each.text, look: looksOfSteps[index] })));
};

// Peaks of one rate are one line: [{rate, texts}], the highest first; `texts` from the whole name to the shortest.
const peaksOf = ({ peaks }) => {
  const name = ([unit, same]) => same.map(({ dtype }) => dtype).join(", ") + (unit === "matrix" ? " matrix" : "");
  const rates = d3.sort(d3.group(peaks, (peak) => peak.flop_per_second), ([rate]) => -rate);
  const named = (same) => d3.groups(same, ({ unit }) => unit).map(name).join(", ");
  const textsOf = (words, text) => {
    const short = text.replace("FLOP/s", ""), first = words.replace(/,.* matrix$/, " matrix").replace(/,.*/, "");
    return [`${words}: ${text}`, `${words}: ${short}`, `${first}: ${short}`, text, short];
  };
  return rates.map(([rate, same]) => ({ rate, texts: textsOf(named(same), format.flopRate(rate)) }));
};

// The ceilings by the time of the ops that they hold back, the one of most first; of those that hold back none, by the
// time of the ops below them.
const touchedFirst = (ceilings, places, weight) =>
  d3.sort(ceilings, (ceiling) => -d3.sum(places, (place) => weight(ceiling, place.op) * place.share));
const weightOfPeak = ({ rate }, op) => (op.peak_flop_per_second === rate ? (op.bound === "compute" ? 1 : 0.001) : 0);
const weightOfLevel = ({ level }, { bound }) => Number(bound === level);

// Of a view the ops that take time, with the ceilings that hold some of them back or, of peaks, that large ones could
// reach.
export const mainOf = ({ machine, ...view }) => {
  const steps = (view.steps ?? [view]).map((step) => ({ ...step, ops: step.ops.filter((op) => op.seconds >= small * step.seconds) }));
  const ops = steps.flatMap((step) => step.ops.map((op) => ({ ...op, isLarge: op.seconds >= large * step.seconds })));
  const last = view.steps ? [] : ops.map((op) => reachedBy(op).at(-1)?.[0]);
  const levels = new Set([machine.memory.at(-1).level, ...last, ...ops.map(({ bound }) => bound)]);
  const users = ops.filter(({ bound, isLarge, flops }) => flops > 0 && (bound === "compute" || isLarge));
  const rates = new Set(users.map((op) => op.peak_flop_per_second));
  const memory = machine.memory.filter(({ level }) => levels.has(level));
  const peaks = machine.peaks.filter((peak) => !rates.size || rates.has(peak.flop_per_second));
  return { ...view, ...(view.steps ? { steps } : steps[0]), machine: { ...machine, memory, peaks } };
};

export const rooflineDomain = (views) => {
  const places = views.flatMap(placesOf);
  const roof = d3.max(views, ({ machine }) => d3.max(machine.peaks, (peak) => peak.flop_per_second));
  const slowest = d3.min(views, ({ machine }) => d3.min(machine.memory, (level) => level.bytes_per_second));
  const left = Math.min(d3.min(places, ({ x }) => x) / 2, roof / slowest / 10); // the ridge, and a decade of its slope
  return {
    x: [left, Math.max(d3.max(places, ({ x }) => x) * 2, (6 * roof) / slowest)],
    y: [Math.min(d3.min(places, ({ y }) => y) / 3, left * slowest), roof * 2],
  };
};

// Places that lie on each other share a name of several lines, [{x, y, text: [op], radius, must}], the largest op first;
// beside large ops small ones have none.
const together = (places, at, apart) => {
  const groups = [];
  for (const place of d3.sort(places, ({ share }) => -share)) {
    const here = at(place), near = groups.find((each) => Math.hypot(each.x - here.x, each.y - here.y) < apart);
    if (near && (!near.must || place.share >= large)) near.text.push(place.op.op);
    else if (!near) groups.push({ ...here, text: [place.op.op], must: groups.length === 0 || place.share >= large });
  }
  return groups.map((each) => ({ ...each, text: Array.from(new Set(each.text)) }));
};

// Names of the large ops, which always have one, of the ceilings, and of the other ops: each where it lies neither on a
// mark nor on a ceiling, or nowhere.
const texts = (places, levels, peaks, ridge, radius) => (_index, { x, y }, _values, frame) => {
  const room = roomOf(frame), right = frame.width - frame.marginRight, last = levels.at(-1).level;
  room.take(...places.map((place) => boxAroundSymbol(x(place.x), y(place.y), radius(place), place.look.shape)));
  room.takeLines(...peaks.map(({ rate, from }) => [[x(from), y(rate)], [right, y(rate)]]));
  room.takeLines(...levels.map(({ x1, y1, x2, y2 }) => [[x(x1), y(y1)], [x(x2), y(y2)]]));
  room.take(boxAround(x(ridge.x), y(ridge.y), 5));
  const at = (place) => ({ x: x(place.x), y: y(place.y), radius: radius(place) });
  const named = together(places.filter((place) => place.last), at, frame.width < 500 ? 24 : 14);
  const levelName = ({ level, bandwidth, x1, y1, x2, y2 }) =>
    nameAlong(room, [x(x1), y(y1)], [x(x2), y(y2)], [`${level} ${format.byteRate(bandwidth)}`, level], level === last);
  // Above its line: below, it would seem to name the next one. Beside it nothing else is to seem a part of it.
  const peakName = ({ rate, from, texts: [text, ...shorter] }) => {
    const long = textWidth(text, 11), ends = [right - 2, ...d3.range(right - 14, x(from) + long + apart, -12)];
    const place = (middle) => (end) => ({
      boxes: [{ x0: end - long - apart, x1: end, y0: middle - 6.5, y1: middle + 6.5 }],
      attributes: { x: end, y: middle, "text-anchor": "end", fill: "var(--compute)" },
    });
    const found = room.text(text, [y(rate) - 8, y(rate) - 14].flatMap((middle) => ends.map(place(middle)))); // or above the ridge's ring
    return found ?? (shorter.length ? peakName({ rate, from, texts: shorter }) : undefined);
  };
  const lasts = places.filter((place) => place.last), [binding, ...others] = touchedFirst(peaks, lasts, weightOfPeak);
  const first = [peakName(binding), names(room, named.filter(({ must }) => must))];
  const corner = { x: x(ridge.x), y: y(ridge.y), radius: 5, text: `ridge: ${format.number(ridge.x)} FLOP/byte`, away: true };
  const ceilings = [names(room, [corner], { corners: true }), ...others.map(peakName), ...touchedFirst(levels, lasts, weightOfLevel).map(levelName)];
  return svg("g", { class: "labels" }, first, ceilings, names(room, named.filter(({ must }) => !must)));
};

// Where the ceilings are drawn, and the ring at the corner of DRAM and the peak that binds.
const linesOf = (machine, places, domain) => {
  const fastest = d3.max(machine.memory, (level) => level.bytes_per_second);
  const peaks = peaksOf(machine).map((peak) => ({ ...peak, from: Math.max(domain.x[0], peak.rate / fastest) }));
  const levels = machine.memory.map(({ level, bytes_per_second: bandwidth }) => {
    const x1 = Math.max(domain.x[0], domain.y[0] / bandwidth), y2 = peaks[0].rate;
    return { level, bandwidth, x1, y1: x1 * bandwidth, x2: y2 / bandwidth, y2 };
  });
  const [binding] = touchedFirst(peaks, places.filter((place) => place.last), weightOfPeak);
  return { peaks, levels, ridge: { x: binding.rate / levels.at(-1).bandwidth, y: binding.rate } };
};

const describe = ({ op, level, x, y, step, seconds }) => ({
  title: `${op.op}${step ? `, ${step}` : ""} at ${level}`,
  lines: [
    ["time", `${format.time(op.seconds)} of ${format.time(seconds)}`], ["bound", op.bound],
    ["intensity", `${format.number(x)} FLOP/byte`], ["speed", format.flopRate(y)],
    ["bytes", format.bytes(op.bytes[level])],
  ],
});

export const roofline = (view, width = 640) => {
  const { machine, steps, domain: whole = rooflineDomain([view]) } = view;
  const domain = width < 500 ? { ...whole, x: [whole.x[0], whole.x[1] * 3] } : whole; // so that ceilings have room for names
  const places = placesOf(view), { peaks, levels, ridge } = linesOf(machine, places, domain);
  const radius = ({ share }) => Math.sqrt((40 + 260 * share) / Math.PI);
  const levelsOf = ([, same]) => [...d3.extent(same, ({ x }) => x), same[0].y];
  const joins = steps ? [] : d3.groups(places, ({ op }) => op).map(levelsOf);
  const slope = { x1: "x1", x2: "x2", y1: "y1", y2: "y2", stroke: ({ level }) => lookOf(level).color, strokeWidth: 2 };
  const peak = { x1: "from", x2: domain.x[1], y: "rate", stroke: "var(--compute)", strokeWidth: 2 };
  const solid = (place) => (place.solid ? 1 : 0.35), sort = { channel: "-r" };
  const symbol = ({ look }) => look.shape, fill = ({ look }) => look.color;
  const legend = steps
    ? steps.map(({ text }, index) => ({ text, ...looksOfSteps[index] }))
    : machine.memory.map(({ level }) => ({ text: `at ${level}`, ...lookOf(level) }));
  return chart({
    title: "Roofline", width, height: width < 500 ? 400 : Math.min(460, 300 + width / 8), left: 66, legend,
    x: { type: "log", domain: domain.x, label: "FLOP per byte", text: (value) => format.number(value) },
    y: { type: "log", domain: domain.y, label: "FLOP/s", text: (value) => format.flops(value).replace("FLOP", "") },
    marks: [
      Plot.link(levels, { ...slope, render: tagged(levels, "level") }),
      Plot.ruleY(peaks, { ...peak, render: tagged(peaks, "peak") }),
      Plot.ruleY(joins, { x1: "0", x2: "1", y: "2", stroke: "var(--line)" }),
      dots(places, "place", { x: "x", y: "y", r: radius, sort, symbol, fill, solid, describe }),
      Plot.dot([ridge], { x: "x", y: "y", r: 4, fill: "var(--page)", stroke: "var(--ink)", render: tagged([ridge], "ridge") }),
      texts(places, levels, peaks, ridge, radius),
    ],
  });
};

const advice = {
  compute: "only less arithmetic or a faster format makes it shorter",
  launch: "starting kernels costs more than running them, so larger batches are nearly free",
  latency: "too few bytes are in flight, so more work at a time helps, not less traffic",
};
const boundOf = ({ ops, seconds }) => {
  const [[bound, most]] = facts.byBound(ops);
  return { bound, share: format.percent(most / seconds) };
};

// Prefill and decode in one drawing, for each pair that differs in the phase alone.
const bothPhases = (views) => {
  const phased = views.filter(({ choices }) => choices.phase);
  const pairs = d3.groups(phased, ({ choices }) => JSON.stringify({ ...choices, phase: "" })).filter(([, steps]) => steps.length === 2);
  return pairs.map(([, steps]) => {
    const { machine, choices } = steps[0];
    const both = steps.map(({ choices: { phase: text }, ops, seconds }) => ({ text, ops, seconds }));
    return { choices: { ...choices, phase: both.map(({ text }) => text).join(" and ") }, machine, steps: both };
  });
};

const saysOfBoth = ({ steps }) => {
  const each = steps.map((step) => {
    const { bound, share } = boundOf(step);
    return `${share} of the ${step.text} is bound by ${bound}`;
  });
  return `${each.join(", ")}: the same weights, but a prefill uses each byte for every token of the prompts. ` +
    "Each op stands at the arithmetic it does per byte of DRAM and at the speed that is predicted; larger marks take more of their step's time.";
};

export const rooflineChart = {
  id: "roofline", title: "Roofline of the ops", draw: roofline,
  views: ({ result }) => {
    const machines = facts.machines(result), steps = facts.steps(result);
    const all = steps.map((step) => ({ ...step, machine: machines[step.machine] }));
    const found = all.filter((view) => view.machine && placesOf(view).length);
    return [["what takes 1 % of the time or more", mainOf], ["all ops and ceilings", (view) => view]].flatMap(([shown, part]) => {
      const wholes = [...bothPhases(found), ...found].map(part).filter((view) => placesOf(view).length);
      const domain = wholes.length ? rooflineDomain(wholes) : undefined;
      return wholes.map((view) => ({ ...view, domain, choices: { ...view.choices, shown } }));
    });
  },
  says: (view) => {
    if (view.steps) return saysOfBoth(view);
    const { bound, share } = boundOf(view);
    return (
      `${share} of the step is bound by ${bound}: ` +
      `${advice[bound] ?? `only fewer bytes from ${bound} make it shorter, faster arithmetic does not`}. ` +
      "Each op stands at the arithmetic it does per byte that reaches a memory level and at the speed that is predicted; larger marks take more time" +
      `${view.machine.memory.length > 1 ? ", solid ones lie under the ceiling that holds them back, or at DRAM where no memory level does" : ""}.`
    );
  },
};
