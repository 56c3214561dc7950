// The step over the KV block's size: what following block tables takes of it, and what is empty of the cache.
import { barX, text } from "@observablehq/plot";
import { below, chart } from "../../../report/chart.js";
import { timeByBound } from "../../../report/charts/time_by_bound.js";
import { format } from "../../../report/format.js";
import { tagged } from "../../../report/marks.js";

const isAttention = ({ op }) => /attention/.test(op);
const total = (values) => values.reduce((sum, value) => sum + value, 0);

// Points of a study over kv_cache.block_size: [{size, lookUps, attention, rest, seconds, empty}].
export const blockCosts = ({ points }) =>
  points.map((point) => {
    const lookUps = total(point.ops.map((op) => op.terms_seconds.look_ups));
    const attention = total(point.ops.filter(isAttention).map((op) => op.seconds));
    const inAttention = total(point.ops.filter(isAttention).map((op) => op.terms_seconds.look_ups));
    return {
      size: Number(point.choices["kv_cache.block_size"]),
      lookUps,
      attention: attention - inAttention,
      rest: point.step_seconds - attention - (lookUps - inAttention),
      seconds: point.step_seconds,
      empty: Math.max(0, ...point.ops.map((op) => op.empty_slots ?? 0)),
    };
  });

const emptySlots = (costs, width) =>
  chart({
    title: "KV memory without a token",
    width,
    height: costs.length * 24,
    left: 74,
    right: 62,
    top: 28,
    x: { type: "linear", domain: [0, Math.max(0.02, ...costs.map((cost) => cost.empty))], label: "share of the blocks' slots", text: (value) => format.percent(value) },
    y: { type: "band", domain: costs.map((_, index) => index), padding: 0.2, text: (index) => `${costs[index].size}`, bare: true, label: "KV memory without a token, by block size" },
    marks: [
      barX(costs, {
        x1: 0,
        x2: "empty",
        y: (_, index) => index,
        fill: "var(--waste)",
        render: tagged(costs, "waste", ({ size, empty }) => ({
          title: `blocks of ${size}`,
          lines: [["slots without a token", format.percent(empty)]],
        })),
      }),
      text(costs, { x: "empty", y: (_, index) => index, text: ({ empty }) => format.percent(empty), textAnchor: "start", dx: 5, fill: "var(--soft)" }),
    ],
  });

export const blockCost = (costs, width = 640) => {
  const rows = costs.map(({ size, lookUps, attention, rest }) => ({
    label: `block ${size}`,
    parts: [
      { name: "following block tables", bound: "look-ups", seconds: lookUps },
      { name: "attention without them", bound: "attention", seconds: attention },
      { name: "all else", bound: "rest", seconds: rest },
    ],
  }));
  return below("Step time and waste by block size", [timeByBound({ rows }, width, "Step time by block size"), emptySlots(costs, width)]);
};
