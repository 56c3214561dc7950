"""Do the charts of what can be chosen show the figures of the JSON: block sizes, kinds of attention, phases, settings of a
server? And does the page of `recommend` begin with what to do?"""

import math

from page_checks import axis, data_of
from step_checks import ALL, HALF_A_PIXEL, at, check_first_roofline, choose, place


def check_footprint(browser, result):
    """Each kind of attention at the context asked for, and where it fills the memory of each machine."""
    rows = result["rows"]
    marks = data_of(browser, "#kv-footprint .mark")
    x, y = axis(browser, "kv-footprint", "x"), axis(browser, "kv-footprint", "y")
    shown = {"MHA": rows[0], "MQA": next(row for row in rows if row["num_key_value_heads"] == 1 and row["attention"] == "gqa"),
             "GQA": next(row for row in rows if row["num_key_value_heads"] == 8), "MLA": rows[-1]}
    for kind, row in shown.items():
        mark = next(each for each in marks if each["datum"]["text"].startswith(kind) and "leaves" not in each["datum"])
        assert mark["datum"]["bytes"] == row["kv_bytes"], kind
        assert abs(at(mark["transform"])[0] - place(x, result["tokens"], True)) < HALF_A_PIXEL
        assert abs(at(mark["transform"])[1] - place(y, row["kv_bytes"], True)) < HALF_A_PIXEL
    full = {each["datum"]["text"]: each["datum"]["tokens"] for each in marks if each["datum"].get("leaves")}
    assert len(full) == len(shown) * len(result["rooms"]), full  # all that the sentence names are in the picture
    assert full["GQA, 8 KV heads: longest context on z100"] == shown["GQA"]["longest_context"]["z100"]
    assert full["MHA, 32 KV heads: longest context on k100-ai"] == shown["MHA"]["longest_context"]["k100-ai"]
    lines = [each["datum"]["bytes"] for each in data_of(browser, "#kv-footprint .room")]
    assert lines == [room["kv_bytes"] for room in result["rooms"]] and len(lines) == 2


def check_intensity(browser, result):
    """A dot for each op that moves something, and the layer's line."""
    shown = [row for row in result["rows"] if row["intensity"]]
    marks, x = data_of(browser, "#intensity .mark"), axis(browser, "intensity", "x")
    assert [mark["datum"]["op"] for mark in marks] == [row["op"] for row in shown] and len(marks) > 5
    for mark, row in zip(marks, shown, strict=True):
        assert abs(at(mark["transform"])[0] - place(x, row["intensity"], True)) < HALF_A_PIXEL
    assert [each["datum"]["intensity"] for each in data_of(browser, "#intensity .layer")] == [result["total"]["intensity"]]


def check_both_intensities(browser, result):
    """Two dots for each op and for the layer, on one axis with the ridge of each machine."""
    shown = [(row["phase"], row["op"], row["intensity"]) for row in result["rows"] if row["intensity"]]
    shown += [(total["phase"], "the layer", total["intensity"]) for total in (result["total"], result["decode_total"])]
    marks, x = data_of(browser, "#intensity .mark"), axis(browser, "intensity", "x")
    assert sorted((mark["datum"]["phase"], mark["datum"]["op"], mark["datum"]["intensity"]) for mark in marks) == sorted(shown)
    for mark in marks:
        assert abs(at(mark["transform"])[0] - place(x, mark["datum"]["intensity"], True)) < HALF_A_PIXEL
    ridges = [each["datum"]["intensity"] for each in data_of(browser, "#intensity .ridge")]
    assert ridges == [ridge["flop_per_second"] / ridge["bytes_per_second"] for ridge in result["ridges"]] and len(ridges) == 2
    drawn = browser.evaluate("""Array.from(document.querySelectorAll("#intensity .canvas text"), text => text.textContent)""")
    assert "0.9995" in drawn and "1.00" not in drawn, drawn
    assert {f"{ridge['machine']} {ridge['intensity']:.3g}" for ridge in result["ridges"]} <= set(drawn), drawn


def check_phases(browser, result):
    """Both phases in one drawing, at DRAM alone; each is a view of its own too."""
    options = browser.evaluate("""Array.from(document.querySelector("#roofline select[data-choice='phase']").options,
      option => option.value)""")
    assert options == ["prefill and decode", "prefill", "decode"], options
    check_first_roofline(browser, result["machines"][0]["points"], result["machine_facts"]["k100-ai"])
    assert {each["datum"]["level"] for each in data_of(browser, "#roofline .level")} == {"DRAM"}
    choose(browser, "roofline", "shown", ALL)
    marks = data_of(browser, "#roofline .mark")
    expected = {(point["choices"]["workload.phase"], op["op"]): (op["flops"] / op["bytes"]["DRAM"], op["flops"] / op["seconds"])
                for point in result["machines"][0]["points"] for op in point["ops"]
                if op["flops"] > 0 and op["bytes"]["DRAM"] > max(op["bytes"].values()) / 1000}
    assert len(marks) == len(expected) > 20
    x, y = axis(browser, "roofline", "x"), axis(browser, "roofline", "y")
    for mark in marks:
        intensity, rate = expected.pop((mark["datum"]["step"], mark["datum"]["op"]["op"]))
        assert abs(at(mark["transform"])[0] - place(x, intensity, True)) < HALF_A_PIXEL, mark
        assert abs(at(mark["transform"])[1] - place(y, rate, True)) < HALF_A_PIXEL, mark
    looks = browser.evaluate("""Array.from(new Set(Array.from(document.querySelectorAll("#roofline .mark"),
      mark => `${mark.__data__.step} ${mark.getAttribute("fill")}`)))""")
    assert len(looks) == 2, looks


def check_blocks(browser, result):
    """A panel each for the step, empty slots and look-ups; the recommended size is the one that others are held against."""
    machine = result["machines"][0]
    chosen = machine["recommendation"]["block_size"]
    steps = {(point["choices"]["workload.context_tokens"], int(point["choices"]["kv_cache.block_size"])): point
             for point in machine["points"]}
    for panel in ("against", "empty", "lookUps"):
        marks = data_of(browser, f"#block-size .size-{panel}")
        assert len(marks) == len(steps) > 10
        for mark in marks:
            datum = mark["datum"]
            context = datum["curve"].split()[-1]
            point = steps[context, datum["size"]]
            base = steps[context, chosen]["step_seconds"]
            assert math.isclose(datum["against"], point["step_seconds"] / base - 1, abs_tol=1e-12)
            assert datum["empty"] == max(op.get("empty_slots", 0) for op in point["ops"])
            assert math.isclose(datum["lookUps"], sum(op["terms_seconds"]["look_ups"] for op in point["ops"]))
            assert datum["chosen"] == (datum["size"] == chosen)


def check_points(browser, expected, latency):
    """Marks at [(throughput, latency, whether it is solid)], and the SLO's line."""
    marks = data_of(browser, "#throughput-latency .mark")
    assert [(mark["datum"]["x"], mark["datum"]["y"], mark["datum"]["fits"]) for mark in marks] == expected
    limits = [each["datum"] for each in data_of(browser, "#throughput-latency .limit")]
    assert limits == [latency], limits
    shaded = browser.evaluate("""document.querySelector("#throughput-latency .labels").textContent""")
    assert "SLO: TTFT" in shaded, shaded


def check_serving_search(browser, result):
    """Every point, hollow where it misses the SLO; the best has a ring."""
    slo, points = result["slo"], result["served_points"]
    assert len(points) == result["points"]["all"] == 10
    expected = [(point["output_tokens_per_second"], point["ttft_p90"],
                 point["meets_constraints"] and point["share_within_slo"] >= slo["share"]) for point in points]
    assert {fits for *_, fits in expected} == {True, False}, "all are alike, the check would prove little"
    check_points(browser, expected, slo["ttft"])
    rings = [each["datum"]["point"] for each in data_of(browser, "#throughput-latency .ring")]
    assert rings == [result["best"][0]["point"]], rings


def check_fleet(browser, result):
    """The layouts of the devices; above all the machine, the settings and the line to copy."""
    each = result["recommendations"][0]
    layouts = [layout for layout in each["fleet"]["layouts"] if "simulated" in layout]
    expected = [(layout["simulated"]["requests_per_second"] * each["output_tokens"] / layout["devices_of_replica"],
                 layout["simulated"]["ttft_p90"], layout["simulated"]["slo_attainment"] >= result["slo"]["share"])
                for layout in layouts]
    assert len(expected) > 1
    check_points(browser, expected, result["slo"]["ttft"])
    first = browser.evaluate("""document.querySelector("#answer").firstElementChild.className""")
    assert first == "recommended", first
    told = browser.evaluate("""document.querySelector(".recommended").innerText""")
    for part in (each["machine"], each["model"], str(each["max_num_seqs"]), each["decisions"][-1]["choice"]):
        assert part in told, (part, told)
    assert browser.evaluate("""document.querySelector(".command code").textContent""") == each["serve_command"]
    browser.evaluate("""document.querySelector("button.copy").click()""")
    button = """new Promise(done => setTimeout(() => done(document.querySelector("button.copy").textContent), 200))"""
    assert browser.evaluate(button).startswith(("Copied", "Selected")), browser.evaluate(button)
