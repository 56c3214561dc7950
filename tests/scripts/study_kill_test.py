"""kill -9 at 20 random moments of a study: the resumed result is byte-identical. So is that of its merged shards.

Usage: study_kill_test.py DCULAB
"""

import pathlib
import random
import subprocess
import sys
import tempfile
import time

KILLS = 20
THREADS = ["--threads", "2"]  # the study takes long beside its start, on any machine
SCENARIO = """schema: dculab/scenario/1
question: Which batch, block size and KV dtype give the most tokens per second within 50 ms a step?
model: llama-3-8b
machines: [z100, k100-ai]
workload: {phase: decode, batch: 16, context_tokens: 2000}
sweep:
  kv_cache.dtype: [f16, fp8_e4m3]
  kv_cache.block_size: {from: 1, to: 256, factor: 2}
  workload.batch: {from: 1, to: 64, samples: %d, scale: log}
  workload.context_tokens: {from: 128, to: 9000, samples: %d, scale: log, seed: 2}
objective: {maximize: tokens_per_second, subject_to: {step_time: "<= 50 ms"}}
constraints: [workload.batch <= max_sequences]
pareto: {minimize: [step_time], maximize: [tokens_per_second]}
"""
OUTPUTS = ["answer.json", "points.csv"]


def study(program, folder, scenario, *more):
    return [program, "study", scenario, *more, "--format", "json", "--output", f"{folder}/answer.json",
            "--points", f"{folder}/points.csv"]


def read(folder):
    return [(folder / name).read_bytes() for name in OUTPUTS]


def new_folder(root, name):
    folder = root / name
    folder.mkdir()
    return folder


def kill_and_resume(program, root, scenario, seconds, wanted, whole_journal):
    """Kills the study KILLS times, at moments spread over the time it takes; one that ends first is begun anew."""
    folder = new_folder(root, "killed")
    journal = folder / "journal"
    command = study(program, folder, scenario, "--journal", str(journal), "--resume", *THREADS)
    killed = half_way = 0
    while killed < KILLS:
        process = subprocess.Popen(command)
        time.sleep(random.uniform(0, seconds))
        process.kill()
        if process.wait() == 0:
            assert read(folder) == wanted, "a resumed study has another result"
            journal.unlink()
            continue
        killed += 1
        size = journal.stat().st_size if journal.exists() else 0
        half_way += 0.01 * whole_journal < size < whole_journal  # a chunk is 2 %, the header far less
    print(f"killed {killed} times, {half_way} of them with some chunks in the journal and not all")
    assert half_way >= KILLS // 2, "too few kills left a study to go on with"
    subprocess.run(command, check=True)
    assert sorted(each.name for each in folder.iterdir()) == sorted([*OUTPUTS, "journal"]), "something is left behind"
    return folder


def shards(program, root, scenario):
    folder = new_folder(root, "shards")
    journals = []
    for number in (3, 1, 2):
        journals.append(f"{folder}/{number}.journal")
        subprocess.run([program, "study", scenario, "--shard", f"{number}/3", "--journal", journals[-1]], check=True,
                       stdout=subprocess.DEVNULL)
    merge = [program, "merge", "--format", "json", "--output", f"{folder}/answer.json", "--points",
             f"{folder}/points.csv"]
    subprocess.run([*merge, *journals], check=True)

    def refused(arguments, reason):
        done = subprocess.run([*merge, *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and reason in done.stderr, (arguments, done.stderr)

    refused(journals[:2], "shard 2/3 is missing")
    refused(journals + journals[:1], "is the same shard as")
    torn = pathlib.Path(folder / "torn")
    torn.write_bytes(pathlib.Path(journals[1]).read_bytes()[:-1])
    refused([journals[0], str(torn), journals[2]], "go on with it")
    return folder


def main():
    program = sys.argv[1]
    seed = random.randrange(1 << 30)
    random.seed(seed)
    print("seed", seed)
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        samples = 1500
        scenario = root / "scenario.yaml"
        scenario.write_text(SCENARIO % (samples, samples))
        whole = new_folder(root, "whole")
        begun = time.monotonic()
        subprocess.run(study(program, whole, scenario, *THREADS), check=True)
        seconds = time.monotonic() - begun
        wanted = read(whole)
        assert wanted[1].count(b"\n") == 2 * 2 * 9 * samples + 1
        single = new_folder(root, "single")
        journal = single / "journal"
        subprocess.run(study(program, single, scenario, "--threads", "1", "--journal", str(journal)), check=True)
        killed = kill_and_resume(program, root, scenario, seconds, wanted, journal.stat().st_size)
        for folder in (single, killed, shards(program, root, scenario)):
            assert read(folder) == wanted, f"{folder.name}: another result"
    print("the results are the same, byte by byte")


if __name__ == "__main__":
    main()
