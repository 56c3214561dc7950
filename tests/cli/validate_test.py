"""Runs `dculab validate` on published points: what it scores, refuses and leaves out, and the JSON others rely on.

Usage: validate_test.py DCULAB POINTS_CSV
"""

import csv
import json
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

summary = result["summary"]
errors = [point["predicted"] / point["measured"] - 1 for point in result["points"]]
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

    # Fitted to one half of a machine's points, the other half is predicted better than from the data sheet.
    same = [row for row in rows if row["machine"] == "a100-40gb"]
    fit, held_out = write(folder / "fit.csv", same[::2]), write(folder / "held_out.csv", same[1::2])
    before, after = validate("--points", held_out), validate("--points", held_out, "--calibrate-on", fit)
    assert after["summary"]["median_abs_error"] < before["summary"]["median_abs_error"]
    assert after["fitted"]["a100-40gb"]["points"] == len(same[::2])
    assert {point["basis"] for point in after["points"]} <= {"interpolated", "extrapolated"}

    table = run("--points", points_file, "--worst", "3")
    assert table.returncode == 0 and "The 3 worst of" in table.stdout, table.stdout

missing = run("--points", "no-such-file.csv")
assert missing.returncode == 2 and "no-such-file.csv" in missing.stderr, missing.stderr
assert run().returncode == 2
