"""The last words of scripts/gpu-validate: what stands beside what, and of which steps.

Usage: gpu_in_short_test.py SOURCE_DIR
"""

import gzip
import json
import pathlib
import sys
import tempfile

source = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(source / "scripts" / "gpu"))

import in_short  # noqa: E402
import validation_grids  # noqa: E402


def values(grid, option):
    return set(grid[grid.index(option) + 1].split(","))


def check_quick_steps():
    """They are steps of the full grids, which the H200's traces have."""
    for name, quick in validation_grids.QUICK_GRIDS.items():
        for option in "--kv-heads", "--block-size", "--phase", "--batch", "--context":
            assert values(quick, option) <= values(validation_grids.FULL_GRIDS[name], option), (name, option)
    assert sum(map(validation_grids.step_count, validation_grids.QUICK_GRIDS.values())) == 27


Compared = in_short.Compared


def check_in_short(folder):
    machine = folder / "machine.yaml"
    machine.write_text('description: "a GPU, probed; what cannot be measured is that of mi210 (104 compute units)"\n')
    assert in_short.shipped_name(machine) == "mi210"
    here = {"shipped": Compared(0.31), "probed": Compared(None), "fitted": Compared(0.031)}
    theirs = {"shipped": Compared(0.175), "probed": Compared(0.3), "fitted": Compared(0.027)}
    h200 = in_short.Reference(theirs, None, "The same.")
    first, *table, steps, last = in_short.lines("AMD Instinct MI210", "mi210", here, h200, 27, {})
    assert first.startswith("In short: median error") and "300 us" in last and steps == "The same.", (first, steps, last)
    assert [word.strip() for word in table[0].split("  ")[-2:]] == ["AMD Instinct MI210", "NVIDIA H200"], table
    assert [line.split()[-2:] for line in table[1:]] == [["31.0%", "17.5%"], ["-", "30.0%"], ["3.1%", "2.7%"]], table
    assert "as mi210 is shipped, without a measurement (H200: h200)" in table[1], table
    nothing = in_short.h200("no program", folder, [])
    assert nothing == ({}, None, "") and in_short.h200_aims(folder, None) == {}, nothing
    assert not any("H200" in line for line in in_short.lines("a GPU", "mi210", here, nothing, 27, {}))
    held_out = json.loads((source / in_short.H200 / "held-out.json").read_text())
    reached = [round(aim["reached"], 3) for aim in in_short.h200_aims(source, held_out).values()]
    assert reached == [0.109, 0.28, 0.055], reached


def check_left_out_steps():
    """What is in none of the figures is said below them."""
    here = {"shipped": Compared(0.31, 12), "probed": Compared(None, problem="decode.jsonl.gz: nothing"),
            "fitted": Compared(0.031, 3)}
    missing = {"prefill-batch": 84, "int8": 5}
    said = in_short.lines("a GPU", "mi210", here, in_short.Reference({}, None, ""), 27, missing)[5:-1]
    assert "not in the figure: 12 of 27 as mi210 is shipped, 3 of 27 in the fit." in said[0], said
    assert said[1:] == ["Nothing was compared as probed: decode.jsonl.gz: nothing",
                        "Not recorded: prefill-batch (84 steps), int8 (5 steps)."], said


# Stands for dculab: says how many steps it was given, or refuses the machine h200.
PROGRAM = """#!{0}
import json, sys
words, refuses = sys.argv[1:], {1}
if refuses and "h200" in words:
    sys.exit("dculab: " + words[1] + ": nothing can be compared")
traces = [word for word in words if ".jsonl" in word]
steps = 0 if words[0] == "calibrate" or "gz" in traces[0] else sum(len(open(trace).readlines()) - 1 for trace in traces)
print(json.dumps({{"summary": {{"median_abs_error": steps}}, "refused": [0] * len(traces),
                   "held_out": {{"median_abs_error": 0.5}},
                   "held_out_ops": {{"attention_decode": {{"median_abs_error": 0.25}}}}}}))
"""


def check_same_steps(folder):
    """The H200's errors are those of the steps that both have."""
    program = folder / "program"
    program.write_text(PROGRAM.format(sys.executable, False))
    program.chmod(0o755)
    header, steps = in_short.steps_of(source / in_short.H200 / "decode.jsonl.gz")
    chosen = [line for name, line in steps.items() if "context=256 " in name[1] and "batch=16" in name[1]]
    trace = folder / "decode.jsonl.gz"
    trace.write_bytes(gzip.compress("\n".join([header, *chosen]).encode()))
    same = in_short.h200(program, source, [trace])
    assert same.steps == f"The H200's figures are of the same {len(chosen)} steps.", same
    assert same.errors == {"shipped": Compared(42, 1), "probed": Compared(42, 1), "fitted": Compared(0.5, 1)}, same
    assert in_short.h200_aims(source, same.held_out)["decode attention predictions"]["reached"] == 0.25
    other = chosen[0].replace("context=256 ", "context=257 ")
    trace.write_bytes(gzip.compress("\n".join([header, *chosen, other]).encode()))
    assert in_short.h200(program, source, [trace]).steps == \
        "The H200's figures are of the 42 of these 43 steps that were recorded on it."
    trace.write_bytes(gzip.compress("\n".join([header, other]).encode()))
    others = in_short.h200(program, source, [trace])
    assert others.steps == "The H200's figures are of other steps, the 714 of its full grids.", others
    assert round(others.errors["fitted"].error, 3) == 0.027 and others.held_out["schema"] == "dculab/calibrate/1", others
    program.write_text(PROGRAM.format(sys.executable, True))
    refused = in_short.compare(program, [trace], "h200")
    assert refused == Compared(None, 0, "decode.jsonl.gz: nothing can be compared"), refused


check_quick_steps()
check_left_out_steps()
for check in check_in_short, check_same_steps:
    with tempfile.TemporaryDirectory() as name:
        check(pathlib.Path(name))
