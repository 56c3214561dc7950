// Puts the page together: settings on one side, what the simulator says of them on the other.
import { html } from "../../../report/dom.js";
import { download } from "../../../report/svg_export.js";
import { switchThemes } from "../../../report/theme.js";
import { answersOf } from "./answers.js";
import { fromLink, toLink, usual } from "./configuration.js";
import { numbersTable, opEquation } from "./numbers.js";
import { opsOf, sections } from "./sections.js";
import { settingsOf } from "./settings.js";
import { startSimulator } from "./simulator.js";

const find = (id) => document.getElementById(id);
const letters = ["A", "B"];

let state = fromLink(location.hash);
let simulator, names, panels;

const labelOf = (side, index) =>
  state.sides.length > 1 ? `${letters[index]}: ${side.model} on ${side.machine}` : `${side.model} on ${side.machine}`;

// KV heads that the model may have: {own, choices}, null of latents or of a model that is refused.
const headsOf = (side) => {
  try {
    const document = answersOf(simulator, names, { ...side, kv_heads: 0 }).footprint();
    const choices = document.rows.filter((row) => row.attention === "gqa").map((row) => row.num_key_value_heads);
    const isLatent = document.rows.some((row) => row.attention !== "gqa" && row.kv_bytes === document.kv_bytes);
    return isLatent ? null : { own: document.num_key_value_heads, choices: choices.reverse() };
  } catch {
    return null;
  }
};

const change = (index) => (changes) => {
  const side = { ...state.sides[index], ...changes };
  // What another machine or stack does not offer falls back to what it does.
  const stacks = names.machines[side.machine] ?? [];
  if (!stacks.includes(side.stack)) side.stack = "dculab";
  const offered = names.stacks[side.stack]?.block_sizes ?? [];
  if (offered.length && !offered.includes(side.block_size)) side.block_size = offered[0];
  state = { ...state, sides: state.sides.map((each, at) => (at === index ? side : each)) };
  schedule();
};

let waiting = false;
const schedule = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    update();
  });
};

// Of each section: {section, element, says, canvas, draw()}, drawn when it is seen.
const sectionOf = (section) => {
  const says = html("p", { class: "says" }),
    canvas = html("div", { class: "canvases" }),
    why = section.hasEquation ? html("div", { class: "why" }) : null;
  const element = html("section", { id: section.id, "aria-labelledby": `${section.id}-title` },
    html("h2", { id: `${section.id}-title` }, section.title), says, canvas, why);
  return { section, element, says, canvas, why, isSeen: false, isDrawn: false };
};

const drawn = (drawing, label) => {
  const place = html("div", { class: "canvas" });
  const caption = [label, drawing.title].filter(Boolean).join(", ");
  const button = html("button", { type: "button", class: "download", click: () => download(place.firstChild, caption, "dculab") }, "SVG");
  return { figure: html("figure", {}, html("figcaption", {}, html("span", {}, caption), button), place), place, drawing };
};

const draw = (panel, all) => {
  const labels = all.map(({ side }, index) => labelOf(side, index));
  const { section, canvas } = panel;
  panel.says.textContent = section.says(all);
  const columns = section.together
    ? [section.drawings(all, labels).map((each) => drawn(each, labels.join(" and ")))]
    : all.map((answers, index) => section.drawings(answers, all).map((each) => drawn(each, labels[index])));
  canvas.dataset.columns = section.together ? 1 : Math.max(columns.length, columns[0]?.length ?? 1);
  canvas.replaceChildren(...columns.flat().map((each) => each.figure));
  for (const { place, drawing } of columns.flat())
    place.replaceChildren(drawing.draw(Math.max(280, Math.floor(place.clientWidth))));
  if (panel.why) showEquations(panel.why, all, labels);
  panel.isDrawn = true;
};

// The equation of an op that is chosen from a menu; the largest of the first decode at first.
const showEquations = (why, all, labels) => {
  const entries = all.flatMap((answers, index) =>
    opsOf(answers).map(({ phase, op }) => ({ op, text: `${all.length > 1 ? `${labels[index][0]}, ` : ""}${phase}: ${op.op}`, seconds: phase === "decode" && index === 0 ? op.seconds : -1 })));
  const kept = why.querySelector("select")?.value;
  const isOpen = why.querySelector("details")?.open;
  const chosen = entries.find(({ text }) => text === kept) ?? entries.reduce((most, each) => (each.seconds > most.seconds ? each : most));
  const shown = html("div", {}, opEquation(chosen.op));
  const select = html("select", { id: "equation-op", change: () => shown.replaceChildren(opEquation(entries.find(({ text }) => text === select.value).op)) },
    entries.map(({ text }) => html("option", { value: text }, text)));
  select.value = chosen.text;
  why.replaceChildren(html("details", { class: "equation", open: isOpen ? "" : null }, html("summary", {}, "The equation behind an op's time"),
    html("label", { for: "equation-op" }, "Op ", select), shown));
};

const problemOf = (answers) => {
  try {
    answers.decode();
    answers.prefill();
    answers.footprint();
    return "";
  } catch (error) {
    return error.message;
  }
};

let last = [];
const update = () => {
  const all = state.sides.map((side) => answersOf(simulator, names, side));
  const problems = all.map(problemOf);
  const shown = state.sides.map((_, index) => cardOf(index));
  // Replaced only when their number changes: a slider keeps the focus.
  if (find("configurations").children.length !== shown.length) find("configurations").replaceChildren(...shown.map(({ element }) => element));
  state.sides.forEach((side, index) => shown[index].show(side, headsOf(side), problems[index]));
  find("compare").textContent = state.sides.length > 1 ? "One configuration" : "Compare with another";
  history.replaceState(null, "", toLink(state));
  last = problems.some(Boolean) ? [] : all;
  document.body.classList.toggle("is-refused", !last.length);
  if (!last.length) return;
  const open = Array.from(find("numbers").querySelectorAll("details"), (each) => each.open);
  find("numbers").replaceChildren(numbersTable(last, last.map(({ side }, index) => labelOf(side, index))));
  find("numbers").querySelectorAll("details").forEach((each, index) => (each.open = open[index] ?? false));
  for (const panel of panels) panel.isDrawn = false;
  drawSeen();
};

const drawSeen = () => {
  if (!last.length) return;
  for (const panel of panels)
    if (panel.isSeen && !panel.isDrawn)
      try {
        draw(panel, last);
      } catch (error) {
        panel.says.textContent = error.message;
        panel.canvas.replaceChildren();
        panel.isDrawn = true;
      }
};

const cards = [];
const cardOf = (index) => (cards[index] ??= settingsOf(letters[index], names, change(index)));

const start = async () => {
  const { ask, put } = await startSimulator();
  const known = new Set();
  simulator = {
    ask,
    putOnce: (path, text) => {
      if (!known.has(path)) put(path, text);
      known.add(path);
    },
  };
  names = ask({ ask: "names" });
  panels = sections.filter(({ id }) => !state.show.length || state.show.includes(id)).map(sectionOf);
  find("charts").append(...panels.map(({ element }) => element));
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) panels.find(({ element }) => element === target).isSeen = isIntersecting;
    drawSeen();
  });
  for (const { element } of panels) seen.observe(element);
  let width = document.documentElement.clientWidth;
  new ResizeObserver(() => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    for (const panel of panels) panel.isDrawn = false;
    drawSeen();
  }).observe(document.documentElement);
  document.body.classList.remove("is-starting");
  update();
};

switchThemes(find("theme"));
find("compare").addEventListener("click", () => {
  state = { ...state, sides: state.sides.length > 1 ? state.sides.slice(0, 1) : [state.sides[0], { ...state.sides[0] }] };
  schedule();
});
find("link").addEventListener("click", async () => {
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  find("link").textContent = "Copied: the address restores this";
  setTimeout(() => (find("link").textContent = "Copy link"), 2000);
});
find("reset").addEventListener("click", () => {
  state = { ...state, sides: [{ ...usual }] };
  schedule();
});
addEventListener("hashchange", () => {
  state = fromLink(location.hash);
  schedule();
});
start().catch((error) => {
  document.body.classList.remove("is-starting");
  find("numbers").textContent = `The simulator does not start here: ${error.message}. It needs a browser of 2023 or newer.`;
});
