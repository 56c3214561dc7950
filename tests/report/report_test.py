"""Opens what `--report` writes in headless Chromium: is every chart there, and does it show the figures of the JSON?

Usage: report_test.py DCULAB SOURCE_DIR. Exits with 77 (skipped) where there is no `chromium`.
"""

import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "picture"))
from browser import DESKTOP, PHONE, Browser  # noqa: E402
from answer_checks import check_missed_search, check_other_model, check_room, check_sensitivities, check_shares
from choice_checks import (check_blocks, check_both_intensities, check_fleet, check_footprint, check_intensity, check_phases,
                           check_serving_search)
from page_checks import axis, check_download, check_exports, check_keyboard, check_layout, check_theme, data_of, text_of
from pair_checks import check_compare, check_measured, check_served, check_validate
from step_checks import HALF_A_PIXEL, at, check_bars, check_hit_rates, check_roofline, place
from written_commands import (measured_command, missed_search_command, prefill_command, search_command, served_command,
                              serving_search_command)

PROGRAM, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
HEADS, BLOCK = "model.num_key_value_heads", "kv_cache.block_size"
COMMANDS = {
    "predict": ["predict", "--model", "llama-3-8b", "--machine", "z100", "--batch", "16", "--context", "2048"],
    "last_level": ["predict", "--model", "llama-3-8b", "--machine", "mi300x", "--batch", "16"],
    "study": ["study", "llama3_on_dcu"],
    "accuracy": ["study", "group_size"],
    "compare": ["study", "papers/opt_gptq"],
    "simulate": ["simulate", "serving/llama3_on_z100"],
    "preemptions": ["simulate", "serving/llama3_on_z100", "--set", "workload.requests_per_second=4",
                    "engine.max_num_seqs=256", "workload.prompt_tokens=200", "workload.output_tokens=1000",
                    "engine.gpu_memory_utilization=0.5"],
    "recommend": ["recommend", "--model", "llama-3-8b", "--machine", "z100", "k100-ai"],
    "validate": ["validate", "--points", "tests/data/published_points.csv"],
    "footprint": ["tables", "footprint", "--model", "llama-3-8b", "--tokens", "2000", "--batch", "16", "--machine", "z100",
                  "k100-ai"],
    "intensity": ["tables", "intensity", "--model", "llama-3-8b", "--phase", "decode", "--lecture"],
    "intensities": ["tables", "intensity", "--model", "llama-2-7b", "--lecture", "--phase", "both", "--machine", "z100",
                    "k100-ai"],
    "phases": ["study", "tutorial/prefill_and_decode"],
    "other_model": ["study", "tutorial/prefill_and_decode", "--model", "qwen3-8b", "--machine", "z100"],
    "blocks": ["study", "block_size", "--set", "machines=[a100-80gb-sxm]", "--stack", "vllm"],
    "fleet": ["recommend", "--model", "llama-3-8b", "--machine", "k100-ai", "--stack", "vllm", "--requests-per-second", "5",
              "--devices", "2", "--ttft", "2 s", "--tpot", "60 ms"],
}
SECTIONS = {
    "predict": ["roofline", "time-by-op", "hit-rates", "assumptions"],
    "last_level": ["roofline", "time-by-op", "hit-rates", "assumptions"],
    "study": ["roofline", "time-by-op", "time-by-bound", "hit-rates", "heat-map", "block-size", "pareto", "assumptions"],
    "accuracy": ["pareto", "assumptions"],
    "compare": ["predicted-measured", "assumptions"],
    "simulate": ["time-by-bound", "throughput-latency", "interactivity", "kv-use", "assumptions"],
    "measured": ["predicted-measured", "assumptions"],
    "preemptions": ["time-by-bound", "kv-use", "assumptions"],
    "recommend": ["throughput-latency", "decisions", "assumptions"],
    "footprint": ["kv-footprint"],
    "intensity": ["intensity"],
    "intensities": ["intensity"],
    "other_model": ["roofline", "time-by-op", "time-by-bound", "hit-rates", "assumptions"],
    "phases": ["roofline", "time-by-op", "time-by-bound", "hit-rates", "assumptions"],
    "blocks": ["roofline", "time-by-op", "time-by-bound", "hit-rates", "heat-map", "block-size", "assumptions"],
    "fleet": ["throughput-latency", "decisions", "assumptions"],
    "serving_search": ["throughput-latency", "assumptions"],
    "missed_search": ["throughput-latency", "assumptions"],
    "validate": ["predicted-measured", "assumptions"],
    "search": ["roofline", "time-by-op", "hit-rates", "heat-map", "pareto", "assumptions"],
    "served": ["time-by-bound", "predicted-measured", "kv-use", "assumptions"],
    "prefill": ["roofline", "time-by-op", "time-by-bound", "hit-rates", "throughput-latency", "assumptions"],
}


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def write(command, page):
    """The page of a command, and its JSON."""
    done = run(*command, "--format", "json", "--report", str(page))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_predict(browser, result):
    assert text_of(browser, "h1").startswith("llama-3-8b on z100: decode, batch 16, context 2048, ")
    check_roofline(browser, result, result["machine_facts"]["z100"])
    check_bars(browser, result)
    check_hit_rates(browser, result)
    rows = browser.evaluate('document.querySelectorAll("#assumptions tbody tr").length')
    assert rows == len(result["machine_facts"]["z100"]["figures"]) > 40
    first = browser.evaluate('document.querySelector("#assumptions tbody td").textContent')
    assert first == result["leans_on"][0]["key"]


def check_last_level(browser, result):
    """A cache called LLC has a colour of its own."""
    check_roofline(browser, result, result["machine_facts"]["mi300x"])
    colors = browser.evaluate("""(() => {
      const marks = Array.from(document.querySelectorAll("#roofline .mark"));
      const filled = marks.map((mark) => [mark.__data__.level, getComputedStyle(mark).fill]);
      const lines = Array.from(document.querySelectorAll("#roofline .level"), (each) => getComputedStyle(each));
      return { filled, strokes: lines.map((each) => each.stroke) }; })()""")
    fills = dict(colors["filled"])
    assert set(fills) == {"DRAM", "LLC", "L1", "L2"} and len(set(fills.values())) == 4, fills
    assert len(colors["strokes"]) == 4 and "none" not in colors["strokes"], colors["strokes"]


def check_study(browser, result):
    first, second = result["machines"]
    cells = {(each["datum"]["heads"], each["datum"]["block"]): each["datum"]
             for each in data_of(browser, "#heat-map .mark")}
    assert len(cells) == len(first["points"]) == 36
    best = min(point["step_seconds"] for point in first["points"])
    for point in first["points"]:
        cell = cells[int(point["choices"][HEADS]), int(point["choices"][BLOCK])]
        assert math.isclose(cell["worse"], point["step_seconds"] / best - 1, abs_tol=1e-12)
    chosen = [each["datum"] for each in data_of(browser, "#heat-map .chosen")]
    recommended = first["recommendation"]
    assert [(each["heads"], each["block"]) for each in chosen] == [
        (recommended["num_key_value_heads"], recommended["block_size"])]
    point = next(point for point in first["points"] if int(point["choices"][HEADS]) == chosen[0]["heads"]
                 and int(point["choices"][BLOCK]) == chosen[0]["block"])
    check_roofline(browser, point, result["machine_facts"]["z100"])
    check_room(browser, result, 16)
    browser.evaluate("""for (const menu of document.querySelectorAll("select[data-choice='machine']")) {
      menu.value = "k100-ai"; menu.dispatchEvent(new Event("change")); }""")
    check_sensitivities(browser, "k100-ai", second["leans_on"])
    shown = sorted(each["datum"]["value"] for each in data_of(browser, "#heat-map .mark"))
    assert shown == sorted(point["step_seconds"] for point in second["points"])


def check_accuracy(browser, result):
    points = [point for point in result["machines"][0]["points"] if "loss" in point]
    marks = data_of(browser, "#pareto .mark")
    assert sorted(mark["datum"]["x"] for mark in marks) == sorted(point["loss"] for point in points)
    assert sum(mark["datum"]["front"] for mark in marks) == sum(point["pareto"] for point in points) > 1


def check_search(browser, result):
    marks = data_of(browser, "#pareto .mark")
    front = result["pareto"]
    assert len(marks) == len(front) > 1
    shown = sorted((mark["datum"]["x"], mark["datum"]["y"]) for mark in marks)
    assert shown == sorted((point["tokens_per_second"], point["step_time"]) for point in front)
    facts, best = result["machine_facts"]["z100"], result["best"][0]
    rows = browser.evaluate('document.querySelectorAll("#assumptions tbody tr").length')
    assert rows == len(facts["figures"]) > 40
    step = {"step_seconds": best["step_time"], "ops": best["ops"]}
    check_roofline(browser, step, facts)
    check_bars(browser, step)
    cells = data_of(browser, "#heat-map .mark")
    most = max(point["tokens_per_second"] for point in result["best_of_pairs"])
    worse = {(int(point["choices"][HEADS]), int(point["choices"][BLOCK])): most / point["tokens_per_second"] - 1
             for point in result["best_of_pairs"]}
    assert len(cells) == len(worse) == 4
    for cell in cells:
        assert math.isclose(cell["datum"]["worse"], worse[cell["datum"]["heads"], cell["datum"]["block"]], abs_tol=1e-12)
    chosen = [each["datum"] for each in data_of(browser, "#heat-map .chosen")]
    assert [(str(each["heads"]), str(each["block"])) for each in chosen] == [
        (best["choices"][HEADS], best["choices"][BLOCK])]


def check_both_phases(browser, result):
    check_phases(browser, result)
    check_shares(browser)


def check_prefill(browser, result):
    """Tokens of prompts are no output."""
    assert len(data_of(browser, "#throughput-latency .mark")) == len(result["machines"][0]["points"]) == 3
    labels = browser.evaluate("""Array.from(document.querySelectorAll("#throughput-latency .axis-label"),
      label => label.textContent)""")
    assert "tokens/s" in labels, labels


def check_simulate(browser, result):
    simulations = result["simulations"]
    marks = data_of(browser, "#throughput-latency .mark")
    assert len(marks) == len(simulations) > 3
    x, y = axis(browser, "throughput-latency", "x"), axis(browser, "throughput-latency", "y")
    for mark, each in zip(marks, simulations):
        assert abs(at(mark["transform"])[0] - place(x, each["output_tokens_per_second"], False)) < HALF_A_PIXEL
        assert abs(at(mark["transform"])[1] - place(y, each["ttft_p90"], True)) < HALF_A_PIXEL
    limits = data_of(browser, "#throughput-latency .limit")
    assert [each["datum"] for each in limits] == [simulations[0]["slo"]["ttft"]], limits
    x, y = axis(browser, "interactivity", "x"), axis(browser, "interactivity", "y")
    for mark, each in zip(data_of(browser, "#interactivity .mark"), simulations, strict=True):
        assert abs(at(mark["transform"])[0] - place(x, each["tokens_per_second_per_user"], True)) < HALF_A_PIXEL
        assert abs(at(mark["transform"])[1] - place(y, each["tokens_per_second_per_gpu"], False)) < HALF_A_PIXEL
    shown = data_of(browser, "#kv-use .mark")
    assert [each["datum"] for each in shown] == simulations[result["best"][0]]["timeline"]
    parts = data_of(browser, "#time-by-bound .mark")
    assert math.isclose(sum(each["datum"]["seconds"] for each in parts),
                        sum(sum(each["seconds_by_bound"].values()) for each in simulations))


def check_preemptions(browser, result):
    timeline = result["simulations"][0]["timeline"]
    preempted = [each for each in timeline if each["preemptions"] > 0]
    assert preempted, "nothing is preempted, the check would prove nothing"
    assert [each["datum"] for each in data_of(browser, "#kv-use .preempted")] == preempted


def check_recommend(browser, result):
    """A bar for each candidate, as long as what it serves; the menu goes through the decisions."""
    z100 = result["recommendations"][0]
    views = {"KV dtype": z100["decisions"][1], "block size": z100["decisions"][2], "partition": z100["decisions"][3]}
    for setting, decision in views.items():
        browser.evaluate(f"""(() => {{ const menu = document.querySelector("#decisions select[data-choice='setting']");
          menu.value = {json.dumps(setting)}; menu.dispatchEvent(new Event("change")); }})()""")
        bars = data_of(browser, "#decisions .mark")
        candidates = decision["candidates"]
        assert [bar["datum"]["name"] for bar in bars] == [each["value"] for each in candidates]
        assert [bar["datum"]["name"] for bar in bars if bar["datum"]["chosen"]] == [decision["choice"]]
        longest = max(each["output_tokens_per_second"] for each in candidates)
        widest = max(bar["box"][2] for bar in bars)
        for bar, each in zip(bars, candidates):
            assert abs(bar["box"][2] - widest * each["output_tokens_per_second"] / longest) < HALF_A_PIXEL
    rows = browser.evaluate('document.querySelectorAll("#assumptions tbody tr").length')
    assert rows == len(result["machine_facts"]["z100"]["figures"]) > 40


def check_hostile_names(browser, folder):
    """What a file says stays text, whatever it says."""
    question = '</script><script>document.title = "taken"</script><!--<b>&amp; "quoted"'
    page = folder / "hostile.html"
    text = (ROOT / "scenarios/llama3_on_dcu.yaml").read_text(encoding="utf-8")
    scenario = folder / "hostile.yaml"
    scenario.write_text("\n".join(f"question: '{question}'" if line.startswith("question:") else line
                                  for line in text.splitlines()), encoding="utf-8")
    write(["study", str(scenario)], page)
    browser.open(page)
    assert not browser.problems, browser.problems
    assert browser.evaluate('document.querySelector("#question").textContent') == question
    assert browser.evaluate("document.title") == f"dculab study: {question}"


def check_file(page):
    text = page.read_text(encoding="utf-8")
    assert "Content-Security-Policy" in text and "Permission to use, copy, modify, and/or distribute" in text
    assert "@observablehq/plot 0." in text and "d3-scale 4." in text
    assert "@DATA@" not in text and "@TITLE@" not in text
    refused = run(*COMMANDS["predict"], "--report", "/nowhere/page.html")
    assert refused.returncode == 2 and refused.stdout == "" and "/nowhere/page.html" in refused.stderr


CHECKS = {"predict": check_predict, "last_level": check_last_level, "study": check_study, "accuracy": check_accuracy,
          "compare": check_compare,
          "simulate": check_simulate, "preemptions": check_preemptions,
          "recommend": check_recommend, "measured": check_measured, "validate": check_validate, "search": check_search,
          "served": check_served, "prefill": check_prefill, "footprint": check_footprint, "intensity": check_intensity,
          "intensities": check_both_intensities, "phases": check_both_phases, "other_model": check_other_model,
          "blocks": check_blocks, "fleet": check_fleet, "serving_search": check_serving_search,
          "missed_search": check_missed_search}


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        commands = {**COMMANDS, "measured": measured_command(ROOT, folder), "search": search_command(folder),
                    "served": served_command(ROOT, folder), "prefill": prefill_command(folder),
                    "serving_search": serving_search_command(folder), "missed_search": missed_search_command(folder)}
        pages = {command: folder / f"{command}.html" for command in commands}
        results = {command: write(arguments, pages[command]) for command, arguments in commands.items()}
        check_file(pages["predict"])
        if not shutil.which("chromium"):
            print("no chromium: scripts/install-packages --test installs it")
            return 77
        browser = Browser()
        try:
            for command, page in pages.items():
                for size in (PHONE, DESKTOP):
                    for scheme in ("light", "dark"):
                        check_layout(browser, page, size, scheme, SECTIONS[command])
                        check_exports(browser)
                CHECKS[command](browser, results[command])
            check_download(browser, pages["predict"], "roofline")
            check_theme(browser, pages["predict"])
            check_keyboard(browser, pages["predict"])
            check_hostile_names(browser, folder)
        finally:
            browser.close()
    print(f"{len(pages)} pages, all as their JSON says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
