// node make_page.mjs ROOT SIMULATOR.js SIMULATOR.wasm VERSION OUTPUT.html: the page in one file, with the simulator, the
// shipped machines, stacks and models, and the charts of report/.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { bundled } from "../../report/bundled.mjs";
import { shippedFiles } from "./shipped_files.mjs";

const [root, loader, binary, version, output] = process.argv.slice(2);
const read = (...parts) => readFileSync(path.join(...parts), "utf8");
const packed = (content) => gzipSync(content, { level: 9 }).toString("base64");

const page = path.join(root, "bindings", "web", "page");
const { script } = await bundled(path.join(page, "main.js"));
const parts = {
  STYLE: read(root, "report", "charts.css") + read(page, "page.css"),
  VERSION: version,
  SIMULATOR: packed(readFileSync(binary)),
  FILES: packed(JSON.stringify(shippedFiles(root))),
  LOADER: readFileSync(loader, "utf8"),
  SCRIPT: script,
};
const whole = read(page, "page.html").replace(/@([A-Z]+)@/g, (text, name) => parts[name] ?? text);
writeFileSync(output, whole);
console.log(`${output}: ${(whole.length / 1e6).toFixed(2)} MB`);
