// What the command prints on a terminal: heading lines, tables, notes.
import { html } from "./dom.js";
import { tableElement } from "./section.js";

const note = (text) => html("p", { class: "note" }, text);

export const answerOf = ({ question, heading, tables }) => {
  const told = tables.flatMap((table) => table.notes), of = (start) => told.filter((line) => line.startsWith(start));
  const verdicts = of("→").map((line) => html("p", { class: "verdict" }, line.slice(1).trim()));
  return [...verdicts, ...of("warning: ").map(note), ...heading.filter((line) => line !== question).map(note)];
};

export const tablesOf = ({ tables }) => {
  const element = (table, index) => {
    const open = index === 0 && table.rows.length <= 40 ? "" : null;
    const summary = html("summary", {}, table.title || "What the command prints");
    const more = table.left_out ? note(`${table.left_out} more rows: \`--format csv\` has them all.`) : null;
    return html("details", { open }, summary, tableElement(table), more, table.notes.map(note));
  };
  return html("section", { id: "figures" }, html("h2", {}, "Tables"), tables.map(element));
};
