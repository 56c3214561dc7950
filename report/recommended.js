// What `recommend` chose for each machine, above all else: the machine, the settings, what to expect, and the line to copy.
import { html } from "./dom.js";
import { format } from "./format.js";

const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const parallel = { tensor_parallel_size: "TP", pipeline_parallel_size: "PP", expert_parallel_size: "EP" };
const layoutOf = (each) =>
  Object.entries(parallel).filter(([key]) => each[key] > 1).map(([key, name]) => `${name} ${each[key]}`).join(" x ");

// "llama-3-8b on z100", "qwen3-32b on 20 k100-ai in 3 servers"
const titleOf = ({ model, machine, fleet }) => {
  if (!fleet) return `${model} on ${machine}`;
  return `${model} on ${fleet.devices} ${machine}${fleet.servers ? ` in ${plural(fleet.servers, "server")}` : ""}`;
};

const names = {
  "model.num_key_value_heads": "KV heads", "kv_cache.dtype": "KV dtype", "kv_cache.block_size": "block size",
  "attention.partition_tokens": "partition of decode attention",
};
const settingsOf = (each) => {
  const layout = layoutOf(each);
  const replicas = [["replicas", layout ? `${each.replicas} of ${layout}` : each.replicas]];
  const shared = layout ? [["devices share it as", layout]] : [];
  return [
    ...(each.fleet ? replicas : shared),
    ...each.decisions.map(({ key, choice }) => [names[key] ?? key, choice]),
    ["max_num_seqs", each.max_num_seqs],
    ["max_num_batched_tokens", each.max_num_batched_tokens.choice],
    ["gpu_memory_utilization", format.number(each.gpu_memory_utilization.chosen, 2)],
  ];
};

const withInterval = ({ value, interval: [low, high] }, text) => `${text(value)} (${text(low)} to ${text(high)})`;
const expectedOf = ({ expected, output_tokens_per_second: most, tpot_seconds: tpot, requests_per_second: offered }) => {
  const rate = [["at most", `${format.number(most)} tokens/s`]];
  if (!expected) return [...rate, ["TPOT then", format.time(tpot)]];
  return [
    ["load of a replica", `${format.number(offered)} requests/s`], ["TTFT P90", withInterval(expected.ttft_p90, format.time)],
    ["TPOT P90", withInterval(expected.tpot_p90, format.time)], ...rate.map(([, text]) => ["a replica serves at most", text]),
  ];
};

const list = (title, pairs) => {
  const entries = pairs.map(([name, value]) => [html("dt", {}, name), html("dd", {}, String(value))]);
  return html("div", {}, html("h3", {}, title), html("dl", {}, entries.flat()));
};

// Selected where nothing may write to the clipboard, as in a file on some systems: Ctrl+C does the rest.
const copy = async (code, button) => {
  const select = () => {
    getSelection().selectAllChildren(code);
    return document.execCommand("copy");
  };
  const done = await navigator.clipboard?.writeText(code.textContent).then(() => true, () => false);
  button.textContent = done || select() ? "Copied" : "Selected: press Ctrl+C";
  setTimeout(() => (button.textContent = "Copy"), 2000);
};
const line = ({ serve_command: command, serve_note: note }) => {
  if (!command) return [html("p", { class: "note" }, "Neither vLLM nor SGLang is known to serve this load with these settings.")];
  const code = html("code", {}, command);
  const button = html("button", { type: "button", class: "copy", click: () => copy(code, button) }, "Copy");
  return [html("div", { class: "command" }, html("pre", { tabindex: 0 }, code), button), note ? html("p", { class: "note" }, note) : null];
};

export const recommendedOf = ({ result }) =>
  (result.recommendations ?? []).map((each) =>
    html("article", { class: "recommended" }, html("h2", {}, titleOf(each)),
      html("div", { class: "columns" }, list("Settings", settingsOf(each)), list("Expect", expectedOf(each))), line(each)));
