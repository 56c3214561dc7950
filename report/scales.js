// Scales and their ticks: domains with some air, logarithmic where values span much, round numbers that do not touch.
import * as d3 from "d3";
import { scale } from "@observablehq/plot";
import { textWidth } from "./dom.js";

// [low, high] of values with some air on a logarithmic scale.
export const spread = (values, factor = 1.3) => [d3.min(values) / factor, d3.max(values) * factor];

// A scale of Plot for values: logarithmic where they span much and are all positive.
export const scaleOf = (values) => {
  const [low, high] = d3.extent(values);
  if (low <= 0 && high > 20 * d3.median(values, Math.abs) && high > 1)
    return { type: "symlog", constant: 0.01, domain: [low, high * 2] };
  if (low > 0 && high / low > 8) return { type: "log", domain: spread(values) };
  const air = (high - low || Math.abs(high) || 1) * 0.08;
  return { type: "linear", domain: [low >= 0 ? Math.max(0, low - air) : low - air, high + air] };
};

// Powers of ten inside a domain, thinned to at most `most`.
const powers = ([low, high], most) => {
  const all = d3.range(Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9) + 1);
  const step = Math.ceil(all.length / most) || 1;
  return all.filter((power) => power % step === 0).map((power) => 10 ** power);
};

// 1, 2, 5 of each decade where the domain is narrow, else powers of ten.
const logTicks = ([low, high], most) => {
  if (high / low > 160) return powers([low, high], most);
  const all = d3
    .range(Math.floor(Math.log10(low)), Math.ceil(Math.log10(high)) + 1)
    .flatMap((power) => [1, 2, 5].map((each) => each * 10 ** power))
    .filter((value) => value >= low * 0.999 && value <= high * 1.001);
  if (all.length >= 2 && all.length <= most + 2) return all;
  return high / low < 3 ? d3.ticks(low, high, most) : powers([low, high], most);
};

// Zero and powers of ten on either side of it.
const symlogTicks = ([low, high], constant) => {
  const of = (limit) => (limit > constant ? powers([constant, limit], 4) : []);
  return [...d3.reverse(of(-low)).map((value) => -value), 0, ...of(high)];
};

const wanted = ({ type, domain, constant, ticks }, most) => {
  if (Array.isArray(ticks)) return ticks;
  if (type === "log") return logTicks(domain, ticks ?? most);
  if (type === "symlog") return symlogTicks(domain, constant);
  return type === "band" || type === "point" ? domain : d3.ticks(...domain, ticks ?? most);
};

// "10.0 ms" -> "10 ms": ticks are round.
const round = (text) =>
  String(text)
    .replace(/(\.\d*?)0+(?!\d)/, "$1")
    .replace(/\.(?!\d)/, "");

// The ticks of an axis `long` pixels long, about `most` of them: [{value, text}]; across the page every second one
// until no two touch.
export const ticksOf = (axis, long, most, across) => {
  const { apply } = scale({ x: { ...plain(axis), range: [0, long] } });
  const touch = (ticks) =>
    d3.pairs(ticks).some(
      ([a, b]) => Math.abs(apply(b.value) - apply(a.value)) < 8 + (textWidth(a.text) + textWidth(b.text)) / 2,
    );
  let ticks = wanted(axis, most).map((value) => ({ value, text: round(axis.text(value)) }));
  while (across && ticks.length > 2 && touch(ticks)) ticks = ticks.filter((_, index) => index % 2 === 0);
  return ticks;
};

// What of an axis is Plot's.
export const plain = ({ type, domain, constant, padding }) => ({
  type,
  domain,
  ...(constant && { constant }),
  ...(padding !== undefined && { padding }),
});
