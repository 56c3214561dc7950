"""The main commands, each with a small question, in a folder of its own."""

import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
# A build without these packages has no page of charts.
PAGES = (ROOT / "report/node_modules/.package-lock.json").exists()
PAGE = (["--report", "page.html"], ["page.html"]) if PAGES else ([], [])
PROFILES = pathlib.Path(__file__).parents[1] / "data/profiles"
SEARCH = """schema: dculab/scenario/1
question: Which batch and block size give the most tokens per second?
model: llama-3-8b
machine: z100
workload: {phase: decode, batch: 16, context_tokens: 2000}
sweep:
  workload.batch: {from: 1, to: 16, factor: 2}
  kv_cache.block_size: {from: 1, to: 64, factor: 2}
objective: {maximize: tokens_per_second, subject_to: {step_time: "<= 40 ms"}}
"""
SERVING = """schema: dculab/scenario/1
question: How long do requests wait?
model: llama-3-8b
machine: k100-ai
engine: {max_num_seqs: 8, max_num_batched_tokens: 512}
workload: {requests: 8, prompt_tokens: 200, output_tokens: 20, arrival: poisson, requests_per_second: 4}
slo: {ttft: 2 s, tpot: 80 ms}
"""
TEXT = "Once upon a time there was a little girl who had a red ball. " * 8
THREADS = ["--threads", "8"]
STUDY = ["study", "search.yaml", "--format", "json", *THREADS]
TRACE = ["import", str(PROFILES / "rocprof_dculab.csv"), "--model", "dculab-tiny", "--machine", "z100", "--context",
         "200", "--steps-per-row", "1", "--trace", "trace.jsonl"]


@dataclasses.dataclass
class Command:
    name: str
    arguments: list
    outputs: list = dataclasses.field(default_factory=list)  # files and folders that it writes
    files: dict = dataclasses.field(default_factory=dict)  # that it reads
    before: list = dataclasses.field(default_factory=list)  # commands that write more such files
    journal: str = ""  # from which it goes on after a fault, to the same outputs
    weight: float = 1  # faults, beside other commands


def shard(number):
    return [*STUDY, "--shard", f"{number}/2", "--journal", f"{number}.journal", "--output", f"{number}.json"]


COMMANDS = [
    Command("predict", ["predict", "--model", "llama-2-7b", "--machine", "z100", "--format", "json", "--output",
                        "answer.json", *PAGE[0]], ["answer.json", *PAGE[1]]),
    Command("tables", ["tables", "footprint", "--model", "llama-2-7b"]),
    Command("show", ["show", "z100", "--format", "json"]),
    Command("study", [*STUDY, "--output", "answer.json", "--points", "points.csv", "--journal", "journal"],
            ["answer.json", "points.csv"], {"search.yaml": SEARCH}, journal="journal"),
    Command("merge", ["merge", "1.journal", "2.journal", "--points", "points.csv"], ["points.csv"],
            {"search.yaml": SEARCH}, [shard(1), shard(2)]),
    Command("simulate", ["simulate", "serving.yaml", "--chrome-trace", "steps.json", "--output", "answer.txt",
                         *THREADS], ["steps.json", "answer.txt"], {"serving.yaml": SERVING}),
    Command("recommend", ["recommend", "serving.yaml", "--format", "json"], [], {"serving.yaml": SERVING}, weight=0.3),
    Command("run", ["run", "--model", "dculab-tiny-draft", "--prompt", "Once upon", "--max-tokens", "4",
                    "--temperature", "0", *THREADS]),
    Command("run --prompts", ["run", "--model", "dculab-tiny-draft", "--prompts", "prompts.txt", "--max-tokens", "4",
                              "--temperature", "0", "--format", "json", "--output", "texts.json", *THREADS],
            ["texts.json"], {"prompts.txt": "Once upon\nThe cat\nA red ball\n"}),
    Command("bench", ["bench", "--model", "dculab-tiny-draft", "--context", "16", "--repeats", "1", "--warm-up", "0",
                      "--trace", "trace.jsonl", *THREADS], ["trace.jsonl"]),
    Command("evaluate", ["evaluate", "--model", "dculab-tiny-draft", "--text", "text.txt", "--window", "32",
                         "--decode-steps", "0", *THREADS], [], {"text.txt": TEXT}),
    Command("quantize rtn", ["quantize", "--model", "dculab-tiny-draft", "--method", "rtn", "--group-size", "16",
                             "--output", "model", *THREADS], ["model"]),
    Command("quantize gptq", ["quantize", "--model", "dculab-tiny-draft", "--group-size", "16", "--calibration",
                              "text.txt", "--calibration-tokens", "64", "--output", "model", *THREADS], ["model"],
            {"text.txt": TEXT}),
    Command("regroup", ["regroup", "--model", "dculab-tiny-draft", "--kv-heads", "1", "--method", "mean", "--output",
                        "model"], ["model"]),
    Command("import", TRACE, ["trace.jsonl"]),
    Command("calibrate", ["calibrate", "trace.jsonl", "--machine", "z100", "--machine-file", "fitted.yaml"],
            ["fitted.yaml"], before=[TRACE]),
    Command("validate", ["validate", "trace.jsonl", "--machine", "z100", *PAGE[0]], PAGE[1], before=[TRACE]),
    Command("replay", ["replay", "--model", "dculab-tiny", "--machine", "z100", "--batch", "1", "--context", "64"]),
    # As JSON, since the table has a line more where other processes are busy.
    Command("probe", ["probe", "--quick", "--format", "json", "--machine-file", "host.yaml", *THREADS], ["host.yaml"],
            weight=0.03),
]
