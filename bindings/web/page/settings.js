// The settings of one configuration: menus, a place to drop a config.json, and sliders.
import { html } from "../../../report/dom.js";
import { takenBlocks } from "./answers.js";
import { slider } from "./slider.js";

const powers = (from, to) => {
  const values = [];
  for (let value = from; value <= to; value *= 2) values.push(value);
  return values;
};
const weights = ["", "f16", "bf16", "fp8_e4m3", "int8", "int4", "gptq-int8", "gptq-int4", "gptq-int4-g32"];
// Of powers of two the last blocks are always full; of 1,001 and 4,000 tokens they are not.
const contexts = [...powers(64, 2 ** 20), 1001, 4000].sort((a, b) => a - b);
// Up to the model's longest, which is a stop too.
const contextsUpTo = (longest) => [...new Set([...contexts.filter((each) => each <= longest), Math.min(longest, 2 ** 20)])];
const batches = powers(1, 512);
// Of the numbers beside the sliders.
const most = { batch: 4096, tensor_parallel_size: 64 };

const menu = (id, name, change) => {
  const select = html("select", { id, change: () => change(select.value) });
  let shown = "";
  return {
    element: html("label", { for: id, class: `menu-${name.split(" ")[0].toLowerCase()}` }, name, select),
    show: (value, offered) => {
      const options = offered.some(([each]) => each === value) ? offered : [[value, value], ...offered];
      if (String(options) !== shown) select.replaceChildren(...options.map(([each, text]) => html("option", { value: each }, text)));
      shown = String(options);
      select.value = value;
    },
  };
};

const plain = (values) => values.map((value) => [value, value]);

// Reads the file that a person chose or dropped.
const readConfig = async (file, change) => {
  if (!file) return;
  const text = await file.text();
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    content = {};
  }
  const name = String(content._name_or_path || file.name.replace(/\.json$/, "")).split("/").pop();
  change({ model: name.replace(/[^\w.-]/g, "-") || "model", config: JSON.stringify(content), kv_heads: 0 });
};

const dropPlace = (id, change) => {
  const input = html("input", {
    type: "file",
    id,
    accept: ".json,application/json",
    change: () => readConfig(input.files[0], change),
  });
  const place = html("label", { class: "drop", for: id }, input, "Another model: drop its config.json here, or choose it");
  for (const event of ["dragenter", "dragover", "dragleave", "drop"])
    place.addEventListener(event, (each) => {
      each.preventDefault();
      place.classList.toggle("over", event === "dragenter" || event === "dragover");
      if (event === "drop") readConfig(each.dataTransfer.files[0], change);
    });
  return place;
};

const whyNoHeads = ({ areLatent, isRefused }) => (isRefused ? "unknown: the model is refused" : areLatent ? "none: latents" : "");

// `change({key: value, ...})` is called for what a person changes. Returns {element, show(side, limits, error)}; limits:
// limitsOf() of model_limits.js.
export const settingsOf = (label, names, change) => {
  const id = (key) => `${label}-${key}`;
  const of = (key) => (value) => change({ [key]: value });
  const menus = {
    machine: menu(id("machine"), "Machine", of("machine")),
    stack: menu(id("stack"), "Stack", of("stack")),
    model: menu(id("model"), "Model", (model) => change({ model, config: "", kv_heads: 0 })),
    weights: menu(id("weights"), "Weights", of("weights")),
    kv_cache_dtype: menu(id("kv_cache_dtype"), "KV dtype", of("kv_cache_dtype")),
  };
  const sliders = {
    batch: slider(id("batch"), "Batch", ["sequence", "sequences"], of("batch")),
    context: slider(id("context"), "Context", ["token", "tokens"], of("context")),
    kv_heads: slider(id("kv_heads"), "KV heads", ["head", "heads"], of("kv_heads")),
    block_size: slider(id("block_size"), "KV block", ["token", "tokens"], of("block_size")),
    tensor_parallel_size: slider(id("tensor_parallel_size"), "Tensor parallel", ["device", "devices"], of("tensor_parallel_size")),
  };
  const problem = html("p", { class: "problem", role: "alert", hidden: "" });
  const summary = html("summary", {});
  // Open where there is room for it beside the charts.
  const choices = html("details", { class: "choices", open: innerWidth > 900 ? "" : null }, summary,
    html("div", { class: "menus" }, Object.values(menus).map((each) => each.element), dropPlace(id("config"), change)));
  const element = html(
    "fieldset",
    { class: "settings", id: `settings-${label}` },
    html("legend", {}, `Configuration ${label}`),
    choices,
    html("div", { class: "sliders" }, Object.values(sliders).map((each) => each.element)),
    problem,
  );
  const show = (side, { heads, context }, error) => {
    summary.textContent = `${side.model} on ${side.machine}`;
    menus.machine.show(side.machine, plain(Object.keys(names.machines)));
    menus.stack.show(side.stack, plain(names.machines[side.machine] ?? []));
    menus.model.show(side.model, side.config ? [[side.model, `${side.model} (dropped)`], ...plain(names.models)] : plain(names.models));
    menus.weights.show(side.weights, weights.map((each) => [each, each || "checkpoint's"]));
    menus.kv_cache_dtype.show(side.kv_cache_dtype, plain(names.kv_formats));
    sliders.batch.show(side.batch, batches, { most: most.batch });
    sliders.context.show(side.context, contextsUpTo(context), { most: context });
    sliders.kv_heads.show(side.kv_heads || heads.own || 0, heads.choices ?? [0], { why: whyNoHeads(heads) });
    sliders.block_size.show(side.block_size, takenBlocks(names, side));
    sliders.tensor_parallel_size.show(side.tensor_parallel_size, powers(1, 16), { most: most.tensor_parallel_size });
    problem.hidden = !error;
    problem.textContent = error ?? "";
  };
  return { element, show };
};
