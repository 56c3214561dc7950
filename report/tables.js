// What the command prints on a terminal: heading lines, tables, notes.
const printed = (() => {
  const isVerdict = (line) => line.startsWith("→");
  const answer = (root, { heading, tables }) => {
    for (const line of tables.flatMap((table) => table.notes).filter(isVerdict))
      root.append("p").attr("class", "verdict").text(line.slice(1).trim());
    for (const line of heading.slice(1)) root.append("p").attr("class", "note").text(line);
  };

  const all = (root, { tables }) => {
    if (!tables.length) return;
    const section = root.append("section").attr("id", "figures");
    section.append("h2").text("Tables");
    tables.forEach((table, index) => {
      const details = section.append("details").property("open", index === 0 && table.rows.length <= 40);
      details.append("summary").text(table.title || "What the command prints");
      sections.tableElement(details, table);
      if (table.left_out)
        details.append("p").attr("class", "note").text(`${table.left_out} more rows: \`--format csv\` has them all.`);
      for (const note of table.notes) details.append("p").attr("class", "note").text(note);
    });
  };
  return { answer, all };
})();
