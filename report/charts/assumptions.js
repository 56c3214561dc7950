// Every figure of a machine and its source, those neither published nor measured first: a table, no drawing.
import * as d3 from "d3";
import { facts, format } from "../kit.js";

const order = ["swept", "assumed", "measured", "spec"];

const leansOn = ({ figures, asked }) => {
  const most = figures.find(({ kind, change }) => kind === "assumed" && change);
  if (most) return `The answer is most sensitive to ${most.key}: if it is 10 % off, times change by ${format.percent(most.change)}.`;
  if (asked) return "None of them changes the answer by 1 % or more when it is 10 % off.";
  return "dculab predict and dculab study say how sensitive an answer is to them.";
};

export const assumptionsChart = {
  id: "assumptions", title: "Assumptions and sources",
  views: ({ result }) => {
    const sensitivities = facts.sensitivities(result);
    return Object.entries(facts.machines(result)).map(([machine, { figures: all }]) => {
      const changed = all.map((figure) => ({ ...figure, change: sensitivities[machine]?.[figure.key] }));
      const figures = d3.sort(changed, ({ kind }) => order.indexOf(kind), ({ change }) => -(change ?? 0));
      return { choices: { machine }, machine, asked: machine in sensitivities, figures };
    });
  },
  says: (view) => {
    const assumed = view.figures.filter(({ kind }) => kind === "assumed").length;
    return `What ${view.machine} is taken to be: ${assumed} of ${view.figures.length} figures are assumed. ${leansOn(view)}`;
  },
  table: ({ figures }) => {
    const row = ({ key, value, kind, change, source }) => [key, value, kind, change ? format.percent(change) : "", source];
    return { columns: ["figure", "value", "kind", "if 10 % off", "source"], words: true, rows: figures.map(row) };
  },
};
