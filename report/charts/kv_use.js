// KV blocks and requests over the time of a simulation.
charts.push(
  (() => {
    const share = (view, interval) => interval.used_blocks / view.num_blocks;
    const requests = [
      ["running", "var(--series-2)", null],
      ["waiting", "var(--series-1)", "5 3"],
    ];

    const steps = (x, y, timeline, value) =>
      d3
        .line()
        .curve(d3.curveStepAfter)
        .x((each) => x(each[0]))
        .y((each) => y(each[1]))([
        ...timeline.map((each) => [each.begin_seconds, value(each)]),
        [timeline[timeline.length - 1].end_seconds, value(timeline[timeline.length - 1])],
      ]);

    const upper = 170,
      gap = 56,
      lower = 130;
    const preemptedOf = ({ timeline }) => timeline.filter((each) => each.preemptions > 0);

    const frameOf = (container, view) =>
      axes.frame(container, {
        title: "KV use over time",
        height: upper + gap + lower,
        margin: { top: 30, right: 20, bottom: 48, left: 54 },
        entries: [
          { text: "KV blocks used", color: "var(--series-0)" },
          ...(preemptedOf(view).length
            ? [{ text: "preemption", color: "var(--bad)", shape: d3.symbolTriangle }]
            : []),
          ...requests.map(([text, color, dashes]) => ({
            text: `requests ${text}`,
            color,
            shape: dashes ? "dashed" : "line",
          })),
        ],
      });

    const drawBlocks = (area, view, x) => {
      const { timeline } = view;
      const used = d3
        .scaleLinear()
        .domain([0, Math.min(1, 1.15 * d3.max(timeline, (each) => share(view, each)) || 1)])
        .range([upper, 0]);
      const label = `share of ${view.num_blocks.toLocaleString("en")} KV blocks`;
      axes.left({ ...area, height: upper }, used, label, (value) => format.percent(value), 5);
      const line = steps(x, used, timeline, (each) => share(view, each));
      area.plot
        .append("path")
        .attr("class", "used")
        .style("fill", "var(--series-0)")
        .style("fill-opacity", 0.35)
        .style("stroke", "var(--series-0)")
        .attr("stroke-width", 1.5)
        .attr("d", `${line}V${upper}H${x(timeline[0].begin_seconds)}Z`);
      area.plot
        .selectAll(".preempted")
        .data(preemptedOf(view))
        .join("path")
        .attr("class", "preempted")
        .attr("d", axes.symbol(d3.symbolTriangle, 40))
        .attr("transform", (each) => `translate(${x((each.begin_seconds + each.end_seconds) / 2)},${upper - 6})`)
        .style("fill", "var(--bad)");
    };

    const drawRequests = (area, { timeline }, x) => {
      const plot = area.plot.append("g").attr("transform", `translate(0,${upper + gap})`);
      const below = { ...area, height: lower, plot };
      const most = d3.max(timeline, (each) => Math.max(each.running, each.waiting)) || 1;
      const count = d3
        .scaleLinear()
        .domain([0, most * 1.1])
        .range([lower, 0]);
      axes.left(below, count, "requests", (value) => format.number(value), 4);
      axes.bottom(below, x, "time", (value) => format.time(value), area.narrow ? 4 : 8);
      for (const [key, color, dashes] of requests)
        plot
          .append("path")
          .attr("class", key)
          .style("stroke", color)
          .attr("stroke-width", 2)
          .attr("stroke-dasharray", dashes)
          .style("fill", "none")
          .attr(
            "d",
            steps(x, count, timeline, (each) => each[key]),
          );
    };

    const drawIntervals = (area, view, x) => {
      const bands = area.plot
        .selectAll(".interval")
        .data(view.timeline)
        .join("rect")
        .attr("class", "interval")
        .attr("x", (each) => x(each.begin_seconds))
        .attr("width", (each) => Math.max(1, x(each.end_seconds) - x(each.begin_seconds)))
        .attr("y", 0)
        .attr("height", area.height)
        .style("fill", "transparent");
      marks.describe(bands, (each) => ({
        title: `${format.time(each.begin_seconds)} to ${format.time(each.end_seconds)}`,
        lines: [
          ["KV blocks used", `${format.percent(share(view, each))} of ${view.num_blocks}`],
          ["unused slots in them", format.percent(each.unused_slots)],
          ["running", format.number(each.running)],
          ["waiting", format.number(each.waiting)],
          ["preemptions", each.preemptions],
        ],
      }));
    };

    const draw = (container, view) => {
      const { timeline } = view;
      const area = frameOf(container, view);
      const x = d3
        .scaleLinear()
        .domain([timeline[0].begin_seconds, timeline[timeline.length - 1].end_seconds])
        .range([0, area.width]);
      drawBlocks(area, view, x);
      drawRequests(area, view, x);
      drawIntervals(area, view, x);
    };

    const preemptionsOf = ({ preemptions, swaps }) =>
      `${preemptions} preemptions` +
      (swaps ? ` (${swaps.preemptions} by swap, ${format.time(swaps.seconds)})` : "");

    const says = (view) => {
      const full = view.most_used_blocks / view.num_blocks,
        queue = d3.max(view.timeline, (each) => each.waiting);
      const waste = d3.mean(view.timeline, (each) => each.unused_slots);
      return (
        `KV blocks in use, and below them requests running and waiting. At most ${format.percent(full)} of the ` +
        `blocks are used, with ` +
        `${format.percent(waste)} of their slots empty, ${preemptionsOf(view)} and up to ` +
        `${format.number(queue)} requests waiting: ` +
        (full > 0.95
          ? "memory is the limit, so smaller or fewer KV heads, a smaller KV format or more memory let more run."
          : queue >= 1
            ? "memory is not the limit, requests wait for the batch limit or for speed."
            : "neither memory nor speed holds requests back.")
      );
    };
    return {
      id: "kv-use",
      title: "KV use over time",
      says,
      draw,
      views: ({ result }) =>
        facts
          .simulations(result)
          .filter((each) => (each.timeline || []).length > 0)
          .map((each) => ({ ...each, choices: each.named, chosen: each.best })),
      table: (view) => ({
        columns: ["from", "to", "KV blocks used", "unused slots", "running", "waiting", "preemptions"],
        rows: view.timeline.map((each) => [
          format.time(each.begin_seconds),
          format.time(each.end_seconds),
          format.percent(share(view, each)),
          format.percent(each.unused_slots),
          format.number(each.running),
          format.number(each.waiting),
          each.preemptions,
        ]),
      }),
    };
  })(),
);
