// node bundle.mjs ENTRY.js PAGE.html OUTPUT.inc STYLE.css...: PAGE with the styles in the place of @STYLE@ and, in that
// of @SCRIPT@, ENTRY with all it imports (bundled.mjs). OUTPUT is a raw string literal of C++, OUTPUT.d the files it was
// made from.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { bundled } from "./bundled.mjs";

const [entry, page, output, ...styles] = process.argv.slice(2);
const read = (file) => readFileSync(file, "utf8");
const { script, inputs } = await bundled(entry);

// Functions, so that "$" in a text is no pattern.
const whole = read(page)
  .replace("@STYLE@", () => styles.map(read).join("\n"))
  .replace("@SCRIPT@", () => script);
if (whole.includes(')page"')) throw new Error('the page has )page" in it, which ends the string literal');
writeFileSync(output, `R"page(${whole})page"\n`);

const made = [entry, page, ...styles, ...inputs].map((file) => path.resolve(file).replaceAll(" ", "\\ "));
writeFileSync(`${output}.d`, `${output}: ${[...new Set(made)].filter(existsSync).join(" ")}\n`);
