"""Does "Predicted against measured" show every pair, with its interval and what came of it?"""

import json

from page_checks import axis, data_of
from step_checks import HALF_A_PIXEL, at, place


def fills(browser):
    return browser.evaluate("""Array.from(document.querySelectorAll("#predicted-measured .mark"),
      mark => mark.getAttribute("fill"))""")


def check_compare(browser, result):
    reported = [each for comparison in result["comparisons"] for each in comparison["reported"]]
    marks = data_of(browser, "#predicted-measured .mark")
    assert len(marks) == len(reported) > 5
    assert set(fills(browser)) == {"var(--other)"}  # no interval was given, none holds
    x, y = axis(browser, "predicted-measured", "x"), axis(browser, "predicted-measured", "y")
    for mark, each in zip(marks, reported):
        assert abs(at(mark["transform"])[0] - place(x, 100 * each["reported_change"], False)) < HALF_A_PIXEL
        assert abs(at(mark["transform"])[1] - place(y, 100 * each["predicted_change"], False)) < HALF_A_PIXEL


def check_pairs(browser, points, interval):
    """A mark for each point, and one that is marked for each measurement outside its interval."""
    marks = data_of(browser, "#predicted-measured .mark")
    assert [mark["datum"]["name"] for mark in marks] == [point["id"] for point in points]
    outside = 0
    for point, mark in zip(points, marks):
        low, high = interval(point)
        assert (mark["datum"]["low"], mark["datum"]["high"]) == (low, high)
        outside += not low <= mark["datum"]["measured"] <= high
    bad = browser.evaluate("""Array.from(document.querySelectorAll("#predicted-measured .mark"))
      .filter(mark => mark.getAttribute("fill") === "var(--bad)").length""")
    assert bad == outside, (bad, outside)


def check_measured(browser, result):
    assert len(result["points"]) == 8
    check_pairs(browser, result["points"], lambda point: tuple(point["interval_seconds"]))
    said = browser.evaluate('document.querySelector("#predicted-measured .says").textContent')
    assert "Half of the 8 lie within " in said, said


def check_validate(browser, result):
    units = list(dict.fromkeys(point["unit"] for point in result["points"]))
    assert len(units) > 1
    for unit in units:
        browser.evaluate(f"""(() => {{ const menu = document.querySelector("#predicted-measured select");
          menu.value = {json.dumps(unit)}; menu.dispatchEvent(new Event("change")); }})()""")
        points = [point for point in result["points"] if point["unit"] == unit]
        check_pairs(browser, points, lambda point: (point["low"], point["high"]))


def check_served(browser, result):
    """Each figure with its interval; painted by whether that holds what was measured."""
    simulation = result["simulations"][0]
    units = browser.evaluate("""Array.from(document.querySelector("#predicted-measured select").options,
      option => option.value)""")
    shown = set()
    for unit in units:
        browser.evaluate(f"""(() => {{ const menu = document.querySelector("#predicted-measured select");
          menu.value = {json.dumps(unit)}; menu.dispatchEvent(new Event("change")); }})()""")
        for mark, fill in zip(data_of(browser, "#predicted-measured .mark"), fills(browser)):
            metric = mark["datum"]["name"]
            low, high = simulation["intervals"][metric]
            assert [mark["datum"]["low"], mark["datum"]["high"]] == [low, high], metric
            holds = low <= simulation["measured"][metric]["measured"] <= high
            assert fill == ("var(--good)" if holds else "var(--bad)"), (metric, fill)
            shown.add(metric)
    assert {"ttft_p50", "output_tokens_per_second", "requests_per_second"} <= shown, shown
