// How much of what reaches each cache is found there.
charts.push(
  (() => {
    const symbols = [d3.symbolTriangle, d3.symbolSquare, d3.symbolDiamond, d3.symbolStar];
    // DRAM has everything.
    const cachesOf = (view) => Object.keys(view.ops[0].hit_rate).slice(0, -1);
    const placesOf = (view) =>
      view.ops.flatMap((op, index) =>
        cachesOf(view).map((level) => ({ op, index, level, rate: op.hit_rate[level] })),
      );
    const drawNames = (area, ops, y) =>
      ops.forEach((op, index) => {
        const name = area.plot
          .append("text")
          .attr("x", -8)
          .attr("y", y(index))
          .attr("dy", "0.35em")
          .attr("text-anchor", "end")
          .text(op.op);
        boundBars.shorten(name, area.margin.left - 10);
        area.plot
          .append("path")
          .attr("class", "faint")
          .attr("d", `M0,${y(index)}H${area.width}`);
      });
    const drawRates = (area, view, x, y) => {
      const levels = cachesOf(view);
      const dots = area.plot
        .selectAll(".rate")
        .data(placesOf(view))
        .join("path")
        .attr("class", "rate")
        .attr("transform", (place) => `translate(${x(place.rate)},${y(place.index)})`)
        .attr("d", (place) => axes.symbol(symbols[levels.indexOf(place.level)], 80))
        .style("fill", (place) => boundColor(place.level));
      marks.describe(dots, ({ op, level, rate }) => ({
        title: `${op.op}, ${level}`,
        lines: [
          ["hit rate", format.percent(rate)],
          [`bytes asked of ${level}`, format.bytes(op.bytes[level])],
        ],
      }));
    };
    const draw = (container, view) => {
      const longest = d3.max(view.ops, (op) => axes.textWidth(op.op, 12));
      const area = axes.frame(container, {
        title: "Hit rates",
        height: view.ops.length * 24,
        entries: cachesOf(view).map((level, index) => ({
          text: level,
          color: boundColor(level),
          shape: symbols[index],
        })),
        margin: { top: 8, right: 24, bottom: 48, left: Math.min(longest + 14, container.clientWidth * 0.42) },
      });
      const x = d3.scaleLinear().domain([0, 1]).range([0, area.width]);
      const y = d3
        .scalePoint()
        .domain(d3.range(view.ops.length))
        .range([12, area.height - 12]);
      axes.bottom(
        area,
        x,
        area.narrow ? "found in the cache" : "share of the bytes asked for that is found in the cache",
        (value) => `${Math.round(100 * value)} %`,
        area.narrow ? 3 : 5,
      );
      drawNames(area, view.ops, y);
      drawRates(area, view, x, y);
    };
    return {
      id: "hit-rates",
      title: "Hit rates by cache",
      draw,
      views: ({ result }) => facts.steps(result).filter((view) => view.ops.length && cachesOf(view).length),
      says: (view) => {
        const levels = cachesOf(view),
          last = levels[levels.length - 1];
        const asked = d3.sum(view.ops, (op) => op.bytes[last]),
          hit = d3.sum(view.ops, (op) => op.bytes[last] * op.hit_rate[last]);
        return (
          `The share of each op's bytes that a cache already has. Of all that reaches ${last}, ` +
          `${format.percent(asked ? hit / asked : 0)} ` +
          "is found there; the rest comes from DRAM, whatever the size of the cache above."
        );
      },
      table: (view) => ({
        columns: ["op", ...cachesOf(view)],
        rows: view.ops.map((op) => [op.op, ...cachesOf(view).map((level) => format.percent(op.hit_rate[level]))]),
      }),
    };
  })(),
);
