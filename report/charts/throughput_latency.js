// How long users wait against how much is served: throughput to the right is better, latency further down is better.
const scatter = (() => {
  const shapes = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolStar];

  // Colour and shape of each series.
  const stylesOf = (points) => {
    const series = Array.from(new Set(points.map((point) => point.series)));
    return new Map(
      series.map((name, index) => [name, { color: `var(--series-${index % 5})`, shape: shapes[index % 5] }]),
    );
  };

  const frameOf = (container, title, styles, front) =>
    axes.frame(container, {
      title,
      height: Math.min(400, 260 + container.clientWidth / 8),
      margin: { top: 30, right: 20, bottom: 48, left: 62 },
      entries: [
        ...(styles.size > 1 ? Array.from(styles, ([text, style]) => ({ text, ...style })) : []),
        ...(front.length > 1 ? [{ text: "Pareto front", color: "var(--soft)", shape: "dashed" }] : []),
      ],
    });

  const drawFront = (area, ordered, x, y, xBest) =>
    area.plot
      .append("path")
      .attr("class", "front")
      .datum(ordered)
      .attr(
        "d",
        d3
          .line()
          .x((point) => x(point.x))
          .y((point) => y(point.y))
          .curve(xBest > 0 ? d3.curveStepBefore : d3.curveStepAfter),
      );

  const drawPoints = (area, points, front, x, y, styles) => {
    const dots = area.plot
      .selectAll(".point")
      .data(points)
      .join("path")
      .attr("class", "point")
      .attr("transform", (point) => `translate(${x(point.x)},${y(point.y)})`)
      .attr("d", (point) => axes.symbol(styles.get(point.series).shape, 90))
      .style("fill", (point) => styles.get(point.series).color)
      .style("fill-opacity", (point) => (front.includes(point) ? 1 : 0.4))
      .style("stroke", (point) => styles.get(point.series).color);
    marks.describe(dots, (point) => point.describe);
  };

  // Of many points only those worth choosing have room for a name.
  const nameThem = (area, points, front, x, y) => {
    const important =
      points.length > 16 ? front : [...points].sort((a, b) => front.includes(b) - front.includes(a));
    marks.labels(
      area.plot,
      important.map((point) => ({ x: x(point.x), y: y(point.y), text: point.text })),
      {
        width: area.width,
        height: area.height,
        beside: "corners",
        taken: points.map((point) => marks.boxAround(x(point.x), y(point.y), 6)),
      },
    );
  };

  // points: [{x, y, text, series, describe}]; front: those on it, joined by a dashed line. `xBest`: +1 where more to
  // the right is better, -1 where less is. The line is what can be had with at least, or at most, so much of x.
  const draw = (container, title, { points, front, xLabel, yLabel, xText, yText, xTicks, xBest }) => {
    const styles = stylesOf(points);
    const area = frameOf(container, title, styles, front);
    const x = axes.scaleOf(
      points.map((point) => point.x),
      [0, area.width],
    );
    const y = axes.scaleOf(
      points.map((point) => point.y),
      [area.height, 0],
    );
    axes.bottom(area, x, xLabel, xText, xTicks || (area.narrow ? 4 : 7));
    axes.left(area, y, yLabel, yText);
    const ordered = [...front].sort((a, b) => a.x - b.x);
    drawFront(area, ordered, x, y, xBest);
    drawPoints(area, points, front, x, y, styles);
    nameThem(area, points, ordered, x, y);
  };

  // Those that no other is at least as good as in both: `xBest` and `yBest` are +1 where more is better, -1 where
  // less is.
  const front = (points, xBest, yBest) =>
    points.filter(
      (point) =>
        !points.some(
          (other) =>
            other !== point &&
            xBest * other.x >= xBest * point.x &&
            yBest * other.y >= yBest * point.y &&
            (other.x !== point.x || other.y !== point.y || points.indexOf(other) < points.indexOf(point)),
        ),
    );

  return { draw, front };
})();

charts.push(
  (() => {
    const latencies = {
      "TTFT, P99": "ttft_p99",
      "TTFT, median": "ttft_p50",
      "TPOT, P99": "tpot_p99",
      "TPOT, median": "tpot_p50",
      "whole request, P99": "latency_p99",
      "whole request, median": "latency_p50",
    };
    // Of a step all its tokens count, of a prefill the prompts'.
    const rateTitle = (view) => (view.served ? "output tokens/s" : "tokens/s");
    const describe = (text, rate, latency, time, more, served) => ({
      title: text,
      lines: [[rateTitle({ served }), format.number(rate)], [latency, format.time(time)], ...more],
    });
    const ofSimulations = (result) => {
      const all = facts.simulations(result);
      return Object.entries(latencies)
        .map(([latency, key]) => ({
          choices: { latency },
          latency,
          served: true,
          points: all
            .filter((each) => each[key] > 0)
            .map((each) => {
              const text = facts.label(
                each.named,
                all.map((other) => other.named),
              );
              return {
                x: each.output_tokens_per_second,
                y: each[key],
                text,
                series: each.machine,
                goodput: each.goodput,
                describe: describe(
                  text,
                  each.output_tokens_per_second,
                  latency,
                  each[key],
                  [["goodput", `${format.number(each.goodput)} requests/s`]],
                  true,
                ),
              };
            }),
        }))
        .filter((view) => view.points.length > 1);
    };
    // With one batch for all, throughput is the inverse of the step: nothing to weigh.
    const ofSweeps = (result) => {
      const found = facts
        .sweeps(result)
        .map((sweep) => ({
          ...sweep,
          points: sweep.points.filter((point) => point.step_seconds > 0 && point.tokens_per_second > 0),
        }))
        .filter(
          ({ points }) =>
            points.length > 1 &&
            new Set(points.map((point) => Math.round(point.tokens_per_second * point.step_seconds))).size > 1,
        );
      return found.map((sweep) => ({
        choices: sweep.choices,
        latency: "step",
        served: false,
        points: sweep.points.map((point) => {
          const text = facts.label(
            point.named,
            sweep.points.map((each) => each.named),
          );
          return {
            x: point.tokens_per_second,
            y: point.step_seconds,
            text,
            series: sweep.machine,
            describe: describe(text, point.tokens_per_second, "step", point.step_seconds, [["bound", point.bound]], false),
          };
        }),
      }));
    };
    const frontOf = (view) => scatter.front(view.points, 1, -1);
    return {
      id: "throughput-latency",
      title: "Throughput against latency",
      views: ({ result }) => [...ofSimulations(result), ...ofSweeps(result)],
      says: (view) => {
        const most = view.points.reduce((a, b) => (b.x > a.x ? b : a)),
          quickest = view.points.reduce((a, b) => (b.y < a.y ? b : a));
        const front = frontOf(view).length;
        return (
          `Tokens a second to the right, ${view.latency} upwards: down and right is better, and only the ` +
          `${front} solid ` +
          `${front === 1 ? "point is" : "points are"} worth choosing. ` +
          (most === quickest
            ? `${most.text} is best in both.`
            : `${quickest.text} waits least (${format.time(quickest.y)}); ${most.text} serves ` +
              `${format.number(most.x / quickest.x)} times its tokens at ${format.number(most.y / quickest.y)} ` +
              `times its wait.`)
        );
      },
      draw: (container, view) =>
        scatter.draw(container, "Throughput against latency", {
          points: view.points,
          front: frontOf(view),
          xLabel: rateTitle(view),
          yLabel: `${view.latency}`,
          xBest: 1,
          xText: (value) => format.number(value),
          yText: format.time,
        }),
      table: (view) => ({
        columns: ["", rateTitle(view), view.latency, "on the front"],
        rows: view.points.map((point) => [
          point.text,
          format.number(point.x),
          format.time(point.y),
          frontOf(view).includes(point) ? "yes" : "",
        ]),
      }),
    };
  })(),
);
