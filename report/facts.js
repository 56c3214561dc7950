// Finds in the JSON of any command what charts can draw. Keys are those of docs/reference/cli.md.
import * as d3 from "d3";

export const facts = (() => {
  const titles = {
    "model.num_key_value_heads": "KV heads",
    "kv_cache.block_size": "block",
    "kv_cache.dtype": "KV dtype",
    "workload.context_tokens": "context",
  };
  const axisTitle = (key) => titles[key] || key.slice(key.indexOf(".") + 1).replace(/_/g, " ");

  // A study holds others: those that follow it, or those given together.
  const parts = (result) => [result, ...[...(result.then || []), ...(result.studies || [])].flatMap(parts)];

  const titled = (choices) =>
    Object.fromEntries(Object.entries(choices || {}).map(([key, value]) => [axisTitle(key), value]));

  const machines = (result) => Object.assign({}, ...parts(result).map((part) => part.machine_facts || {}));

  // Steps priced op by op: [{choices, machine, ops, seconds, host, chosen}].
  const steps = (result) => {
    if (result.ops)
      return [
        {
          choices: { machine: result.machine },
          machine: result.machine,
          ops: result.ops,
          seconds: result.step_seconds,
          host: result.host_seconds,
        },
      ];
    return [...bestSteps(result), ...sweptSteps(result)];
  };

  // The best step of each search.
  const bestSteps = (result) =>
    searches(result)
      .filter(({ best }) => best.length && best[0].ops)
      .map(({ choices, best: [best] }) => ({
        choices: { ...choices, machine: best.machine },
        machine: best.machine,
        ops: best.ops,
        seconds: best.step_time,
        host: hostOf(best.step_time, best.ops),
      }));

  const hostOf = (seconds, ops) => Math.max(0, seconds - d3.sum(ops, (op) => op.seconds));

  const sweptSteps = (result) =>
    sweeps(result).flatMap((sweep) =>
      sweep.points
        .filter((point) => point.ops)
        .map((point) => ({
          choices: { ...sweep.choices, ...point.named },
          machine: sweep.machine,
          ops: point.ops,
          seconds: point.step_seconds,
          host: hostOf(point.step_seconds, point.ops),
          chosen: isChosen(point, sweep),
        })),
    );

  // Searches: [{choices, best, pairs, objective}]; `pairs`: the best point with each pair of KV heads and block size.
  const searches = (result) => {
    const found = parts(result).filter((part) => part.objective && Array.isArray(part.best));
    const several = found.length > 1;
    return found.map((part) => ({
      choices: several ? { question: part.question } : {},
      best: part.best,
      pairs: part.best_of_pairs || [],
      objective: part.objective,
    }));
  };

  // The recommended KV heads and block size, as a point of the sweep has them.
  const isChosen = (point, { recommendation: chosen }) =>
    Boolean(chosen && chosen.block_size) &&
    (point.named["KV heads"] === undefined || Number(point.named["KV heads"]) === chosen.num_key_value_heads) &&
    (point.named.block === undefined || Number(point.named.block) === chosen.block_size);

  // Predicted sweeps: [{choices, machine, points, recommendation}], a point with its axes under `named`.
  const sweeps = (result) => {
    const found = parts(result).flatMap((part) =>
      (part.machines || []).map((each) => ({ ...each, question: part.question })),
    );
    const questions = new Set(found.map((each) => each.question));
    return found.map((each) => ({
      choices: { ...(questions.size > 1 ? { question: each.question } : {}), machine: each.machine },
      machine: each.machine,
      recommendation: each.recommendation,
      points: each.points.map((point) => ({ ...point, named: titled(point.choices) })),
    }));
  };

  const simulations = (result) =>
    (result.simulations || []).map((each, index) => ({
      ...each,
      named: { machine: each.machine, ...titled(each.choices) },
      best: (result.best || []).includes(index),
    }));

  // What the assumed figures of each machine change: {machine: {key: share}}.
  const leanings = (result) => {
    const found = {};
    const add = (machine, list) => {
      if (!list) return;
      found[machine] = found[machine] || {};
      for (const { key, change } of list) {
        found[machine][key] = Math.max(change, found[machine][key] || 0);
      }
    };
    for (const part of parts(result)) {
      if (Array.isArray(part.leans_on)) add(part.machine, part.leans_on);
      else for (const [machine, list] of Object.entries(part.leans_on || {})) add(machine, list);
      for (const each of part.machines || part.designs || []) add(each.machine, each.leans_on);
    }
    return found;
  };

  // "machine z100, block 16" of the choices that differ between `all`.
  const label = (choices, all) => {
    const keys = Object.keys(choices).filter((key) => new Set(all.map((each) => String(each[key]))).size > 1);
    return (
      keys.map((key) => (key === "machine" ? choices[key] : `${key} ${choices[key]}`)).join(", ") ||
      Object.values(choices)[0] ||
      ""
    );
  };

  // Seconds by bound of ops, the largest first: [[bound, seconds]].
  const byBound = (ops) => {
    const seconds = {};
    for (const op of ops) seconds[op.bound] = (seconds[op.bound] || 0) + op.seconds;
    return Object.entries(seconds).sort((a, b) => b[1] - a[1]);
  };

  return { parts, axisTitle, titled, machines, steps, sweeps, searches, simulations, leanings, label, byBound, isChosen };
})();
