// What each candidate of a recommendation's decisions brings, beside the one that is recommended.
charts.push(
  (() => {
    const served = (each) => `${format.number(each.output_tokens_per_second)} tokens/s`;
    const barOf = (candidate, chosen, other) => ({
      name: candidate.value,
      value: candidate.output_tokens_per_second,
      shown: served(candidate),
      chosen: candidate.value === chosen,
      other: candidate.value === other,
      lines: [
        ["output", served(candidate)],
        ["at a time", candidate.max_num_seqs],
        ["TPOT", format.time(candidate.tpot_seconds)],
      ],
    });
    const titles = {
      "model.num_key_value_heads": "KV heads",
      "kv_cache.dtype": "KV dtype",
      "kv_cache.block_size": "block size",
      "attention.partition_tokens": "partition",
    };

    const ofDecision = (decision) => ({
      setting: titles[decision.key] || decision.key,
      unit: "output tokens a second",
      tied: decision.indistinguishable,
      bars: decision.candidates.map((each) => barOf(each, decision.choice, decision.runner_up)),
    });
    const ofHeads = (all, decisions) => {
      const choice = decisions.find((each) => each.key === "model.num_key_value_heads").choice;
      return {
        setting: "KV heads, with training",
        unit: "output tokens a second",
        bars: all.map((each) => barOf(each, choice)),
      };
    };
    const ofTokens = ({ by, choice, candidates, indistinguishable }) => {
      const byGoodput = by === "goodput";
      const shown = (each) => (byGoodput ? `${format.number(each.goodput)} requests/s` : format.time(each.latency_mean));
      return {
        setting: "max_num_batched_tokens",
        unit: byGoodput ? "goodput, requests a second" : "mean latency, s (less is better)",
        tied: indistinguishable,
        bars: candidates.map((each) => ({
          name: String(each.value),
          value: byGoodput ? each.goodput : each.latency_mean,
          shown: shown(each),
          chosen: each.value === choice,
          lines: [
            [byGoodput ? "goodput" : "mean latency", shown(each)],
            ["TTFT P90", format.time(each.ttft_p90)],
            ["TPOT P90", format.time(each.tpot_p90)],
            ["preemptions", each.preemptions],
          ],
        })),
      };
    };

    const viewsOf = ({ result }) =>
      (result.recommendations || []).flatMap((each) =>
        [
          ...each.decisions.map(ofDecision),
          ofHeads(each.kv_heads, each.decisions),
          ofTokens(each.max_num_batched_tokens),
        ]
          .filter(({ bars }) => bars.length > 1)
          .map((view) => ({ ...view, choices: { machine: each.machine, setting: view.setting } })),
      );

    const drawBars = (area, view, x, y) => {
      const bars = area.plot
        .selectAll(".candidate")
        .data(view.bars)
        .join("rect")
        .attr("class", "candidate")
        .attr("x", 0)
        .attr("y", (bar) => y(bar.name))
        .attr("width", (bar) => x(bar.value))
        .attr("height", y.bandwidth())
        .attr("rx", 2)
        .style("fill", (bar) => (bar.chosen ? "var(--series-0)" : "var(--series-1)"));
      marks.describe(bars, (bar) => ({
        title: `${view.setting} ${bar.name}${bar.chosen ? ", recommended" : bar.other ? ", runner-up" : ""}`,
        lines: bar.lines,
      }));
      area.plot
        .selectAll(".value")
        .data(view.bars)
        .join("text")
        .attr("class", "value")
        .style("pointer-events", "none")
        .attr("x", (bar) => x(bar.value) + 6)
        .attr("y", (bar) => y(bar.name) + y.bandwidth() / 2)
        .attr("dy", "0.35em")
        .style("font-size", "11px")
        .text((bar) => bar.shown);
    };

    const draw = (container, view) => {
      const room = d3.max(view.bars, (bar) => axes.textWidth(bar.shown, 11)) + 12;
      const area = axes.frame(container, {
        title: "What each choice brings",
        height: view.bars.length * 30,
        margin: { top: 30, right: room, bottom: 48, left: 24 + d3.max(view.bars, (bar) => axes.textWidth(bar.name)) },
        entries: [
          { text: "recommended", color: "var(--series-0)" },
          { text: "other candidates", color: "var(--series-1)" },
        ],
      });
      const x = d3
        .scaleLinear()
        .domain([0, d3.max(view.bars, (bar) => bar.value) || 1])
        .range([0, area.width]);
      const y = d3
        .scaleBand()
        .domain(view.bars.map((bar) => bar.name))
        .range([0, area.height])
        .padding(0.2);
      axes.left(area, y, view.setting, (value) => value);
      axes.bottom(area, x, view.unit, (value) => format.number(value), area.narrow ? 3 : 6);
      drawBars(area, view, x, y);
    };

    return {
      id: "decisions",
      title: "What each choice brings",
      draw,
      views: viewsOf,
      says: (view) => {
        const chosen = view.bars.find((bar) => bar.chosen);
        return (
          `Candidates for ${view.setting}, the preferred first; recommended: ${chosen.name}, ${chosen.shown}.` +
          (view.tied && view.tied.length > 1 ? ` ${view.tied.join(", ")} cannot be told apart from the best.` : "")
        );
      },
      table: (view) => ({
        columns: [view.setting, ...view.bars[0].lines.map(([name]) => name), ""],
        rows: view.bars.map((bar) => [
          bar.name,
          ...bar.lines.map(([, value]) => value),
          bar.chosen ? "recommended" : bar.other ? "runner-up" : "",
        ]),
      }),
    };
  })(),
);
