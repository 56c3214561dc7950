// The KV cache of MHA, GQA, MQA and MLA over the context, beside the room that the weights leave.
import { dot, line, ruleX, ruleY } from "@observablehq/plot";
import { chart } from "../../../report/chart.js";
import { format } from "../../../report/format.js";
import { tagged } from "../../../report/marks.js";
import { spread } from "../../../report/scales.js";

const colors = { MHA: "var(--series-0)", GQA: "var(--series-1)", MQA: "var(--series-2)", MLA: "var(--series-3)" };

const isLatent = (row) => row.attention !== "gqa";
// The model's own row.
const ownOf = ({ rows, num_key_value_heads: own, kv_bytes: bytes, weight_bytes: weights }) =>
  rows.find((row) => isLatent(row) && row.kv_bytes === bytes && row.weight_bytes === weights) ??
  rows.find((row) => !isLatent(row) && row.num_key_value_heads === own);

// MHA, the KV heads that are set, MQA, and latents, as far as they differ: [{kind, text, row}].
const kindsOf = (document) => {
  const heads = document.rows.filter((row) => !isLatent(row)), own = ownOf(document);
  const found = [];
  const add = (kind, text, row) => row && !found.some((each) => each.row === row) && found.push({ kind, text, row });
  const count = (row) => row?.num_key_value_heads;
  if (heads.length > 1) add("MHA", `MHA, ${count(heads[0])} KV heads`, heads[0]);
  const set = own && !isLatent(own) ? own : heads[Math.floor(heads.length / 2)];
  if (count(set) > 1) add("GQA", `GQA, ${count(set)} KV heads`, set);
  add("MQA", "MQA, 1 KV head", heads.find((row) => count(row) === 1));
  const latent = document.rows.find(isLatent);
  add("MLA", latent?.attention === "mla" ? "MLA, latents" : "compressed entries", latent);
  return found;
};

// With what does not grow with the context, such as recurrent states.
const bytesAt = (row, { context, batch }, tokens) =>
  row.kv_bytes + row.kv_bytes_per_token * batch * (tokens - context);

const contextsUpTo = (longest) => {
  const values = [];
  for (let value = 128; value < longest; value *= 2) values.push(value);
  return [...values, longest];
};
const seriesOf = (answers, longest) =>
  kindsOf(answers.footprint()).map(({ kind, text, row }) => {
    const at = (tokens) => ({ text, tokens, bytes: bytesAt(row, answers.side, tokens), color: colors[kind] });
    return { text, color: colors[kind], points: contextsUpTo(longest).map(at), here: at(answers.side.context) };
  });

// The same axes for the drawings of all configurations: {x, y, longest}.
export const limitsOfFootprints = (all) => {
  const longest = Math.min(2 ** 20, Math.max(...all.map((answers) => answers.longest())));
  const bytes = all.flatMap((answers) => {
    const points = seriesOf(answers, longest).flatMap((each) => [...each.points, each.here]);
    return [...points.map((point) => point.bytes), answers.room()];
  });
  const x = [Math.min(128, ...all.map(({ side }) => side.context)), longest];
  return { x, y: spread(bytes.filter((value) => value > 0), 1.6), longest };
};

const sizes = ([low, high]) => {
  const values = [];
  for (let value = 2 ** 10; value <= high; value *= 2 ** 5) if (value >= low) values.push(value);
  return values;
};

const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

export const kvText = (answers, name) => {
  const document = answers.footprint(), own = ownOf(document), { side } = answers, fit = answers.decode().max_sequences;
  const how = own && !isLatent(own) ? counted(own.num_key_value_heads, "KV head") : own?.attention === "mla" ? "latents" : "compressed entries";
  const room = answers.room();
  const left = room > 0 ? `leave room for ${format.bytes(room)} of KV cache` : "leave no room for a KV cache";
  return (
    `${name}: with ${how} a token takes ${format.bytes(document.kv_bytes_per_token)}. The weights and the program's buffers ` +
    `${left}: ${fit ? counted(fit, "sequence") : "no sequence"} of ${counted(side.context, "token")} ${fit > 1 ? "fit" : "fits"}.`
  );
};

export const kvFootprint = (answers, { x, y, longest }, width = 640) => {
  const { side } = answers, series = seriesOf(answers, longest), room = answers.room();
  const points = series.flatMap((each) => each.points), marked = series.map((each) => each.here);
  const describe = (point) => ({
    title: point.text,
    lines: [
      ["context", counted(point.tokens, "token")],
      ["KV cache", format.bytes(point.bytes)],
      ["room beside the weights", format.bytes(room)],
    ],
  });
  const roomLine = { text: `room beside the weights: ${format.bytes(room)}`, color: "var(--soft)", shape: "dashed" };
  return chart({
    title: "KV footprint",
    width,
    height: Math.min(320, 220 + width / 8),
    left: 66,
    legend: [...series.map(({ text, color }) => ({ text, color, shape: "line" })), roomLine],
    x: { type: "log", domain: x, label: "tokens of context", text: (value) => value.toLocaleString("en") },
    y: { type: "log", domain: y, label: `KV cache of ${counted(side.batch, "sequence")}`, text: format.bytes, ticks: sizes(y) },
    marks: [
      ...(room ? [ruleY([room], { stroke: "var(--soft)", strokeDasharray: "5 4", render: tagged([room], "room") })] : []),
      ruleX([side.context], { stroke: "var(--line)" }),
      line(points, { x: "tokens", y: "bytes", z: "text", stroke: "color", strokeWidth: 2 }),
      dot(marked, { x: "tokens", y: "bytes", r: 5, fill: "color", stroke: null, sort: null, render: tagged(marked, "here", describe) }),
    ],
  });
};
