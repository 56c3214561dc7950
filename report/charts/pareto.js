// What is gained against what it costs: accuracy where it was measured, KV heads where it was not, or the aims that a
// search was given. A view has its points, those of the front, `axes` as scatter.draw takes them, and its sentence.
charts.push(
  (() => {
    const name = (count) => `${count} KV head${Number(count) === 1 ? "" : "s"}`;
    const ends = (front) => {
      const ordered = [...front].sort((a, b) => a.x - b.x);
      return [ordered[0], ordered[ordered.length - 1]];
    };

    const accuracyPoint = (point, machine) => ({
      x: point.loss,
      y: point.output_tokens_per_second,
      text: name(point.num_key_value_heads),
      series: machine,
      front: point.pareto,
      describe: {
        title: name(point.num_key_value_heads),
        lines: [
          ["output", `${format.number(point.output_tokens_per_second)} tokens/s`],
          ["accuracy lost", format.signedPercent(point.loss)],
          ["method", point.method],
        ],
      },
    });

    // Of a study with `accuracy`: loss against output.
    const ofAccuracy = (result) =>
      facts
        .sweeps(result)
        .filter((sweep) => sweep.points.some((point) => point.loss !== undefined))
        .map((sweep) => {
          const points = sweep.points
            .filter((point) => point.loss !== undefined && point.output_tokens_per_second > 0)
            .map((point) => accuracyPoint(point, sweep.machine));
          const front = points.filter((point) => point.front),
            [first, last] = front.length ? ends(front) : [];
          return {
            choices: sweep.choices,
            points,
            front,
            axes: {
              xBest: -1,
              xLabel: "accuracy lost",
              yLabel: "output tokens/s",
              xText: (value) => format.percent(value),
              yText: (value) => format.number(value),
            },
            says:
              "Accuracy lost to the right, tokens a second upwards: only the solid points are worth choosing, " +
              "every other one is beaten in " +
              `both. The front goes from ${first && first.text} to ${last && last.text}, ` +
              `${format.number(last && last.y / first.y)} times as fast ` +
              `for ${format.number(last && 100 * (last.x - first.x), 2)} points more loss.`,
          };
        });

    // Of a sweep over KV heads: how many are kept against the step, for each workload.
    const ofHeads = (result) =>
      facts
        .sweeps(result)
        .filter(
          (sweep) =>
            new Set(sweep.points.map((point) => point.named["KV heads"])).size > 1 &&
            sweep.points[0].step_seconds > 0,
        )
        .flatMap((sweep) => {
          const rest = (named) =>
            JSON.stringify(Object.entries(named).filter(([key]) => key !== "KV heads" && key !== "block"));
          return d3
            .nest()
            .key((point) => rest(point.named))
            .entries(sweep.points)
            .map(({ key, values }) =>
              headsView({ ...sweep.choices, ...Object.fromEntries(JSON.parse(key)) }, sweep.machine, values),
            );
        });
    const headsView = (choices, machine, values) => {
      const points = values.map((point) => {
        const text = `${name(point.named["KV heads"])}${point.named.block ? `, block ${point.named.block}` : ""}`;
        return {
          x: Number(point.named["KV heads"]),
          y: point.step_seconds,
          text,
          series: machine,
          describe: {
            title: text,
            lines: [
              ["step", format.time(point.step_seconds)],
              ["sequences that fit", point.max_sequences],
              ["bound", point.bound],
            ],
          },
        };
      });
      const front = scatter.front(points, 1, -1),
        [first, last] = ends(front);
      return {
        choices,
        points,
        front,
        axes: {
          xBest: 1,
          xLabel: "KV heads kept",
          yLabel: "time of a step",
          xText: (value) => format.number(value),
          yText: format.time,
          xTicks: Array.from(new Set(points.map((point) => point.x))).sort((a, b) => a - b),
        },
        says:
          "KV heads kept to the right (accuracy is kept with them), time of a step upwards: the solid points " +
          "are the fastest that keep " +
          `so many. Keeping ${last.x} instead of ${first.x} makes the step ${format.number(last.y / first.y)} ` +
          `times as long.`,
      };
    };

    // Of a search with several aims: `pareto[]`, any two of `aims[]`.
    const best = (aim) => (aim.goal === "maximize" ? 1 : -1);
    const ofSearch = (result) =>
      facts
        .parts(result)
        .filter((part) => Array.isArray(part.aims) && part.pareto.length > 1) // simulate's fronts are its own view
        .flatMap(({ pareto, aims }) => {
          const ordered = [...aims].sort((a, b) => best(b) - best(a)); // what is to be large goes to the right
          return d3
            .cross(ordered, ordered)
            .filter(([a, b]) => ordered.indexOf(a) < ordered.indexOf(b))
            .map(([a, b]) => searchView(pareto, ordered, a, b));
        });
    const searchView = (pareto, aims, a, b) => {
      const [xLabel, xText] = metrics.of(a.metric),
        [yLabel, yText] = metrics.of(b.metric);
      const named = pareto.map((point) => facts.titled(point.choices));
      const points = pareto.map((point, index) => {
        const text = facts.label(named[index], named);
        return {
          x: point[a.metric],
          y: point[b.metric],
          text,
          series: "",
          describe: {
            title: text,
            lines: [
              ...metrics.ofSteps
                .concat(aims.map((aim) => aim.metric))
                .filter((key, index, all) => point[key] !== undefined && all.indexOf(key) === index)
                .map((key) => [metrics.of(key)[0], metrics.of(key)[1](point[key])]),
              ["bound", point.bound],
            ],
          },
        };
      });
      const front = scatter.front(points, best(a), best(b));
      return {
        choices: { right: xLabel, up: yLabel },
        points,
        front,
        axes: { xBest: best(a), xLabel, yLabel, xText, yText },
        says:
          `The ${points.length} points that no other one beats in every aim; the ${front.length} solid ones are ` +
          `unbeaten in ${xLabel} and ` +
          `${yLabel} alone, so choosing another one is for the sake of the remaining aims.`,
      };
    };

    return {
      id: "pareto",
      title: "Pareto front",
      views: ({ result }) =>
        [...ofAccuracy(result), ...ofHeads(result), ...ofSearch(result)].filter(
          (view) => view.points.length > 1 && view.front.length,
        ),
      says: (view) => view.says,
      draw: (container, view) =>
        scatter.draw(container, "Pareto front", { points: view.points, front: view.front, ...view.axes }),
      table: ({ points, front, axes: { xLabel, yLabel, xText, yText } }) => ({
        columns: ["", xLabel, yLabel, "on the front"],
        rows: points.map((point) => [point.text, xText(point.x), yText(point.y), front.includes(point) ? "yes" : ""]),
      }),
    };
  })(),
);
