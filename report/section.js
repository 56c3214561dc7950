// The section of a chart: heading, what it says, a choice of what to show, the drawing, a table of its values.
//
// A chart is {id, title, views(data), says(view), draw(view, width)}. `views` returns what it can show, [] when the
// command has no data for it: each view has `choices`, {name: value}, and may be `chosen`. Where the choices differ there
// is a menu for each name. `draw` returns an SVG; its table is what its marks say. A chart without has `table(view)`,
// {columns, rows, words}.
import * as d3 from "d3";
import { html } from "./dom.js";
import { tableOf } from "./marks.js";
import { savePng, saveSvg } from "./export.js";

export const tableElement = ({ columns, rows, words }) => {
  const cells = (row) => row.map((text, index) => html("td", { "data-label": columns[index] }, String(text)));
  const head = html("tr", {}, columns.map((text) => html("th", { scope: "col" }, text)));
  const body = html("tbody", {}, rows.map((row) => html("tr", {}, cells(row))));
  const frame = { class: `scroll${rows.length > 20 ? " tall" : ""}`, tabindex: 0, role: "region", "aria-label": "table" };
  return html("div", frame, html("table", { class: words && "words" }, html("thead", {}, head), body));
};

// Menus of the choices that differ, where `choose` gets the view with most of the wanted choices, the one just changed
// before all others: {menus, follow(view)}.
const menusOf = (views, choose) => {
  const valuesOf = (name) => Array.from(new Set(views.map((view) => String(view.choices[name]))));
  const names = Array.from(new Set(views.flatMap((view) => Object.keys(view.choices))));
  const differing = names.filter((name) => valuesOf(name).length > 1);
  const nearest = (changed) => {
    const score = (view, { dataset: { choice }, value }) =>
      String(view.choices[choice]) === value ? (choice === changed ? 1000 : 1) : 0;
    return d3.greatest(views, (view) => d3.sum(selects, (select) => score(view, select)));
  };
  const selects = differing.map((name) => {
    const options = valuesOf(name).map((value) => html("option", { value }, value));
    return html("select", { "data-choice": name, change: () => choose(nearest(name)) }, options);
  });
  const follow = (view) => {
    for (const select of selects) select.value = String(view.choices[select.dataset.choice]);
  };
  return { menus: selects.map((select) => html("label", {}, select.dataset.choice, select)), follow };
};

// `about` says in a line what a view is of: below the heading, here and in the files that are saved.
export const addSection = (root, chart, views, about) => {
  let current = views.find((view) => view.chosen) ?? views[0],
    width;
  const caption = html("p", { class: "caption" }), says = html("p", { class: "says" }),
    canvas = chart.draw ? html("div", { class: "canvas" }) : null,
    holder = html("div");
  const draw = () => {
    width = canvas.clientWidth;
    canvas.replaceChildren(chart.draw(current, Math.max(280, Math.floor(width))));
  };
  const show = (view) => {
    current = view;
    caption.textContent = about(view);
    says.textContent = chart.says(view);
    if (canvas) draw();
    holder.replaceChildren(tableElement(canvas ? tableOf(canvas) : chart.table(view)));
    follow(view);
  };
  const { menus, follow } = menusOf(views, show);
  const button = (text, save) => {
    const click = () => save(canvas.firstChild, { title: chart.title, caption: caption.textContent }, `dculab-${chart.id}`);
    return html("button", { type: "button", class: "download", click }, text);
  };
  const buttons = canvas && [button("Download SVG", saveSvg), button("Download PNG", savePng)];
  const details = html("details", { open: canvas ? null : "" }, html("summary", {}, "As a table"), holder);
  const title = html("h2", { id: `${chart.id}-title` }, chart.title);
  const parts = [title, caption, says, html("div", { class: "controls" }, menus), canvas, html("div", { class: "after" }, buttons ?? [], details)];
  root.append(html("section", { id: chart.id, "aria-labelledby": title.id }, parts));
  show(current);
  if (canvas) new ResizeObserver(() => canvas.clientWidth !== width && draw()).observe(canvas);
};
