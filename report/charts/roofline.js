// The hierarchical roofline: a ceiling for each memory level and each compute peak, and every op at each level it
// moves bytes through (Williams, Waterman and Patterson 2009; Yang, Kurth and Williams 2020 for the hierarchy).
charts.push(
  (() => {
    const symbols = { DRAM: d3.symbolCircle, L1: d3.symbolTriangle, L2: d3.symbolSquare, L3: d3.symbolDiamond, LLC: d3.symbolDiamond };
    const advice = {
      compute: "only less arithmetic or a faster format makes it shorter",
      launch: "starting kernels costs more than running them, so larger batches are nearly free",
      latency: "too few bytes are in flight, so more work at a time helps, not less traffic",
    };

    const symbolOf = (level) => symbols[level] || d3.symbolStar;

    // Every op at every level that it moves bytes through: {op, level, x, y}. An op without arithmetic has no place, and
    // a level that less than a thousandth of its bytes reach would only stretch the axis.
    const placesOf = (view) =>
      view.ops
        .filter((op) => op.flops > 0 && op.seconds > 0)
        .flatMap((op) =>
          Object.entries(op.bytes)
            .filter(([, bytes]) => bytes > d3.max(Object.values(op.bytes)) / 1000)
            .map(([level, bytes]) => ({ op, level, x: op.flops / bytes, y: op.flops / op.seconds })),
        );

    // Peaks of one rate are one line: [{rate, text}], the highest first.
    const peaksOf = (machine) => {
      const byRate = new Map();
      for (const { dtype, unit, flop_per_second: rate } of machine.peaks)
        byRate.set(rate, [...(byRate.get(rate) || []), `${dtype}${unit === "matrix" ? " matrix" : ""}`]);
      return Array.from(byRate, ([rate, names]) => ({
        rate,
        text: `${names.join(", ")}: ${format.flopRate(rate)}`,
      })).sort((a, b) => b.rate - a.rate);
    };

    // The same for all views, so that choosing another one moves the ops and not the axes.
    const domains = (views) => {
      const places = views.flatMap(placesOf);
      const memory = views.flatMap((view) => view.facts.memory),
        peaks = views.flatMap((view) => view.facts.peaks);
      const ridge = d3.max(peaks, (peak) => peak.flop_per_second) / d3.min(memory, (level) => level.bytes_per_second);
      const low = d3.min(places, (place) => place.x) / 2;
      return {
        x: [low, Math.max(d3.max(places, (place) => place.x) * 2, ridge * 4)],
        y: [
          Math.min(d3.min(places, (place) => place.y) / 3, low * d3.min(memory, (level) => level.bytes_per_second)),
          d3.max(peaks, (peak) => peak.flop_per_second) * 2,
        ],
      };
    };

    const drawPeaks = (area, x, y, view, taken) => {
      const highest = d3.max(view.facts.memory, (level) => level.bytes_per_second);
      let above = -Infinity;
      for (const { rate, text } of peaksOf(view.facts)) {
        const from = Math.max(x.domain()[0], rate / highest);
        area.plot
          .append("path")
          .attr("class", "ceiling peak")
          .datum({ rate })
          .attr("d", `M${x(from)},${y(rate)}H${area.width}`);
        if (y(rate) - above < 14) continue;
        above = y(rate);
        const long = axes.textWidth(text, 11);
        taken.push({ x0: area.width - long, x1: area.width, y0: y(rate) - 15, y1: y(rate) });
        area.plot
          .append("text")
          .attr("class", "halo")
          .attr("x", area.width - 2)
          .attr("y", y(rate) - 4)
          .attr("text-anchor", "end")
          .style("font-size", "11px")
          .text(text);
      }
    };

    const drawLevels = (area, x, y, view, taken) => {
      const roof = d3.max(view.facts.peaks, (peak) => peak.flop_per_second);
      const slope = (Math.atan2(y(10) - y(1), x(10) - x(1)) * 180) / Math.PI;
      const levels = view.facts.memory.length;
      view.facts.memory.forEach(({ level, bytes_per_second: bandwidth }, index) => {
        const from = Math.max(x.domain()[0], y.domain()[0] / bandwidth),
          to = roof / bandwidth;
        area.plot
          .append("path")
          .attr("class", "ceiling level")
          .datum({ level, bandwidth })
          .style("stroke", boundColor(level))
          .attr("d", `M${x(from)},${y(from * bandwidth)}L${x(to)},${y(roof)}`);
        const text = `${level} ${format.byteRate(bandwidth)}`,
          long = axes.textWidth(text, 11);
        const across = Math.cos((slope * Math.PI) / 180) * long,
          down = Math.sin((slope * Math.PI) / 180) * long;
        // Neighbours may lie close: their names stand apart, that of DRAM below its line.
        const shift = 8 + (index % 2 && index + 1 < levels ? Math.min(90, area.width / 4) : 0);
        const at = [x(from) + shift, y(from * bandwidth) + shift * Math.tan((slope * Math.PI) / 180)];
        area.plot
          .append("text")
          .attr("class", "halo")
          .style("font-size", "11px")
          .attr("transform", `translate(${at}) rotate(${slope})`)
          .attr("dy", index + 1 < levels ? -5 : 13)
          .text(text);
        for (let part = 0; part < 1; part += 0.1)
          taken.push(marks.boxAround(at[0] + part * across + 4, at[1] + part * down - 6, 8));
      });
    };

    // The places of an op at all levels are joined by a line.
    const drawJoins = (area, x, y, places) => {
      const byOp = d3
        .nest()
        .key((place) => place.op.op)
        .entries(places);
      area.plot
        .selectAll(".joins")
        .data(byOp)
        .join("path")
        .attr("class", "faint")
        .attr(
          "d",
          ({ values }) =>
            `M${x(d3.min(values, (each) => each.x))},${y(values[0].y)}H${x(d3.max(values, (each) => each.x))}`,
        );
    };

    const sizeOf = (view, op) => 40 + (260 * op.seconds) / view.seconds;
    const drawPlaces = (area, x, y, view, places) => {
      const dots = area.plot
        .selectAll(".place")
        .data(places)
        .join("path")
        .attr("class", "place")
        .attr("transform", (place) => `translate(${x(place.x)},${y(place.y)})`)
        .attr("d", (place) => axes.symbol(symbolOf(place.level), sizeOf(view, place.op)))
        .style("fill", (place) => boundColor(place.level))
        .style("fill-opacity", (place) => (place.op.bound === place.level ? 1 : 0.35));
      marks.describe(dots, ({ op, level, x: intensity, y: rate }) => ({
        title: `${op.op} at ${level}`,
        lines: [
          ["time", `${format.time(op.seconds)} of ${format.time(view.seconds)}`],
          ["bound", op.bound],
          ["intensity", `${format.number(intensity)} FLOP/byte`],
          ["speed", format.flopRate(rate)],
          ["bytes", format.bytes(op.bytes[level])],
        ],
      }));
    };

    const nameOps = (area, x, y, view, places, taken) => {
      const radius = (place) => Math.sqrt(sizeOf(view, place.op) / Math.PI);
      for (const place of places) taken.push(marks.boxAround(x(place.x), y(place.y), radius(place)));
      const last = view.facts.memory[view.facts.memory.length - 1].level;
      const named = places.filter((place) => place.level === last).sort((a, b) => b.op.seconds - a.op.seconds);
      marks.labels(
        area.plot,
        named.map((place) => ({ x: x(place.x), y: y(place.y), text: place.op.op, radius: radius(place) })),
        { width: area.width, height: area.height, taken },
      );
    };

    const draw = (container, view, views) => {
      const area = axes.frame(container, {
        title: "Roofline",
        height: Math.min(460, 300 + container.clientWidth / 8),
        margin: { top: 28, right: 16, bottom: 48, left: 66 },
        entries: view.facts.memory.map(({ level }) => ({
          text: `at ${level}`,
          color: boundColor(level),
          shape: symbolOf(level),
        })),
      });
      const domain = domains(views);
      const x = d3.scaleLog().domain(domain.x).range([0, area.width]),
        y = d3.scaleLog().domain(domain.y).range([area.height, 0]);
      axes.bottom(area, x, "FLOP per byte", (value) => format.number(value), area.narrow ? 5 : 9);
      axes.left(area, y, "FLOP/s", (value) => format.flops(value).replace("FLOP", ""), 8);
      const taken = [],
        places = placesOf(view);
      drawLevels(area, x, y, view, taken);
      drawPeaks(area, x, y, view, taken);
      drawJoins(area, x, y, places);
      drawPlaces(area, x, y, view, places);
      nameOps(area, x, y, view, places, taken);
    };

    const says = (view) => {
      const [[bound, seconds]] = facts.byBound(view.ops);
      return (
        "Each op stands at the arithmetic it does per byte that reaches a memory level and at the speed it is " +
        "priced at; " +
        "larger marks take more time, solid ones lie under the ceiling that holds them back. " +
        `${format.percent(seconds / view.seconds)} of the step is bound by ${bound}: ` +
        `${advice[bound] || `only fewer bytes from ${bound} make it shorter, faster arithmetic does not`}.`
      );
    };

    return {
      id: "roofline",
      title: "Roofline of the ops",
      says,
      draw,
      views: ({ result }) => {
        const machines = facts.machines(result);
        return facts
          .steps(result)
          .filter((step) => machines[step.machine])
          .map((step) => ({ ...step, facts: machines[step.machine] }))
          .filter((view) => placesOf(view).length);
      },
      table: (view) => ({
        columns: ["op", "level", "FLOP/byte", "FLOP/s", "bytes", "bound"],
        rows: placesOf(view).map(({ op, level, x, y }) => [
          op.op,
          level,
          format.number(x),
          format.flopRate(y),
          format.bytes(op.bytes[level]),
          op.bound,
        ]),
      }),
    };
  })(),
);
