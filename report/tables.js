// What the command prints on a terminal: heading lines, tables, notes.
import { html } from "./dom.js";
import { tableElement } from "./section.js";

const note = (text) => html("p", { class: "note" }, text);

export const answerOf = ({ heading, tables }) => [
  ...tables
    .flatMap((table) => table.notes)
    .filter((line) => line.startsWith("→"))
    .map((line) => html("p", { class: "verdict" }, line.slice(1).trim())),
  ...heading.slice(1).map(note),
];

export const tablesOf = ({ tables }) =>
  html(
    "section",
    { id: "figures" },
    html("h2", {}, "Tables"),
    tables.map((table, index) =>
      html(
        "details",
        { open: index === 0 && table.rows.length <= 40 ? "" : null },
        html("summary", {}, table.title || "What the command prints"),
        tableElement(table),
        table.left_out ? note(`${table.left_out} more rows: \`--format csv\` has them all.`) : null,
        table.notes.map(note),
      ),
    ),
  );
