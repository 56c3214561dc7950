// What a page is made of: bundled(ENTRY.js) -> {script, inputs}. `script` is ENTRY with all it imports and the licences of the
// packages among it, and what ENTRY exports is `dculab.NAME` on the page; `inputs` are the files it was made from.
// Packages are those of report/, wherever the modules are that import them.
import { build } from "esbuild";
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const packagesHere = fileURLToPath(new URL("./node_modules", import.meta.url));

const bundle = (entry) =>
  build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "iife",
    globalName: "dculab",
    target: "es2021",
    charset: "utf8",
    legalComments: "none",
    nodePaths: [packagesHere],
    metafile: true,
    write: false,
  });

// The folder of a package whose code went in, by its name.
const packagesOf = (inputs) =>
  new Map(
    inputs.flatMap((file) => {
      const found = /^(.*node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(file);
      return found ? [[found[2], found[1]]] : [];
    }),
  );

// Packages of one licence share its text.
const licencesOf = (packages) => {
  const names = new Map();
  for (const [name, folder] of [...packages].sort()) {
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${folder} has no licence`);
    const text = readFileSync(path.join(folder, file), "utf8").trim().replaceAll("*/", "* /");
    const { version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
    names.set(text, [...(names.get(text) ?? []), `${name} ${version} (${license})`]);
  }
  return [...names].map(([text, all]) => `${all.join(", ")}\n\n${text}`).join("\n\n");
};

export const bundled = async (entry) => {
  const { outputFiles, metafile } = await bundle(entry);
  const inputs = Object.entries(Object.values(metafile.outputs)[0].inputs)
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([file]) => path.resolve(file));
  const licences = `/* This page contains:\n\n${licencesOf(packagesOf(inputs))}\n*/`;
  return { script: `${licences}\n${outputFiles[0].text}`, inputs };
};
