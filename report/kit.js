// What charts are made with, besides Plot and D3.
export { below, boundColor, chart, dots, rowsOf } from "./chart.js";
export { svg, textWidth } from "./dom.js";
export { facts } from "./facts.js";
export { format, metrics } from "./format.js";
export { boxAround, boxAroundSymbol, nameAlong, names, roomOf } from "./labels.js";
export { tagged } from "./marks.js";
export { scaleOf, spread } from "./scales.js";
