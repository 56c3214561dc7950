// Puts the page together: the answer, every chart that has data, the tables, the switch of the theme.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const command = data.schema.split("/")[1];

  const themes = ["system", "light", "dark"],
    names = { system: "as the system", light: "light", dark: "dark" };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let theme = "system";
  const apply = () => {
    document.documentElement.dataset.theme = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
    d3.select("#theme").text(`Theme: ${names[theme]}`);
  };
  dark.addEventListener("change", apply);
  d3.select("#theme").on("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    apply();
  });
  apply();

  d3.select("#command").text(`dculab ${command}`);
  d3.select("#question").text(data.heading[0] || data.result.question || `dculab ${command}`);
  printed.answer(d3.select("#answer"), data);
  const shown = charts.map((chart) => ({ chart, views: chart.views(data) })).filter(({ views }) => views.length > 0);
  const list = d3.select("#contents").append("ul");
  for (const { chart } of shown) list.append("li").append("a").attr("href", `#${chart.id}`).text(chart.title);
  if (data.tables.length) list.append("li").append("a").attr("href", "#figures").text("Tables");
  for (const { chart, views } of shown) sections.add(d3.select("#charts"), chart, views);
  printed.all(d3.select("#tables"), data);
  d3.select("#made-by").text(
    `Made by dculab ${data.version}; charts by D3 ${d3.version}, whose licence is in this file. Needs no network.`,
  );
})();
