// Every figure of a machine and its source, those that nobody published or measured first: a table, no drawing.
import * as d3 from "d3";
import { facts } from "../facts.js";
import { format } from "../format.js";

const order = ["swept", "assumed", "measured", "spec"];

const views = ({ result }) => {
  const leanings = facts.leanings(result);
  return Object.entries(facts.machines(result)).map(([machine, { figures }]) => ({
    choices: { machine },
    machine,
    asked: machine in leanings,
    figures: d3.sort(
      figures.map((figure) => ({ ...figure, change: leanings[machine]?.[figure.key] })),
      (a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || (b.change ?? 0) - (a.change ?? 0),
    ),
  }));
};

const leansOn = ({ figures, asked }) => {
  const most = figures.find(({ kind, change }) => kind === "assumed" && change);
  if (most)
    return `The answer leans most on ${most.key}: were it 10 % off, times would change by ${format.percent(most.change)}.`;
  return asked
    ? "None of them changes the answer by 1 % or more when it is 10 % off."
    : "How much an answer leans on them, dculab predict and dculab study say.";
};

export const assumptionsChart = {
  id: "assumptions",
  title: "Assumptions and sources",
  views,
  says: (view) => {
    const assumed = view.figures.filter(({ kind }) => kind === "assumed").length;
    return `What ${view.machine} is taken to be: ${assumed} of ${view.figures.length} figures are assumed. ${leansOn(view)}`;
  },
  table: ({ figures }) => ({
    columns: ["figure", "value", "kind", "if 10 % off", "source"],
    words: true,
    rows: figures.map(({ key, value, kind, change, source }) => [
      key,
      value,
      kind,
      change ? format.percent(change) : "",
      source,
    ]),
  }),
};
