// A section of the page: its heading, what it says, and the drawings of each configuration.
import { html } from "../../../report/dom.js";
import { savePng, saveSvg } from "../../../report/export.js";
import { opEquation } from "./numbers.js";
import { opsOf } from "./sections.js";

const frameOf = () => {
  const place = html("div", { class: "canvas" }), caption = html("span", {});
  const button = (text, save) =>
    html("button", { type: "button", class: "download", click: () => save(place.firstChild, { title: caption.textContent }, "dculab") }, text);
  const buttons = html("span", {}, button("SVG", saveSvg), " ", button("PNG", savePng));
  return { element: html("figure", {}, html("figcaption", {}, caption, buttons), place), place, caption };
};

const draw = (frame, width) => {
  frame.width = width;
  if (!width) return;
  try {
    frame.place.replaceChildren(frame.draw(Math.max(280, Math.floor(width))));
  } catch (error) {
    frame.place.replaceChildren(html("p", { class: "problem" }, error.message));
  }
};

// The equation of an op that is chosen from a menu; the largest of the first decode at first.
const showEquations = (why, shown) => {
  const entries = shown.flatMap(({ answers, letter }, index) =>
    opsOf(answers).map(({ phase, op }) => ({ op, text: `${letter && `${letter}, `}${phase}: ${op.op}`, seconds: phase === "decode" && index === 0 ? op.seconds : -1 })));
  const kept = why.querySelector("select")?.value;
  const isOpen = why.querySelector("details")?.open;
  const chosen = entries.find(({ text }) => text === kept) ?? entries.reduce((most, each) => (each.seconds > most.seconds ? each : most));
  const equation = html("div", {}, opEquation(chosen.op));
  const select = html("select", { id: "equation-op", change: () => equation.replaceChildren(opEquation(entries.find(({ text }) => text === select.value).op)) },
    entries.map(({ text }) => html("option", { value: text }, text)));
  select.value = chosen.text;
  why.replaceChildren(html("details", { class: "equation", open: isOpen ? "" : null }, html("summary", {}, "The equation behind an op's time"),
    html("label", { for: "equation-op" }, "Op ", select), equation));
};

// What a section says and draws of each configuration that it has an answer for, and why not of the others:
// {shown, texts, columns, problems}.
const contentOf = (section, entries) => {
  const shown = [], texts = [], problems = [];
  for (const entry of entries)
    try {
      texts.push(section.says(entry.answers, entry.name));
      shown.push(entry);
    } catch (error) {
      problems.push(`${entry.name}: ${error.message}`);
    }
  const all = shown.map(({ answers }) => answers);
  const titled = ({ label }, drawings) => drawings.map((each) => ({ ...each, title: [label, each.title].filter(Boolean).join(", ") }));
  const columns = section.together
    ? shown.length ? [titled({ label: shown.map(({ label }) => label).join(" and ") }, section.drawings(shown))] : []
    : shown.map((entry) => titled(entry, section.drawings(entry.answers, all)));
  return { shown, texts, columns, problems };
};

// entries: [{answers, letter, label, name}] of the configurations, letter "" where there is one. Returns {element,
// show(entries)}.
export const panelOf = (section) => {
  const says = html("p", { class: "says" }), problem = html("p", { class: "problem", hidden: "" }), canvas = html("div", { class: "canvases" }),
    why = section.hasEquation ? html("div", { class: "why" }) : null;
  const element = html("section", { id: section.id, "aria-labelledby": `${section.id}-title` },
    html("h2", { id: `${section.id}-title` }, section.title), says, problem, canvas, why);
  let frames = [];
  const resized = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      const frame = frames.find(({ place }) => place === target);
      if (frame && frame.width !== target.clientWidth) draw(frame, target.clientWidth);
    }
  });
  // Frames are kept while their number is, so that the page below does not jump.
  const setFrames = (count) => {
    if (frames.length === count) return;
    for (const { place } of frames) resized.unobserve(place);
    frames = Array.from({ length: count }, frameOf);
    canvas.replaceChildren(...frames.map((each) => each.element));
    for (const { place } of frames) resized.observe(place);
  };
  const show = (entries) => {
    const { shown, texts, columns, problems } = contentOf(section, entries);
    says.textContent = [...texts, ...(shown.length ? [section.note] : [])].join(" ");
    problem.textContent = problems.join("\n");
    problem.hidden = !problems.length;
    canvas.dataset.columns = section.together ? 1 : Math.max(columns.length, columns[0]?.length ?? 1);
    const drawings = columns.flat();
    setFrames(drawings.length);
    frames.forEach((frame, index) => {
      frame.caption.textContent = drawings[index].title;
      frame.draw = drawings[index].draw;
    });
    // All widths first: one layout of the page instead of one for each drawing.
    const widths = frames.map(({ place }) => place.clientWidth);
    frames.forEach((frame, index) => draw(frame, widths[index]));
    if (why && shown.length) showEquations(why, shown);
  };
  return { element, show };
};
