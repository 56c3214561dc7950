// The KV cache of MHA, GQA, MQA and MLA over the context, beside what the machine's memory has.
import { dot, line, ruleX, ruleY } from "@observablehq/plot";
import { chart } from "../../../report/chart.js";
import { format } from "../../../report/format.js";
import { boxAround, names, roomOf } from "../../../report/labels.js";
import { tagged } from "../../../report/marks.js";
import { spread } from "../../../report/scales.js";

const contexts = [100, 300, 1000, 3000, 10000, 30000, 100000, 150000];

// MHA, the KV heads that are set, MQA, and MLA, as far as they differ: [{text, row}].
const kindsOf = ({ rows, num_key_value_heads: own }) => {
  const heads = rows.filter((row) => row.attention === "gqa");
  const most = heads[0];
  const found = [];
  const add = (text, row) => row && !found.some((each) => each.row === row) && found.push({ text, row });
  add(`MHA, ${most?.num_key_value_heads} KV heads`, most);
  const set = heads.find((row) => row.num_key_value_heads === own) ?? heads[Math.floor(heads.length / 2)];
  add(`GQA, ${set?.num_key_value_heads} KV heads`, set?.num_key_value_heads > 1 ? set : undefined);
  add("MQA, 1 KV head", heads.find((row) => row.num_key_value_heads === 1));
  add("MLA", rows.find((row) => row.attention !== "gqa"));
  return found;
};

// With what does not grow with the context, such as recurrent states.
const bytesAt = (row, { context, batch }, tokens) =>
  row.kv_bytes + row.kv_bytes_per_token * batch * (tokens - context);

export const footprintOf = (document, side) =>
  kindsOf(document).map(({ text, row }, index) => ({
    text,
    color: `var(--series-${index})`,
    points: contexts.map((tokens) => ({ text, tokens, bytes: bytesAt(row, side, tokens), index })),
    here: { text, tokens: side.context, bytes: bytesAt(row, side, side.context), index },
  }));

const sizes = (low, high) => {
  const values = [];
  for (let value = 2 ** 10; value <= high; value *= 2 ** 5) if (value >= low) values.push(value);
  return values;
};

// series: footprintOf(); `size`: bytes of the machine's memory, over all devices.
export const kvFootprint = ({ series, side, size }, width = 640) => {
  const points = series.flatMap((each) => each.points),
    marked = series.map((each) => each.here);
  const y = spread([...points.map((point) => point.bytes), ...(size ? [size] : [])].filter((value) => value > 0), 1.6);
  const describe = (point) => ({
    title: point.text,
    lines: [
      ["context", `${point.tokens.toLocaleString("en")} tokens`],
      ["KV cache", format.bytes(point.bytes)],
    ],
  });
  const texts = (_index, scales, _values, frame) => {
    const room = roomOf(frame);
    room.take(...marked.map((point) => boxAround(scales.x(point.tokens), scales.y(point.bytes), 6)));
    return names(
      room,
      size ? [{ x: frame.marginLeft + 4, y: scales.y(size) - 8, text: `memory: ${format.bytes(size)}`, radius: 0 }] : [],
    );
  };
  return chart({
    title: "KV footprint",
    width,
    height: Math.min(320, 220 + width / 8),
    left: 66,
    legend: series.map(({ text, color }) => ({ text, color, shape: "line" })),
    x: { type: "log", domain: [contexts[0], contexts.at(-1)], label: "tokens of context", text: (value) => value.toLocaleString("en"), ticks: [100, 1000, 10000, 100000] },
    y: { type: "log", domain: y, label: `KV cache of ${side.batch} sequence${side.batch === 1 ? "" : "s"}`, text: format.bytes, ticks: sizes(...y) },
    marks: [
      ...(size ? [ruleY([size], { stroke: "var(--soft)", strokeDasharray: "5 4" })] : []),
      ruleX([side.context], { stroke: "var(--line)" }),
      line(points, { x: "tokens", y: "bytes", z: "index", stroke: (point) => `var(--series-${point.index})`, strokeWidth: 2 }),
      dot(marked, { x: "tokens", y: "bytes", r: 5, fill: (point) => `var(--series-${point.index})`, stroke: null, sort: null, render: tagged(marked, "here", describe) }),
      texts,
    ],
  });
};
