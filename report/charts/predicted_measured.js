// What was predicted beside what was measured, with the interval the prediction gave.
charts.push(
  (() => {
    // All pairs of a result: [{choices: {unit}, unit, pairs: [{name, measured, predicted, low, high, more}]}]
    const groups = (result) => {
      const pairs = facts
        .parts(result)
        .flatMap((part) => [...ofPoints(part), ...ofServing(part), ...ofServedStudy(part), ...ofSpeedUps(part), ...ofReported(part)]);
      return d3
        .nest()
        .key((pair) => pair.unit)
        .entries(pairs)
        .map(({ key, values }) => ({ choices: { unit: key }, unit: key, pairs: values }));
    };
    const ofPoints = (part) =>
      (Array.isArray(part.points) ? part.points : [])
        .filter((point) => (point.measured || point.measured_seconds) > 0)
        .map((point) => ({
          name: point.id,
          unit: point.unit || "s",
          measured: point.measured || point.measured_seconds,
          predicted: point.predicted || point.predicted_seconds,
          low: point.interval_seconds ? point.interval_seconds[0] : point.low,
          high: point.interval_seconds ? point.interval_seconds[1] : point.high,
          more: [
            ["bound", point.bound],
            ["basis", point.basis],
            ...(point.machine ? [["machine", point.machine]] : []),
          ],
        }));
    const unitOf = (metric) =>
      /^(ttft|tpot|itl|latency|total_time)/.test(metric)
        ? "s"
        : /tokens_per_second/.test(metric)
          ? "tokens/s"
          : /per_second|goodput/.test(metric)
            ? "requests/s"
            : "count";
    // `intervals`: by metric, where they do not stand beside the figures.
    const ofMetrics = (metrics, of, intervals = {}) =>
      Object.entries(metrics || {})
        .filter(([, pair]) => pair.measured > 0 && pair.simulated > 0)
        .map(([metric, pair]) => {
          const [low, high] = pair.interval || intervals[metric] || [];
          return {
            name: of ? `${metric}, ${of}` : metric,
            unit: unitOf(metric),
            measured: pair.measured,
            predicted: pair.simulated,
            low,
            high,
            more: [],
          };
        });
    const ofServing = (part) =>
      facts.simulations(part).flatMap((each, _, all) => {
        const names = all.map((other) => other.named);
        return ofMetrics(each.measured, all.length > 1 ? facts.label(each.named, names) : "", each.intervals);
      });
    const ofServedStudy = (part) =>
      (Array.isArray(part.points) ? part.points : []).flatMap((point) =>
        ofMetrics(point.metrics, Object.values(point.choices || {}).join(", ")),
      );
    const ofSpeedUps = (part) =>
      (part.speed_ups || []).map((each) => ({
        name: `${each.variant}, ${Object.values(each.choices).join(", ")}`,
        unit: "times as fast",
        measured: each.measured_speed_up,
        predicted: each.predicted_speed_up,
        more: [],
      }));
    const ofReported = (part) =>
      (part.comparisons || []).flatMap((each) =>
        (each.reported || []).map((reported) => ({
          name:
            `${reported.variant}, ${reported.metric}, ` +
            `${[each.machine, ...Object.values(each.choices)].join(", ")}`,
          unit: "% change",
          measured: 100 * reported.reported_change,
          predicted: 100 * reported.predicted_change,
          more: [["bound", reported.bound]],
          reported: true,
        })),
      );

    const hasInterval = (pair) => pair.low !== undefined && pair.low !== null;
    const inside = (pair) => pair.measured >= pair.low && pair.measured <= pair.high;
    // Without an interval a pair is neither: nothing was promised.
    const looks = {
      holds: { text: "90 % interval holds the measurement", color: "var(--good)", shape: d3.symbolCircle },
      misses: { text: "does not", color: "var(--bad)", shape: d3.symbolDiamond },
      none: { text: "no interval", color: "var(--other)", shape: d3.symbolSquare },
    };
    const lookOf = (pair) => (!hasInterval(pair) ? looks.none : inside(pair) ? looks.holds : looks.misses);
    const text = (pair, value) => format.inUnit(value, pair.unit === "% change" ? "%" : pair.unit);

    const entriesOf = (pairs) => {
      const intervals = pairs.some(hasInterval);
      const shown = (look) => pairs.some((pair) => lookOf(pair) === look);
      return [
        ...(intervals ? [looks.holds] : []),
        ...(shown(looks.misses) ? [looks.misses] : []),
        ...(intervals && shown(looks.none) ? [looks.none] : []),
        { text: "predicted = measured", color: "var(--soft)", shape: "dashed" },
      ];
    };

    // The same scale for both axes.
    const scalesOf = (pairs, area) => {
      const values = pairs.flatMap((pair) => [
        pair.measured,
        pair.predicted,
        ...(hasInterval(pair) && pair.low > 0 ? [pair.low, pair.high] : []),
      ]);
      const positive = pairs.every((pair) => pair.measured > 0 && pair.predicted > 0);
      const log = positive && d3.max(values) / d3.min(values) > 3;
      const [low, high] = d3.extent(values),
        air = (high - low || 1) * 0.06;
      const scale = () =>
        log ? d3.scaleLog().domain(axes.spread(values)) : d3.scaleLinear().domain([low - air, high + air]);
      return { x: scale().range([0, area.width]), y: scale().range([area.height, 0]) };
    };

    const drawIntervals = (area, pairs, x, y) => {
      const clip = area.plot.append("g");
      clip
        .append("path")
        .attr("class", "front equal")
        .attr("d", `M${x(x.domain()[0])},${y(x.domain()[0])}L${x(x.domain()[1])},${y(x.domain()[1])}`);
      clip
        .selectAll(".interval")
        .data(pairs.filter(hasInterval))
        .join("path")
        .attr("class", "interval")
        .attr("d", (pair) => `M${x(pair.measured)},${y(Math.max(pair.low, y.domain()[0]))}V${y(pair.high)}`)
        .style("stroke", (pair) => lookOf(pair).color)
        .attr("stroke-width", 1.5)
        .style("opacity", 0.35);
    };

    const drawPairs = (area, pairs, x, y) => {
      const size = pairs.length > 60 ? 36 : 60;
      const dots = area.plot
        .selectAll(".pair")
        .data(pairs)
        .join("path")
        .attr("class", "pair")
        .attr("transform", (pair) => `translate(${x(pair.measured)},${y(pair.predicted)})`)
        .attr("d", (pair) => axes.symbol(lookOf(pair).shape, size))
        .style("fill", (pair) => lookOf(pair).color)
        .style("fill-opacity", 0.8);
      marks.describe(dots, (pair) => ({
        title: pair.name,
        lines: [
          ["measured", text(pair, pair.measured)],
          ["predicted", text(pair, pair.predicted)],
          ...(hasInterval(pair) ? [["90 % interval", `${text(pair, pair.low)} to ${text(pair, pair.high)}`]] : []),
          ...pair.more,
        ],
      }));
    };

    const draw = (container, view) => {
      const { pairs } = view;
      const area = axes.frame(container, {
        title: "Predicted against measured",
        height: Math.min(440, Math.max(280, container.clientWidth * 0.6)),
        margin: { top: 30, right: 20, bottom: 48, left: 66 },
        entries: entriesOf(pairs),
      });
      const { x, y } = scalesOf(pairs, area);
      const tick = (value) => text(pairs[0], value).replace(/ (tokens\/s|requests\/s|times as fast|count)$/, "");
      const source = pairs.some((pair) => pair.reported) ? "reported" : "measured";
      axes.bottom(area, x, `${source}, ${view.unit}`, tick, area.narrow ? 4 : 8);
      axes.left(area, y, `predicted, ${view.unit}`, tick, 6);
      drawIntervals(area, pairs, x, y);
      drawPairs(area, pairs, x, y);
    };

    const says = (view) => {
      const { pairs } = view,
        held = pairs.filter(hasInterval);
      const change = view.unit === "% change";
      const errors = pairs.map((pair) =>
        change ? Math.abs(pair.predicted - pair.measured) : Math.abs(pair.predicted / pair.measured - 1),
      );
      const median = d3.median(errors);
      return (
        `On the dashed line the prediction is right, above it too ${view.unit === "s" ? "slow" : "high"}. Half ` +
        `of the ${pairs.length} lie within ` +
        `${change ? `${format.number(median, 2)} points` : format.percent(median)} of it` +
        (held.length
          ? `; ${held.filter(inside).length} of ${held.length} measurements lie inside their 90 % interval, the bar.`
          : ".")
      );
    };
    return {
      id: "predicted-measured",
      title: "Predicted against measured",
      views: ({ result }) => groups(result),
      says,
      draw,
      table: ({ pairs }) => ({
        columns: [
          "",
          pairs.some((pair) => pair.reported) ? "reported" : "measured",
          "predicted",
          "90 % interval",
          "inside",
        ],
        rows: pairs.map((pair) => [
          pair.name,
          text(pair, pair.measured),
          text(pair, pair.predicted),
          hasInterval(pair) ? `${text(pair, pair.low)} to ${text(pair, pair.high)}` : "",
          hasInterval(pair) ? (inside(pair) ? "yes" : "no") : "",
        ]),
      }),
    };
  })(),
);
