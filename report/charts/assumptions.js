// Every figure of a machine and its source, those that the answer depends on first: a table, no drawing.
import * as d3 from "d3";
import { facts, format } from "../kit.js";

const order = ["swept", "chosen", "assumed", "inferred", "measured", "spec"];
const rankOf = ({ kind }) => (order.includes(kind) ? order.indexOf(kind) : order.length);

// Line sizes are powers of two: what is told of them is for half and twice the size, of all else for 10 %.
const isDoubled = ({ key }) => key.endsWith(".line");
const ifOff = (figure) =>
  figure.change ? `${format.percent(figure.change)} (${isDoubled(figure) ? "halved or doubled" : "by 10 %"})` : "";
const changeOf = (figure) =>
  `times change by ${format.percent(figure.change)} if it is ${isDoubled(figure) ? "halved or doubled" : "10 % off"}`;

const leansOn = ({ figures, asked }) => {
  const ranked = d3.sort(figures.filter(({ change }) => change), ({ change }) => -change), [most] = ranked;
  if (!asked) return "The command does not say how much its answer depends on them.";
  if (!most) return "None of them changes the answer by 1 % or more when it is 10 % off.";
  const next = isDoubled(most) && ranked.find((figure) => !isDoubled(figure));
  const others = next ? ` Next comes ${next.key}: ${changeOf(next)}.` : "";
  return `The answer depends most on ${most.key}: ${changeOf(most)}.${others}`;
};

// "180.48148148148147 GB/s" -> "180.5 GB/s", "66842592592.59259 B/s" -> "66.8 GB/s": what is derived has many digits.
const rounded = (text) => {
  const [whole, number, unit] = /^(-?\d+\.\d+(?:e[-+]?\d+)?)(\D*)$/.exec(text) ?? [];
  if (!whole) return text;
  if (unit === " B/s" && Number(number) >= 1e3) return format.byteRate(Number(number));
  return `${Number(Number(number).toPrecision(4))}${unit}`;
};

export const assumptionsChart = {
  id: "assumptions", title: "Assumptions and sources",
  views: ({ result }) => {
    const sensitivities = facts.sensitivities(result);
    return Object.entries(facts.machines(result)).map(([machine, { figures: all }]) => {
      const changed = all.map((figure) => ({ ...figure, change: sensitivities[machine]?.[figure.key] }));
      const isSwept = ({ kind }) => kind === "swept";
      const figures = d3.sort(changed, (figure) => -isSwept(figure), ({ change }) => -(change ?? 0), rankOf);
      return { choices: { machine }, machine, asked: machine in sensitivities, figures };
    });
  },
  says: (view) => {
    const assumed = view.figures.filter(({ kind }) => kind === "assumed").length;
    return `What ${view.machine} is taken to be: ${assumed} of ${view.figures.length} figures are assumed. ${leansOn(view)}`;
  },
  table: ({ figures }) => {
    const row = (figure) => [figure.key, rounded(figure.value), figure.kind, ifOff(figure), figure.source];
    return { columns: ["figure", "value", "kind", "times change, if off", "source"], words: true, rows: figures.map(row) };
  },
};
