// Numbers as people read them: three digits and a unit.
export const format = (() => {
  const digits = (value, count = 3) => {
    if (value === 0) return "0";
    const magnitude = Math.abs(value);
    if (magnitude >= 1e6 || magnitude < 1e-3) return value.toExponential(count - 1).replace("e+", "e");
    const decimals = Math.max(0, count - 1 - Math.floor(Math.log10(magnitude)));
    return Number(value.toFixed(decimals)).toLocaleString("en", {
      minimumFractionDigits: decimals,
      maximumFractionDigits: decimals,
    });
  };
  // The largest unit that leaves at least 1 before the decimal point.
  const scaled = (value, units) => {
    const magnitude = Math.abs(value);
    const [size, name] = units.find(([each]) => magnitude >= each * 0.9995) || units[units.length - 1];
    return `${value === 0 ? "0" : digits(value / size)} ${value === 0 ? units[0][1] : name}`;
  };
  const decimal = (unit) => [
    [1e15, `P${unit}`],
    [1e12, `T${unit}`],
    [1e9, `G${unit}`],
    [1e6, `M${unit}`],
    [1e3, `k${unit}`],
    [1, unit],
  ];
  const times = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
    [1e-9, "ns"],
  ];
  const sizes = [
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
    [1, "B"],
  ];
  return {
    number: (value, count) => digits(value, count),
    time: (seconds) => scaled(seconds, times),
    bytes: (bytes) => scaled(bytes, sizes),
    flops: (flops) => scaled(flops, decimal("FLOP")),
    flopRate: (rate) => scaled(rate, decimal("FLOP/s")),
    byteRate: (rate) => scaled(rate, decimal("B/s")),
    percent: (share, count = 2) => `${digits(100 * share, count)} %`,
    signedPercent: (share, count = 2) => `${share < 0 ? "−" : "+"}${digits(100 * Math.abs(share), count)} %`,
    // A value in the unit a command gave it in.
    inUnit: (value, unit) =>
      unit === "s" ? scaled(value, times) : unit === "%" ? `${digits(value)} %` : `${digits(value)} ${unit}`,
  };
})();

// A metric of a search: how it is called, and how its figures read.
export const metrics = (() => {
  const steps = {
    tokens_per_second: ["tokens/s", (value) => format.number(value)],
    step_time: ["time of a step", format.time],
    max_sequences: ["sequences that fit", (value) => format.number(value)],
    kv_bytes: ["KV cache", format.bytes],
  };
  const of = (name) =>
    steps[name] ?? [
      name.replaceAll("_", " "),
      /^(ttft|tpot|itl|latency)_|_time$/.test(name) ? format.time : (value) => format.number(value),
    ];
  return { of, ofSteps: Object.keys(steps) };
})();
