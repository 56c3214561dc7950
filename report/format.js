// Numbers as people read them: three digits and a unit, in one line.
const space = "\u00a0"; // where no line breaks
// One format per number of decimals, made once: making one is slow.
const formats = Array.from({ length: 21 }, (_, decimals) =>
  new Intl.NumberFormat("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }));
const digits = (value, count = 3) => {
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (magnitude >= 1e6 || magnitude < 1e-3) return value.toExponential(count - 1).replace("e+", "e");
  const rounded = Number(magnitude.toPrecision(count)); // 0.9995 becomes 1.00
  const decimals = Math.max(0, count - 1 - Math.floor(Math.log10(rounded)));
  return formats[decimals].format(Number(value.toFixed(decimals)));
};

// The largest unit that leaves at least 1 before the decimal point.
const scaled = (value, units) => {
  const [size, name] = units.find(([each]) => Math.abs(value) >= each * 0.9995) ?? units.at(-1);
  return value === 0 ? `0${space}${units[0][1]}` : `${digits(value / size)}${space}${name}`;
};
const unitsOf = (names, from, step) => names.map((name, index) => [from / step ** index, name]);
const decimal = (unit) => unitsOf(["P", "T", "G", "M", "k", ""].map((prefix) => prefix + unit), 1e15, 1e3);
const times = unitsOf(["s", "ms", "µs", "ns"], 1, 1e3),
  sizes = unitsOf(["TiB", "GiB", "MiB", "KiB", "B"], 2 ** 40, 2 ** 10);

// Where rounding would reach a whole number that the value does not, "1.00" for 0.9995, as many digits as it takes.
const short = (value, count = 3) => {
  const text = digits(value, count);
  return count < 8 && /\.0+$/.test(text) && Number(text) > value ? short(value, count + 1) : text;
};

export const format = {
  number: (value, count) => digits(value, count),
  numberBelow: (value) => short(value),
  time: (seconds) => scaled(seconds, times),
  bytes: (bytes) => scaled(bytes, sizes),
  flops: (flops) => scaled(flops, decimal("FLOP")),
  flopRate: (rate) => scaled(rate, decimal("FLOP/s")),
  byteRate: (rate) => scaled(rate, decimal("B/s")),
  percent: (share, count = 2) => `${digits(100 * share, count)}${space}%`,
  signedPercent: (share, count = 2) => `${share < 0 ? "−" : "+"}${digits(100 * Math.abs(share), count)}${space}%`,
  // A value in the unit a command gave it in.
  inUnit: (value, unit) => (unit === "s" ? scaled(value, times) : `${digits(value)}${space}${unit}`),
};

// How a metric of a search is called, and how its figures read: [title, text(value)].
const ofSteps = {
  tokens_per_second: ["tokens/s", (value) => digits(value)],
  step_time: ["time of a step", format.time],
  max_sequences: ["sequences that fit", (value) => digits(value)],
  kv_bytes: ["KV cache", format.bytes],
};
const isTime = (name) => /^(ttft|tpot|itl|latency)_|_time$/.test(name);
export const metrics = {
  ofSteps: Object.keys(ofSteps),
  of: (name) => ofSteps[name] ?? [name.replaceAll("_", " "), isTime(name) ? format.time : (value) => digits(value)],
};
