// The section of a chart: heading, what it says, a choice of what to show, the drawing, a table of its values.
//
// A chart is {id, title, views(data), says(view), draw(container, view, views), table(view)}. `views` returns what it
// can show, [] when the command has no data for it: each view has `choices`, {name: value}, and may be `chosen`. Where
// the choices differ there is a menu for each name. `table` returns {columns, rows, words}.
const charts = [];

const sections = (() => {
  const tableElement = (container, { columns, rows, words }) => {
    const table = container
      .append("div")
      .attr("class", `scroll${rows.length > 20 ? " tall" : ""}`)
      .attr("tabindex", 0)
      .attr("role", "region")
      .attr("aria-label", "table")
      .append("table")
      .classed("words", Boolean(words));
    table
      .append("thead")
      .append("tr")
      .selectAll("th")
      .data(columns)
      .join("th")
      .attr("scope", "col")
      .text((text) => text);
    table
      .append("tbody")
      .selectAll("tr")
      .data(rows)
      .join("tr")
      .selectAll("td")
      .data((row) => row)
      .join("td")
      .attr("data-label", (_, index) => columns[index])
      .text((text) => text);
  };

  // The values of each name, in the order they are met, where there is more than one.
  const menusOf = (views) => {
    const names = Array.from(new Set(views.flatMap((view) => Object.keys(view.choices || {}))));
    return names
      .map((name) => ({ name, values: Array.from(new Set(views.map((view) => String((view.choices || {})[name])))) }))
      .filter(({ values }) => values.length > 1);
  };

  // The view with most of the wanted choices, the one just changed before all others.
  const nearest = (views, wanted, changed) => {
    const score = (view) =>
      d3.sum(Object.keys(wanted), (name) =>
        String(view.choices[name]) === wanted[name] ? (name === changed ? 1000 : 1) : 0,
      );
    return views.reduce((best, view) => (score(view) > score(best) ? view : best));
  };

  const addMenus = (controls, views, current, choose) => {
    const menus = menusOf(views);
    const selects = {};
    for (const { name, values } of menus) {
      const select = controls.append("label").text(name).append("select").attr("data-choice", name);
      select
        .selectAll("option")
        .data(values)
        .join("option")
        .attr("value", (value) => value)
        .text((value) => value);
      select.on("change", () => {
        const wanted = Object.fromEntries(menus.map((menu) => [menu.name, selects[menu.name].property("value")]));
        choose(nearest(views, wanted, name));
      });
      selects[name] = select;
    }
    return (view) => {
      for (const [name, select] of Object.entries(selects)) select.property("value", String(view.choices[name]));
    };
  };

  const add = (root, chart, views) => {
    const section = root.append("section").attr("id", chart.id).attr("aria-labelledby", `${chart.id}-title`);
    section.append("h2").attr("id", `${chart.id}-title`).text(chart.title);
    const says = section.append("p").attr("class", "says");
    const controls = section.append("div").attr("class", "controls");
    const canvas = chart.draw ? section.append("div").attr("class", "canvas").node() : null;
    const after = section.append("div").attr("class", "after");
    let current = views.find((view) => view.chosen) || views[0];
    if (chart.draw)
      after
        .append("button")
        .attr("type", "button")
        .attr("class", "download")
        .text("Download SVG")
        .on("click", () => svgExport.download(canvas.querySelector("svg"), chart.title, `dculab-${chart.id}`));
    const details = after.append("details").property("open", !chart.draw);
    details.append("summary").text("As a table");
    const holder = details.append("div");
    const update = () => {
      says.text(chart.says(current));
      if (chart.draw) chart.draw(canvas, current, views);
      tableElement(holder.html(""), chart.table(current));
      markChoices(current);
    };
    const markChoices = addMenus(controls, views, current, (view) => {
      current = view;
      update();
    });
    update();
    if (!chart.draw) return;
    let width = canvas.clientWidth;
    new ResizeObserver(() => {
      if (canvas.clientWidth === width) return;
      width = canvas.clientWidth;
      chart.draw(canvas, current, views);
    }).observe(canvas);
  };

  return { add, tableElement };
})();
