// What the simulator says of a configuration. Each part is asked for when a chart wants it.
import { modelPath, scenarioOf } from "./configuration.js";
import { limitsOf } from "./model_limits.js";

const batches = [1, 2, 4, 8, 16, 32, 64, 128, 256];
export const blockSizes = [1, 2, 4, 8, 16, 32, 64, 128, 256];

// Throws an Error with the simulator's words.
const checked = (answer) => {
  if (answer.error) throw new Error(answer.error);
  return answer;
};

export const answersOf = (simulator, names, side) => {
  if (side.config) simulator.putOnce(`${modelPath(side)}/config.json`, side.config);
  const ask = (kind, scenario) => checked(simulator.ask({ ask: kind, scenario }));
  const step = (phase, batch) => ask("step", scenarioOf(side, { phase, batch }));
  const sweep = (key, values) => {
    const { machines } = ask("points", scenarioOf(side, { sweep: { [key]: values } }));
    return machines[0];
  };
  return {
    side,
    decode: () => step("decode", side.batch),
    prefill: () => step("prefill", 1),
    blocks: () => sweep("kv_cache.block_size", takenBlocks(names, side)),
    batches: () => sweep("workload.batch", batches),
    longest: () => limitsOf(simulator, side).context,
    // KV cache that has room beside the weights, in bytes: of sequences as short as a block, so that little is left over.
    room: () => {
      const short = { ...side, batch: 1, context: side.block_size };
      const { kv_bytes: bytes } = ask("footprint", { ...scenarioOf(short), deployment: undefined });
      return ask("step", scenarioOf(short)).max_sequences * bytes;
    },
    footprint: () => ask("footprint", { ...scenarioOf(side), deployment: undefined }),
  };
};

// Block sizes that the kernels of a stack take.
export const takenBlocks = (names, { stack }) => {
  const taken = names.stacks[stack]?.block_sizes ?? [];
  return taken.length ? taken : blockSizes;
};

// The one of them that is nearest to what is set.
export const nearestBlock = (names, side) => {
  const distance = (size) => Math.abs(size - side.block_size);
  return takenBlocks(names, side).reduce((best, size) => (distance(size) < distance(best) ? size : best));
};
