// yamlAsJson(text): a YAML file as JSON whose scalars are all texts, in the file's order. For the simulator in a browser,
// which has no reader of YAML: what a word means, the readers of machines and stacks decide.
import { isMap, isSeq, parseDocument } from "yaml";

const isNull = (node) => node.type === "PLAIN" && /^(~|null|Null|NULL)?$/.test(node.source);
const json = (node) => {
  if (isMap(node)) return `{${node.items.map(({ key, value }) => `${JSON.stringify(key.value)}:${json(value)}`).join()}}`;
  if (isSeq(node)) return `[${node.items.map(json).join()}]`;
  return node === null || isNull(node) ? "null" : JSON.stringify(node.value);
};

export const yamlAsJson = (text) => {
  const { contents, errors } = parseDocument(text, { schema: "failsafe" });
  if (errors.length > 0) throw errors[0];
  return json(contents);
};
