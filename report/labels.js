// Texts that lie on nothing: neither on each other nor on marks, lines and what else is kept free.
import { range } from "d3";
import { svg, textWidth } from "./dom.js";

const size = 11;

// A box around a mark, for texts to stay out of.
export const boxAround = (x, y, radius) => ({ x0: x - radius, x1: x + radius, y0: y - radius, y1: y + radius });

// How far a symbol reaches from its middle, in radii of a circle of its area.
const reach = { circle: 1, square: 0.9, triangle: 1.56, diamond: 1.65, star: 1.68 };
export const boxAroundSymbol = (x, y, radius, symbol) => boxAround(x, y, radius * (reach[symbol] ?? 1.7));

// Whether a line from one point to another goes through a box: what the box leaves of it in x and in y overlaps.
const crosses = ([[x0, y0], [x1, y1]], box) => {
  let [near, far] = [0, 1];
  for (const [at, by, low, high] of [[x0, x1 - x0, box.x0, box.x1], [y0, y1 - y0, box.y0, box.y1]]) {
    if (by === 0 && (at < low || at > high)) return false;
    if (by === 0) continue;
    const [a, b] = [(low - at) / by, (high - at) / by];
    near = Math.max(near, Math.min(a, b));
    far = Math.min(far, Math.max(a, b));
  }
  return near <= far;
};

// The free room of a drawing with these dimensions of Plot.
export const roomOf = ({ width, height, marginLeft: left, marginRight: right, marginTop: top, marginBottom: bottom }) => {
  const taken = [], lines = [];
  const inside = ({ x0, x1, y0, y1 }) => x0 >= left && x1 <= width - right && y0 >= top && y1 <= height - bottom;
  const meets = (a) =>
    taken.some((b) => a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0) || lines.some((line) => crosses(line, a));
  return {
    take: (...boxes) => taken.push(...boxes),
    // Lines, [[x, y], [x, y]].
    takeLines: (...each) => lines.push(...each),
    // A text at the first of its places, {boxes, attributes, leader}, that is free, or none; with `must` at any inside.
    text: (text, places, must) => {
      const isFree = ({ boxes }) => boxes.every(inside) && !boxes.some(meets);
      const found = places.find(isFree) ?? (must ? (places.find(({ boxes }) => boxes.every(inside)) ?? places[0]) : undefined);
      if (!found) return undefined;
      taken.push(...found.boxes);
      const drawn = svg("text", { class: "halo", dy: "0.35em", ...found.attributes }, text);
      return found.leader ? svg("g", {}, svg("line", { ...found.leader, stroke: "var(--soft)" }), drawn) : drawn;
    },
  };
};

const sides = [[1, 0, "start"], [-1, 0, "end"], [0, -1, "middle"], [0, 1, "middle"]];
const oblique = [[-1, -1, "end"], [1, 1, "start"], [1, -1, "start"], [-1, 1, "end"]];

// Names beside their marks, the important ones first: [{x, y, text, radius, must}]. `corners`: lines leave the marks to
// their sides, so their corners come first. One that must be there may stand further away, at the end of a line.
export const names = (room, wanted, { corners = false } = {}) => {
  const nameOf = ({ x, y, text, radius = 4, must }) => {
    const long = textWidth(text, size), directions = corners ? [...oblique, ...sides] : [...sides, ...oblique];
    const place = (away) => ([right, down, anchor]) => {
      const gap = radius + 4 + away, [dx, dy] = [right * gap, down * (gap + 4)];
      const x0 = x + dx - { start: 0, end: long, middle: long / 2 }[anchor];
      const box = { x0, x1: x0 + long, y0: y + dy - size / 2 - 1, y1: y + dy + size / 2 + 1 };
      const leader = away > 0 && { x1: x, y1: y, x2: x + dx, y2: y + dy - down * 5 };
      return { boxes: [box], attributes: { x: x + dx, y: y + dy, "text-anchor": anchor }, leader };
    };
    return room.text(text, (must ? range(0, 150, 10) : [0]).flatMap((away) => directions.map(place(away))), must);
  };
  return svg("g", { class: "labels", "aria-hidden": true }, wanted.map(nameOf));
};

// A name along a slanted line from one point to another, above it or below, or on its other side: the first of `texts`
// that has room.
export const nameAlong = (room, from, to, texts, below) => {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]], whole = Math.hypot(dx, dy);
  const [ux, uy] = [dx / whole, dy / whole], turn = (Math.atan2(uy, ux) * 180) / Math.PI;
  const place = (long, off) => (start) => {
    const at = (along) => [from[0] + ux * (start + along) - uy * off, from[1] + uy * (start + along) + ux * off];
    const boxes = Array.from({ length: Math.ceil(long / 8) }, (_, part) => boxAround(...at(8 * part + 4), 6));
    return { boxes, attributes: { transform: `translate(${at(0)}) rotate(${turn})`, "text-anchor": "start" } };
  };
  const off = below ? 10 : -10;
  for (const text of texts) {
    const long = textWidth(text, size), starts = range(8, Math.max(9, whole - long), 10);
    const found = room.text(text, [...starts.map(place(long, off)), ...starts.map(place(long, -off))]);
    if (found) return found;
  }
  return undefined;
};
