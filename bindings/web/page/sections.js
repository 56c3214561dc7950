// The charts of the page. Each is {id, title, says(answers, name), note, drawings(answers, all)}: what it says of one
// configuration, what it says of all, and its drawings of one, [{title, draw(width)}]; where `together` is true its
// drawings of all, drawings([{answers, label}]).
import { blockCosts } from "../../../report/charts/block_size.js";
import { hitRates } from "../../../report/charts/hit_rates.js";
import { mainOf, roofline, rooflineDomain } from "../../../report/charts/roofline.js";
import { timeByOp } from "../../../report/charts/time_by_bound.js";
import { format } from "../../../report/format.js";
import { batchPoints, batchesChart, fitText } from "./batches.js";
import { blockCost, blockText } from "./block_cost.js";
import { limitsOfFootprints, kvFootprint, kvText } from "./kv_footprint.js";

const phases = (answers) => [
  ["decode", answers.decode()],
  ["prefill", answers.prefill()],
];
const machineOf = (step) => step.machine_facts[step.machine];
const largest = (step) => step.ops.reduce((most, op) => (op.seconds > most.seconds ? op : most));
const titleOf = (phase) => (phase === "decode" ? "Decode" : "Prefill of one prompt");

const viewOf = (step) => mainOf({ machine: machineOf(step), ops: step.ops, seconds: step.step_seconds });

// One for all drawings, so that the ops move and the axes stay.
const sharedDomain = (all) =>
  rooflineDomain(all.flatMap(phases).map(([, step]) => viewOf(step)));

export const sections = [
  {
    id: "roofline",
    title: "Hierarchical roofline",
    says: (answers, name) => {
      const [decode, prefill] = phases(answers).map((each) => largest(each[1]));
      return `${name}: decode's largest op is ${decode.op}, bound by ${decode.bound}; prefill's is ${prefill.op}, bound by ${prefill.bound}.`;
    },
    note: "Each op of 1 % of the time or more has a mark at every memory level that it moves bytes through, as far as the level holds an op back.",
    drawings: (answers, all) =>
      phases(answers).map(([phase, step]) => ({
        title: phase === "decode" ? `Decode of ${answers.side.batch}` : titleOf(phase),
        draw: (width) =>
          roofline({ ...viewOf(step), domain: sharedDomain(all) }, width),
      })),
  },
  {
    id: "time-by-op",
    title: "Time by op and bound",
    hasEquation: true,
    says: (answers, name) => {
      const step = answers.decode(), op = largest(step);
      return `${name}: ${op.op} takes ${format.percent(op.seconds / step.step_seconds)} of ${format.time(step.step_seconds)}.`;
    },
    note: "The colour of a bar says what bounds the op.",
    drawings: (answers) =>
      phases(answers).map(([phase, step]) => ({
        title: titleOf(phase),
        draw: (width) => timeByOp({ ops: step.ops, host: step.host_seconds }, width),
      })),
  },
  {
    id: "hit-rates",
    title: "Hit rates by level",
    says: () => "",
    note: "The hit rate of a cache is the share of the requested bytes that it holds. The next level supplies the rest.",
    drawings: (answers) =>
      phases(answers)
        .filter(([, step]) => Object.keys(step.ops[0].hit_rate).length > 1)
        .map(([phase, step]) => ({ title: titleOf(phase), draw: (width) => hitRates({ ops: step.ops }, width) })),
  },
  {
    id: "kv-footprint",
    title: "KV footprint over context",
    says: kvText,
    note: "Below the dashed line the KV cache fits beside the weights.",
    drawings: (answers, all) => [{ draw: (width) => kvFootprint(answers, limitsOfFootprints(all), width) }],
  },
  {
    id: "block-size",
    title: "Step time against block size",
    says: (answers, name) => blockText(blockCosts(answers.blocks()), name),
    note: "Kernels skip padding: it costs memory but no time.",
    drawings: (answers) => [{ draw: (width) => blockCost(blockCosts(answers.blocks()), width) }],
  },
  {
    id: "throughput-latency",
    title: "Throughput against latency",
    together: true,
    says: (answers, name) => fitText(batchPoints(answers), name),
    note: "Each point is a decode step of 1 to 256 sequences: tokens per second to the right, the time of the step upwards. Down and right is better.",
    drawings: (shown) => [{ draw: (width) => batchesChart(shown, width) }],
  },
];

export const opsOf = (answers) => phases(answers).flatMap(([phase, { ops }]) => ops.map((op) => ({ phase, op })));
