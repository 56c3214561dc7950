"""KILL, INT or TERM at KILLS random moments of a study: the resumed result is byte-identical. So is that of its merged
shards. After INT and TERM nothing half-written is left.

Both kinds: a search of steps, which takes its time over many points, and one of served requests, over few long ones.

Usage: study_kill_test.py DCULAB KILLS
"""

import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

THREADS = ["--threads", "2"]  # the study takes long beside its start, on any machine
SAMPLES = 1500
STEPS = """schema: dculab/scenario/1
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
SERVED = """schema: dculab/scenario/1
question: With which batch limit and block size does a K100-AI answer most chat requests in time?
model: llama-3-8b
machine: k100-ai
workload: {requests: 400, prompt_tokens: 600, output_tokens: 200, arrival: poisson, requests_per_second: 4}
slo: {ttft: 2 s, tpot: 80 ms}
sweep:
  engine.max_num_seqs: {from: 8, to: 128, factor: 2}
  engine.max_num_batched_tokens: {from: 256, to: 2048, factor: 2}
  kv_cache.block_size: [16, 64]
objective: {maximize: goodput, subject_to: {tpot_p99: "<= 120 ms"}}
pareto: {minimize: [ttft_p99], maximize: [output_tokens_per_second]}
"""


def steps(samples):
    return STEPS % (samples, samples)


SCENARIOS = {"steps": (steps(SAMPLES), 2 * 2 * 9 * SAMPLES), "served": (SERVED, 5 * 4 * 2)}  # and their points
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


def kill_and_resume(program, root, scenario, seconds, wanted, whole_journal, kills):
    """Kills the study at moments spread over the time it takes until `kills` of them left it half-way; one that ends
    first is begun anew."""
    folder = new_folder(root, "killed")
    journal = folder / "journal"
    command = study(program, folder, scenario, "--journal", str(journal), "--resume", *THREADS)
    killed = half_way = 0
    while half_way < kills:
        assert killed < 5 * kills + 10, "too few kills left a study to go on with"
        process = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        time.sleep(random.uniform(0, seconds))
        ending = random.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
        process.send_signal(ending)
        process.wait()
        if ending != signal.SIGKILL:
            assert not list(folder.glob(f"*.part-{process.pid}-*")), "half a file is left"
        if process.returncode == 0:
            assert read(folder) == wanted, "a resumed study has another result"
            journal.unlink()
            continue
        assert process.returncode == -ending, "it ended otherwise than by the signal"
        killed += 1
        size = journal.stat().st_size if journal.exists() else 0
        half_way += 0.01 * whole_journal < size < whole_journal  # a chunk is 2 %, the header far less
    print(f"killed {killed} times, {half_way} of them with some chunks in the journal and not all")
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


def check(program, root, text, points, kills):
    scenario = root / "scenario.yaml"
    scenario.write_text(text)
    whole = new_folder(root, "whole")
    begun = time.monotonic()
    subprocess.run(study(program, whole, scenario, *THREADS), check=True)
    seconds = time.monotonic() - begun
    wanted = read(whole)
    assert wanted[1].count(b"\n") == points + 1
    single = new_folder(root, "single")
    journal = single / "journal"
    subprocess.run(study(program, single, scenario, "--threads", "1", "--journal", str(journal)), check=True)
    killed = kill_and_resume(program, root, scenario, seconds, wanted, journal.stat().st_size, kills)
    for folder in (single, killed, shards(program, root, scenario)):
        assert read(folder) == wanted, f"{folder.name}: another result"


def main():
    program, kills = sys.argv[1], int(sys.argv[2])
    seed = random.randrange(1 << 30)
    random.seed(seed)
    print("seed", seed)
    with tempfile.TemporaryDirectory() as name:
        for kind, (text, points) in SCENARIOS.items():
            print(f"a search of {kind}")
            check(program, new_folder(pathlib.Path(name), kind), text, points, kills)
    print("the results are the same, byte by byte")


if __name__ == "__main__":
    main()
