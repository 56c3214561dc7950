// Finds in the JSON of any command what charts can draw. Keys are those of docs/reference/cli.md.
import * as d3 from "d3";

export * as facts from "./facts.js";

const titles = {
  "model.num_key_value_heads": "KV heads",
  "kv_cache.block_size": "block",
  "kv_cache.dtype": "KV dtype",
  "workload.context_tokens": "context",
  "workload.requests_per_second": "requests/s",
};
// Options of an engine keep their names.
const titleOf = (key) => {
  const last = key.slice(key.indexOf(".") + 1);
  return titles[key] ?? (key.startsWith("engine.") ? last : last.replace(/_/g, " "));
};
const titled = (choices) => Object.fromEntries(Object.entries(choices ?? {}).map(([key, value]) => [titleOf(key), value]));

// A study holds others: those that follow it, or those given together.
export const parts = (result) => [result, ...[...(result.then ?? []), ...(result.studies ?? [])].flatMap(parts)];

export const machines = (result) => Object.assign({}, ...parts(result).map((part) => part.machine_facts));

// The names of a list with `named`, {name: choice}, whose choices differ.
export const differingOf = (list) => {
  const keys = Object.keys(Object.assign({}, ...list.map(({ named }) => named)));
  return keys.filter((key) => new Set(list.map(({ named }) => String(named[key]))).size > 1);
};

const inWords = (key, value) => {
  if (key === "requests/s") return `${value} request${Number(value) === 1 ? "" : "s"}/s`;
  return key === "machine" ? value : `${key} ${value}`;
};

// Each of a list with `named` gets a `text` of the choices that differ, "z100, block 16", and a `short` one, "z100 · 16",
// where that is long; `parts` says then what the parts of that are, "machine · block size".
export const labelled = (list) => {
  const differing = differingOf(list);
  return list.map((each) => {
    const words = differing.filter((key) => key in each.named);
    const text = words.map((key) => inWords(key, each.named[key])).join(", ");
    const whole = text || String(Object.values(each.named)[0] ?? "");
    if (words.length < 2 || whole.length <= 24) return { ...each, text: whole, short: whole };
    const parts = words.map((key) => (key === "block" ? "block size" : key)).join(" · ");
    return { ...each, text: whole, short: words.map((key) => each.named[key]).join(" · "), parts };
  });
};
// The key of such short labels, as a sentence.
export const keyOf = (points) => {
  const parts = points.find((point) => point.parts)?.parts;
  return parts ? ` Labels are ${parts}.` : "";
};
const withNames = (points) => labelled(points.map((point) => ({ ...point, named: titled(point.choices) })));

// The best point of a search; where the answer takes another block size, because it cannot be told apart from the best
// one, the point with that size.
const chosenOf = (points, [first], sizes) => {
  const size = "kv_cache.block_size", without = ({ choices: { [size]: _size, ...rest } }) => JSON.stringify(rest);
  const { choice, indistinguishable: tied = [] } = (sizes ?? []).find(({ machine }) => machine === first?.machine) ?? {};
  const isLike = (point) => point.choices[size] === choice && without(point) === without(first);
  const like = tied.includes(first?.choices[size]) && points.find(isLike);
  return { chosen: (like || first)?.point, tied: like && tied.length > 1 ? tied : undefined };
};

// Searches: [{choices, best, pairs, all, slo, objective}]; `pairs`: the best point with each pair of KV heads and
// block size; `all`: every point, of a small search. The recommended one of both is `chosen`, with the block sizes that
// are `tied` with its own.
export const searches = (result) => {
  const found = parts(result).filter((part) => part.objective && Array.isArray(part.best));
  return found.map(({ question, best, best_of_pairs, served_points, block_sizes: sizes, slo, objective }) => {
    const choices = found.length > 1 ? { question } : {};
    const marked = (points = []) => {
      const { chosen, tied } = chosenOf(points, best, sizes), isIt = ({ point }) => point === chosen;
      return withNames(points).map((each) => ({ ...each, chosen: isIt(each), tied: isIt(each) ? tied : undefined }));
    };
    return { choices, best, pairs: marked(best_of_pairs), all: marked(served_points), slo, objective };
  });
};

// The points that a search found unbeaten in its aims: [{aims, points}]. The fronts of `simulate` are a view of its own.
export const fronts = (result) =>
  parts(result)
    .filter((part) => Array.isArray(part.aims) && part.pareto.length > 1)
    .map(({ aims, pareto }) => ({ aims, points: withNames(pareto) }));

// The recommended KV heads and block size, as a point of the sweep has them.
const isChosen = ({ named }, chosen) =>
  Boolean(chosen?.block_size) &&
  (named["KV heads"] === undefined || Number(named["KV heads"]) === chosen.num_key_value_heads) &&
  (named.block === undefined || Number(named.block) === chosen.block_size);

// Whether the sequences of a step fit in memory. A step of decode has a token of each, so they are its rate times its
// time; of another step at least one has to fit, where the sweep does not say how many there are.
export const fits = ({ choices, ops, tokens_per_second: rate, step_seconds: seconds, max_sequences: most }) => {
  const isDecode = ops?.length > 0 && !ops.some(({ op }) => /prefill/.test(op));
  const sequences = Number(choices?.["workload.batch"] ?? (isDecode ? Math.round(rate * seconds) : 1));
  return most === undefined || most >= sequences;
};

// Predicted sweeps: [{choices, machine, points, recommendation}], a point with `named`, `text`, `fits` and `chosen`.
export const sweeps = (result) => {
  const found = parts(result).flatMap(({ machines, question }) => (machines ?? []).map((each) => ({ ...each, question })));
  const several = new Set(found.map((each) => each.question)).size > 1;
  return found.map(({ question, machine, points, recommendation }) => ({
    choices: { ...(several && { question }), machine },
    machine,
    recommendation,
    points: withNames(points).map((point) => ({ ...point, fits: fits(point), chosen: isChosen(point, recommendation) })),
  }));
};

export const hostOf = (seconds, ops) => Math.max(0, seconds - d3.sum(ops, (op) => op.seconds));

// Steps priced op by op: [{choices, machine, ops, seconds, host, chosen}]; of a search its best one.
export const steps = (result) => {
  const { machine, ops, step_seconds: seconds, host_seconds: host } = result;
  if (ops) return [{ choices: { machine }, machine, ops, seconds, host }];
  const best = searches(result).flatMap(({ choices, best: [first] }) =>
    first
      ? [{ ...first, named: titled(first.choices), choices: { ...choices, machine: first.machine }, step_seconds: first.step_time }]
      : [],
  );
  const swept = sweeps(result).flatMap(({ machine, choices, points }) =>
    points.map((point) => ({ ...point, machine, choices: { ...choices, ...point.named } })),
  );
  return [...best, ...swept]
    .filter((step) => step.ops)
    .map(({ step_seconds, ...step }) => ({ ...step, seconds: step_seconds, host: hostOf(step_seconds, step.ops) }));
};

// Simulations as they are, with `named`, `text` and whether each is the `best`.
export const simulations = ({ simulations: all, best }) =>
  labelled(
    (all ?? []).map((each, index) => ({
      ...each,
      named: { machine: each.machine, ...titled(each.choices) },
      best: (best ?? []).includes(index),
    })),
  );

// What the assumed figures of each machine change: {machine: {key: share}}.
export const sensitivities = (result) => {
  const lists = parts(result).flatMap(({ machine, leans_on, machines, designs, recommendations }) => [
    ...(Array.isArray(leans_on) ? [[machine, leans_on]] : Object.entries(leans_on ?? {})),
    ...(machines ?? designs ?? recommendations ?? []).map((each) => [each.machine, each.leans_on]),
  ]);
  const largest = (all) => d3.rollup(all, (same) => d3.max(same, ({ change }) => change), ({ key }) => key);
  return Object.fromEntries(
    d3
      .groups(lists.filter(([, list]) => list), ([machine]) => machine)
      .map(([machine, same]) => [machine, Object.fromEntries(largest(same.flatMap(([, list]) => list)))]),
  );
};

// Seconds by bound of ops, the largest first: [[bound, seconds]].
export const byBound = (ops) =>
  d3.sort(d3.rollup(ops, (same) => d3.sum(same, (op) => op.seconds), (op) => op.bound), ([, seconds]) => -seconds);
