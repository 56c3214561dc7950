"""Holds the predictions to traces of real GPUs: fitted to half of a device's steps, decode attention of the other half
must be within 8 % (median).

Usage: gpu_traces_test.py DCULAB FOLDER. A folder of FOLDER is one device, as scripts/gpu-validate leaves it:
machine.yaml and *.jsonl.gz. Traces of other formats and families, others/*.jsonl.gz, are predicted before any fit: each
step must be within its interval, but for one in ten. Without any device the test is skipped (exit code 77), and says so.
"""

import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

LARGEST_ERROR = 0.08
LEAST_INSIDE = 0.9
SKIPPED = 77


def unpack(folder, into):
    """The traces of a device, which must be one."""
    traces = []
    for packed in sorted(folder.glob("*.jsonl.gz")):
        text = gzip.decompress(packed.read_bytes()).decode()
        device = json.loads(text.splitlines()[0])["device"]
        if device.startswith(("host build", "CPU")):
            sys.exit(f"{packed}: taken on '{device}', which is no GPU (emulated times mean nothing); remove it")
        traces.append(into / packed.stem)
        traces[-1].write_text(text)
    return traces


def others_are_within(dculab, folder):
    """Whether nine in ten steps of other formats and families are in their intervals."""
    with tempfile.TemporaryDirectory() as name:
        traces = unpack(folder / "others", pathlib.Path(name))
        if not traces:
            return True
        done = subprocess.run([dculab, "validate", *map(str, traces), "--machine", str(folder / "machine.yaml"),
                               "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{folder}: {done.stderr}")
    rows = json.loads(done.stdout)["points"]
    inside = sum(row["low"] <= row["measured"] <= row["high"] for row in rows) / len(rows)
    errors = sorted(abs(row["predicted"] / row["measured"] - 1) for row in rows)
    print(f"{folder.name}: {len(rows)} steps of other formats and families within {errors[len(errors) // 2]:.1%} (median) "
          f"before any fit, {inside:.0%} of them in their intervals")
    return inside >= LEAST_INSIDE


def check(dculab, folder):
    with tempfile.TemporaryDirectory() as name:
        traces = unpack(folder, pathlib.Path(name))
        if not traces or not (folder / "machine.yaml").exists():
            sys.exit(f"{folder}: has no traces (*.jsonl.gz) or no machine.yaml; copy what scripts/gpu-validate leaves")
        done = subprocess.run([dculab, "calibrate", *map(str, traces), "--machine", str(folder / "machine.yaml"),
                               "--hold-out", "0.5", "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{folder}: {done.stderr}")
    result = json.loads(done.stdout)
    error = result["held_out_ops"]["attention_decode"]
    worst = max((entry["regret"] for entry in result.get("regret", [])), default=0)
    print(f"{folder.name}: decode attention of {error['count']} held-out steps within "
          f"{error['median_abs_error']:.1%} (median), steps within {result['held_out']['median_abs_error']:.1%}; "
          f"regret of the block size at most {worst:.1%}")
    within = others_are_within(dculab, folder)
    if not within:
        print(f"{folder.name}: too few steps of others/ are in their intervals")
    return error["median_abs_error"] <= LARGEST_ERROR and within


def main():
    dculab, root = sys.argv[1], pathlib.Path(sys.argv[2])
    folders = sorted(path for path in root.glob("*") if path.is_dir())
    if not folders:
        print(f"skipped: no traces of a real GPU under {root}; run scripts/gpu-validate on a machine that has one")
        sys.exit(SKIPPED)
    good = [check(dculab, folder) for folder in folders]
    if not all(good):
        sys.exit(f"decode attention is predicted worse than {LARGEST_ERROR:.0%}, or others/ beyond the intervals")


if __name__ == "__main__":
    main()
