// Texts that lie on nothing: neither on each other nor on what is kept free.
import { svg, textWidth } from "./dom.js";

// A box around a mark, for texts to stay out of.
export const boxAround = (x, y, radius) => ({ x0: x - radius, x1: x + radius, y0: y - radius, y1: y + radius });

// The free room of a drawing with these dimensions of Plot.
export const roomOf = ({ width, height, marginLeft, marginRight, marginTop, marginBottom }) => {
  const taken = [];
  const inside = ({ x0, x1, y0, y1 }) =>
    x0 >= marginLeft && x1 <= width - marginRight && y0 >= marginTop && y1 <= height - marginBottom;
  const meets = (box) =>
    taken.some((other) => box.x0 < other.x1 && box.x1 > other.x0 && box.y0 < other.y1 && box.y1 > other.y0);
  return {
    take: (...boxes) => taken.push(...boxes),
    // The first of places, each with its `boxes`, that is free; it is taken then. With `must` any that is inside.
    first: (places, must) => {
      const whole = places.filter(({ boxes }) => boxes.every(inside));
      const found = whole.find(({ boxes }) => !boxes.some(meets)) ?? (must ? whole[0] ?? places[0] : undefined);
      if (found) taken.push(...found.boxes);
      return found;
    },
  };
};

const haloed = (attributes, text, size) =>
  svg("text", { class: "halo", dy: "0.35em", style: `font-size: ${size}px`, ...attributes }, text);

// Names beside their marks, the important ones first: [{x, y, text, radius, must}]. `beside`: "corners" where lines
// leave a mark to its sides.
export const names = (room, wanted, { size = 11, beside = "right" } = {}) => {
  const group = svg("g", { class: "labels", "aria-hidden": true });
  for (const { x, y, text, radius = 4, must } of wanted) {
    const gap = radius + 4,
      long = textWidth(text, size),
      tall = size + 2;
    const straight = [[gap, 0, "start"], [-gap, 0, "end"], [0, -gap - 4, "middle"], [0, gap + 5, "middle"]];
    const corners = [[-gap, -gap, "end"], [gap, gap + 4, "start"], [gap, -gap - 4, "start"], [-gap, gap + 6, "end"]];
    const places = (beside === "corners" ? [...corners, ...straight] : [...straight, ...corners]).map(
      ([dx, dy, anchor]) => {
        const x0 = x + dx - (anchor === "start" ? 0 : anchor === "end" ? long : long / 2);
        const box = { x0, x1: x0 + long, y0: y + dy - tall / 2, y1: y + dy + tall / 2 };
        return { boxes: [box], attributes: { x: x + dx, y: y + dy, "text-anchor": anchor } };
      },
    );
    const found = room.first(places, must);
    if (found) group.append(haloed(found.attributes, text, size));
  }
  return group;
};

// A name along a slanted line from `from` to `to`, above it or below: the first place that is free.
export const nameAlong = (room, from, to, text, { below = false, size = 11 } = {}) => {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]],
    whole = Math.hypot(dx, dy),
    long = textWidth(text, size);
  const [ux, uy] = [dx / whole, dy / whole],
    off = below ? 10 : -10;
  const places = [8, 50, 100, 160, 230]
    .filter((start) => start + long < whole)
    .map((start) => {
      const [x, y] = [from[0] + ux * start - uy * off, from[1] + uy * start + ux * off];
      const boxes = Array.from({ length: Math.ceil(long / 8) + 1 }, (_, step) =>
        boxAround(x + ux * Math.min(long, step * 8), y + uy * Math.min(long, step * 8), 6),
      );
      return { boxes, transform: `translate(${x},${y}) rotate(${(Math.atan2(dy, dx) * 180) / Math.PI})` };
    });
  const found = room.first(places);
  return found ? haloed({ transform: found.transform, "text-anchor": "start" }, text, size) : null;
};
