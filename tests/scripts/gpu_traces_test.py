"""Holds the predictions to traces of real GPUs: fitted to half of a device's steps, decode attention of the other half
must be within 8 % (median).

Usage: gpu_traces_test.py DCULAB FOLDER. A folder of FOLDER is one device, as scripts/gpu-validate leaves it:
machine.yaml and *.jsonl.gz. Traces of other formats and families, others/*.jsonl.gz, are predicted by the machine that is
fitted to those: each file's steps must be within 15 % (median). Without any device the test is skipped (exit code 77),
and says so.
"""

import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

LARGEST_ERROR = 0.08
LARGEST_ERROR_OF_OTHERS = 0.15
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


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[1]}: {done.stderr}")
    return done.stdout


def others_are_within(dculab, folder, traces):
    """Whether steps of other formats and families are predicted by a fit to `traces`, which knows none of their kernels."""
    good = True
    with tempfile.TemporaryDirectory() as name:
        fitted = pathlib.Path(name) / "fitted.yaml"
        run([dculab, "calibrate", *map(str, traces), "--machine", str(folder / "machine.yaml"), "--machine-file",
             str(fitted)])
        for trace in unpack(folder / "others", pathlib.Path(name)):
            rows = json.loads(run([dculab, "validate", str(trace), "--machine", str(fitted), "--format", "json"]))["points"]
            error = statistics.median(abs(row["predicted"] / row["measured"] - 1) for row in rows)
            print(f"{folder.name}: {len(rows)} steps of {trace.stem} within {error:.1%} (median)")
            good = good and error <= LARGEST_ERROR_OF_OTHERS
    return good


def check(dculab, folder):
    with tempfile.TemporaryDirectory() as name:
        traces = unpack(folder, pathlib.Path(name))
        if not traces or not (folder / "machine.yaml").exists():
            sys.exit(f"{folder}: has no traces (*.jsonl.gz) or no machine.yaml; copy what scripts/gpu-validate leaves")
        result = json.loads(run([dculab, "calibrate", *map(str, traces), "--machine", str(folder / "machine.yaml"),
                                 "--hold-out", "0.5", "--format", "json"]))
        within = others_are_within(dculab, folder, traces)
    error = result["held_out_ops"]["attention_decode"]
    worst = max((entry["regret"] for entry in result.get("regret", [])), default=0)
    print(f"{folder.name}: decode attention of {error['count']} held-out steps within "
          f"{error['median_abs_error']:.1%} (median), steps within {result['held_out']['median_abs_error']:.1%}; "
          f"regret of the block size at most {worst:.1%}")
    return error["median_abs_error"] <= LARGEST_ERROR and within


def main():
    dculab, root = sys.argv[1], pathlib.Path(sys.argv[2])
    folders = sorted(path for path in root.glob("*") if path.is_dir())
    if not folders:
        print(f"skipped: no traces of a real GPU under {root}; run scripts/gpu-validate on a machine that has one")
        sys.exit(SKIPPED)
    good = [check(dculab, folder) for folder in folders]
    if not all(good):
        sys.exit(f"decode attention is predicted worse than {LARGEST_ERROR:.0%}, or a file of others/ worse than {LARGEST_ERROR_OF_OTHERS:.0%}")


if __name__ == "__main__":
    main()
