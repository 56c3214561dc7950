// node same_answers.mjs SIMULATOR.js SIMULATOR.wasm SOURCE_DIR DCULAB_ANSWERS DCULAB COUNT [SEED]: asks the simulator as
// WebAssembly and as a native program COUNT random questions, and compares every answer; some of them with what
// `dculab predict` prints. Texts must be equal, numbers to
// 1e-12: the two C libraries round exp and pow differently in the last place.
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import { shippedFiles } from "../../bindings/web/shipped_files.mjs";

const [loader, binary, root, native, program, count, seed = "1"] = process.argv.slice(2);
const tolerance = 1e-12;

// Mulberry32: the same questions for the same seed.
let randomState = Number(seed);
const random = () => {
  randomState = (randomState + 0x6d2b79f5) | 0;
  let t = Math.imul(randomState ^ (randomState >>> 15), 1 | randomState);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};
const one = (values) => values[Math.floor(random() * values.length)];

const shipped = shippedFiles(root);
const start = async () => {
  const makeSimulator = createRequire(import.meta.url)(path.resolve(loader));
  const module = await makeSimulator({ wasmBinary: readFileSync(binary) });
  for (const [name, text] of Object.entries(shipped))
    module.ccall("dculab_put_file", null, ["string", "string"], [name, text]);
  return (question) => module.ccall("dculab_answer", "string", ["string"], [question]);
};

// The native program's answers, in order.
const answersOf = async (questions) => {
  const child = spawn(native, { cwd: root, env: { ...process.env, DCULAB_DATA: root }, stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(questions.map((each) => `${each}\n`).join(""));
  const answers = [];
  for await (const line of createInterface({ input: child.stdout })) answers.push(line);
  return answers;
};

// Contexts up to the model's longest, and sometimes beyond.
const contextOf = (model) => {
  const config = JSON.parse(shipped[`/scenarios/models/${model}/config.json`]);
  const longest = config.max_position_embeddings ?? config.text_config?.max_position_embeddings ?? 2048;
  const most = random() < 0.03 ? 2 ** 17 : Math.min(longest, 2 ** 17);
  return Math.floor(2 ** (4 + random() * (Math.log2(most) - 4)));
};

const drawn = (names) => {
  const machine = one(Object.keys(names.machines));
  const model = one(names.models);
  const phase = one(["decode", "decode", "prefill"]);
  const scenario = {
    model: random() < 0.3 ? { name: model, num_key_value_heads: one([1, 2, 4, 8]) } : model,
    machine,
    stack: random() < 0.5 ? "dculab" : one([...names.machines[machine], "dculab"]),
    kv_cache: { dtype: one(["f16", "f16", "bf16", "fp8_e4m3", "int8"]), block_size: one([1, 8, 16, 16, 32, 64, 128, 256]) },
    deployment: { tensor_parallel_size: one([1, 1, 1, 2, 4, 8]) },
    workload: { phase, batch: Math.ceil(2 ** (random() * 9)), context_tokens: contextOf(model) },
  };
  if (random() < 0.5) scenario.weights = one(["f16", "bf16", "fp8_e4m3", "int8", "int4", "gptq-int4", "gptq-int8"]);
  const ask = one(["predict", "step", "step", "predict", "footprint", "study", "points"]);
  if (ask === "study" || ask === "points") scenario.sweep = one([{ "kv_cache.block_size": [8, 16, 64] }, { "workload.batch": [1, 7, 32] }]);
  return { ask, scenario };
};

// A question and our answer to it. Of what is refused most is drawn again: prices say more than refusals.
const asked = (ask, names) => {
  for (;;) {
    const question = drawn(names), text = JSON.stringify(question), answer = ask(text);
    if (!answer.startsWith('{"error"') || random() < 0.15) return { question, text, answer };
  }
};

// The options of `dculab predict` for a question.
const optionsOf = ({ scenario: { model, machine, stack, weights, kv_cache: kv, deployment, workload } }) => [
  "--model", model.name ?? model, "--machine", machine, "--stack", stack, "--phase", workload.phase,
  "--batch", workload.batch, "--context", workload.context_tokens, "--block-size", kv.block_size, "--kv-cache-dtype", kv.dtype,
  ...(model.num_key_value_heads ? ["--kv-heads", model.num_key_value_heads] : []), ...(weights ? ["--weights", weights] : []),
  "--set", `deployment.tensor_parallel_size=${deployment.tensor_parallel_size}`,
];

let largest = 0;
// Where two documents differ; "" where they do not.
const difference = (a, b, where = "") => {
  if (typeof a === "number" && typeof b === "number") {
    const off = a === b ? 0 : Math.abs(a - b) / Math.max(Math.abs(a), Math.abs(b));
    largest = Math.max(largest, off);
    return off <= tolerance ? "" : `${where}: ${a} and ${b}`;
  }
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b ? "" : `${where}: ${a} and ${b}`;
  const keys = Object.keys(a);
  if (keys.join() !== Object.keys(b).join()) return `${where}: keys ${keys} and ${Object.keys(b)}`;
  for (const key of keys) {
    const found = difference(a[key], b[key], `${where}/${key}`);
    if (found) return found;
  }
  return "";
};

const fail = (text) => {
  console.error(text);
  process.exit(1);
};

const ask = await start();
const names = JSON.parse(ask('{"ask": "names"}'));
if (names.models.length < 50 || Object.keys(names.machines).length < 30) fail("shipped models or machines are missing");
const begin = performance.now();
const fixed = ['{"ask": "names"}', "{", '{"ask": "predict"}'].map((text) => ({ text, answer: ask(text) }));
const questions = [...fixed, ...Array.from({ length: Number(count) }, () => asked(ask, names))];
const milliseconds = (performance.now() - begin) / questions.length;
const theirs = await answersOf(questions.map(({ text }) => text));
if (theirs.length !== questions.length) fail(`${theirs.length} native answers to ${questions.length} questions`);
let same = 0,
  refused = 0;
questions.forEach(({ text, answer }, index) => {
  const [mine, other] = [answer, theirs[index]].map((each) => JSON.parse(each));
  const found = difference(mine, other);
  if (found) fail(`${text}\n${found}`);
  same += answer === theirs[index];
  refused += "error" in mine;
});
if (refused > questions.length * 0.2) fail(`${refused} of ${questions.length} questions were refused`);

// What the page shows is what the command prints.
const priced = questions.filter(({ question, answer }) => question?.ask === "predict" && !answer.startsWith('{"error"')).slice(0, 200);
const options = { cwd: root, env: { ...process.env, DCULAB_DATA: root }, maxBuffer: 1 << 26 };
for (const { question, text, answer } of priced) {
  const printed = execFileSync(program, ["predict", ...optionsOf(question), "--format", "json"], options);
  const found = difference(JSON.parse(answer), JSON.parse(printed));
  if (found) fail(`dculab predict differs: ${text}\n${found}`);
}
if (priced.length < count / 10 && priced.length < 200) fail(`${priced.length} predictions are too few`);

console.log(`${questions.length} answers are those of the native program, ${same} of them byte for byte; ${refused} refusals; ` +
  `${priced.length} are what \`dculab predict\` prints; ` +
  `the largest difference is ${largest.toExponential(1)}; ${milliseconds.toFixed(2)} ms an answer`);
