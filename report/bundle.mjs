// node bundle.mjs ENTRY.js PAGE.html OUTPUT.inc STYLE.css...: PAGE with the styles in the place of @STYLE@ and, in that
// of @SCRIPT@, ENTRY with all it imports and the licences of the packages among it. OUTPUT is a raw string literal of
// C++, OUTPUT.d the files it was made from. What ENTRY exports is `dculab.NAME` on the page.
import { build } from "esbuild";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const [entry, page, output, ...styles] = process.argv.slice(2);
const read = (file) => readFileSync(file, "utf8");

const { outputFiles, metafile } = await build({
  entryPoints: [entry],
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "dculab",
  target: "es2021",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  write: false,
});

// The folder of a package whose code went in, by its name.
const inputs = Object.entries(Object.values(metafile.outputs)[0].inputs)
  .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  .map(([file]) => path.resolve(file));
const packages = new Map(
  inputs.flatMap((file) => {
    const found = /^(.*node_modules\/((?:@[^/]+\/)?[^/]+))\//.exec(file);
    return found ? [[found[2], found[1]]] : [];
  }),
);

// Packages of one licence share its text.
const names = new Map();
for (const [name, folder] of [...packages].sort()) {
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${folder} has no licence`);
  const text = read(path.join(folder, file)).trim().replaceAll("*/", "* /");
  const { version, license } = JSON.parse(read(path.join(folder, "package.json")));
  names.set(text, [...(names.get(text) ?? []), `${name} ${version} (${license})`]);
}
const licences = [...names].map(([text, all]) => `${all.join(", ")}\n\n${text}`).join("\n\n");

// Functions, so that "$" in a text is no pattern.
const whole = read(page)
  .replace("@STYLE@", () => styles.map(read).join("\n"))
  .replace("@SCRIPT@", () => `/* This page contains:\n\n${licences}\n*/\n${outputFiles[0].text}`);
if (whole.includes(')page"')) throw new Error('the page has )page" in it, which ends the string literal');
writeFileSync(output, `R"page(${whole})page"\n`);

const made = [entry, page, ...styles, ...inputs].map((file) => path.resolve(file).replaceAll(" ", "\\ "));
writeFileSync(`${output}.d`, `${output}: ${[...new Set(made)].filter(existsSync).join(" ")}\n`);
