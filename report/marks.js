// What a pointer, a finger or the keyboard finds on a chart: each mark says its values. A chart is one tab stop; arrow
// keys go from mark to mark.
import { html } from "./dom.js";

const said = new WeakMap();
const keys = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

const tooltip = () => {
  const box = document.getElementById("tooltip") ?? html("div", { id: "tooltip", role: "status", hidden: "" });
  if (!box.isConnected) document.body.append(box);
  return box;
};

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
const hide = () => {
  tooltip().hidden = true;
};

const move = (svg, mark, by) => {
  const all = Array.from(svg.querySelectorAll(".mark"));
  const next = all[(all.indexOf(mark) + by + all.length) % all.length];
  mark.setAttribute("tabindex", -1);
  next.setAttribute("tabindex", 0);
  next.focus();
};

// A render transform of Plot: each element of a mark gets `name` as its class and its own entry of `data` as its datum.
// With `describe`, datum -> {title, lines: [[name, value]]}, it speaks.
export const tagged = (data, name, describe) => (index, scales, values, dimensions, context, next) => {
  const group = next(index, scales, values, dimensions, context);
  for (const element of group.children) {
    const datum = data[element.__data__];
    element.__data__ = datum;
    element.classList.add(name);
    if (!describe) continue;
    const { title, lines } = describe(datum);
    said.set(element, { title, lines });
    element.classList.add("mark");
    element.setAttribute("tabindex", -1);
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", `${title}; ${lines.map(([key, value]) => `${key} ${value}`).join("; ")}`);
  }
  return group;
};

// Lets the marks of a drawing answer.
export const listen = (svg) => {
  svg.querySelector(".mark")?.setAttribute("tabindex", 0);
  const on = (events, act) => {
    for (const event of events)
      svg.addEventListener(event, (each) => {
        const mark = each.target.closest(".mark");
        if (mark) act(mark, each);
      });
  };
  on(["pointerover", "focusin"], show);
  on(["pointerout", "focusout"], hide);
  on(["keydown"], (mark, event) => {
    if (event.key === "Escape") hide();
    if (!keys[event.key]) return;
    event.preventDefault();
    move(svg, mark, keys[event.key]);
  });
  return svg;
};
