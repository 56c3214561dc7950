// Scales and their ticks: domains with some air, logarithmic where values span much, round numbers that do not touch.
import * as d3 from "d3";
import { scale } from "@observablehq/plot";
import { textWidth } from "./dom.js";

// [low, high] of values with some air on a logarithmic scale.
export const spread = (values, factor = 1.3) => [d3.min(values) / factor, d3.max(values) * factor];

// A scale of Plot for values: logarithmic where they span much and are all positive.
export const scaleOf = (values) => {
  const [low, high] = d3.extent(values), large = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const air = Math.max((high - low) * 0.08, (0.1 * large - (high - low)) / 2); // what differs by little is not to look much
  const far = low <= 0 && high > 20 * d3.median(values, Math.abs) && high > 1;
  if (far) return { type: "symlog", constant: 0.01, domain: [low, high * 2] };
  if (low > 0 && high / low > 8) return { type: "log", domain: spread(values) };
  return { type: "linear", domain: [low >= 0 ? Math.max(0, low - air) : low - air, high + air] };
};

// Powers of ten, thinned to at most `most`; 1, 2, 5 of each decade where the domain is narrow.
const logTicks = ([low, high], most) => {
  const decades = d3.range(Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9) + 1);
  const inside = (values) => values.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  const fine = inside(decades.flatMap((power) => [1, 2, 5].map((each) => each * 10 ** power)));
  if (high / low < 160 && fine.length >= 2 && fine.length <= most + 2) return fine;
  if (high / low < 3) return d3.ticks(low, high, most);
  const powers = inside(decades.map((power) => 10 ** power)), step = Math.ceil(powers.length / most) || 1;
  return powers.filter((power) => Math.round(Math.log10(power)) % step === 0);
};
const ticksWithin = ({ type, domain, constant }, most) => {
  const side = (limit) => (limit > constant ? logTicks([constant, limit], 4) : []);
  if (type === "symlog") return [...side(-domain[0]).map((value) => -value), 0, ...side(domain[1])];
  return type === "log" ? logTicks(domain, most) : type === "linear" ? d3.ticks(...domain, most) : domain;
};

// What of an axis is Plot's.
export const plain = ({ type, domain, constant = 1, padding = 0.1 }) => ({ type, domain, constant, padding });

// "10.0 ms" -> "10 ms": ticks are round.
const round = (text) => String(text).replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");

// The ticks of an axis `long` pixels long, about `most` of them or those in `axis.ticks`: [{value, text}]; across the
// page every second one until no two touch.
export const ticksOf = (axis, long, most, across) => {
  const { apply } = scale({ x: { ...plain(axis), range: [0, long] } });
  const touch = ([a, b]) => Math.abs(apply(b.value) - apply(a.value)) < 8 + (textWidth(a.text) + textWidth(b.text)) / 2;
  let ticks = (axis.ticks ?? ticksWithin(axis, most)).map((value) => ({ value, text: round(axis.text(value)) }));
  while (across && ticks.length > 2 && d3.pairs(ticks).some(touch)) ticks = ticks.filter((_, index) => index % 2 === 0);
  return ticks;
};
