// Texts that lie on nothing: neither on each other nor on what is kept free.
import { range } from "d3";
import { svg, textWidth } from "./dom.js";

const size = 11;

// A box around a mark, for texts to stay out of.
export const boxAround = (x, y, radius) => ({ x0: x - radius, x1: x + radius, y0: y - radius, y1: y + radius });

// The free room of a drawing with these dimensions of Plot.
export const roomOf = ({ width, height, marginLeft: left, marginRight: right, marginTop: top, marginBottom: bottom }) => {
  const taken = [];
  const inside = ({ x0, x1, y0, y1 }) => x0 >= left && x1 <= width - right && y0 >= top && y1 <= height - bottom;
  const meets = (a) => taken.some((b) => a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0);
  return {
    take: (...boxes) => taken.push(...boxes),
    // A text at the first of its places, {boxes, attributes}, that is free, or none; with `must` at any that is inside.
    text: (text, places, must) => {
      const whole = places.filter(({ boxes }) => boxes.every(inside));
      const found = whole.find(({ boxes }) => !boxes.some(meets)) ?? (must ? (whole[0] ?? places[0]) : undefined);
      taken.push(...(found?.boxes ?? []));
      return found && svg("text", { class: "halo", dy: "0.35em", ...found.attributes }, text);
    },
  };
};

// Names beside their marks, the important ones first: [{x, y, text, radius, must}]. `corners`: lines leave the marks to
// their sides, so their corners come first.
export const names = (room, wanted, { corners = false } = {}) => {
  const nameOf = ({ x, y, text, radius = 4, must }) => {
    const gap = radius + 4, long = textWidth(text, size);
    const sides = [[gap, 0, "start"], [-gap, 0, "end"], [0, -gap - 4, "middle"], [0, gap + 5, "middle"]];
    const oblique = [[-gap, -gap, "end"], [gap, gap + 4, "start"], [gap, -gap - 4, "start"], [-gap, gap + 6, "end"]];
    const places = (corners ? [...oblique, ...sides] : [...sides, ...oblique]).map(([dx, dy, anchor]) => {
      const x0 = x + dx - { start: 0, end: long, middle: long / 2 }[anchor];
      const box = { x0, x1: x0 + long, y0: y + dy - size / 2 - 1, y1: y + dy + size / 2 + 1 };
      return { boxes: [box], attributes: { x: x + dx, y: y + dy, "text-anchor": anchor } };
    });
    return room.text(text, places, must);
  };
  return svg("g", { class: "labels", "aria-hidden": true }, wanted.map(nameOf));
};

// A name along a slanted line from one point to another, above it or below, or on its other side.
export const nameAlong = (room, from, to, text, below) => {
  const long = textWidth(text, size), [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const whole = Math.hypot(dx, dy), [ux, uy] = [dx / whole, dy / whole], turn = (Math.atan2(uy, ux) * 180) / Math.PI;
  const place = (off) => (start) => {
    const at = (along) => [from[0] + ux * (start + along) - uy * off, from[1] + uy * (start + along) + ux * off];
    const boxes = Array.from({ length: Math.ceil(long / 8) }, (_, part) => boxAround(...at(8 * part + 4), 6));
    return { boxes, attributes: { transform: `translate(${at(0)}) rotate(${turn})`, "text-anchor": "start" } };
  };
  const starts = range(8, Math.max(9, whole - long), 10), off = below ? 10 : -10;
  return room.text(text, [...starts.map(place(off)), ...starts.map(place(-off))], true);
};
