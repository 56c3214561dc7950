// What each user sees against what each device serves, the axes of InferenceX: up and to the right is better.
//
// interactivity({points}, width) -> SVG
//   points    [{x: tokens a second of a user, y: tokens a second of a GPU, text, series, lines}], as scatter.js has
//             them; pointsOf(simulations) makes them; joined: as there
import * as d3 from "d3";
import { facts, format } from "../kit.js";
import { areLoads } from "../serving.js";
import { frontOf, scatter } from "./scatter.js";

const number = (value) => format.number(value);
const dollars = (value) => `${number(value)} USD`;
const joules = (value) => format.inUnit(value, "J");

export const pointsOf = (simulations) =>
  facts.labelled(simulations)
    .filter((each) => each.tokens_per_second_per_user > 0 && each.tokens_per_second_per_gpu > 0)
    .map(({ text, short, parts, machine: series, tokens_per_second_per_user: x, tokens_per_second_per_gpu: y, ...each }) => {
      const lines = [["tokens/s per user", number(x)], ["tokens/s per GPU", number(y)]];
      if (each.usd_per_million_tokens) lines.push(["a million output tokens", dollars(each.usd_per_million_tokens)]);
      if (each.joules_per_output_token) lines.push(["an output token", joules(each.joules_per_output_token)]);
      return { x, y, text, short, parts, series, lines };
    });

const front = ({ points }) => frontOf(points, 1, 1);

export const interactivity = (view, width) => {
  const axes = { xLabel: "tokens/s per user", yLabel: "tokens/s per GPU", xText: number, yText: number, xBest: 1 };
  return scatter({ ...view, title: "Tokens per user against tokens per GPU", front: front(view), ...axes }, width);
};

export const interactivityChart = {
  id: "interactivity", title: "Tokens per user against tokens per GPU", draw: interactivity,
  views: ({ result }) => {
    const all = facts.simulations(result);
    return [{ choices: {}, points: pointsOf(all), joined: areLoads(all) }].filter(({ points }) => points.length > 1);
  },
  says: (view) => {
    const quickest = d3.greatest(view.points, ({ x }) => x), most = d3.greatest(view.points, ({ y }) => y);
    const solid = front(view).length, worth = `Only the ${solid === 1 ? "solid point is" : `${solid} solid points are`} worth choosing.`;
    const both =
      `A user gets most at ${quickest.text}: ${number(quickest.x)} tokens a second. At ${most.text} each device serves ` +
      `${number(most.y / quickest.y)} times as many tokens.`;
    const sentences = [
      "The x axis has the tokens a second that a reader sees (1 / median TPOT).",
      "The y axis has the tokens of prompts and answers that each device serves in a second.",
      view.joined ? "Each point is a load." : worth, most === quickest ? `${most.text} is best in both.` : both,
    ];
    return sentences.join(" ") + facts.keyOf(view.points);
  },
};
