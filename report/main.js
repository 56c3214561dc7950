// Puts the page together: the answer, every chart that has data, the tables, the switch of the theme.
import { assumptionsChart } from "./charts/assumptions.js";
import { blockSizeChart } from "./charts/block_size.js";
import { decisionsChart } from "./charts/decisions.js";
import { heatMapChart } from "./charts/heat_map.js";
import { hitRatesChart } from "./charts/hit_rates.js";
import { intensityChart } from "./charts/intensity.js";
import { interactivityChart } from "./charts/interactivity.js";
import { kvFootprintChart } from "./charts/kv_footprint.js";
import { kvUseChart } from "./charts/kv_use.js";
import { paretoChart } from "./charts/pareto.js";
import { predictedMeasuredChart } from "./charts/predicted_measured.js";
import { rooflineChart } from "./charts/roofline.js";
import { throughputLatencyChart } from "./charts/throughput_latency.js";
import { timeByBoundChart, timeByOpChart } from "./charts/time_by_bound.js";
import { captionOf } from "./caption.js";
import { html } from "./dom.js";
import { recommendedOf } from "./recommended.js";
import { addSection } from "./section.js";
import { answerOf, tablesOf } from "./tables.js";
import { switchThemes } from "./theme.js";

export { svgText } from "./export.js";

const charts = [
  rooflineChart, timeByOpChart, timeByBoundChart, hitRatesChart, heatMapChart, blockSizeChart, intensityChart,
  kvFootprintChart, throughputLatencyChart, interactivityChart, paretoChart, predictedMeasuredChart, kvUseChart,
  decisionsChart, assumptionsChart,
];

const find = (id) => document.getElementById(id);
const data = JSON.parse(find("data").textContent);
const { result } = data, about = (view) => captionOf(result, view);
const command = `dculab ${data.schema.split("/")[1].replace(/^tables-/, "tables ")}`;

switchThemes(find("theme"));
find("command").textContent = command;
find("question").textContent = data.question || command;
find("about").textContent = result.question || result.simulations ? captionOf(result) : ""; // else the heading says it
find("answer").append(...recommendedOf(data), ...answerOf(data));
const shown = charts.map((chart) => ({ chart, views: chart.views(data) })).filter(({ views }) => views.length);
const entries = shown.map(({ chart }) => [chart.id, chart.title]);
if (data.tables.length) entries.push(["figures", "Tables"]);
const links = entries.map(([id, title]) => html("li", {}, html("a", { href: `#${id}` }, title)));
find("contents").append(html("ul", {}, links));
for (const { chart, views } of shown) addSection(find("charts"), chart, views, about);
if (data.tables.length) find("tables").append(tablesOf(data));
find("made-by").textContent =
  `Made by dculab ${data.version}; charts by Observable Plot and D3, whose licences are in this file. Needs no network.`;
