// What a model allows: its KV heads, and its longest context.
import { modelPath, scenarioOf, usual } from "./configuration.js";

// {own, choices} of KV heads; {areLatent: true} of a model without; {isRefused: true} of one that cannot be read.
const headsOf = (simulator, model) => {
  const document = simulator.ask({ ask: "footprint", scenario: { ...scenarioOf(model), deployment: undefined } });
  if (document.error) return { isRefused: true };
  const { rows, num_key_value_heads: own, kv_bytes: bytes, weight_bytes: weights } = document;
  const ofHeads = rows.filter((row) => row.attention === "gqa");
  const isOwn = (row) => row.kv_bytes === bytes && row.weight_bytes === weights;
  if (rows.some((row) => row.attention !== "gqa" && isOwn(row))) return { areLatent: true };
  return { own, choices: ofHeads.map((row) => row.num_key_value_heads).reverse() };
};

const most = 2 ** 24;
// The longest context that the simulator takes, for a config.json that leaves it to the model's family.
const longestTaken = (simulator, model) => {
  const takes = (context) => !simulator.ask({ ask: "step", scenario: scenarioOf({ ...model, context }) }).error;
  let [low, high] = [1, most];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (takes(middle)) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? low : most;
};
const contextOf = (simulator, model) => {
  const text = model.config || simulator.fileOf(`/scenarios/models/${model.model}/config.json`) || "{}";
  const config = JSON.parse(text);
  return config.max_position_embeddings ?? config.text_config?.max_position_embeddings ?? longestTaken(simulator, model);
};

const known = new Map();
// {heads, context} of a side's model.
export const limitsOf = (simulator, { model, config }) => {
  const alone = { ...usual, model, config, batch: 1, context: 1 };
  const key = modelPath(alone);
  if (!known.has(key)) known.set(key, { heads: headsOf(simulator, alone), context: contextOf(simulator, alone) });
  return known.get(key);
};
