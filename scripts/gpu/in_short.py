"""The last words of scripts/gpu-validate: how far predictions are from the steps that were measured, as machines are
shipped, as they are probed, and after a fit; beside the same of the H200 whose traces are in tests/data."""

import json
import pathlib
import re
import subprocess

import measured_aims

H200 = pathlib.Path("tests", "data", "traces", "nvidia-h200")
HOST_TIME = ("Before a fit, 300 us of host time between steps are assumed, and `bench` spends hardly any: steps of two layers "
             "are predicted too slow, the short ones most.")


def shipped_name(machine_file):
    """The shipped machine that a probed one is made of, by its description."""
    found = re.search(r"is that of (\S+) \(", machine_file.read_text())
    return found[1] if found else None


def error_of(dculab, traces, machine):
    """The median error of the steps' times, or nothing where none can be compared."""
    command = [dculab, "validate", *traces, "--machine", machine, "--format", "json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    summary = json.loads(done.stdout)["summary"] if done.returncode == 0 else {"count": 0}
    return summary["median_abs_error"] if summary["count"] else None


def errors(dculab, traces, shipped, probed, held_out):
    """By what was predicted from. Without a name or a file there is no such prediction."""
    machines = {"shipped": shipped, "probed": probed}
    found = {how: error_of(dculab, traces, machine) for how, machine in machines.items() if machine}
    return found | {"fitted": held_out["held_out"]["median_abs_error"]}


def h200_errors(dculab, root):
    """The same of the H200, as this program predicts its traces now; nothing where they are not there."""
    folder = root / H200
    traces = sorted(folder.glob("*.jsonl.gz"))
    if not traces:
        return {}
    held_out = json.loads((folder / "held-out.json").read_text())
    return errors(dculab, traces, "h200", folder / "machine.yaml", held_out)


def h200_aims(root):
    """What measured_aims.verdicts() says of the H200's results."""
    folder = root / H200
    if not folder.is_dir():
        return {}
    return measured_aims.verdicts((folder / "gpu_bench.txt").read_text(),
                                  json.loads((folder / "held-out.json").read_text()))


def percent(error):
    return "-" if error is None else f"{error:.1%}"


def lines(device, shipped, here, h200):
    """A table of both, with what it means."""
    titles = {"shipped": f"as {pathlib.Path(shipped or '').stem} is shipped, without a measurement" + (" (H200: h200)" if h200 else ""),
              "probed": "as probed, before any fit",
              "fitted": "fitted to half of the steps, on the other half"}
    rows = [("", device, "NVIDIA H200" if h200 else "")]
    rows += [(titles[how], percent(error), percent(h200[how]) if how in h200 else "") for how, error in here.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    table = [f"{what:{widths[0]}}  {ours:>{widths[1]}}  {theirs:>{widths[2]}}".rstrip() for what, ours, theirs in rows]
    return ["In short: median error of the predicted times of steps", *table, HOST_TIME]
