// The section of a chart: heading, what it says, a choice of what to show, the drawing, a table of its values.
//
// A chart is {id, title, views(data), says(view), draw(view, width), table(view)}. `views` returns what it can show, []
// when the command has no data for it: each view has `choices`, {name: value}, and may be `chosen`. Where the choices
// differ there is a menu for each name. `draw` returns an SVG, and may be missing. `table` returns {columns, rows,
// words}.
import * as d3 from "d3";
import { html } from "./dom.js";
import { download } from "./svg_export.js";

export const tableElement = ({ columns, rows, words }) => {
  const cells = (row) => row.map((text, index) => html("td", { "data-label": columns[index] }, String(text)));
  return html(
    "div",
    { class: `scroll${rows.length > 20 ? " tall" : ""}`, tabindex: 0, role: "region", "aria-label": "table" },
    html(
      "table",
      { class: words && "words" },
      html("thead", {}, html("tr", {}, columns.map((text) => html("th", { scope: "col" }, text)))),
      html("tbody", {}, rows.map((row) => html("tr", {}, cells(row)))),
    ),
  );
};

// The values of each name, in the order they are met, where there is more than one.
const menusOf = (views) =>
  Array.from(new Set(views.flatMap((view) => Object.keys(view.choices))))
    .map((name) => ({ name, values: Array.from(new Set(views.map((view) => String(view.choices[name])))) }))
    .filter(({ values }) => values.length > 1);

// The view with most of the wanted choices, the one just changed before all others.
const nearest = (views, wanted, changed) =>
  d3.greatest(views, (view) =>
    d3.sum(Object.entries(wanted), ([name, value]) =>
      String(view.choices[name]) === value ? (name === changed ? 1000 : 1) : 0,
    ),
  );

// Menus in `controls`; returns how to show another view's choices.
const addMenus = (controls, views, choose) => {
  const selects = menusOf(views).map(({ name, values }) => {
    const change = () =>
      choose(nearest(views, Object.fromEntries(selects.map((each) => [each.dataset.choice, each.value])), name));
    const select = html("select", { "data-choice": name, change }, values.map((value) => html("option", { value }, value)));
    controls.append(html("label", {}, name, select));
    return select;
  });
  return (view) => {
    for (const select of selects) select.value = String(view.choices[select.dataset.choice]);
  };
};

export const addSection = (root, chart, views) => {
  let current = views.find((view) => view.chosen) ?? views[0];
  const says = html("p", { class: "says" }),
    controls = html("div", { class: "controls" }),
    canvas = chart.draw ? html("div", { class: "canvas" }) : null,
    holder = html("div");
  const save = () => download(canvas.firstChild, chart.title, `dculab-${chart.id}`);
  const button = canvas && html("button", { type: "button", class: "download", click: save }, "Download SVG");
  const details = html("details", { open: canvas ? null : "" }, html("summary", {}, "As a table"), holder);
  root.append(
    html(
      "section",
      { id: chart.id, "aria-labelledby": `${chart.id}-title` },
      html("h2", { id: `${chart.id}-title` }, chart.title),
      says,
      controls,
      canvas,
      html("div", { class: "after" }, button, details),
    ),
  );
  let width;
  const draw = () => {
    width = canvas.clientWidth;
    canvas.replaceChildren(chart.draw(current, Math.max(280, Math.floor(width))));
  };
  const show = (view) => {
    current = view;
    says.textContent = chart.says(view);
    if (canvas) draw();
    holder.replaceChildren(tableElement(chart.table(view)));
    showChoices(view);
  };
  const showChoices = addMenus(controls, views, show);
  show(current);
  if (canvas) new ResizeObserver(() => canvas.clientWidth !== width && draw()).observe(canvas);
};
