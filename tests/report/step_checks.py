"""Are the marks of a step's charts where the JSON of the step says they should be?"""

import math

from page_checks import axis, data_of

HALF_A_PIXEL = 0.5
ALL = "all ops and ceilings"


def place(ticks, value, log):
    """Where an axis with these ticks has a value."""
    of = math.log if log else float
    (low, at_low), (high, at_high) = ticks[0], ticks[-1]
    return at_low + (of(value) - of(low)) / (of(high) - of(low)) * (at_high - at_low)


def at(transform):
    return [float(part) for part in transform.split("(")[1].split(")")[0].split(",")]


def choose(browser, section, choice, value):
    browser.evaluate(f"""(() => {{ const menu = document.querySelector("#{section} select[data-choice='{choice}']");
      menu.value = "{value}"; menu.dispatchEvent(new Event("change")); }})()""")


def check_first_roofline(browser, steps, machine):
    """At first only what matters: ops of 1 % of their step, DRAM and levels that bound one of them, peaks that these use."""
    long = [op for step in steps for op in step["ops"] if op["seconds"] >= 0.01 * step["step_seconds"]]
    shown = {mark["datum"]["op"]["op"] for mark in data_of(browser, "#roofline .mark")}
    assert shown == {op["op"] for op in long if op["flops"] > 0}, shown
    levels = {each["datum"]["level"] for each in data_of(browser, "#roofline .level")}
    bounds = {op["bound"] for op in long} & {level["level"] for level in machine["memory"]}
    assert bounds | {machine["memory"][-1]["level"]} <= levels, (levels, bounds)
    peaks = {each["datum"]["rate"] for each in data_of(browser, "#roofline .peak")}
    assert peaks and peaks <= {op["peak_flop_per_second"] for op in long if op["flops"] > 0}, peaks
    (ridge,) = [each["datum"] for each in data_of(browser, "#roofline .ridge")]
    assert ridge["y"] in peaks and math.isclose(ridge["x"] * machine["memory"][-1]["bytes_per_second"], ridge["y"])
    named = browser.evaluate("""document.querySelector("#roofline .labels").textContent""")
    assert "ridge: " in named and " FLOP/byte" in named, named


def check_roofline(browser, step, machine):
    check_first_roofline(browser, [step], machine)
    choose(browser, "roofline", "shown", ALL)
    marks = data_of(browser, "#roofline .mark")
    expected = {(op["op"], level): (op["flops"] / size, op["flops"] / op["seconds"])
                for op in step["ops"] if op["flops"] > 0 for level, size in op["bytes"].items()
                if size > max(op["bytes"].values()) / 1000}
    assert len(marks) == len(expected) > 10
    x, y = axis(browser, "roofline", "x"), axis(browser, "roofline", "y")
    for mark in marks:
        intensity, rate = expected.pop((mark["datum"]["op"]["op"], mark["datum"]["level"]))
        assert abs(at(mark["transform"])[0] - place(x, intensity, True)) < HALF_A_PIXEL, mark
        assert abs(at(mark["transform"])[1] - place(y, rate, True)) < HALF_A_PIXEL, mark
    slopes = browser.evaluate("""Array.from(document.querySelectorAll("#roofline .level"),
      line => [line.__data__.bandwidth, line.getAttribute("d").match(/M([^,]*),(.*)L/).slice(1).map(Number)])""")
    assert [slope for slope, _ in slopes] == [level["bytes_per_second"] for level in machine["memory"]]
    for bandwidth, (left, top) in slopes:
        low, high = x[0][0], x[-1][0]
        intensity = low * (high / low) ** ((left - x[0][1]) / (x[-1][1] - x[0][1]))
        assert abs(top - place(y, intensity * bandwidth, True)) < HALF_A_PIXEL
    peaks = [each["datum"]["rate"] for each in data_of(browser, "#roofline .peak")]
    assert sorted(peaks) == sorted({each["flop_per_second"] for each in machine["peaks"]})


def check_bars(browser, step):
    """Bars as long as their ops, the step as long as all of them with the host."""
    x = axis(browser, "time-by-op", "x")
    length = {}
    for mark in data_of(browser, "#time-by-op .mark"):
        length[mark["datum"]["row"]] = length.get(mark["datum"]["row"], 0) + mark["box"][2]
    for row, seconds in [("whole step", step["step_seconds"]), *((op["op"], op["seconds"]) for op in step["ops"])]:
        assert abs(length[row] - max(1, place(x, seconds, False) - place(x, 0, False))) < 4, (row, length[row])


def check_hit_rates(browser, step):
    x = axis(browser, "hit-rates", "x")
    marks = data_of(browser, "#hit-rates .mark")
    assert len(marks) == len(step["ops"]) * (len(step["ops"][0]["hit_rate"]) - 1)
    for mark in marks:
        op = next(op for op in step["ops"] if op["op"] == mark["datum"]["op"]["op"])
        rate = op["hit_rate"][mark["datum"]["level"]]
        assert abs(at(mark["transform"])[0] - place(x, rate, False)) < HALF_A_PIXEL
