// A configuration: what the settings hold, and what a link restores. Its keys in a link are those of the program's
// options; those of the second configuration begin with "b.".
export const usual = {
  model: "llama-3-8b",
  config: "", // the text of a dropped config.json; `model` is its file's name then
  machine: "z100",
  stack: "dculab",
  weights: "", // the checkpoint's own
  kv_cache_dtype: "f16",
  batch: 16,
  context: 4000,
  kv_heads: 0, // the model's own
  block_size: 16,
  tensor_parallel_size: 1,
};

const isNumber = (key) => typeof usual[key] === "number";

const read = (entries, prefix) => {
  const found = { ...usual };
  for (const key of Object.keys(usual)) {
    const text = entries.get(prefix + key);
    if (text === null) continue;
    if (!isNumber(key)) found[key] = text;
    else if (/^\d{1,9}$/.test(text)) found[key] = Number(text);
  }
  return found;
};

const write = (configuration, prefix, entries) => {
  for (const [key, value] of Object.entries(configuration))
    if (value !== usual[key] || (prefix && key === "model")) entries.set(prefix + key, value);
};

// {sides: one configuration or two, show: ids of the charts that are shown, [] for all}
export const fromLink = (hash) => {
  const entries = new URLSearchParams(hash.replace(/^#/, ""));
  const second = [...entries.keys()].some((key) => key.startsWith("b."));
  return {
    sides: [read(entries, ""), ...(second ? [read(entries, "b.")] : [])],
    show: (entries.get("show") ?? "").split(",").filter(Boolean),
  };
};

export const toLink = ({ sides, show }) => {
  const entries = new URLSearchParams();
  if (show.length) entries.set("show", show.join(","));
  sides.forEach((side, index) => write(side, index ? "b." : "", entries));
  return `#${entries}`;
};

// The keys of a scenario file that a configuration sets, `more` among them.
export const scenarioOf = (side, { phase = "decode", batch = side.batch, ...more } = {}) => ({
  model: side.kv_heads
    ? { name: modelPath(side), num_key_value_heads: side.kv_heads }
    : modelPath(side),
  machine: side.machine,
  stack: side.stack,
  ...(side.weights && { weights: side.weights }),
  kv_cache: { dtype: side.kv_cache_dtype, block_size: side.block_size },
  deployment: { tensor_parallel_size: side.tensor_parallel_size },
  workload: { phase, batch, context_tokens: side.context },
  ...more,
});

// Where a dropped config.json is kept: by its text, so that two of one name are two.
const fingerprint = (text) => {
  let sum = 0;
  for (const letter of text) sum = (Math.imul(sum, 31) + letter.codePointAt(0)) | 0;
  return (sum >>> 0).toString(36);
};
export const modelPath = ({ model, config }) => (config ? `/dropped/${fingerprint(config)}/${model}` : model);
