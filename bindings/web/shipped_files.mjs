// shippedFiles(ROOT) -> {"/hwmodels/z100.yaml": JSON, ...}: the machines, stacks and models that are shipped, where the
// simulator looks for them.
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { yamlAsJson } from "../../report/yaml_as_json.mjs";

export const shippedFiles = (root) => {
  const files = {};
  const read = (...parts) => readFileSync(path.join(root, ...parts), "utf8");
  for (const folder of ["hwmodels", "stacks"])
    for (const name of readdirSync(path.join(root, folder)).filter((each) => each.endsWith(".yaml")).sort())
      files[`/${folder}/${name}`] = yamlAsJson(read(folder, name));
  for (const name of readdirSync(path.join(root, "scenarios", "models")).sort())
    files[`/scenarios/models/${name}/config.json`] = JSON.stringify(JSON.parse(read("scenarios", "models", name, "config.json")));
  return files;
};
