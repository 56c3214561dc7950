// Group size against block size: how much slower each choice is than the best one.
charts.push(
  (() => {
    const heads = "KV heads",
      block = "block";
    const isBoth = (named) => named[heads] !== undefined && named[block] !== undefined;
    const others = (named) =>
      Object.fromEntries(Object.entries(named).filter(([key]) => key !== heads && key !== block));

    // Points that differ in the two axes alone make a view. `value` is better when it is small.
    const viewsOf = (points, describe) => {
      const groups = d3
        .nest()
        .key((point) => JSON.stringify(point.choices))
        .entries(points);
      return groups
        .map(({ values }) => {
          const best = d3.min(values, (each) => each.value);
          const cells = values.map((each) => ({ ...each, worse: each.value / best - 1 }));
          return { choices: values[0].choices, cells, ...describe };
        })
        .filter(({ cells }) => cells.length > 1);
    };
    const ofSweeps = (result) =>
      viewsOf(
        facts.sweeps(result).flatMap((sweep) =>
          sweep.points
            .filter((point) => isBoth(point.named))
            .map((point) => ({
              choices: { ...sweep.choices, ...others(point.named) },
              heads: Number(point.named[heads]),
              block: Number(point.named[block]),
              value: point.step_seconds,
              shown: format.time(point.step_seconds),
              chosen: facts.isChosen(point, sweep),
              tied: facts.isChosen(point, sweep) && (sweep.recommendation.block_sizes || {}).indistinguishable,
              bound: point.bound,
            })),
        ),
        { measure: "step", unit: "time of a step" },
      );
    const ofSimulations = (result) =>
      viewsOf(
        facts
          .simulations(result)
          .filter((each) => isBoth(each.named))
          .map((each) => ({
            choices: others(each.named),
            heads: Number(each.named[heads]),
            block: Number(each.named[block]),
            value: 1 / each.output_tokens_per_second,
            shown: `${format.number(each.output_tokens_per_second)} tokens/s`,
            chosen: each.best,
          })),
        { measure: "output", unit: "time of an output token" },
      );

    // Of a search: each cell is the best point there that meets the constraints.
    const ofSearches = (result) =>
      facts.searches(result).flatMap(({ choices, best, pairs, objective: { goal, metric } }) => {
        const [title, text] = metrics.of(metric);
        const cellOf = (point) => {
          const named = facts.titled(point.choices);
          return {
            choices,
            heads: Number(named[heads]),
            block: Number(named[block]),
            value: goal === "minimize" ? point[metric] : 1 / point[metric],
            shown: text(point[metric]),
            chosen: point.point === best[0].point,
            bound: point.bound,
            others: Object.entries(others(named)),
          };
        };
        const says =
          "Each cell is the best point that the search found there: in percent, " +
          (goal === "minimize" ? `how much more ${title} it has than the best of all` : `how much more ${title} the best of all has`) +
          "; the frame marks that one. ";
        const cells = pairs.filter((point) => point[metric] > 0).map(cellOf);
        return viewsOf(cells, { measure: title, unit: "behind the best", says, praise: "best" });
      });

    // Black or white, whichever is told apart better (luminance as WCAG defines it).
    const inkOn = (background) => {
      const { r, g, b } = d3.rgb(background);
      const [red, green, blue] = [r, g, b].map((each) =>
        each / 255 <= 0.04045 ? each / 3294.6 : ((each / 255 + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
    };

    const drawCells = (area, view, x, y, color) => {
      const cells = area.plot
        .selectAll(".cell")
        .data(view.cells)
        .join("rect")
        .attr("class", "cell")
        .attr("x", (cell) => x(cell.block))
        .attr("y", (cell) => y(cell.heads))
        .attr("width", x.bandwidth())
        .attr("height", y.bandwidth())
        .attr("rx", 3)
        .style("fill", (cell) => color(cell.worse));
      marks.describe(cells, (cell) => ({
        title: `${cell.heads} KV heads, block ${cell.block}`,
        lines: [
          [view.measure, cell.shown],
          ["against the best", `+${format.percent(cell.worse)}`],
          ...(cell.bound ? [["bound", cell.bound]] : []),
          ...(cell.others || []),
          ...(cell.chosen ? [["", "recommended"]] : []),
        ],
      }));
      area.plot
        .selectAll(".chosen")
        .data(view.cells.filter((cell) => cell.chosen))
        .join("rect")
        .attr("class", "chosen")
        .attr("rx", 3)
        .attr("x", (cell) => x(cell.block))
        .attr("y", (cell) => y(cell.heads))
        .attr("width", x.bandwidth())
        .attr("height", y.bandwidth());
    };

    // In each cell how much worse it is, where there is room in all of them.
    const drawValues = (area, view, x, y, color) => {
      const text = (cell) =>
        cell.worse === 0
          ? "best"
          : `+${(100 * cell.worse).toFixed(cell.worse < 0.0995 ? 1 : 0)}${x.bandwidth() > 52 ? " %" : ""}`;
      if (d3.max(view.cells, (cell) => axes.textWidth(text(cell), 11)) >= x.bandwidth() - 2) return;
      area.plot
        .selectAll(".value")
        .data(view.cells)
        .join("text")
        .attr("class", "value")
        .style("pointer-events", "none")
        .attr("x", (cell) => x(cell.block) + x.bandwidth() / 2)
        .attr("y", (cell) => y(cell.heads) + y.bandwidth() / 2)
        .attr("dy", "0.35em")
        .attr("text-anchor", "middle")
        .style("font-size", "11px")
        .style("fill", (cell) => inkOn(color(cell.worse)))
        .text(text);
    };

    const draw = (container, view) => {
      const rows = Array.from(new Set(view.cells.map((cell) => cell.heads))).sort(d3.descending);
      const columns = Array.from(new Set(view.cells.map((cell) => cell.block))).sort(d3.ascending);
      const area = axes.frame(container, {
        title: "Group size and block size",
        height: rows.length * 44,
        margin: { top: 30, right: 12, bottom: 88, left: 44 },
      });
      const x = d3.scaleBand().domain(columns).range([0, area.width]).padding(0.04);
      const y = d3.scaleBand().domain(rows).range([0, area.height]).padding(0.06);
      const worst = Math.max(
        d3.max(view.cells, (cell) => cell.worse),
        1e-6,
      );
      const color = (worse) => d3.interpolateCividis(1 - Math.log1p(worse) / Math.log1p(worst));
      axes.bottom(area, x, "block size, tokens", (value) => value);
      axes.left(area, y, "KV heads", (value) => value);
      area.plot.selectAll(".tick line, .domain").remove();
      drawCells(area, view, x, y, color);
      drawValues(area, view, x, y, color);
      drawScale(area, view, color, worst);
    };

    const drawScale = (area, view, color, worst) => {
      const long = Math.min(260, area.width - 8),
        steps = 40,
        group = area.plot.append("g").attr("transform", `translate(0,${area.height + 58})`);
      for (let step = 0; step < steps; ++step)
        group
          .append("rect")
          .attr("x", (step * long) / steps)
          .attr("width", long / steps + 0.5)
          .attr("height", 10)
          .style("fill", color(Math.expm1((step / (steps - 1)) * Math.log1p(worst))));
      group.append("text").attr("class", "soft").attr("y", 24).text(`best`);
      group
        .append("text")
        .attr("class", "soft")
        .attr("y", 24)
        .attr("x", long)
        .attr("text-anchor", "end")
        .text(`+${format.percent(worst)} ${view.unit}`);
    };

    const spanOf = (cells, key, other) => {
      const best = cells.reduce((a, b) => (b.value < a.value ? b : a));
      return d3.max(
        cells.filter((cell) => cell[other] === best[other]),
        (cell) => cell.worse,
      );
    };
    return {
      id: "heat-map",
      title: "Group size against block size",
      draw,
      views: ({ result }) => [...ofSweeps(result), ...ofSimulations(result), ...ofSearches(result)],
      says: (view) => {
        const best = view.cells.reduce((a, b) => (b.value < a.value ? b : a));
        const byBlock = spanOf(view.cells, "block", "heads"),
          byHeads = spanOf(view.cells, "heads", "block");
        const kinds = (side) => new Set(view.cells.map((cell) => cell[side])).size;
        const costs = [
          ...(kinds("heads") > 1 ? [`other KV heads cost up to +${format.percent(byHeads)}`] : []),
          ...(kinds("block") > 1 ? [`other block sizes up to +${format.percent(byBlock)}`] : []),
        ];
        const chosen = view.cells.find(({ tied }) => tied && tied.length > 1);
        const tied = chosen
          ? ` With ${chosen.heads} KV heads blocks of ${chosen.tied.join(", ")} cannot be told apart.`
          : "";
        const matters = `${byHeads > byBlock ? "the group size" : "the block size"} matters more`;
        return (
          (view.says ||
            `How much longer the ${view.unit} is than with the best choice, in percent; the frame marks the ` +
              `recommended one. `) +
          `${best.heads} KV head${best.heads === 1 ? "" : "s"} in blocks of ${best.block} are ${view.praise || "fastest"}; ` +
          `from there ${costs.join(", ")}${costs.length > 1 ? `: ${matters}` : ""}.${tied}`
        );
      },
      table: (view) => ({
        columns: ["KV heads", "block", view.measure, "against the best"],
        rows: view.cells.map((cell) => [cell.heads, cell.block, cell.shown, `+${format.percent(cell.worse)}`]),
      }),
    };
  })(),
);
