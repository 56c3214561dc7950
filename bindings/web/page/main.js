// Puts the page together: settings on one side, what the simulator says of them on the other.
import { html } from "../../../report/dom.js";
import { switchThemes } from "../../../report/theme.js";
import { answersOf, nearestBlock } from "./answers.js";
import { fromLink, toLink, usual } from "./configuration.js";
import { limitsOf } from "./model_limits.js";
import { numbersTable } from "./numbers.js";
import { panelOf } from "./panel.js";
import { sections } from "./sections.js";
import { settingsOf } from "./settings.js";
import { startSimulator } from "./simulator.js";

const find = (id) => document.getElementById(id);
const letters = ["A", "B"];

let state = fromLink(location.hash);
let simulator, names;
let panels = []; // {element, show(entries), isSeen, drawn: the state that it shows}
let entries = []; // of the configurations that the simulator answers for
let answered; // the state that they are of

// What another machine, stack or model does not offer falls back to what it does.
const fitted = (side, changes) => {
  if (!(names.machines[side.machine] ?? []).includes(side.stack)) side.stack = "dculab";
  side.block_size = nearestBlock(names, side);
  if ("model" in changes) side.context = Math.min(side.context, limitsOf(simulator, putting(side)).context);
  return side;
};
const change = (index) => (changes) => {
  const side = fitted({ ...state.sides[index], ...changes }, changes);
  state = { ...state, sides: state.sides.map((each, at) => (at === index ? side : each)) };
  schedule();
};

// A side whose model the simulator has.
const putting = (side) => {
  answersOf(simulator, names, side);
  return side;
};

const entryOf = (side, index) => {
  const answers = answersOf(simulator, names, side), what = `${side.model} on ${side.machine}`;
  const letter = state.sides.length > 1 ? letters[index] : "";
  const entry = { answers, letter, label: letter ? `${letter}: ${what}` : what, name: letter ? `${letter}, ${what}` : what };
  try {
    answers.decode();
    answers.prefill();
    answers.footprint();
  } catch (error) {
    entry.problem = error.message;
  }
  return entry;
};

const cards = [];
const cardOf = (index) => (cards[index] ??= settingsOf(letters[index], names, change(index)));

const refused = ({ letter, problem }) => html("p", { class: "problem" }, letter ? `${letter}: ${problem}` : problem);

// Settings and figures; charts follow.
const update = () => {
  const all = state.sides.map(entryOf);
  entries = all.filter(({ problem }) => !problem);
  answered = state;
  const shown = state.sides.map((_, index) => cardOf(index)), place = find("configurations");
  // Replaced only when their number changes: a slider keeps the focus.
  if (place.children.length !== shown.length) place.replaceChildren(...shown.map(({ element }) => element));
  state.sides.forEach((side, index) => shown[index].show(side, limitsOf(simulator, side), all[index].problem));
  find("compare").textContent = state.sides.length > 1 ? "One configuration" : "Compare with another";
  history.replaceState(null, "", toLink(state));
  const open = Array.from(find("numbers").querySelectorAll("details"), (each) => each.open);
  find("numbers").replaceChildren(...all.filter(({ problem }) => problem).map(refused), ...(entries.length ? [numbersTable(entries)] : []));
  find("numbers").querySelectorAll("details").forEach((each, index) => (each.open = open[index] ?? false));
  find("charts").hidden = !entries.length;
};

// Figures follow at once, charts one a frame: those in sight that have waited longest first. A frame that has figures
// has a chart only if one waits already, as it does while a slider is dragged.
const waitingPanels = () => (entries.length ? panels.filter((panel) => panel.isSeen && panel.drawn !== answered) : []);
const nextFrame = () => {
  const isFirst = answered !== state && !waitingPanels().length;
  if (answered !== state) update();
  const waiting = waitingPanels();
  if (!isFirst && waiting.length) {
    const next = waiting.reduce((oldest, panel) => (panel.when < oldest.when ? panel : oldest));
    next.show(entries);
    next.drawn = answered;
    next.when = performance.now();
  }
  if (waiting.length > (isFirst ? 0 : 1)) schedule();
};
let isScheduled = false;
const schedule = () => {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    nextFrame();
  });
};

const start = async () => {
  const { ask, put, fileOf } = await startSimulator();
  const known = new Set();
  simulator = {
    ask,
    fileOf,
    putOnce: (path, text) => {
      if (!known.has(path)) put(path, text);
      known.add(path);
    },
  };
  names = ask({ ask: "names" });
  const chosen = sections.filter(({ id }) => !state.show.length || state.show.includes(id));
  panels = chosen.map((section) => ({ ...panelOf(section), isSeen: false, when: 0 }));
  find("charts").append(...panels.map(({ element }) => element));
  const seen = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes) panels.find(({ element }) => element === target).isSeen = isIntersecting;
    schedule();
  });
  for (const { element } of panels) seen.observe(element);
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
