// The step over the KV block's size: what look-ups in block tables take of it, and how much of the cache is padding.
import { barX, text } from "@observablehq/plot";
import { below, chart } from "../../../report/chart.js";
import { timeByBound } from "../../../report/charts/time_by_bound.js";
import { format } from "../../../report/format.js";
import { tagged } from "../../../report/marks.js";

const same = 0.01; // what times may differ by and count as equal
const listed = (sizes, all) => {
  const from = all.indexOf(sizes[0]), whole = sizes.every((size, index) => all[from + index] === size);
  return whole && sizes.length > 2 ? `${sizes[0]} to ${sizes.at(-1)}` : sizes.join(" and ");
};

// Which block sizes are as fast as each other, in a sentence; a difference below `same` decides nothing.
export const blockText = (costs, name) => {
  const least = Math.min(...costs.map(({ seconds }) => seconds)), most = Math.max(...costs.map(({ seconds }) => seconds));
  const all = costs.map(({ size }) => size), fast = costs.filter(({ seconds }) => seconds <= least * (1 + same));
  const share = Math.max(...costs.map(({ lookUps, seconds }) => lookUps / seconds));
  const lookUps = share > 0 ? `Look-ups take up to ${format.percent(share)} of the step.` : "Look-ups take no time of their own with these kernels.";
  if (fast.length === all.length)
    return `${name}: all take the same time; they differ by less than ${format.percent(same, 1)}. ${lookUps}`;
  const sizes = listed(fast.map(({ size }) => size), all);
  const equal = `blocks of ${sizes} tokens take the same time, within ${format.percent(same, 1)}`;
  const first = fast.length > 1 ? equal : `blocks of ${sizes} tokens take the least time`;
  return `${name}: ${first}; the slowest size takes ${format.percent(most / least - 1)} more. ${lookUps}`;
};

const paddingChart = (costs, width) =>
  chart({
    title: "Padding of the KV cache",
    width,
    height: costs.length * 24,
    left: 74,
    right: 62,
    top: 28,
    x: { type: "linear", domain: [0, Math.max(0.02, ...costs.map((cost) => cost.empty))], label: "share of the slots that hold no token", text: (value) => format.percent(value) },
    y: { type: "band", domain: costs.map((_, index) => index), padding: 0.2, text: (index) => `${costs[index].size}`, bare: true, label: "padding of the KV cache, by block size" },
    marks: [
      barX(costs, {
        x1: 0,
        x2: "empty",
        y: (_, index) => index,
        fill: "var(--waste)",
        render: tagged(costs, "waste", ({ size, empty }) => ({
          title: `blocks of ${size}`,
          lines: [["padding", format.percent(empty)]],
        })),
      }),
      text(costs, { x: "empty", y: (_, index) => index, text: ({ empty }) => format.percent(empty), textAnchor: "start", dx: 5, fill: "var(--soft)" }),
    ],
  });

export const blockCost = (costs, width = 640) => {
  const rows = costs.map(({ size, lookUps, attention, rest }) => ({
    label: `block ${size}`,
    parts: [
      { name: "look-ups in block tables", bound: "look-ups", seconds: lookUps },
      { name: "attention without look-ups", bound: "attention", seconds: attention },
      { name: "all else", bound: "rest", seconds: rest },
    ],
  }));
  const bars = timeByBound({ rows, legend: ["look-ups", "attention", "rest"] }, width, "Step time by block size");
  return below("Step time and padding by block size", [bars, paddingChart(costs, width)]);
};
