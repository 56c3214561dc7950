// What each candidate of a recommendation's decisions brings, beside the one that is recommended.
//
// decisions({setting, unit, bars}, width) -> SVG
//   bars      [{name, value, shown, chosen, other, lines}]: `shown` is the value as text, `chosen` the recommended one,
//             `other` the runner-up, `lines` [[name, value]] what its mark says
import { barX, text } from "@observablehq/plot";
import * as d3 from "d3";
import { chart } from "../chart.js";
import { textWidth } from "../dom.js";
import { format } from "../format.js";
import { tagged } from "../marks.js";

const titles = {
  "model.num_key_value_heads": "KV heads",
  "kv_cache.dtype": "KV dtype",
  "kv_cache.block_size": "block size",
  "attention.partition_tokens": "partition",
};
const unit = "output tokens a second";

const barOf = (candidate, chosen, other) => {
  const shown = `${format.number(candidate.output_tokens_per_second)} tokens/s`;
  return {
    name: candidate.value,
    value: candidate.output_tokens_per_second,
    shown,
    chosen: candidate.value === chosen,
    other: candidate.value === other,
    lines: [
      ["output", shown],
      ["at a time", candidate.max_num_seqs],
      ["TPOT", format.time(candidate.tpot_seconds)],
    ],
  };
};
const ofDecision = ({ key, choice, runner_up, candidates, indistinguishable }) => ({
  setting: titles[key] ?? key,
  unit,
  tied: indistinguishable,
  bars: candidates.map((each) => barOf(each, choice, runner_up)),
});
const ofHeads = ({ kv_heads, decisions: all }) => {
  const { choice } = all.find((each) => each.key === "model.num_key_value_heads");
  return { setting: "KV heads, with training", unit, bars: kv_heads.map((each) => barOf(each, choice)) };
};
const ofTokens = ({ by, choice, candidates, indistinguishable }) => {
  const goodput = by === "goodput";
  const shown = (each) => (goodput ? `${format.number(each.goodput)} requests/s` : format.time(each.latency_mean));
  return {
    setting: "max_num_batched_tokens",
    unit: goodput ? "goodput, requests a second" : "mean latency, s (less is better)",
    tied: indistinguishable,
    bars: candidates.map((each) => ({
      name: String(each.value),
      value: goodput ? each.goodput : each.latency_mean,
      shown: shown(each),
      chosen: each.value === choice,
      lines: [
        [goodput ? "goodput" : "mean latency", shown(each)],
        ["TTFT P90", format.time(each.ttft_p90)],
        ["TPOT P90", format.time(each.tpot_p90)],
        ["preemptions", each.preemptions],
      ],
    })),
  };
};

const colorOf = (bar) => `var(--series-${bar.chosen ? 0 : 1})`;
const role = (bar) => (bar.chosen ? "recommended" : bar.other ? "runner-up" : "");

export const decisions = (view, width = 640) => {
  const { bars } = view;
  const describe = (bar) => ({
    title: `${view.setting} ${bar.name}${role(bar) && `, ${role(bar)}`}`,
    lines: bar.lines,
  });
  return chart({
    title: "What each choice brings",
    width,
    height: bars.length * 30,
    left: 24 + d3.max(bars, (bar) => textWidth(bar.name)),
    right: 12 + d3.max(bars, (bar) => textWidth(bar.shown, 11)),
    legend: [
      { text: "recommended", color: "var(--series-0)" },
      { text: "other candidates", color: "var(--series-1)" },
    ],
    x: {
      type: "linear",
      domain: [0, d3.max(bars, (bar) => bar.value) || 1],
      label: view.unit,
      text: (value) => format.number(value),
    },
    y: { type: "band", domain: bars.map((bar) => bar.name), padding: 0.2, label: view.setting, text: String, bare: true },
    marks: [
      barX(bars, { x: "value", y: "name", rx: 2, fill: colorOf, render: tagged(bars, "candidate", describe) }),
      text(bars, { x: "value", y: "name", text: "shown", textAnchor: "start", dx: 6, className: "value" }),
    ],
  });
};

export const decisionsChart = {
  id: "decisions",
  title: "What each choice brings",
  views: ({ result }) =>
    (result.recommendations ?? []).flatMap((each) =>
      [...each.decisions.map(ofDecision), ofHeads(each), ofTokens(each.max_num_batched_tokens)]
        .filter(({ bars }) => bars.length > 1)
        .map((view) => ({ ...view, choices: { machine: each.machine, setting: view.setting } })),
    ),
  says: ({ setting, tied, bars }) => {
    const chosen = bars.find((bar) => bar.chosen);
    return (
      `Candidates for ${setting}, the preferred first; recommended: ${chosen.name}, ${chosen.shown}.` +
      (tied?.length > 1 ? ` ${tied.join(", ")} cannot be told apart from the best.` : "")
    );
  },
  draw: decisions,
  table: ({ setting, bars }) => ({
    columns: [setting, ...bars[0].lines.map(([name]) => name), ""],
    rows: bars.map((bar) => [bar.name, ...bar.lines.map(([, value]) => value), role(bar)]),
  }),
};
