// Tokens per second and step time of batches; those that do not fit in memory are shown apart.
import { fits } from "../../../report/charts/scatter.js";
import { throughputLatency } from "../../../report/charts/throughput_latency.js";
import { format } from "../../../report/format.js";

export const batchPoints = (answers) =>
  answers.batches().points.map((point) => {
    const batch = Number(point.choices["workload.batch"]), room = point.max_sequences;
    return {
      batch,
      room,
      x: point.tokens_per_second,
      y: point.step_seconds,
      text: `batch ${batch}`,
      fits: room >= batch,
      lines: [
        ["tokens/s", format.number(point.tokens_per_second)],
        ["step", format.time(point.step_seconds)],
        ["bound", point.bound],
        ["sequences that fit", format.number(room)],
      ],
    };
  });

const sequences = (count) => `${count.toLocaleString("en")} sequence${count === 1 ? "" : "s"}`;

// Which of the points fit, in a sentence.
export const fitText = (points, name) => {
  const fitting = points.filter(fits), room = points[0].room;
  if (!fitting.length) return `${name}: no sequence fits in memory, so no batch can run; all points are hollow.`;
  if (fitting.length === points.length) return `${name}: every batch fits in memory.`;
  return `${name}: ${sequences(room)} fit${room === 1 ? "s" : ""} in memory; larger batches cannot run and are hollow.`;
};

export const batchesChart = (shown, width) => {
  const points = shown.flatMap(({ answers, label }) => batchPoints(answers).map((point) => ({ ...point, series: label })));
  return throughputLatency({ latency: "decode step", rate: "tokens/s", points }, width);
};
