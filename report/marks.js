// What a pointer, a finger or the keyboard finds on a chart: each mark says its values. A chart is one tab stop; arrow
// keys go from mark to mark. The same values are its table.
import { union } from "d3";
import { html } from "./dom.js";

const said = new WeakMap(); // {title, lines: [[name, value]]} of each mark
const keys = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

const tooltip = () => {
  const box = document.getElementById("tooltip") ?? html("div", { id: "tooltip", role: "status", hidden: "" });
  if (!box.isConnected) document.body.append(box);
  return box;
};
const hide = () => tooltip().setAttribute("hidden", "");
const show = (mark) => {
  const box = tooltip(),
    { title, lines } = said.get(mark);
  box.replaceChildren(html("strong", {}, title), ...lines.map(([name, value]) => html("div", {}, `${name}: ${value}`)));
  box.hidden = false;
  const at = mark.getBoundingClientRect(),
    size = box.getBoundingClientRect();
  const centre = Math.min(Math.max(at.left, 0) + Math.min(at.width, innerWidth) / 2, innerWidth);
  const x = Math.min(centre - size.width / 2, document.documentElement.clientWidth - size.width - 4);
  const above = at.top - size.height - 8;
  box.style.left = `${Math.max(4, x)}px`;
  box.style.top = `${above > 4 ? above : at.bottom + 8}px`;
};

const marksOf = (svg) => Array.from(svg.querySelectorAll(".mark"));
const move = (svg, mark, by) => {
  const all = marksOf(svg);
  const next = all[(all.indexOf(mark) + by + all.length) % all.length];
  mark.setAttribute("tabindex", -1);
  next.setAttribute("tabindex", 0);
  next.focus();
};

// A render transform of Plot: each element of a mark gets `name` as its class and its own entry of `data` as its datum.
// With `describe`, datum -> {title, lines}, it speaks.
export const tagged = (data, name, describe) => (index, scales, values, dimensions, context, next) => {
  const group = next(index, scales, values, dimensions, context);
  for (const element of group.children) {
    element.__data__ = data[element.__data__];
    element.classList.add(name);
    if (!describe) continue;
    const { title, lines } = describe(element.__data__);
    const label = `${title}; ${lines.map(([key, value]) => `${key} ${value}`).join("; ")}`;
    said.set(element, { title, lines });
    element.classList.add("mark");
    for (const [key, value] of Object.entries({ tabindex: -1, role: "img", "aria-label": label }))
      element.setAttribute(key, value);
  }
  return group;
};

// Lets the marks of a drawing answer.
export const listen = (svg) => {
  svg.querySelector(".mark")?.setAttribute("tabindex", 0);
  const on = (name, act) =>
    svg.addEventListener(name, (event) => event.target.closest(".mark") && act(event.target.closest(".mark"), event));
  for (const name of ["pointerover", "focusin"]) on(name, show);
  for (const name of ["pointerout", "focusout"]) on(name, hide);
  on("keydown", (mark, event) => {
    if (event.key === "Escape") hide();
    if (!keys[event.key]) return;
    event.preventDefault();
    move(svg, mark, keys[event.key]);
  });
  return svg;
};

// What all marks of a drawing say, as {columns, rows}.
export const tableOf = (svg) => {
  const told = marksOf(svg).map((mark) => said.get(mark));
  const all = Array.from(new Map(told.map((each) => [JSON.stringify(each), each])).values()); // panels may repeat a mark
  const columns = Array.from(union(all.flatMap(({ lines }) => lines.map(([name]) => name))));
  const row = ({ title, lines }) => [title, ...columns.map((column) => new Map(lines).get(column) ?? "")];
  return { columns: ["", ...columns], rows: all.map(row) };
};
