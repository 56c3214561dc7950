"""Commands whose scenario or machine is written for them."""

import re


def measured_command(root, folder):
    """A study that runs a few steps on this machine, whose file is the one of the other tests."""
    header = (root / "tests/cli/generous_cpu.hpp").read_text(encoding="utf-8")
    machine, scenario = folder / "cpu.yaml", folder / "measured.yaml"
    machine.write_text(re.search(r'R"\((.*?)\)"', header, re.S).group(1), encoding="utf-8")
    scenario.write_text("""schema: dculab/scenario/1
question: Are eight steps predicted by eight others?
model: dculab-tiny
machine: host
workload: {phase: decode, batch: 1, context_tokens: 64}
sweep:
  model.num_key_value_heads: [1, 2, 4, 8]
  kv_cache.block_size: [1, 16]
  workload.batch: [1, 4]
measure: {repeats: 3, warm_up: 1, held_out: 0.5, seed: 1}
""", encoding="utf-8")
    return ["study", str(scenario), "--measure", "--host", str(machine)]


def search_command(folder):
    scenario = folder / "search.yaml"
    scenario.write_text("""schema: dculab/scenario/1
question: Which batch?
model: llama-3-8b
machine: z100
workload: {phase: decode, batch: 16, context_tokens: 2000}
sweep:
  workload.batch: {from: 1, to: 64, factor: 2}
  model.num_key_value_heads: [2, 8]
  kv_cache.block_size: [1, 16]
objective: {maximize: tokens_per_second}
constraints: [workload.batch <= max_sequences]
pareto: {minimize: [step_time], maximize: [tokens_per_second]}
""", encoding="utf-8")
    return ["study", str(scenario)]


def serving_search_command(folder):
    """A search of served requests: some settings meet the SLO, others miss it."""
    scenario = folder / "serving_search.yaml"
    scenario.write_text("""schema: dculab/scenario/1
question: Which limits serve most chats in time?
model: llama-3-8b
machine: k100-ai
workload: {requests: 100, prompt_tokens: 600, output_tokens: 100, arrival: poisson, requests_per_second: 1.5}
slo: {ttft: 2 s, tpot: 80 ms}
sweep:
  engine.max_num_seqs: [4, 8, 16, 32, 64]
  engine.max_num_batched_tokens: [256, 2048]
objective: {maximize: goodput, subject_to: {tpot_p99: "<= 120 ms"}}
""", encoding="utf-8")
    return ["study", str(scenario)]


def missed_search_command(folder):
    """A search of a load that no setting serves within the SLO, over block sizes that tie."""
    scenario = folder / "missed_search.yaml"
    scenario.write_text("""schema: dculab/scenario/1
question: Which limits serve more chats than the card can?
model: llama-3-8b
machine: k100-ai
workload: {requests: 100, prompt_tokens: 600, output_tokens: 100, arrival: poisson, requests_per_second: 8}
slo: {ttft: 2 s, tpot: 80 ms}
sweep:
  engine.max_num_seqs: [4, 8, 64]
  engine.max_num_batched_tokens: [256, 2048]
  kv_cache.block_size: [16, 64]
objective: {maximize: goodput, subject_to: {tpot_p99: "<= 120 ms"}}
""", encoding="utf-8")
    return ["study", str(scenario)]


def served_command(root, folder):
    """A few requests, simulated and served by one core of this machine."""
    machine = folder / "server.yaml"
    text = (root / "hwmodels/x86-server.yaml").read_text(encoding="utf-8")
    text = re.sub(r", per_unit_clock: [^,]+", "", text)  # peaks stay those of all cores: no honest step is faster
    machine.write_text(re.sub(r"compute_units: {value: \d+", "compute_units: {value: 1", text), encoding="utf-8")
    return ["simulate", "serving/llama3_on_z100", "--measure", "--set", "model=dculab-tiny", "weights=checkpoint",
            f"machine={machine}", "workload.requests=12", "workload.prompt_tokens=40", "workload.output_tokens=10",
            "workload.requests_per_second=500"]


def prefill_command(folder):
    scenario = folder / "prefill.yaml"
    scenario.write_text("""schema: dculab/scenario/1
question: How many prompts at a time?
model: llama-3-8b
machine: z100
workload: {phase: prefill, batch: 1, context_tokens: 128}
sweep: {workload.batch: [1, 4, 16]}
""", encoding="utf-8")
    return ["study", str(scenario)]
