"""A study shared out by scripts/slurm/study over a real Slurm gives the result of the study in one piece, also when one
of its tasks is requeued while it runs.

Usage: one_node_slurm python3 slurm_study_test.py DCULAB SOURCE_DIR
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from study_kill_test import read, steps, study

SHARDS = 4
PATIENCE = 300  # seconds


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def job_state(job):
    fields = output("scontrol", "--oneliner", "show", "job", job).split()
    return next(field.split("=")[1] for field in fields if field.startswith("JobState="))


def wait_for(what, is_there):
    end = time.monotonic() + PATIENCE
    while not is_there():
        assert time.monotonic() < end, f"waited too long for {what}\n" + output("squeue")
        time.sleep(0.2)


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    os.environ["DCULAB"] = program
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        scenario = root / "scenario.yaml"
        scenario.write_text(steps(8000))
        whole, shared = root / "whole", root / "shared"
        whole.mkdir()
        merge = output(str(source / "scripts/slurm/study"), str(scenario), str(SHARDS), str(shared))
        array = str(int(merge) - 1)
        wait_for("the first shard's journal", lambda: (shared / "shard-1.journal").exists())
        subprocess.run(["scontrol", "requeue", f"{array}_1"], check=True)
        # Slurm lets a requeued job wait for two minutes.
        state = ["squeue", "--noheader", "-j", f"{array}_1", "-o", "%T"]
        wait_for("the requeued task", lambda: "PENDING" in output(*state))
        subprocess.run(["scontrol", "update", f"JobId={array}_1", "StartTime=now"], check=True)
        wait_for("the merging job", lambda: job_state(merge) not in ("PENDING", "RUNNING", "COMPLETING"))
        print(output("scontrol", "show", "job", merge).splitlines()[3].strip())
        assert job_state(merge) == "COMPLETED", (shared / "merge.log").read_text()
        subprocess.run(study(program, whole, scenario), check=True)
        assert read(shared) == read(whole), "another result"
    print(f"{SHARDS} shards, one of them requeued: the result is that of the study in one piece")


if __name__ == "__main__":
    main()
