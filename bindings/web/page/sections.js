// The charts of the page. Each is {id, title, says(all), drawings(answers)}; drawings are [{title, draw(width)}] of one
// configuration, or of all where `together` is true.
import { hitRates } from "../../../report/charts/hit_rates.js";
import { roofline, rooflineDomain } from "../../../report/charts/roofline.js";
import { throughputLatency } from "../../../report/charts/throughput_latency.js";
import { timeByOp } from "../../../report/charts/time_by_bound.js";
import { format } from "../../../report/format.js";
import { blockCost, blockCosts } from "./block_cost.js";
import { footprintOf, kvFootprint } from "./kv_footprint.js";

const phases = (answers) => [
  ["decode", answers.decode()],
  ["prefill", answers.prefill()],
];
const machineOf = (step) => step.machine_facts[step.machine];
const largest = (step) => step.ops.reduce((most, op) => (op.seconds > most.seconds ? op : most));

// One for all drawings, so that the ops move and the axes stay.
const sharedDomain = (all) =>
  rooflineDomain(all.flatMap(phases).map((each) => each[1]).map((step) => ({ machine: machineOf(step), ops: step.ops })));

const sized = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };
// Bytes of the machine's last memory level, as its figures have them.
const memorySize = (step) => {
  const { figures, memory } = machineOf(step);
  const found = figures.find(({ key }) => key === `memory.${memory.at(-1).level}.size`);
  const [, value, unit] = /^([\d.]+) (\w+)$/.exec(found?.value ?? "") ?? [];
  return value && sized[unit] ? Number(value) * sized[unit] : undefined;
};

const name = ({ side }) => `${side.model} on ${side.machine}`;

export const sections = [
  {
    id: "roofline",
    title: "Hierarchical roofline",
    says: (all) =>
      all
        .map((answers) => {
          const [decode, prefill] = phases(answers).map((each) => largest(each[1]));
          return `${name(answers)}: decode's largest op is ${decode.op}, bound by ${decode.bound}; prefill's is ${prefill.op}, bound by ${prefill.bound}.`;
        })
        .join(" ") + " Each op stands at every memory level that it moves bytes through.",
    drawings: (answers, all) =>
      phases(answers).map(([phase, step]) => ({
        title: phase === "decode" ? `Decode of ${answers.side.batch}` : "Prefill of one prompt",
        draw: (width) =>
          roofline({ machine: machineOf(step), ops: step.ops, seconds: step.step_seconds, domain: sharedDomain(all) }, width),
      })),
  },
  {
    id: "time-by-op",
    title: "Time by op and bound",
    hasEquation: true,
    says: (all) =>
      all
        .map((answers) => {
          const step = answers.decode(),
            op = largest(step);
          return `${name(answers)}: ${op.op} takes ${format.percent(op.seconds / step.step_seconds)} of ${format.time(step.step_seconds)}.`;
        })
        .join(" "),
    drawings: (answers) =>
      phases(answers).map(([phase, step]) => ({
        title: phase === "decode" ? "Decode" : "Prefill of one prompt",
        draw: (width) => timeByOp({ ops: step.ops, host: step.host_seconds }, width),
      })),
  },
  {
    id: "hit-rates",
    title: "Hit rates by level",
    says: () => "The share of the bytes asked of each cache that it has; the rest goes to the next level.",
    drawings: (answers) =>
      phases(answers)
        .filter(([, step]) => Object.keys(step.ops[0].hit_rate).length > 1)
        .map(([phase, step]) => ({
          title: phase === "decode" ? "Decode" : "Prefill of one prompt",
          draw: (width) => hitRates({ ops: step.ops }, width),
        })),
  },
  {
    id: "kv-footprint",
    title: "KV footprint over context",
    says: (all) =>
      all
        .map((answers) => {
          const document = answers.footprint();
          return `${name(answers)}: a token takes ${format.bytes(document.kv_bytes_per_token)} with ${document.num_key_value_heads} KV head${document.num_key_value_heads === 1 ? "" : "s"}.`;
        })
        .join(" "),
    drawings: (answers) => [
      {
        draw: (width) => {
          const size = memorySize(answers.decode());
          return kvFootprint(
            {
              series: footprintOf(answers.footprint(), answers.side),
              side: answers.side,
              size: size && size * answers.side.tensor_parallel_size,
            },
            width,
          );
        },
      },
    ],
  },
  {
    id: "block-size",
    title: "Step time against block size",
    says: (all) =>
      all
        .map((answers) => {
          const costs = blockCosts(answers.blocks());
          const best = costs.reduce((least, each) => (each.seconds < least.seconds ? each : least));
          const here = costs.find(({ size }) => size === answers.side.block_size);
          const more = here ? here.seconds / best.seconds - 1 : 0;
          const beside = more < 0.001 ? `; ${here?.size} takes as long` : `; ${here.size} takes ${format.percent(more)} more`;
          return `${name(answers)}: blocks of ${best.size} are fastest${!here || here === best ? "" : beside}.`;
        })
        .join(" ") + " Empty slots take memory, and no time: kernels read tokens only.",
    drawings: (answers) => [{ draw: (width) => blockCost(blockCosts(answers.blocks()), width) }],
  },
  {
    id: "throughput-latency",
    title: "Throughput against latency",
    together: true,
    says: () => "Decode of 1 to 256 sequences at once: each batch's tokens a second against the time of its step. Down and right is better.",
    drawings: (all, labels) => [
      {
        draw: (width) =>
          throughputLatency(
            {
              latency: "decode step",
              served: false,
              points: all.flatMap((answers, index) =>
                answers.batches().points.map((point) => ({
                  x: point.tokens_per_second,
                  y: point.step_seconds,
                  text: `batch ${point.choices["workload.batch"]}`,
                  series: labels[index],
                  lines: [
                    ["tokens/s", format.number(point.tokens_per_second)],
                    ["step", format.time(point.step_seconds)],
                    ["bound", point.bound],
                    ["sequences that fit", format.number(point.max_sequences)],
                  ],
                })),
              ),
            },
            width,
          ),
      },
    ],
  },
];

export const opsOf = (answers) => phases(answers).flatMap(([phase, { ops }]) => ops.map((op) => ({ phase, op })));
