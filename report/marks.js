// What a pointer, a finger or the keyboard finds on a chart: each mark says its values. A chart is one tab stop; arrow
// keys go from mark to mark.
const marks = (() => {
  const tooltip = () => d3.select("#tooltip");

  const show = (element, { title, lines }) => {
    const box = tooltip().html("").attr("hidden", null);
    box.append("strong").text(title);
    for (const [name, value] of lines) box.append("div").text(`${name}: ${value}`);
    const mark = element.getBoundingClientRect(),
      size = box.node().getBoundingClientRect();
    const centre = Math.min(Math.max(mark.left, 0) + Math.min(mark.width, innerWidth) / 2, innerWidth);
    const x = Math.max(4, Math.min(centre - size.width / 2, document.documentElement.clientWidth - size.width - 4));
    const above = mark.top - size.height - 8;
    box.style("left", `${x}px`).style("top", `${above > 4 ? above : mark.bottom + 8}px`);
  };
  const hide = () => tooltip().attr("hidden", true);

  const move = (element, by) => {
    const all = Array.from(element.ownerSVGElement.querySelectorAll(".mark"));
    const next = all[(all.indexOf(element) + by + all.length) % all.length];
    element.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  };
  const keys = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

  // describe(datum) -> {title, lines: [[name, value]]}
  const describe = (selection, of) => {
    selection
      .classed("mark", true)
      .attr("tabindex", -1)
      .attr("role", "img")
      .attr("aria-label", (datum) => {
        const { title, lines } = of(datum);
        return `${title}; ${lines.map(([name, value]) => `${name} ${value}`).join("; ")}`;
      })
      .on("pointerenter", function (datum) {
        show(this, of(datum));
      })
      .on("pointerleave", hide)
      .on("focus", function (datum) {
        show(this, of(datum));
      })
      .on("blur", hide)
      .on("keydown", function () {
        if (d3.event.key === "Escape") hide();
        if (!keys[d3.event.key]) return;
        d3.event.preventDefault();
        move(this, keys[d3.event.key]);
      });
    if (!selection.empty()) {
      const svg = selection.node().ownerSVGElement;
      if (!svg.querySelector(".mark[tabindex='0']")) svg.querySelector(".mark").setAttribute("tabindex", 0);
    }
    return selection;
  };

  // Names beside their marks, where there is room: [{x, y, text, radius}], the important ones first. `taken`: boxes to
  // keep free. `beside`: where the free sides of the marks are.
  const labels = (plot, wanted, { width, height, size = 11, taken = [], beside = "right" }) => {
    const placed = [...taken];
    const overlaps = (box) =>
      placed.some((other) => box.x0 < other.x1 && box.x1 > other.x0 && box.y0 < other.y1 && box.y1 > other.y0);
    const inside = (box) => box.x0 >= 0 && box.x1 <= width && box.y0 >= 0 && box.y1 <= height;
    const group = plot.append("g").attr("class", "labels").attr("aria-hidden", true).style("pointer-events", "none");
    for (const { x, y, text, radius = 4 } of wanted) {
      const gap = radius + 4;
      const long = axes.textWidth(text, size),
        tall = size + 2;
      const straight = [
        [gap, 0, "start"],
        [-gap, 0, "end"],
        [0, -gap - 4, "middle"],
        [0, gap + 5, "middle"],
      ];
      const corners = [
        [-gap, -gap, "end"],
        [gap, gap + 4, "start"],
        [gap, -gap - 4, "start"],
        [-gap, gap + 6, "end"],
      ];
      const choices = beside === "corners" ? [...corners, ...straight] : [...straight, ...corners];
      for (const [dx, dy, anchor] of choices) {
        const x0 = x + dx - (anchor === "start" ? 0 : anchor === "end" ? long : long / 2);
        const box = { x0, x1: x0 + long, y0: y + dy - tall / 2, y1: y + dy + tall / 2 };
        if (overlaps(box) || !inside(box)) continue;
        placed.push(box);
        group
          .append("text")
          .attr("class", "halo")
          .attr("x", x + dx)
          .attr("y", y + dy)
          .attr("dy", "0.35em")
          .attr("text-anchor", anchor)
          .style("font-size", `${size}px`)
          .text(text);
        break;
      }
    }
  };

  // A box around a mark that labels keep free.
  const boxAround = (x, y, radius) => ({ x0: x - radius, x1: x + radius, y0: y - radius, y1: y + radius });

  return { describe, labels, boxAround };
})();
