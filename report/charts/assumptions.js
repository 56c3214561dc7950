// Every figure of a machine and its source, those that nobody published or measured first.
charts.push(
  (() => {
    const order = ["swept", "assumed", "measured", "spec"];
    const viewsOf = ({ result }) => {
      const leanings = facts.leanings(result);
      return Object.entries(facts.machines(result)).map(([machine, { figures }]) => {
        const changes = leanings[machine] || {},
          asked = machine in leanings;
        const sorted = figures
          .map((figure) => ({ ...figure, change: changes[figure.key] }))
          .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || (b.change || 0) - (a.change || 0));
        return { choices: { machine }, machine, asked, figures: sorted };
      });
    };
    return {
      id: "assumptions",
      title: "Assumptions and sources",
      views: viewsOf,
      says: (view) => {
        const assumed = view.figures.filter((figure) => figure.kind === "assumed"),
          leaned = assumed.filter((figure) => figure.change);
        return (
          `What ${view.machine} is taken to be: ${assumed.length} of ${view.figures.length} figures are assumed. ` +
          (leaned.length
            ? `The answer leans most on ${leaned[0].key}: were it 10 % off, times would change by ` +
              `${format.percent(leaned[0].change)}.`
            : view.asked
              ? "None of them changes the answer by 1 % or more when it is 10 % off."
              : "How much an answer leans on them, dculab predict and dculab study say.")
        );
      },
      table: (view) => ({
        columns: ["figure", "value", "kind", "if 10 % off", "source"],
        words: true,
        rows: view.figures.map((figure) => [
          figure.key,
          figure.value,
          figure.kind,
          figure.change ? format.percent(figure.change) : "",
          figure.source,
        ]),
      }),
    };
  })(),
);
