// KV blocks and requests over the time of a simulation.
//
// kvUse({timeline, num_blocks}, width) -> SVG
//   an entry of `simulations`: timeline [{begin_seconds, end_seconds, used_blocks, unused_slots (a share), running,
//   waiting, preemptions}]
import { areaY, dot, lineY, rect } from "@observablehq/plot";
import * as d3 from "d3";
import { below, chart } from "../chart.js";
import { facts } from "../facts.js";
import { format } from "../format.js";
import { tagged } from "../marks.js";

const requests = [
  ["running", "var(--series-2)", "line"],
  ["waiting", "var(--series-1)", "dashed"],
];
const lower = { top: 34, height: 130, bottom: 48 };

// A value over time: [[seconds, value]], the last one until the end.
const overTime = (timeline, value) => [
  ...timeline.map((each) => [each.begin_seconds, value(each)]),
  [timeline.at(-1).end_seconds, value(timeline.at(-1))],
];
const stepped = { x: "0", y: "1", curve: "step-after" };

const describe = (view) => (each) => ({
  title: `${format.time(each.begin_seconds)} to ${format.time(each.end_seconds)}`,
  lines: [
    ["KV blocks used", `${format.percent(each.used_blocks / view.num_blocks)} of ${view.num_blocks}`],
    ["unused slots in them", format.percent(each.unused_slots)],
    ["running", format.number(each.running)],
    ["waiting", format.number(each.waiting)],
    ["preemptions", each.preemptions],
  ],
});

const blocksUsed = (view, common, preempted) => {
  const { timeline, num_blocks } = view,
    used = overTime(timeline, (each) => each.used_blocks / num_blocks);
  const most = Math.min(1, 1.15 * d3.max(used, ([, share]) => share) || 1);
  const color = "var(--series-0)";
  const triangles = { text: "preemption", color: "var(--bad)", shape: "triangle" };
  return chart({
    ...common,
    height: 170,
    bottom: 8,
    legend: [
      { text: "KV blocks used", color },
      ...(preempted.length ? [triangles] : []),
      ...requests.map(([text, color, shape]) => ({ text: `requests ${text}`, color, shape })),
    ],
    x: { ...common.x, label: undefined },
    y: {
      type: "linear",
      domain: [0, most],
      label: `share of ${num_blocks.toLocaleString("en")} KV blocks`,
      text: (value) => format.percent(value),
      ticks: 5,
    },
    marks: [
      areaY(used, { ...stepped, fill: color, fillOpacity: 0.35 }),
      lineY(used, { ...stepped, stroke: color }),
      dot(preempted, {
        x: (each) => (each.begin_seconds + each.end_seconds) / 2,
        y: 0,
        dy: -6,
        r: 4,
        symbol: "triangle",
        fill: "var(--bad)",
        stroke: null,
        sort: null,
        render: tagged(preempted, "preempted"),
      }),
      rect(timeline, {
        x1: "begin_seconds",
        x2: "end_seconds",
        y1: 0,
        y2: most,
        insetBottom: -(8 + lower.top + lower.height),
        fill: "transparent",
        render: tagged(timeline, "interval", describe(view)),
      }),
    ],
  });
};

const requestsHeld = ({ timeline }, common) => {
  const most = d3.max(timeline, (each) => Math.max(each.running, each.waiting)) || 1;
  return chart({
    ...common,
    ...lower,
    y: { type: "linear", domain: [0, most * 1.1], label: "requests", text: (value) => format.number(value), ticks: 4 },
    marks: requests.map(([key, stroke, shape]) =>
      lineY(overTime(timeline, (each) => each[key]), {
        ...stepped,
        stroke,
        strokeWidth: 2,
        strokeDasharray: shape === "dashed" ? "5 3" : undefined,
      }),
    ),
  });
};

export const kvUse = (view, width = 640) => {
  const { timeline } = view;
  const domain = [timeline[0].begin_seconds, timeline.at(-1).end_seconds];
  const common = { title: "KV use over time", width, left: 54, x: { type: "linear", domain, label: "time", text: format.time } };
  const preempted = timeline.filter((each) => each.preemptions > 0);
  return below(common.title, [blocksUsed(view, common, preempted), requestsHeld(view, common)]);
};

const preemptionsOf = ({ preemptions, swaps }) =>
  `${preemptions} preemptions` + (swaps ? ` (${swaps.preemptions} by swap, ${format.time(swaps.seconds)})` : "");

export const kvUseChart = {
  id: "kv-use",
  title: "KV use over time",
  views: ({ result }) =>
    facts
      .simulations(result)
      .filter((each) => each.timeline?.length > 0)
      .map((each) => ({ ...each, choices: each.named, chosen: each.best })),
  says: (view) => {
    const full = view.most_used_blocks / view.num_blocks,
      queue = d3.max(view.timeline, (each) => each.waiting),
      waste = d3.mean(view.timeline, (each) => each.unused_slots);
    return (
      `KV blocks in use, and below them requests running and waiting. At most ${format.percent(full)} of the blocks ` +
      `are used, with ${format.percent(waste)} of their slots empty, ${preemptionsOf(view)} and up to ` +
      `${format.number(queue)} requests waiting: ` +
      (full > 0.95
        ? "memory is the limit, so smaller or fewer KV heads, a smaller KV format or more memory let more run."
        : queue >= 1
          ? "memory is not the limit, requests wait for the batch limit or for speed."
          : "neither memory nor speed holds requests back.")
    );
  },
  draw: kvUse,
  table: (view) => ({
    columns: ["from", "to", "KV blocks used", "unused slots", "running", "waiting", "preemptions"],
    rows: view.timeline.map((each) => [
      format.time(each.begin_seconds),
      format.time(each.end_seconds),
      format.percent(each.used_blocks / view.num_blocks),
      format.percent(each.unused_slots),
      format.number(each.running),
      format.number(each.waiting),
      each.preemptions,
    ]),
  }),
};
