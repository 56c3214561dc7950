// Where the time goes: bars of ops, of points of a sweep or of simulations, stacked and coloured by what bounds them.
const boundBars = (() => {
  const color = boundColor;

  // The parts of all rows, each with where it begins and ends in its row.
  const placed = (rows, totals) =>
    rows.flatMap((row, index) => {
      let from = 0;
      return row.parts.map((part) => ({
        ...part,
        row: row.label,
        index,
        total: totals[index],
        from,
        to: (from += part.seconds),
      }));
    });

  const drawParts = (area, parts, x, y) => {
    const bars = area.plot
      .selectAll(".part")
      .data(parts.filter((part) => part.seconds > 0))
      .join("rect")
      .attr("class", "part")
      .attr("x", (part) => x(part.from))
      .attr("y", (part) => y(part.index))
      .attr("height", y.bandwidth())
      .attr("width", (part) => Math.max(1, x(part.to) - x(part.from)))
      .style("fill", (part) => color(part.bound));
    marks.describe(bars, (part) => ({
      title: part.name || part.row,
      lines: [
        ["time", format.time(part.seconds)],
        ["bound", part.bound],
        [`share of ${part.row}`, format.percent(part.seconds / part.total)],
      ],
    }));
  };

  // The name of each row on the left of it, its time on the right.
  const drawTexts = (area, rows, totals, x, y) =>
    rows.forEach((row, index) => {
      const middle = y(index) + y.bandwidth() / 2;
      const name = area.plot
        .append("text")
        .attr("x", -8)
        .attr("y", middle)
        .attr("dy", "0.35em")
        .attr("text-anchor", "end")
        .text(row.label);
      shorten(name, area.margin.left - 10);
      area.plot
        .append("text")
        .attr("class", "soft")
        .attr("x", x(totals[index]) + 5)
        .attr("y", middle)
        .attr("dy", "0.35em")
        .text(format.time(totals[index]));
    });

  // rows: [{label, parts: [{name, bound, seconds}]}]
  const draw = (container, title, rows) => {
    const bounds = Array.from(new Set(rows.flatMap((row) => row.parts.map((part) => part.bound))));
    const longest = d3.max(rows, (row) => axes.textWidth(row.label, 12));
    const area = axes.frame(container, {
      title,
      height: rows.length * 24,
      entries: bounds.map((bound) => ({ text: bound, color: color(bound) })),
      margin: { top: 8, right: 62, bottom: 48, left: Math.min(longest + 14, container.clientWidth * 0.42) },
    });
    const totals = rows.map((row) => d3.sum(row.parts, (part) => part.seconds));
    const x = d3
      .scaleLinear()
      .domain([0, d3.max(totals) || 1])
      .range([0, area.width]);
    const y = d3.scaleBand().domain(d3.range(rows.length)).range([0, area.height]).padding(0.2);
    axes.bottom(area, x, "time", format.time, area.narrow ? 3 : 6);
    drawParts(area, placed(rows, totals), x, y);
    drawTexts(area, rows, totals, x, y);
  };

  // Cuts a text that is wider than its room and leaves the whole of it as its title.
  const shorten = (text, room) => {
    const whole = text.text();
    for (let length = whole.length; length > 3 && text.node().getComputedTextLength() > room; --length)
      text.text(`${whole.slice(0, length - 1)}…`);
    if (text.text() !== whole) text.append("title").text(whole);
  };

  const table = (rows) => ({
    columns: ["", "part", "bound", "time"],
    rows: rows.flatMap((row) =>
      row.parts.map((part) => [row.label, part.name || "", part.bound, format.time(part.seconds)]),
    ),
  });

  return { draw, table, shorten };
})();

charts.push(
  (() => {
    const rowsOf = (view) => {
      const host = view.host > 0 ? [{ name: "host, between steps", bound: "host", seconds: view.host }] : [];
      const whole = facts
        .byBound(view.ops)
        .map(([bound, seconds]) => ({ name: `whole step: ${bound}`, bound, seconds }));
      const ops = [...view.ops].sort((a, b) => b.seconds - a.seconds);
      return [
        { label: "whole step", parts: [...whole, ...host] },
        ...ops.map((op) => ({ label: op.op, parts: [{ name: op.op, bound: op.bound, seconds: op.seconds }] })),
        ...host.map((part) => ({ label: "host", parts: [part] })),
      ];
    };
    return {
      id: "time-by-op",
      title: "Time by op and bound",
      views: ({ result }) => facts.steps(result),
      says: (view) => {
        const largest = view.ops.reduce((a, b) => (b.seconds > a.seconds ? b : a));
        return (
          "How long each op takes in all its executions, coloured by what bounds it. " +
          `${largest.op} is the largest with ${format.percent(largest.seconds / view.seconds)} of ` +
          `${format.time(view.seconds)}, bound by ${largest.bound}: begin there.`
        );
      },
      draw: (container, view) => boundBars.draw(container, "Time by op and bound", rowsOf(view)),
      table: (view) => boundBars.table(rowsOf(view)),
    };
  })(),
);

charts.push(
  (() => {
    const mostRows = 48;
    const rowsOf = (view) =>
      view.rows.map((row) => ({
        label: row.label,
        parts: row.seconds.map(([bound, seconds]) => ({ name: `${row.label}: ${bound}`, bound, seconds })),
      }));
    const ofSweeps = (result) =>
      facts
        .sweeps(result)
        .filter(
          (sweep) =>
            sweep.points.length > 1 && sweep.points.length <= mostRows && sweep.points.every((point) => point.ops),
        )
        .map((sweep) => ({
          choices: sweep.choices,
          what: "point",
          rows: sweep.points.map((point) => ({
            label: facts.label(
              point.named,
              sweep.points.map((each) => each.named),
            ),
            seconds: [
              ...facts.byBound(point.ops),
              ["host", Math.max(0, point.step_seconds - d3.sum(point.ops, (op) => op.seconds))],
            ],
          })),
        }));
    const ofSimulations = (result) => {
      const all = facts.simulations(result).filter((each) => each.seconds_by_bound);
      if (!all.length || all.length > mostRows) return [];
      return [
        {
          choices: {},
          what: "simulation",
          rows: all.map((each) => ({
            label: facts.label(
              each.named,
              all.map((other) => other.named),
            ),
            seconds: Object.entries(each.seconds_by_bound).sort((a, b) => b[1] - a[1]),
          })),
        },
      ];
    };
    return {
      id: "time-by-bound",
      title: "Time by bound",
      views: ({ result }) => [...ofSweeps(result), ...ofSimulations(result)],
      says: (view) => {
        const first = new Set(view.rows.map((row) => row.seconds[0][0]));
        return (
          `What the time of each ${view.what} is spent waiting for. ` +
          (first.size === 1
            ? `In all of them ${[...first][0]} holds most of it.`
            : `What holds most of it changes between them: ${[...first].join(", ")}.`)
        );
      },
      draw: (container, view) => boundBars.draw(container, "Time by bound", rowsOf(view)),
      table: (view) => boundBars.table(rowsOf(view)),
    };
  })(),
);
