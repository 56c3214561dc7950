// The frame of a chart: an SVG of the container's width, margins, axes with labels, a legend that wraps.
const axes = (() => {
  const textWidth = (() => {
    const context = document.createElement("canvas").getContext("2d");
    return (text, size = 12) => {
      context.font = `${size}px system-ui, "DejaVu Sans", sans-serif`;
      return context.measureText(text).width;
    };
  })();

  // The path of a symbol of so many square pixels.
  const symbol = (type, size) => d3.symbol().type(type).size(size)();

  // entries: [{text, color, shape}], shape a d3 symbol type, "line", "dashed", or none for a box. Returns the height
  // it takes.
  const legend = (svg, entries, left, width) => {
    const group = svg.append("g").attr("class", "legend");
    let x = left,
      y = 10;
    for (const { text, color, shape } of entries) {
      const needed = 20 + textWidth(text) + 14;
      if (x > left && x + needed > width) {
        x = left;
        y += 18;
      }
      const item = group.append("g").attr("transform", `translate(${x},${y})`);
      if (shape === "line" || shape === "dashed")
        item
          .append("path")
          .attr("d", "M0,0H15")
          .style("stroke", color)
          .attr("stroke-width", 2)
          .attr("stroke-dasharray", shape === "dashed" ? "4 3" : null);
      else if (shape)
        item
          .append("path")
          .attr("d", axes.symbol(shape, 60))
          .attr("transform", "translate(7,0)")
          .style("fill", color);
      else item.append("rect").attr("width", 12).attr("height", 12).attr("y", -6).attr("x", 1).style("fill", color);
      item.append("text").attr("x", 19).attr("dy", "0.35em").text(text);
      x += needed;
    }
    return entries.length ? y + 12 : 0;
  };

  // {svg, plot, width, height}: the plot's own size, inside the margins.
  const frame = (container, { title, height, margin, entries = [] }) => {
    const total = Math.max(280, Math.floor(container.clientWidth));
    const svg = d3.select(container).html("").append("svg").attr("role", "group").attr("aria-label", title);
    svg.append("title").text(title);
    const top = margin.top + legend(svg, entries, 4, total);
    svg
      .attr("width", total)
      .attr("height", height + top + margin.bottom)
      .attr("viewBox", `0 0 ${total} ${height + top + margin.bottom}`);
    const plot = svg.append("g").attr("transform", `translate(${margin.left},${top})`);
    return { svg, plot, width: total - margin.left - margin.right, height, narrow: total < 600, top, margin, total };
  };

  // Powers of ten inside a domain, thinned to at most `most`.
  const powers = ([low, high], most) => {
    const all = d3.range(Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9) + 1);
    const step = Math.ceil(all.length / most) || 1;
    return all.filter((power) => power % step === 0).map((power) => 10 ** power);
  };

  // 1, 2, 5 of each decade where the domain is narrow, else powers of ten.
  const logTicks = (domain, most) => {
    const decades = Math.log10(domain[1] / domain[0]);
    if (decades > 2.2) return powers(domain, most);
    const from = Math.floor(Math.log10(domain[0])),
      to = Math.ceil(Math.log10(domain[1]));
    const all = d3
      .range(from, to + 1)
      .flatMap((power) => [1, 2, 5].map((each) => each * 10 ** power))
      .filter((value) => value >= domain[0] * 0.999 && value <= domain[1] * 1.001);
    return all.length >= 2 && all.length <= most + 2
      ? all
      : domain[1] / domain[0] < 3
        ? d3.ticks(...domain, most)
        : powers(domain, most);
  };

  // Zero and powers of ten on either side of it.
  const symlogTicks = ([low, high], constant) => {
    const of = (limit) => (limit > constant ? powers([constant, limit], 4) : []);
    return [
      ...of(-low)
        .map((value) => -value)
        .reverse(),
      0,
      ...of(high),
    ];
  };

  const ticksOf = (scale, most) =>
    scale.base
      ? logTicks(scale.domain(), most)
      : scale.constant
        ? symlogTicks(scale.domain(), scale.constant())
        : scale.ticks
          ? scale.ticks(most)
          : scale.domain();

  // "10.0 ms" -> "10 ms": ticks are round.
  const round = (text) => (value) =>
    String(text(value))
      .replace(/(\.\d*?)0+(?!\d)/, "$1")
      .replace(/\.(?!\d)/, "");

  // Every second tick, until no two labels touch.
  const thinned = (values, scale, text) => {
    const touch = values.some(
      (value, index) =>
        index > 0 &&
        Math.abs(scale(value) - scale(values[index - 1])) <
          8 + (textWidth(text(value)) + textWidth(text(values[index - 1]))) / 2,
    );
    return touch && values.length > 2
      ? thinned(
          values.filter((_, index) => index % 2 === 0),
          scale,
          text,
        )
      : values;
  };

  // `ticks`: how many there may be, or their values.
  const bottom = (area, scale, label, text, ticks) => {
    const values = Array.isArray(ticks) ? ticks : ticksOf(scale, ticks || (area.narrow ? 4 : 8));
    const axis = d3
      .axisBottom(scale)
      .tickValues(thinned(values, scale, round(text)))
      .tickFormat(round(text))
      .tickSize(-area.height)
      .tickPadding(8);
    const group = area.plot
      .append("g")
      .attr("class", "axis axis-x")
      .attr("transform", `translate(0,${area.height})`)
      .call(axis);
    group.attr("font-size", null).attr("font-family", null);
    // The last number would leave the drawing: it moves in.
    group.selectAll(".tick text").attr("dx", function (value) {
      const over = scale(value) + textWidth(this.textContent) / 2 + 2 - area.width - area.margin.right;
      return over > 0 ? -over : null;
    });
    group
      .append("text")
      .attr("class", "axis-label")
      .attr("x", area.width / 2)
      .attr("y", 40)
      .attr("text-anchor", "middle")
      .text(label);
  };

  // The label stands above the axis, upright: a phone has no room beside it.
  const left = (area, scale, label, text, most) => {
    const axis = d3
      .axisLeft(scale)
      .tickValues(ticksOf(scale, most || 6))
      .tickFormat(round(text))
      .tickSize(-area.width)
      .tickPadding(6);
    const group = area.plot.append("g").attr("class", "axis axis-y").call(axis);
    group.attr("font-size", null).attr("font-family", null);
    group
      .append("text")
      .attr("class", "axis-label")
      .attr("x", 4 - area.margin.left)
      .attr("y", -12)
      .attr("text-anchor", "start")
      .text(label);
  };

  // [low, high] of values with some air, for a log scale or a linear one.
  const spread = (values, factor = 1.3) => [d3.min(values) / factor, d3.max(values) * factor];

  // A scale that is logarithmic where the values span much and are all positive.
  const scaleOf = (values, range) => {
    const [low, high] = d3.extent(values);
    if (low <= 0 && high > 20 * d3.median(values, Math.abs) && high > 1)
      return d3
        .scaleSymlog()
        .constant(0.01)
        .domain([low, high * 2])
        .range(range);
    if (low > 0 && high / low > 8) return d3.scaleLog().domain(spread(values)).range(range);
    const air = (high - low || Math.abs(high) || 1) * 0.08;
    return d3
      .scaleLinear()
      .domain([low >= 0 ? Math.max(0, low - air) : low - air, high + air])
      .range(range);
  };

  return { frame, symbol, bottom, left, powers, spread, scaleOf, textWidth };
})();
