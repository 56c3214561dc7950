// What each candidate of a recommendation's decisions brings, beside the one that is recommended.
//
// decisions({setting, unit, bars}, width) -> SVG
//   bars      [{name, value, shown, chosen, other, lines}]: `shown` is the value as text, `chosen` the recommended one,
//             `other` the runner-up, `lines` [[name, value]] what its mark says
import * as Plot from "@observablehq/plot";
import * as d3 from "d3";
import { chart, format, tagged, textWidth } from "../kit.js";

const heads = "model.num_key_value_heads", number = (value) => format.number(value);
const titles = {
  [heads]: "KV heads", "kv_cache.dtype": "KV dtype", "kv_cache.block_size": "block size",
  "attention.partition_tokens": "partition",
};

const ofOutput = (setting, { choice, runner_up, candidates, indistinguishable: tied }) => {
  const barOf = ({ value: name, output_tokens_per_second: value, max_num_seqs, tpot_seconds }) => {
    const shown = `${number(value)} tokens/s`;
    const lines = [["output", shown], ["at a time", max_num_seqs], ["TPOT", format.time(tpot_seconds)]];
    return { name, value, shown, chosen: name === choice, other: name === runner_up, lines };
  };
  return { setting, unit: "output tokens a second", tied, bars: candidates.map(barOf) };
};
const metrics = {
  goodput: ["goodput", "goodput, requests a second", (value) => `${number(value)} requests/s`],
  latency_mean: ["mean latency", "mean latency, s (less is better)", format.time],
};
const ofTokens = ({ by, choice, candidates, indistinguishable: tied }) => {
  const key = by === "goodput" ? by : "latency_mean", [title, unit, text] = metrics[key];
  const bars = candidates.map(({ value: name, [key]: value, ttft_p90, tpot_p90, preemptions }) => {
    const times = [["TTFT P90", format.time(ttft_p90)], ["TPOT P90", format.time(tpot_p90)]];
    const lines = [[title, text(value)], ...times, ["preemptions", preemptions]];
    return { name: String(name), value, shown: text(value), chosen: name === choice, lines };
  });
  return { setting: "max_num_batched_tokens", unit, tied, bars };
};
const viewsOf = ({ machine, decisions: all, kv_heads: candidates, max_num_batched_tokens: tokens }) => {
  const trained = ofOutput("KV heads, with training", { choice: all.find(({ key }) => key === heads).choice, candidates });
  const views = [...all.map((each) => ofOutput(titles[each.key] ?? each.key, each)), trained, ofTokens(tokens)];
  return views.filter(({ bars }) => bars.length > 1).map((view) => ({ ...view, choices: { machine, setting: view.setting } }));
};

export const decisions = ({ setting, unit, bars }, width = 640) => {
  const role = ({ chosen, other }) => (chosen ? ", recommended" : other ? ", runner-up" : "");
  const describe = (bar) => ({ title: `${setting} ${bar.name}${role(bar)}`, lines: bar.lines });
  const widest = (key, size) => d3.max(bars, (bar) => textWidth(bar[key], size)), most = d3.max(bars, ({ value }) => value);
  const look = { rx: 2, fill: ({ chosen }) => `var(--series-${chosen ? 0 : 1})` };
  const text = { text: "shown", textAnchor: "start", dx: 6, className: "value" };
  return chart({
    title: "What each choice brings", width, height: bars.length * 30, left: 24 + widest("name"), right: 12 + widest("shown", 11),
    legend: ["recommended", "other candidates"].map((words, index) => ({ text: words, color: `var(--series-${index})` })),
    x: { type: "linear", domain: [0, most || 1], label: unit, text: number },
    y: { type: "band", domain: bars.map(({ name }) => name), padding: 0.2, label: setting, text: String, bare: true },
    marks: [
      Plot.barX(bars, { x: "value", y: "name", ...look, render: tagged(bars, "candidate", describe) }),
      Plot.text(bars, { x: "value", y: "name", ...text }),
    ],
  });
};

export const decisionsChart = {
  id: "decisions", title: "What each choice brings", draw: decisions,
  views: ({ result }) => (result.recommendations ?? []).flatMap(viewsOf),
  says: ({ setting, tied, bars }) => {
    const { name, shown } = bars.find((bar) => bar.chosen);
    const alike = tied?.length > 1 ? ` ${tied.join(", ")} cannot be told apart from the best.` : "";
    return `Candidates for ${setting}, the preferred first; recommended: ${name}, ${shown}.${alike}`;
  },
};
