// Texts that lie on nothing: neither on each other nor on marks, lines and what else is kept free.
import { range } from "d3";
import { svg, textWidth } from "./dom.js";

const size = 11, lineHeight = 13;
const clearance = 3; // pixels between a line and what it does not belong to

// A box around a mark, for texts to stay out of.
export const boxAround = (x, y, radius) => ({ x0: x - radius, x1: x + radius, y0: y - radius, y1: y + radius });
const grown = ({ x0, x1, y0, y1 }, by) => ({ x0: x0 - by, x1: x1 + by, y0: y0 - by, y1: y1 + by });
const holds = ({ x0, x1, y0, y1 }, [x, y]) => x0 <= x && x <= x1 && y0 <= y && y <= y1;

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

// Whether two lines meet: the ends of each lie on both sides of the other.
const meets = ([a, b], [c, d]) => {
  const side = ([x0, y0], [x1, y1], [x, y]) => Math.sign((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0));
  return side(a, b, c) !== side(a, b, d) && side(c, d, a) !== side(c, d, b);
};

// The free room of a drawing with these dimensions of Plot. A text may have several lines, [text].
export const roomOf = ({ width, height, marginLeft: left, marginRight: right, marginTop: top, marginBottom: bottom }) => {
  const taken = [], texts = [], lines = [], leaders = [];
  const inside = ({ x0, x1, y0, y1 }) => x0 >= left && x1 <= width - right && y0 >= top && y1 <= height - bottom;
  const overlap = (a, b) => a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0;
  const isIn = ({ boxes }) => boxes.every(inside);
  const offTexts = ({ boxes }) => !boxes.some((a) => texts.some((b) => overlap(a, b)));
  const leads = ({ leader }) => !leader || !texts.some((box) => crosses(leader, box));
  // A text's line also keeps away from other marks, and a text from the lines of others.
  const isFree = (leader) => !taken.map((box) => grown(box, clearance)).some((box) => !holds(box, leader[0]) && crosses(leader, box));
  const isApart = ({ boxes, leader }) =>
    (!leader || isFree(leader)) && !boxes.some((box) => leaders.some((line) => crosses(line, grown(box, clearance))));
  const offMarks = ({ boxes }) => !boxes.some((a) => taken.some((b) => overlap(a, b)));
  const offLines = ({ boxes }) => !boxes.some((a) => lines.some((line) => crosses(line, a)));
  const isClear = ({ leader }) => !leader || !lines.some((line) => meets(leader, line));
  // What a text that must be there gives up last comes first.
  const wishes = [isIn, offTexts, offMarks, leads, offLines, isApart, isClear];
  const best = (places, must) => {
    for (let count = wishes.length; count > (must ? 0 : wishes.length - 1); --count) {
      const found = places.find((place) => wishes.slice(0, count).every((holds) => holds(place)));
      if (found) return found;
    }
    return must ? places[0] : undefined;
  };
  return {
    take: (...boxes) => taken.push(...boxes),
    // Lines, [[x, y], [x, y]].
    takeLines: (...each) => lines.push(...each),
    // A text at the first of its places, {boxes, attributes, leader}, that is free, or none; with `must` at the best.
    text: (text, places, must) => {
      const found = best(places, must);
      if (!found) return undefined;
      taken.push(...found.boxes);
      texts.push(...found.boxes);
      const { attributes, leader } = found, all = [text].flat();
      const top = attributes.y - ((all.length - 1) * lineHeight) / 2;
      const lineAt = (index) => (all.length > 1 ? { ...attributes, y: top + index * lineHeight } : attributes);
      const drawn = all.map((each, index) => svg("text", { class: "halo", dy: "0.35em", ...lineAt(index) }, each));
      if (!leader && drawn.length === 1) return drawn[0];
      if (!leader) return svg("g", {}, drawn);
      lines.push(leader);
      leaders.push(leader);
      const [[x1, y1], [x2, y2]] = leader;
      return svg("g", {}, svg("line", { class: "leader", x1, y1, x2, y2, stroke: "var(--soft)" }), drawn);
    },
  };
};

const sides = [[1, 0, "start"], [-1, 0, "end"], [0, -1, "middle"], [0, 1, "middle"]];
const oblique = [[-1, -1, "end"], [1, 1, "start"], [1, -1, "start"], [-1, 1, "end"]];
const between = [-1, 1].flatMap((down) => [
  [-1, 0.4 * down, "end"], [1, 0.4 * down, "start"], [-0.4, down, "end"], [0.4, down, "start"], [-0.2, down, "middle"], [0.2, down, "middle"],
  [-1, 0.7 * down, "end"], [1, 0.7 * down, "start"], [-0.7, down, "end"], [0.7, down, "start"], [-1, 0.2 * down, "end"], [1, 0.2 * down, "start"],
]);

// Names beside their marks, the important ones first: [{x, y, text, radius, must, away}]. `corners`: lines leave the marks to
// their sides, so their corners come first. One that must be there may stand further away, at the end of a line; those
// that have room beside their mark come before it. With `away` another one may, too, where nothing lies.
export const names = (room, wanted, { corners = false } = {}) => {
  const nameOf = ({ x, y, text, radius = 4, away: mayLead }, anywhere) => {
    const all = [text].flat(), long = Math.max(...all.map((each) => textWidth(each, size))), half = (all.length * lineHeight) / 2;
    const directions = corners ? [...oblique, ...sides] : [...sides, ...oblique];
    const place = (away) => ([right, down, anchor]) => {
      const gap = radius + 4 + away, [dx, dy] = [right * gap, down * (gap + half - 2.5)];
      const x0 = x + dx - { start: 0, end: long, middle: long / 2 }[anchor];
      const box = { x0, x1: x0 + long, y0: y + dy - half, y1: y + dy + half };
      // From the edge of the mark to the nearest side of the text.
      const end = [x + dx - right * 2, y + dy - down * half], from = radius / Math.hypot(end[0] - x, end[1] - y);
      const leader = away > 0 ? [[x + (end[0] - x) * from, y + (end[1] - y) * from], end] : undefined;
      return { boxes: [box], attributes: { x: x + dx, y: y + dy, "text-anchor": anchor }, leader };
    };
    const near = directions.map(place(0)), far = (away) => [...directions, ...between].map(place(away));
    return room.text(text, anywhere || mayLead ? [...near, ...range(10, 240, 10).flatMap(far)] : near, anywhere);
  };
  const needed = wanted.filter(({ must }) => must), first = needed.map((each) => nameOf(each, false));
  const away = needed.filter((_, index) => !first[index]).map((each) => nameOf(each, true));
  const others = wanted.filter(({ must }) => !must).map((each) => nameOf(each, false));
  return svg("g", { class: "labels", "aria-hidden": true }, first, away, others);
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
