// The figures of each configuration, with the equation behind each of them on demand.
import { html } from "../../../report/dom.js";
import { facts } from "../../../report/facts.js";
import { format } from "../../../report/format.js";

const sum = (values) => values.reduce((total, value) => total + value, 0);
const opsTime = ({ ops }) => sum(ops.map((op) => op.seconds));

const stepEquation = (step) => {
  const rest = step.step_seconds - opsTime(step);
  return [
    "step = Σ over ops (executions × time of one) + host and sampling",
    `= ${format.time(opsTime(step))} + ${format.time(Math.max(0, rest))} = ${format.time(step.step_seconds)}`,
    `90 % interval ${format.time(step.interval_seconds[0])} to ${format.time(step.interval_seconds[1])}, from ${step.basis}. ` +
      "The charts below show the times of the ops and their terms.",
  ];
};

const boundOf = (step) => facts.byBound(step.ops)[0];

// Tokens per second of a batch that fits; of one that does not, what stops it.
const tokensText = (side, decode) => {
  const rate = format.number(side.batch / decode.step_seconds), fit = decode.max_sequences;
  if (fit >= side.batch) return rate;
  if (!fit) return "none: no sequence fits in memory";
  return `none: only ${fit.toLocaleString("en")} of ${side.batch.toLocaleString("en")} sequences fit in memory`;
};

// [name, value, equation's lines] of each figure.
const figuresOf = (answers) => {
  const { side } = answers,
    decode = answers.decode(),
    prefill = answers.prefill(),
    memory = answers.footprint();
  const [bound, bounded] = boundOf(decode);
  return [
    ["Decode step", format.time(decode.step_seconds), stepEquation(decode)],
    [
      "Tokens per second",
      tokensText(side, decode),
      [
        ...(decode.max_sequences < side.batch ? ["if the whole batch had room:"] : []),
        "tokens per second = sequences / time of a decode step",
        `= ${side.batch} / ${format.time(decode.step_seconds)}; each of them gets ${format.number(1 / decode.step_seconds)} a second`,
      ],
    ],
    [
      "Decode is bound by",
      `${bound}, ${format.percent(bounded / decode.step_seconds)} of the step`,
      [
        "bound of an op = the largest of its terms; of the step, the bound with the largest share of its time",
        ...facts.byBound(decode.ops).map(([each, seconds]) => `${each}: ${format.time(seconds)}`),
      ],
    ],
    ["Prefill of one prompt", format.time(prefill.step_seconds), stepEquation(prefill)],
    [
      "Weights",
      format.bytes(memory.weight_bytes),
      ["weights = Σ over matrices (rows × columns × bytes of a value) + embedding, head and norms, of the whole model"],
    ],
    [
      "KV cache",
      format.bytes(memory.kv_bytes),
      [
        "KV cache = bytes of a token in all layers × tokens × sequences",
        `= ${format.bytes(memory.kv_bytes_per_token)} × ${side.context.toLocaleString("en")} × ${side.batch}`,
        "a token of a layer: K and V = 2 × KV heads × head size × bytes of a value; of MLA its latent and a rotated key",
        `beyond ${format.number(memory.crossover_tokens)} tokens a sequence it takes more than the layers' weights`,
      ],
    ],
    [
      "Sequences that fit",
      decode.max_sequences.toLocaleString("en"),
      [
        "sequences that fit = blocks in the memory that weights leave / blocks of a sequence",
        `a sequence takes ⌈${side.context.toLocaleString("en")} / ${side.block_size}⌉ = ${Math.ceil(side.context / side.block_size).toLocaleString("en")} blocks of ${side.block_size} tokens`,
      ],
    ],
  ];
};

const figure = ([, value, lines]) =>
  html("details", { class: "figure" }, html("summary", {}, value), lines.map((line) => html("p", {}, line)));

// A row for each figure, a column for each configuration: entries of main.js.
export const numbersTable = (entries) => {
  const columns = entries.map(({ answers }) => figuresOf(answers));
  const head = html("tr", {}, html("th", { scope: "col" }, ""), entries.map(({ label }) => html("th", { scope: "col" }, label)));
  const rows = columns[0].map(([name], at) =>
    html("tr", {}, html("th", { scope: "row" }, name), columns.map((figures) => html("td", {}, figure(figures[at])))));
  const warnings = entries.flatMap(({ answers, letter }) =>
    (answers.decode().warnings ?? []).map((text) => (letter ? `${letter}: ${text}` : text)));
  return html(
    "div",
    {},
    html("table", { class: "numbers" }, html("thead", {}, head), html("tbody", {}, rows)),
    [...new Set(warnings)].map((text) => html("p", { class: "note" }, text)),
  );
};

const termNames = {
  launch: "kernel launches and workgroup starts",
  look_ups: "look-ups in block tables",
  chain: "loads that wait for one another",
  cold_misses: "caches filled again",
  split_k_reduction: "sums of a product split along k",
  compute: "FLOP / rate of the arithmetic",
  memory: "bytes / bandwidth of the slowest level",
  dram_in_turn: "DRAM's bytes / bandwidth, not hidden",
  latency: "bytes × latency / bytes in flight",
};
const added = ["launch", "look_ups", "chain", "cold_misses", "split_k_reduction"];

// Why an op takes as long as it does.
export const opEquation = (op) => {
  const total = (keys) => sum(keys.map((key) => op.terms_seconds[key]));
  const rest = Object.keys(op.terms_seconds).filter((key) => !added.includes(key));
  const row = (key) => [key.replaceAll("_", " "), termNames[key], format.time(op.terms_seconds[key])];
  const cells = (row) => html("tr", {}, row.map((text) => html("td", {}, text)));
  const body = (keys) => keys.filter((key) => op.terms_seconds[key] > 0).map((key) => cells(row(key)));
  const together = op.seconds - total(added);
  return html(
    "div",
    {},
    html("p", {}, `${op.op} = ${added.map((key) => key.replaceAll("_", " ")).join(" + ")} + smooth maximum of the rest`),
    html("p", {}, `= ${format.time(total(added))} + ${format.time(Math.max(0, together))} = ${format.time(op.seconds)}, in ${op.count} executions; bound by ${op.bound}`),
    html("div", { class: "scroll" }, html("table", { class: "terms" }, html("tbody", {}, body(added), body(rest)))),
    html("p", {}, `${format.flops(op.flops)}; ${Object.entries(op.bytes).map(([level, bytes]) => `${format.bytes(bytes)} reach ${level}`).join(", ")}; T_eff ${format.time(op.effective_latency_seconds)}`),
  );
};
