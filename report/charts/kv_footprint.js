// The KV cache of MHA, GQA, MQA and MLA over the context, beside what memory is left for it.
//
// kvFootprint({series, marks, rooms, batch, domain, most}, width) -> SVG
//   series    kindsOf(document) at contexts: [{text, color, points: [{tokens, bytes}]}]; seriesOf(document, longest)
//   marks     [{text, tokens, bytes, color, lines}]: what is told of, lines [[name, value]]; `leaves`: where memory is full
//   rooms     [{text, bytes}]: each a dashed line
//   batch     sequences; domain: footprintDomain([view, ...]); most: positions that the model has, where the axis goes on
// A document is what `dculab tables footprint` answers.
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { boxAround, chart, dots, format, roomOf, spread, svg, tagged, textWidth } from "../kit.js";

const colors = { MHA: "var(--series-0)", GQA: "var(--series-1)", MQA: "var(--series-2)", MLA: "var(--series-3)" };
const inWords = (count) => count.toLocaleString("en");
const counted = (count, noun) => `${inWords(count)} ${noun}${count === 1 ? "" : "s"}`;

export const isLatent = (row) => row.attention !== "gqa";
// The model's own row.
export const ownOf = ({ rows, num_key_value_heads: own, kv_bytes: bytes, weight_bytes: weights }) =>
  rows.find((row) => isLatent(row) && row.kv_bytes === bytes && row.weight_bytes === weights) ??
  rows.find((row) => !isLatent(row) && row.num_key_value_heads === own);

// MHA, the KV heads that are set, MQA, and latents, as far as they differ: [{kind, text, row}].
const kindsOf = (document) => {
  const heads = document.rows.filter((row) => !isLatent(row)), own = ownOf(document);
  const found = [];
  const add = (kind, text, row) => row && !found.some((each) => each.row === row) && found.push({ kind, text, row });
  const count = (row) => row?.num_key_value_heads;
  if (heads.length > 1) add("MHA", `MHA, ${count(heads[0])} KV heads`, heads[0]);
  const isGrouped = own && !isLatent(own) && own !== heads[0] && count(own) > 1;
  const set = isGrouped ? own : heads[Math.floor(heads.length / 2)];
  if (count(set) > 1) add("GQA", `GQA, ${count(set)} KV heads`, set);
  add("MQA", "MQA, 1 KV head", heads.find((row) => count(row) === 1));
  const latent = document.rows.find(isLatent);
  add("MLA", latent?.attention === "mla" ? "MLA, latents" : "compressed entries", latent);
  return found;
};

// With what does not grow with the context, such as recurrent states.
const bytesAt = (row, { tokens: context, batch }, tokens) => row.kv_bytes + row.kv_bytes_per_token * batch * (tokens - context);

const contextsUpTo = (longest) => {
  const values = [];
  for (let value = 128; value < longest; value *= 2) values.push(value);
  return [...values, longest];
};

// `here`: at the question's context.
export const seriesOf = (document, longest) =>
  kindsOf(document).map(({ kind, text, row }) => {
    const at = (tokens) => ({ text, tokens, bytes: bytesAt(row, document, tokens), color: colors[kind] });
    return { text, color: colors[kind], row, points: contextsUpTo(longest).map(at), here: at(document.tokens) };
  });

// The same axes for several drawings: {x, y}.
export const footprintDomain = (views) => {
  const points = views.flatMap(({ series, marks }) => [...series.flatMap((each) => each.points), ...marks]);
  const bytes = [...points.map((point) => point.bytes), ...views.flatMap(({ rooms }) => rooms.map((room) => room.bytes))];
  const [low, high] = spread(bytes.filter((value) => value > 0), 1.6);
  return { x: d3.extent(points, ({ tokens }) => tokens), y: [low, high] };
};

// Powers of two, some four to eight of them.
const sizes = ([low, high]) => {
  const first = Math.ceil(Math.log2(low)), last = Math.floor(Math.log2(high));
  const step = [1, 2, 5, 10].find((each) => (last - first) / each < 8) ?? 10;
  return d3.range(Math.ceil(first / step) * step, last + 1, step).map((power) => 2 ** power);
};
const contexts = ([low, high]) => d3.range(Math.ceil(Math.log2(low)), Math.log2(high) + 1e-9).map((power) => 2 ** power);

// A kind in a word, to the right of the end of its curve, where curves that end close together leave it room.
const shortOf = ({ text }) => text.split(/[, ]/)[0];
const endNames = (series, { x, y }) => {
  const ends = d3.sort(series.map((each) => ({ ...each.points.at(-1), text: shortOf(each) })).map(({ text, tokens, bytes }) =>
    ({ text, at: [x(tokens) + 7, y(bytes)] })), ({ at }) => at[1]);
  ends.forEach((end, index) => index && (end.at[1] = Math.max(end.at[1], ends[index - 1].at[1] + 13)));
  return ends.map(({ text, at: [left, middle] }) =>
    svg("text", { class: "halo", x: left, y: middle, dy: "0.35em", "text-anchor": "start" }, text));
};

// Names of the rooms, each above its line or below, off the grid's lines if it can be; and of the series.
const texts = ({ series, marks, rooms, most }, ticks) => (_index, { x, y }, _values, frame) => {
  const room = roomOf(frame), [left, right] = [frame.marginLeft, frame.width - frame.marginRight];
  room.takeLines(...series.flatMap(({ points }) => d3.pairs(points.map((point) => [x(point.tokens), y(point.bytes)]))));
  room.takeLines(...rooms.map(({ bytes }) => [[left, y(bytes)], [right, y(bytes)]]));
  if (most) room.takeLines([[x(most), frame.marginTop], [x(most), frame.height - frame.marginBottom]]);
  room.take(...marks.map((mark) => boxAround(x(mark.tokens), y(mark.bytes), 6)));
  const isOnGrid = (middle) => ticks.some((tick) => Math.abs(y(tick) - middle) < 8);
  const nameOf = ({ text, bytes }) => {
    const long = textWidth(text, 11), starts = d3.range(left + 4, right - long, 12);
    const place = (middle) => (x0) => {
      const box = { x0, x1: x0 + long, y0: middle - 6.5, y1: middle + 6.5 };
      return { boxes: [box], attributes: { x: x0, y: middle, "text-anchor": "start" } };
    };
    const rows = d3.sort([-9, 9, -13, 13].map((off) => y(bytes) + off), isOnGrid);
    return room.text(text, rows.flatMap((middle) => starts.map(place(middle))));
  };
  const limit = most ? [mostName(room, x(most), most, isOnGrid, frame)] : [];
  return svg("g", { class: "labels" }, d3.sort(rooms, ({ bytes }) => -bytes).map(nameOf), limit, endNames(series, { x, y }));
};

// What the line at the model's last position is, beside it near the lower end.
const mostName = (room, at, most, isOnGrid, { marginTop, height, marginBottom }) => {
  const text = `${inWords(most)} positions`, long = textWidth(text, 11);
  const place = (x0) => (middle) =>
    ({ boxes: [{ x0, x1: x0 + long, y0: middle - 6.5, y1: middle + 6.5 }], attributes: { x: x0, y: middle, "text-anchor": "start" } });
  const rows = d3.sort(d3.range(height - marginBottom - 10, marginTop + 8, -14), isOnGrid);
  return room.text(text, [at + 5, at - 5 - long].flatMap((x0) => rows.map(place(x0))));
};

const describe = ({ text, tokens, bytes, lines }) =>
  ({ title: text, lines: [["context", counted(tokens, "token")], ["KV cache", format.bytes(bytes)], ...lines] });

const legendOf = ({ series, marks, rooms }) => {
  const soft = { color: "var(--soft)", shape: "circle" };
  return [
    ...series.map(({ text, color }) => ({ text, color, shape: "line" })),
    ...(rooms.length ? [{ text: "memory left beside the weights", color: "var(--soft)", shape: "dashed" }] : []),
    ...(marks.some(({ leaves }) => !leaves) ? [{ ...soft, text: "at the context asked for" }] : []),
    ...(marks.some(({ leaves }) => leaves) ? [{ ...soft, text: "memory is full", hollow: true }] : []),
  ];
};

export const kvFootprint = (view, width = 640) => {
  const { series, marks, rooms, batch, domain = footprintDomain([view]), most } = view;
  const points = series.flatMap((each) => each.points), ticks = sizes(domain.y);
  const dashed = { stroke: "var(--soft)", strokeDasharray: "5 4", strokeWidth: 1.5, render: tagged(rooms, "room") };
  const fill = ({ leaves, color }) => (leaves ? "var(--page)" : color);
  const mark = { r: 5, symbol: () => "circle", fill, stroke: "color", strokeWidth: 2 };
  return chart({
    title: "KV footprint", width, height: Math.min(360, 240 + width / 8), left: 66,
    right: 14 + d3.max(series, (each) => textWidth(shortOf(each), 11)), legend: legendOf(view),
    x: { type: "log", domain: domain.x, label: "tokens of context", text: inWords, ticks: contexts(domain.x) },
    y: { type: "log", domain: domain.y, label: `KV cache of ${counted(batch, "sequence")}`, text: format.bytes, ticks },
    marks: [
      most ? Plot.ruleX([most], { stroke: "var(--soft)", strokeDasharray: "1 4" }) : [],
      Plot.ruleY(rooms, { y: "bytes", ...dashed }),
      Plot.line(points, { x: "tokens", y: "bytes", z: "text", stroke: "color", strokeWidth: 2 }),
      dots(marks, "here", { x: "tokens", y: "bytes", ...mark, describe }),
      texts(view, ticks),
    ],
  });
};

// Of each kind of attention its cache at the question's context, and where it leaves the memory of a machine; the axis
// goes on to `usualEnd`, which is more than older models have positions, and until memory is full for all of them, though
// not beyond `furthest`.
const usualEnd = 2 ** 17, furthest = 2 ** 22;
const viewOf = (document) => {
  const { tokens: context, batch, max_position_embeddings: most, rooms: given = [] } = document;
  const rooms = given.filter(({ kv_bytes: bytes }) => bytes > 0), usual = Math.max(context, most, usualEnd);
  const crossings = kindsOf(document).flatMap(({ row }) => rooms.map(({ machine }) => row.longest_context[machine] ?? 0));
  const longest = Math.max(usual, Math.min(furthest, 1.2 * d3.max([0, ...crossings]))), series = seriesOf(document, longest);
  const marks = series.flatMap(({ text, color, row, here }) => {
    const full = rooms.map(({ machine }) => ({ machine, tokens: row.longest_context[machine] }));
    const inside = full.filter(({ tokens }) => tokens >= 128 && tokens <= longest);
    const lines = [["a token", format.bytes(row.kv_bytes_per_token)]];
    const leaving = inside.map(({ machine, tokens }) => ({
      text: `${text}: longest context on ${machine}`, tokens, bytes: bytesAt(row, document, tokens), color, lines, leaves: true,
    }));
    return [{ ...here, lines }, ...leaving];
  });
  const lines = rooms.map(({ machine, kv_bytes: bytes }) => ({ text: `${machine}: ${format.bytes(bytes)}`, bytes }));
  return { choices: {}, document, series, marks, rooms: lines, batch, most: most > 128 && most < longest ? most : undefined };
};

// Where the memory of a machine is full with what takes most, and with the model's own; the picture has the others.
const roomSentence = ({ series, document }) => {
  const { batch, rooms } = document, own = series.find(({ row }) => row === ownOf(document));
  return rooms.map(({ machine, kv_bytes: bytes }) => {
    if (!bytes) return ` On ${machine} the weights leave no room for it.`;
    const longest = ({ row }) => row.longest_context[machine], first = d3.least(series, longest);
    const shown = first === own || !own ? [first] : [first, own];
    const ends = shown.map((each, index) => `${shortOf(each)} ${index ? "" : "ends "}at ${inWords(longest(each))}${index ? "" : " tokens"}`);
    return ` On ${machine} ${batch === 1 ? "" : `${inWords(batch)} sequences of `}${ends.join(", ")}.`;
  }).join("");
};

// Memory that is left beside the model's own weights is a line; a kind with other weights is full elsewhere.
const offLine = ({ series, marks, rooms }, own) => {
  const seen = series.filter(({ text }) => marks.some((mark) => mark.leaves && mark.text.startsWith(`${text}:`)));
  const other = seen.map((each) => ({ ...each, more: each.row.weight_bytes - own.weight_bytes }));
  const seenFrom = 0.05 * d3.min(rooms, ({ bytes }) => bytes);
  const told = other.filter(({ more }) => Math.abs(more) > seenFrom).map((each) =>
    ` Hollow dots of ${shortOf(each)} lie ${each.more > 0 ? "below" : "above"} the dashed lines: its weights are ` +
    `${format.bytes(Math.abs(each.more))} ${each.more > 0 ? "larger" : "smaller"} than the model's own.`);
  return told.join("");
};

export const kvFootprintChart = {
  id: "kv-footprint", title: "KV footprint over context", draw: kvFootprint,
  views: ({ result }) => (result.rows && result.kv_bytes_per_token ? [viewOf(result)] : []),
  says: (view) => {
    const { series, document, most } = view, own = ownOf(document);
    const other = series.filter(({ row }) => row !== own).map(({ text, row }) =>
      `with ${text.split(",")[0]} ${format.bytes(row.kv_bytes_per_token)}`);
    const beyond = most ? ` The model has ${inWords(most)} positions; beyond them it would need training.` : "";
    return (
      `The KV cache of ${counted(view.batch, "sequence")} by ${view.batch === 1 ? "its" : "their"} context. A token of ${document.model} takes ` +
      `${[format.bytes(own.kv_bytes_per_token), ...other].join(", ")}.` +
      (document.rooms ? roomSentence(view) + offLine(view, own) : "") + beyond
    );
  },
};
