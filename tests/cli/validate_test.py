"""Runs `dculab validate` on published points: what it scores, refuses and leaves out, and the JSON others rely on.

Usage: validate_test.py DCULAB POINTS_CSV
"""

import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

program, points_file = sys.argv[1:3]


def run(*arguments):
    return subprocess.run([program, "validate", *arguments], capture_output=True, text=True)


def validate(*arguments):
    done = run(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def time_error(point, predicted):
    return (predicted / point["measured"] if point["unit"] == "s" else point["measured"] / predicted) - 1


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


with open(points_file, newline="") as file:
    rows = list(csv.DictReader(file))
published = {row["id"]: row for row in rows}

result = validate("--points", points_file)
assert result["schema"] == "dculab/validate/1"
left_out = len(result["refused"]) + len(result["not_priced"])
assert len(result["points"]) + left_out == len(rows)
assert len(result["points"]) > 0.95 * len(rows), result["not_priced"]
for point in result["points"]:
    row = published[point["id"]]
    assert point["measured"] == float(row["value"]) and point["unit"] == row["unit"], point
    assert point["low"] <= point["predicted"] <= point["high"], point
    assert point["basis"] == "priors", point

# Input sensitivity is reported for each program on a machine.
engines = {(point["machine"], "llama.cpp" in point["software"]) for point in result["points"]}
shared = {machine for machine, _ in engines if {(machine, True), (machine, False)} <= engines}
assert shared
for machine in shared:
    programs = {name for name in result["machine_facts"] if name.startswith(machine + " with ")}
    assert len(programs) >= 2 and programs <= set(result["leans_on"]), programs

summary = result["summary"]
errors = [time_error(point, point["predicted"]) for point in result["points"]]
assert summary["count"] == len(errors)
assert abs(summary["median_abs_error"] - statistics.median(map(abs, errors))) < 1e-9
assert abs(summary["bias"] - statistics.mean(errors)) < 1e-9
assert sum(group["count"] for group in summary["by_kind"].values()) == len(errors)

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    decode = next(row for row in rows if row["kind"] == "decode_rate" and row["devices"] == "1")
    impossible = dict(decode, id="impossible", value="1e6")
    unknown_model = dict(decode, id="unknown", model="No-Such-Model")
    unknown_machine = dict(decode, id="nowhere", machine="no-such-machine")
    mixed = write(folder / "mixed.csv", [decode, impossible, unknown_model, unknown_machine])
    result = validate("--points", mixed)
    assert [point["id"] for point in result["points"]] == [decode["id"]]
    assert [(row["id"], row["line"]) for row in result["refused"]] == [("impossible", 3)]
    assert "below the" in result["refused"][0]["reason"]
    assert "no-such-model" in result["not_priced"][0]["reason"]
    assert "no-such-machine" in result["not_priced"][1]["reason"]

    # Fitted to one half of a machine's points, the worst of the other half are predicted better than from the data
    # sheet.
    same = [row for row in rows if row["machine"] == "a100-40gb"]
    fit, held_out = write(folder / "fit.csv", same[::2]), write(folder / "held_out.csv", same[1::2])
    before, after = validate("--points", held_out), validate("--points", held_out, "--calibrate-on", fit)
    assert after["summary"]["p90_abs_error"] < 0.8 * before["summary"]["p90_abs_error"]
    assert after["summary"]["median_abs_error"] < 0.06  # by the data sheet it is 4 % already
    learned = after["fitted"]
    assert learned["machine a100-40gb"]["sustained.dram_bandwidth"] > 0 and learned["program vLLM (older)"]["overheads.host_per_step"] > 0
    assert learned["program vLLM (older)"]["sustained.dram_bandwidth"] == 1  # the device's

    # Kept as files, it is the same for every command.
    kept = folder / "learned"
    written = subprocess.run([program, "calibrate", "--points", fit, "--output", kept], capture_output=True, text=True)
    assert written.returncode == 0 and f"DCULAB_DATA={kept}" in written.stdout, written
    assert "Errors of the points that were fitted" in written.stdout and "request_latency" in written.stdout
    environment = dict(os.environ, DCULAB_DATA=str(kept))
    read_back = json.loads(subprocess.run([program, "validate", "--points", held_out, "--format", "json"],
                                          capture_output=True, text=True, env=environment, check=True).stdout)
    for first, second in zip(after["points"], read_back["points"], strict=True):
        assert all(first[key] == second[key] for key in ("predicted", "low", "high")), (first, second)
    again = subprocess.run([program, "calibrate", "--points", fit, "--output", kept], capture_output=True, text=True)
    assert again.returncode != 0 and "learned" in again.stderr, again
    assert "--output" in subprocess.run([program, "calibrate", "--points", fit], capture_output=True, text=True).stderr
    steps = folder / "steps.jsonl"
    assert "no such file" in subprocess.run([program, "calibrate", steps], capture_output=True, text=True).stderr
    steps.write_text("{}\n")
    assert "--machine" in subprocess.run([program, "calibrate", steps], capture_output=True, text=True).stderr
    assert {point["basis"] for point in after["points"]} <= {"interpolated", "extrapolated"}

    # Left out: kernels of two machines and two programs, quickly fitted.
    kernels = [row for row in rows if row["kind"] == "matmul"]
    left = validate("--points", write(folder / "kernels.csv", kernels), "--leave-one-out", "machine,software")
    assert set(left["leave_one_out"]) == {"machine", "software"}
    by_machine = {point["id"]: point for point in left["leave_one_out"]["machine"]["points"]}
    assert set(by_machine) == {row["id"] for row in kernels}
    for score in left["leave_one_out"]["machine"]["scores"]:
        points = [p for p in by_machine.values()
                  if score["left_out"] in ("all", p["left_out"]) and score["kind"] in ("all", p["kind"])]
        assert score["count"] == len(points)
        naive = [abs(p["naive"] / p["measured"] - 1) for p in points]
        assert abs(score["naive_median_abs_error"] - statistics.median(naive)) < 1e-9
        inside = sum(p["low"] <= p["measured"] <= p["high"] for p in points)
        assert abs(score["inside_interval"] - inside / len(points)) < 1e-9

    # Rows that no machine could be or that have no price are in no table, and are named.
    odd = [dict(kernels[0], id="impossible", value="1e-12"), dict(kernels[0], id="nowhere", machine="no-such-machine")]
    with_odd = write(folder / "odd.csv", kernels + odd)
    left = validate("--points", with_odd, "--leave-one-out", "machine")
    assert [row["id"] for row in left["refused"]] == ["impossible"], left["refused"]
    assert [row["id"] for row in left["not_priced"]] == ["nowhere"], left["not_priced"]
    assert left["leave_one_out"]["machine"]["scores"][-1]["count"] == len(kernels)
    three = [dict(odd[1], id=str(number)) for number in range(3)]
    table = run("--points", write(folder / "three.csv", kernels[:1] + three)).stdout
    assert "not predicted: 3 rows, first row 3 (0): no machine 'no-such-machine'" in table, table
    table = run("--points", with_odd, "--leave-one-out", "machine").stdout
    assert "refused: row" in table and "not predicted: row" in table, table

    # The naive roofline by hand: A100 multiplies F16 at 312 TFLOP/s and reads 2039 GB/s.
    peaks = {"a100-80gb-sxm": (312e12, 2039e9)}
    for row in kernels:
        if row["machine"] not in peaks:
            continue
        flops, bandwidth = peaks[row["machine"]]
        m, n, k = (int(row[size]) for size in "mnk")
        naive = max(2 * m * n * k / flops, 2 * (m * k + n * k + m * n) / bandwidth)
        assert abs(by_machine[row["id"]]["naive"] / naive - 1) < 1e-9, row

    # What is left out is not seen: other values of one machine change nothing that is predicted for it.
    lied = [dict(row, value=str(3 * float(row["value"]))) if row["machine"] == "a100-80gb-sxm" else row for row in kernels]
    told = validate("--points", write(folder / "lied.csv", lied), "--leave-one-out", "machine")
    changed = 0
    for point in told["leave_one_out"]["machine"]["points"]:
        same_prediction = abs(point["predicted"] / by_machine[point["id"]]["predicted"] - 1) < 1e-9
        assert same_prediction == (point["left_out"] == "a100-80gb-sxm"), point
        changed += not same_prediction
    assert changed > 0

    # A near twin goes with its family: what is told of a100-40gb changes nothing for a100-80gb-sxm then, and does otherwise.
    def twins(scale):
        return [dict(row, machine="a100-40gb", value=str(scale * float(row["value"])))
                if row["machine"] == "a100-80gb-sxm" and number % 2 else row for number, row in enumerate(kernels)]
    told = [validate("--points", write(folder / "twins.csv", twins(scale)), "--leave-one-out", "machine,family")["leave_one_out"]
            for scale in (1, 3)]
    assert {point["left_out"] for point in told[0]["family"]["points"]} == {"compute capability 8.0", "compute capability 9.0"}
    def changed_for(machine, by):
        first, second = ({p["id"]: p["predicted"] for p in each[by]["points"] if p["machine"] == machine} for each in told)
        return sum(abs(second[key] / first[key] - 1) > 1e-9 for key in first)
    assert changed_for("a100-80gb-sxm", "machine") > 0 and changed_for("h100-sxm", "family") > 0
    assert changed_for("a100-80gb-sxm", "family") == 0

    # An attention kernel is its engine's: vLLM's paged ones read K and V for each query head, on AMD and in small blocks.
    def kernel_time(machine, software, block):
        row = dict(attention, id="kernel", machine=machine, software=software, kv_block_size=block)
        return validate("--points", write(folder / "attention.csv", [row]))["points"][0]["predicted"]
    attention = next(row for row in rows if row["kind"] == "attention_decode" and row["heads"] != row["kv_heads"])
    attention = dict(attention, batch="64", context_tokens="4096", value="1")
    flash = kernel_time("mi300x", "vLLM (ROCm dev docker)", "16")
    assert kernel_time("mi300x", "vLLM", "16") > 1.1 * flash
    assert kernel_time("mi300x", "vllm 0.6 (rocm)", "16") == flash
    own = kernel_time("a100-80gb-sxm", "PyTorch", "8")
    assert kernel_time("a100-80gb-sxm", "vLLM", "8") > 1.1 * own > kernel_time("a100-80gb-sxm", "vLLM", "16")
    assert kernel_time("a100-80gb-sxm", "llama.cpp", "8") > 1.1 * own

    # Names of programs are read in any case.
    for kind, names in (("decode_rate", ("llama.cpp CUDA", "Llama.cpp CUDA")), ("matmul", ("vidur profiler", "Vidur profiler")),
                        ("request_latency", ("vLLM 0.6", "VLLM 0.6"))):
        row = next(row for row in rows if row["kind"] == kind and row["devices"] == "1" and row["machine"].startswith("a100"))
        named = validate("--points", write(folder / "named.csv", [dict(row, id=name, software=name) for name in names]))
        first, second = named["points"]
        assert first["predicted"] == second["predicted"], named["points"]
        # What nothing is known of has no price.
        other = run("--points", write(folder / "other.csv", [dict(row, software="Another")]))
        assert other.returncode == 2 and "nothing is known of the kernels of 'Another'" in other.stderr, other.stderr

    alone = run("--points", write(folder / "alone.csv", kernels[:2]), "--leave-one-out", "machine")
    assert alone.returncode == 2 and "fewer than two" in alone.stderr, alone.stderr
    both = run("--points", points_file, "--leave-one-out", "machine", "--calibrate-on", points_file)
    assert both.returncode == 2, both.stderr
    shortened = run("--points", points_file, "--leave-one-out", "machine", "--worst", "3")
    assert shortened.returncode == 2 and "--worst" in shortened.stderr, shortened.stderr

    # llama.cpp's formats: of those that are unpacked alike, few bits are no slower than more. And models that no row
    # above has.
    decode = next(row for row in rows if row["kind"] == "decode_rate" and row["software"].startswith("llama.cpp"))
    formats = [["IQ1_S", "IQ2_XXS", "IQ3_XXS", "Q3_K_S", "Q3_K_L", "MXFP4", "IQ4_NL"], ["Q5_1", "Q8_0"]]
    models = ["Qwen2.5-7B", "Qwen3-8B", "Llama-3.2-1B"]
    asked = [dict(decode, id=weights, weights=weights) for alike in formats for weights in alike]
    asked += [dict(decode, id=model, model=model) for model in models]
    priced = validate("--points", write(folder / "formats.csv", asked))
    assert not priced["not_priced"] and not priced["refused"], priced["not_priced"]
    rates = {point["id"]: point["predicted"] for point in priced["points"]}
    assert all(rates[few] >= rates[many] for alike in formats for few, many in zip(alike, alike[1:])), rates
    assert rates["Llama-3.2-1B"] > 2 * rates["Qwen3-8B"], rates

    table = run("--points", points_file, "--worst", "3")
    assert table.returncode == 0 and "The 3 worst of" in table.stdout, table.stdout

missing = run("--points", "no-such-file.csv")
assert missing.returncode == 2 and "no-such-file.csv" in missing.stderr, missing.stderr
assert run().returncode == 2
