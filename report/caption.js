// What a chart is about, in a line: "qwen3-8b on k100-ai, prefill and decode, 16 sequences of 2048 tokens, f16". What the
// answer has for all its figures is in its `subject`; what a menu chose takes its place.
import { machines, parts } from "./facts.js";

// What the answer says beside a view, wherever its command has it: in the words of `subject`.
const subjectOf = (result, { question, machine }) => {
  const { model, phase, tokens, batch, weights, dtype, kv_cache_dtype: kv, recommendations, subjects = [] } = result;
  const part = parts(result).find((each) => each.subject && (question === undefined || each.question === question));
  if (part) return part.subject;
  if (subjects.length) return subjects.length === 1 ? subjects[0] : {};
  if (tokens) {
    const both = phase === "both" ? "prefill and decode" : phase;
    return { model, phase: both, batch, context_tokens: tokens, weights: weights ?? dtype, kv_cache_dtype: kv };
  }
  return (recommendations ?? []).find((each) => machine === undefined || each.machine === machine) ?? {};
};

const counted = (count, noun) => `${count} ${noun}${Number(count) === 1 ? "" : "s"}`;
const ofLength = (length) => (length ? ` of ${length} tokens` : "");
const workload = ({ batch, context, requests, prompt, output }) => {
  const lengths = prompt && output ? `${prompt} + ${output}` : undefined;
  if (batch) return counted(batch, "sequence") + ofLength(context);
  if (requests) return counted(requests, "request") + ofLength(lengths);
  return context || lengths ? `${context ? "sequences" : "requests"}${ofLength(context ?? lengths)}` : undefined;
};
const formats = (weights, kv) => {
  if (!weights || !kv || weights === kv) return weights ?? (kv && `KV in ${kv}`);
  return `${weights} with KV in ${kv}`;
};

const machinesOf = (result) => {
  const all = Object.keys(machines(result));
  return all.length ? all : (result.rooms ?? result.ridges ?? []).map(({ machine }) => machine);
};
const listOf = (names) => names.join(", ").replace(/, ([^,]*)$/, " and $1");

// Of a view: of its choices, and of what its step was priced with; without a view, of the whole answer.
export const captionOf = (result, view = {}) => {
  const given = { ...view.named, ...view.choices }, subject = subjectOf(result, given);
  const of = (name, key) => given[name] ?? subject[key];
  const listed = machinesOf(result), whose = given.machine ?? (listed.length <= 3 ? listOf(listed) : ""), devices = of("tensor parallel size", "tensor_parallel_size");
  const model = of("model", "model"), heads = of("KV heads", "num_key_value_heads"), stack = of("stack", "stack");
  const said = [
    [model, whose && `${devices > 1 ? `${devices} x ` : ""}${whose}`].filter(Boolean).join(" on "),
    of("phase", "phase"),
    workload({
      batch: of("batch", "batch"), context: of("context", "context_tokens"), requests: of("requests", "requests"),
      prompt: of("prompt tokens", "prompt_tokens"), output: of("output tokens", "output_tokens"),
    }),
    formats(of("weights", "weights"), of("KV dtype", "kv_cache_dtype")),
    heads && counted(heads, "KV head"), given.block && `blocks of ${given.block}`,
    stack && stack !== "dculab" && `kernels of ${stack}`,
  ];
  return model || given.machine ? said.filter(Boolean).join(", ") : "";
};
