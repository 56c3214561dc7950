"""The last words of scripts/gpu-validate: how far predictions are from the steps that were measured, as machines are
shipped, as they are probed, and after a fit; beside the same of the H200 whose traces are in tests/data."""

import collections
import gzip
import json
import pathlib
import re
import subprocess
import tempfile

import measured_aims

H200 = pathlib.Path("tests", "data", "traces", "nvidia-h200")
HOST_TIME = ("Before a fit, 300 us of host time between steps are assumed, and `bench` spends hardly any: steps of two layers "
             "are predicted too slow, the short ones most.")

# The median error of the steps' times, how many steps were refused, and why nothing was compared where that is so.
Compared = collections.namedtuple("Compared", "error refused problem", defaults=(0, ""))
# Of the H200: what errors() says, the answer of the fit with held-out steps, and of which steps both are.
Reference = collections.namedtuple("Reference", "errors held_out steps")


def shipped_name(machine_file):
    """The shipped machine that a probed one is made of, by its description."""
    found = re.search(r"is that of (\S+) \(", machine_file.read_text())
    return found[1] if found else None


def answer(dculab, *words):
    """What the program answers, and the line with which it refuses to."""
    done = subprocess.run([str(dculab), *map(str, words), "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout), ""
    said = done.stderr.strip().splitlines()
    return None, said[-1].removeprefix("dculab: ") if said else f"it ended with {done.returncode}"


def compare(dculab, traces, machine):
    found, problem = answer(dculab, "validate", *traces, "--machine", machine)
    if not found:
        for file in [*traces, machine]:  # whose folders are nobody's business
            problem = problem.replace(str(file), pathlib.Path(file).name)
        return Compared(None, problem=problem)
    return Compared(found["summary"]["median_abs_error"], len(found["refused"]))


def errors(dculab, traces, shipped, probed, held_out):
    """By what was predicted from. Without a name or a file there is no such prediction."""
    machines = {"shipped": shipped, "probed": probed}
    found = {how: compare(dculab, traces, machine) for how, machine in machines.items() if machine}
    fitted = held_out and Compared(held_out["held_out"]["median_abs_error"], len(held_out["refused"]))
    return found | {"fitted": fitted or Compared(None)}


def steps_of(trace):
    """The header of a trace, and the line of each step by the names of its model and of itself."""
    content = pathlib.Path(trace).read_bytes()
    header, *lines = (gzip.decompress(content) if str(trace).endswith(".gz") else content).decode().splitlines()
    steps = [json.loads(line) for line in lines]
    return header, {(step["model"]["name"], step["id"]): line for step, line in zip(steps, lines)}


def names_of(traces):
    return set().union(*(steps_of(trace)[1] for trace in traces))


def write_chosen(traces, chosen, folder):
    """Files that have only the chosen steps of the traces."""
    for trace in traces:
        header, steps = steps_of(trace)
        kept = [line for name, line in steps.items() if name in chosen]
        if kept:
            (folder / trace.name.removesuffix(".gz")).write_text("\n".join([header, *kept]) + "\n")
    return sorted(folder.iterdir())


def which_steps(ours, both, theirs):
    if not both:
        return f"The H200's figures are of other steps, the {theirs} of its full grids."
    if both == ours:
        return f"The H200's figures are of the same {both} steps."
    return f"The H200's figures are of the {both} of these {ours} steps that were recorded on it."


def h200(dculab, root, traces):
    """The same of the H200, as this program predicts its traces now: of the steps that these traces have, or of all where
    they have none of them. Nothing where there are no traces of an H200."""
    folder = root / H200
    recorded = sorted(folder.glob("*.jsonl.gz"))
    if not recorded:
        return Reference({}, None, "")
    machine = folder / "machine.yaml"
    ours, theirs = names_of(traces), names_of(recorded)
    both = ours & theirs
    said = which_steps(len(ours), len(both), len(theirs))
    if not both or both == theirs:
        held_out = json.loads((folder / "held-out.json").read_text())
        return Reference(errors(dculab, recorded, "h200", machine, held_out), held_out, said)
    with tempfile.TemporaryDirectory() as parts:
        chosen = write_chosen(recorded, both, pathlib.Path(parts))
        held_out, _ = answer(dculab, "calibrate", *chosen, "--machine", machine, "--hold-out", "0.5")
        return Reference(errors(dculab, chosen, "h200", machine, held_out), held_out, said)


def h200_aims(root, held_out):
    """What measured_aims.verdicts() says of the H200's results."""
    folder = root / H200
    if not folder.is_dir():
        return {}
    return measured_aims.verdicts((folder / "gpu_bench.txt").read_text(), held_out or {"held_out_ops": {}})


def percent(compared):
    return "-" if compared.error is None else f"{compared.error:.1%}"


def left_out(short_titles, here, steps, missing):
    """Which steps are in none of the figures, or not in all. `missing`: how many, by the grids that were not recorded."""
    refused = [f"{each.refused} of {steps} {short_titles[how]}" for how, each in here.items() if each.refused]
    if refused:
        yield f"Steps that were refused, for the machine cannot be so fast, and are not in the figure: {', '.join(refused)}."
    yield from (f"Nothing was compared {short_titles[how]}: {each.problem}" for how, each in here.items() if each.problem)
    if missing:
        yield "Not recorded: " + ", ".join(f"{name} ({count} steps)" for name, count in missing.items()) + "."


def lines(device, shipped, here, reference, steps, missing):
    """A table of both, with what it means. `steps`: how many were recorded here."""
    short_titles = {"shipped": f"as {pathlib.Path(shipped or '').stem} is shipped", "probed": "as probed",
                    "fitted": "in the fit"}
    h200_too = " (H200: h200)" if reference.errors else ""
    titles = {"shipped": f"{short_titles['shipped']}, without a measurement{h200_too}",
              "probed": "as probed, before any fit", "fitted": "fitted to half of the steps, on the other half"}
    rows = [("", device, "NVIDIA H200" if reference.errors else "")]
    rows += [(titles[how], percent(each), percent(reference.errors[how]) if how in reference.errors else "")
             for how, each in here.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    table = [f"{what:{widths[0]}}  {ours:>{widths[1]}}  {theirs:>{widths[2]}}".rstrip() for what, ours, theirs in rows]
    return ["In short: median error of the predicted times of steps", *table,
            *left_out(short_titles, here, steps, missing), *filter(None, [reference.steps]), HOST_TIME]
