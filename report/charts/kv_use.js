// KV blocks and requests over the time of a simulation.
//
// kvUse({timeline, num_blocks}, width) -> SVG
//   an entry of `simulations`: timeline [{begin_seconds, end_seconds, used_blocks, unused_slots (a share), running,
//   waiting, preemptions}]
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { below, chart, dots, facts, format, tagged } from "../kit.js";

const requests = [
  { key: "running", text: "requests running", color: "var(--series-2)", shape: "line" },
  { key: "waiting", text: "requests waiting", color: "var(--series-1)", shape: "dashed", dashes: "5 3" },
];
const lower = { top: 34, height: 130, bottom: 48 }, stepped = { x: "0", y: "1", curve: "step-after" };

// A value over time: [[seconds, value]], the last one until the end.
const overTime = (timeline, value) => {
  const last = timeline.at(-1);
  return [...timeline.map((each) => [each.begin_seconds, value(each)]), [last.end_seconds, value(last)]];
};

const blocksUsed = ({ timeline, num_blocks: blocks }, common) => {
  const used = overTime(timeline, (each) => each.used_blocks / blocks), color = "var(--series-0)";
  const most = Math.min(1, 1.15 * d3.max(used, ([, share]) => share) || 1);
  const preempted = timeline.filter((each) => each.preemptions > 0), middle = (each) => (each.begin_seconds + each.end_seconds) / 2;
  const describe = (each) => ({
    title: `${format.time(each.begin_seconds)} to ${format.time(each.end_seconds)}`,
    lines: [
      ["KV blocks used", `${format.percent(each.used_blocks / blocks)} of ${blocks}`],
      ["unused slots in them", format.percent(each.unused_slots)],
      ["running", format.number(each.running)], ["waiting", format.number(each.waiting)], ["preemptions", each.preemptions],
    ],
  });
  const label = `share of ${blocks.toLocaleString("en")} KV blocks`, text = (value) => format.percent(value);
  const triangle = { text: "preemption", color: "var(--bad)", shape: "triangle" };
  const mark = { x: middle, y: 0, dy: -6, r: 4, symbol: "triangle", fill: "var(--bad)" };
  // Over the requests too.
  const insetBottom = -(8 + lower.top + lower.height);
  const interval = { x1: "begin_seconds", x2: "end_seconds", y1: 0, y2: most, fill: "transparent", insetBottom };
  return chart({
    ...common, height: 170, bottom: 8,
    legend: [{ text: "KV blocks used", color }, ...(preempted.length ? [triangle] : []), ...requests],
    x: { ...common.x, label: "", hidden: true },
    y: { type: "linear", domain: [0, most], label, text },
    marks: [
      Plot.areaY(used, { ...stepped, fill: color, fillOpacity: 0.35 }),
      Plot.lineY(used, { ...stepped, stroke: color }),
      dots(preempted, "preempted", mark),
      Plot.rect(timeline, { ...interval, render: tagged(timeline, "interval", describe) }),
    ],
  });
};

const requestsHeld = ({ timeline }, common) => {
  const most = d3.max(timeline, (each) => Math.max(each.running, each.waiting)) || 1;
  const line = ({ key, color: stroke, dashes: strokeDasharray }) =>
    Plot.lineY(overTime(timeline, (each) => each[key]), { ...stepped, stroke, strokeWidth: 2, strokeDasharray });
  const y = { type: "linear", domain: [0, most * 1.1], label: "requests", text: (value) => format.number(value) };
  return chart({ ...common, ...lower, y, marks: requests.map(line) });
};

export const kvUse = (view, width = 640) => {
  const title = "KV use over time", domain = [view.timeline[0].begin_seconds, view.timeline.at(-1).end_seconds];
  const common = { title, width, left: 54, x: { type: "linear", domain, label: "time", text: format.time } };
  return below(title, [blocksUsed(view, common), requestsHeld(view, common)]);
};

const limitOf = (full, queue) => {
  if (full > 0.95) return "Memory is the limit: fewer or smaller KV heads, a smaller KV format or more memory let more requests run.";
  if (queue >= 1) return "Memory is not the limit: requests wait for the batch limit or for speed.";
  return "Neither memory nor speed holds requests back.";
};
const counted = (count) => `${count.toLocaleString("en")} request${count === 1 ? "" : "s"}`;
const waitingOf = (queue) => {
  if (queue === 0) return "No request waits.";
  return queue < 1 ? "On average, fewer than one request waits at any time." : `Up to ${counted(Math.round(queue))} wait.`;
};
const preempted = (count, swaps) => {
  if (!count) return "No request is preempted.";
  const swapped = swaps ? `, ${swaps.preemptions} of them by swap (${format.time(swaps.seconds)})` : "";
  return `There ${count === 1 ? "is 1 preemption" : `are ${count.toLocaleString("en")} preemptions`}${swapped}.`;
};

export const kvUseChart = {
  id: "kv-use", title: "KV use over time", draw: kvUse,
  views: ({ result }) => {
    const shown = facts.simulations(result).filter((each) => each.timeline?.length > 0);
    return shown.map((each) => ({ ...each, choices: each.named, chosen: each.best }));
  },
  says: ({ timeline, num_blocks, most_used_blocks, preemptions, swaps }) => {
    const full = most_used_blocks / num_blocks, queue = d3.max(timeline, (each) => each.waiting);
    const waste = d3.mean(timeline, (each) => each.unused_slots);
    return [
      "The upper chart has the KV blocks in use, the lower one the requests that run and those that wait.",
      `At most ${format.percent(full)} of the blocks are in use, and ${format.percent(waste)} of their slots are empty.`,
      preempted(preemptions, swaps), waitingOf(queue), limitOf(full, queue),
    ].join(" ");
  },
};
