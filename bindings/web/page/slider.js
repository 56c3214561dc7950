// A slider from stop to stop, and beside it its value: a number that takes any, where any is possible.
import { html } from "../../../report/dom.js";

const within = (value, [low, high]) => Math.min(Math.max(value, low), high);

// {element, show(value, stops, {most, why})}. `stops`: what the slider offers, in order; a value between them becomes a
// stop of its own. `most`: the largest number that may be typed; without it none may. `why`: text in place of what
// cannot be set. `unit`: [of one, of several].
export const slider = (id, name, unit, change) => {
  let values = [],
    extra,
    limits = [1, 1];
  const say = (value) => {
    const noun = unit[value === 1 ? 0 : 1], text = `${value.toLocaleString("en")} ${noun}`;
    output.textContent = number.hidden ? text : noun;
    range.setAttribute("aria-valuetext", text);
  };
  const move = () => {
    const value = values[Number(range.value)];
    number.value = value;
    say(value);
    change(value);
  };
  // While a person types, what is no value yet is left alone; what is none at the end is moved to the nearest.
  const type = (isDone) => {
    const typed = Math.round(number.valueAsNumber);
    if (typed >= limits[0] && typed <= limits[1]) change(typed);
    else if (isDone) change((number.value = within(typed || limits[0], limits)));
  };
  const range = html("input", { type: "range", id, min: 0, step: 1, input: move });
  const number = html("input", {
    type: "number", id: `${id}-value`, step: 1, "aria-label": `${name}, ${unit[1]}`, input: () => type(false), change: () => type(true),
  });
  const output = html("output", { for: id });
  const element = html("div", { class: "slider" }, html("label", { for: id }, name), range, number, output);
  const show = (value, stops, { most, why = "" } = {}) => {
    if (!stops.includes(value)) extra = value;
    limits = [Math.min(stops[0], value), most];
    const inside = extra >= stops[0] && extra <= stops.at(-1) ? [extra] : [];
    values = [...new Set([...stops, ...inside, value])].sort((a, b) => a - b);
    range.max = values.length - 1;
    range.value = values.indexOf(value);
    [number.min, number.max] = limits;
    if (number.valueAsNumber !== value && !(document.activeElement === number && number.value === "")) number.value = value;
    range.disabled = Boolean(why) || values.length < 2;
    number.hidden = Boolean(why) || !most;
    element.classList.toggle("fixed", Boolean(why));
    say(value);
    if (!why) return;
    output.textContent = why;
    range.setAttribute("aria-valuetext", why);
  };
  return { element, show };
};
