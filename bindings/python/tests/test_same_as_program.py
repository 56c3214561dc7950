"""The same numbers as the program, bit for bit: the JSON is compared as text."""

import gzip
import json
import pathlib

import pytest

import dculab

SOURCES = pathlib.Path(__file__).parents[3]
POINTS = SOURCES / "tests/data/published_points.csv"
SERVING = SOURCES / "tests/data/serving_runs.csv"
MEASURED = SOURCES / "tests/data/traces/nvidia-h200"


def options(keywords):
    """--batch 16 of batch=16."""
    for key, value in keywords.items():
        name = "--" + key.replace("_", "-")
        if value is True:
            yield name
        elif isinstance(value, list):
            yield name
            yield from value
        else:
            yield from (name, str(value))


def assert_same(program, answer, *arguments):
    code, output, errors = program(*arguments, "--format", "json")
    assert (code, errors) == (0, "")
    assert answer.json == output
    assert str(answer) + "\n" == program(*arguments)[1]
    assert answer.to_csv() == program(*arguments, "--format", "csv")[1]


def test_diagnosis(program):
    asked = {"model": "llama-3-8b", "machine": "mi210", "stack": "vllm"}
    answer = dculab.diagnose(**asked, at={500: 0.04, (2, 2000): 0.07}, enforce_eager=False)
    more = ["--at", "500=0.04 s", "2x2000=0.07 s", "--enforce-eager", "no"]
    assert_same(program, answer, "diagnose", *options(asked), *more)
    assert answer.pace == "slower"
    with pytest.raises(dculab.InputError, match="cannot be"):
        dculab.diagnose(**asked, tokens_per_second=1000)


PREDICTIONS = [
    {"model": "llama-3-8b", "machine": "k100-ai"},
    {"model": "llama-3-8b", "machine": "z100", "phase": "prefill", "batch": 4, "context": 1500},
    {"model": "llama-3-8b", "machine": "h100-sxm", "stack": "vllm", "batch": 64, "context": 4096, "block_size": 32},
    {"model": "llama-3-8b", "machine": "bw1000", "kv_heads": 2, "kv_cache_dtype": "int8", "weights": "gptq-int4"},
    {"model": "deepseek-v3", "machine": "h200", "stack": "sglang", "set": ["deployment.tensor_parallel_size=8"]},
    {"model": "gpt-oss-20b", "machine": "h100-sxm", "stack": "vllm", "batch": 8},
    {"model": "qwen3-30b-a3b", "machine": "x86-server", "set": ["machine.clock=2 GHz"]},
]


@pytest.mark.parametrize("question", PREDICTIONS, ids=lambda each: f"{each['model']}-{each['machine']}")
def test_predictions(program, question):
    assert_same(program, dculab.predict(**question), "predict", *options(question))


RECOMMENDATIONS = [
    {"model": "llama-3-8b", "machine": "k100-ai"},
    {"model": "llama-3-8b", "machine": ["z100", "a100-80gb-sxm"], "weights": "f16", "ttft": "2 s", "tpot": "100 ms"},
    {"model": "qwen3-8b", "machine": "bw1000", "stack": "vllm", "prompt_tokens": 512, "requests_per_second": 1.5},
    {"model": "llama-3-8b", "machine": "h100-sxm", "decode_machine": "k100-ai", "stack": "vllm", "devices": 8,
     "requests_per_second": 4, "ttft": "1 s", "tpot": "50 ms"},
]


@pytest.mark.parametrize("question", RECOMMENDATIONS, ids=lambda each: str(each["machine"]))
def test_recommendations(program, question):
    assert_same(program, dculab.recommend(**question), "recommend", *options(question))


def test_simulations(program):
    fewer = {"workload.requests": 40}
    answer = dculab.simulate("serving/llama3_on_z100", set=fewer)
    assert_same(program, answer, "simulate", "serving/llama3_on_z100", "--set", "workload.requests=40")
    answer = dculab.simulate("serving/llama3_on_z100", machine="k100-ai", intervals=False, set=fewer)
    assert_same(program, answer, "simulate", "serving/llama3_on_z100", "--no-intervals",
                "--set", "machine=k100-ai", "--set", "workload.requests=40")


def test_requests_of_conversations(program):
    answer = dculab.simulate("serving/conversations_on_cpu", machine="x86-server", intervals=False)
    assert_same(program, answer, "simulate", "serving/conversations_on_cpu", "--no-intervals",
                "--set", "machine=x86-server")


@pytest.mark.parametrize("scenario", ["llama3_on_dcu", "group_size", "dcu_design", "attention_kinds"])
def test_studies(program, scenario):
    assert_same(program, dculab.study(scenario), "study", scenario)


def test_a_search_on_all_cores(program):
    few = {"sweep": {"kv_cache.block_size": [1, 16, 64], "workload.batch": {"from": 1, "to": 64, "factor": 2}}}
    settings = [f"{key}={json.dumps(value)}" for key, value in few.items()]
    answer = dculab.study("search/million_points", set=settings, sensitivity=True)
    assert_same(program, answer, "study", "search/million_points", "--sensitivity", "--set", *settings)


def test_several_scenarios(program):
    answer = dculab.study(["llama3_on_dcu", "block_size"])
    assert_same(program, answer, "study", "llama3_on_dcu", "block_size")


def test_tables(program):
    assert_same(program, dculab.intensity("llama-3-8b", phase="decode", tokens=512), "tables", "intensity",
                "--model", "llama-3-8b", "--phase", "decode", "--tokens", 512)
    assert_same(program, dculab.footprint("llama-3-8b", batch=8, dtype="gptq-int4", kv_dtype="int8"), "tables",
                "footprint", "--model", "llama-3-8b", "--batch", 8, "--dtype", "gptq-int4", "--kv-dtype", "int8")
    assert_same(program, dculab.footprint("llama-3-8b", machine=["z100", "k100-ai"]), "tables", "footprint", "--model",
                "llama-3-8b", "--machine", "z100", "--machine", "k100-ai")


@pytest.mark.parametrize("what", ["z100", "vllm-dtk", "llama-3-8b"])
def test_shown_values(program, what):
    assert dculab.show(what).json == program("show", what, "--format", "json")[1]


def test_validations(program):
    assert dculab.validate(points=POINTS).json == program("validate", "--points", POINTS, "--format", "json")[1]


def test_errors_are_the_programs(program):
    for question in (
        {"model": "no-such-model", "machine": "z100"},
        {"model": "llama-3-8b", "machine": "z100", "context": 100000},
        {"model": "llama-3-8b", "machine": "z100", "kv_cache_dtype": "f17"},
        {"model": "llama-3-8b", "machine": "z100", "set": ["workload.btach=3"]},
    ):
        with pytest.raises(dculab.InputError) as raised:
            dculab.predict(**question)
        code, _, errors = program("predict", *options(question))
        assert code == 2
        assert f"dculab: {raised.value}\n" == errors


@pytest.mark.whole
@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize("machine", ["z100", "k100-ai", "bw1000", "h100-sxm", "mi300x", "x86-server"])
def test_all_models(program, machine, phase):
    """Every shipped model: the same prediction, or the same refusal."""
    predicted = 0
    for model in dculab.models():
        question = {"model": model.name, "machine": machine, "phase": phase, "batch": 2, "context": 700}
        code, output, errors = program("predict", *options(question), "--format", "json")
        try:
            assert dculab.predict(**question).json == output, model
            predicted += 1
        except dculab.InputError as error:
            assert (code, errors) == (2, f"dculab: {error}\n"), model
    assert predicted > 40


@pytest.mark.whole
def test_validations_of_left_out_groups(program):
    answer = dculab.validate(points=POINTS, leave_one_out="source")
    assert answer.json == program("validate", "--points", POINTS, "--leave-one-out", "source", "--format", "json")[1]
    assert dculab.validate(serving=SERVING).json == program("validate", "--serving", SERVING, "--format", "json")[1]


def test_benchmarks(program):
    result = SOURCES / "tests/data/foreign/vllm/mi300x_vllm2025-08_llama3.1-8b_bs8_in128_out128.json"
    asked = {"machine": "mi300x", "model": "llama-3.1-8b", "batch": 8, "prompt_tokens": 128, "output_tokens": 128}
    for command in (dculab.validate, dculab.calibrate):
        answer = command(result, **asked)
        assert answer.json == program(command.__name__, result, *options(asked), "--format", "json")[1]


def test_loads_without_a_scenario(program):
    asked = {"model": "llama-3-8b", "machine": "z100", "requests": 20, "prompt_tokens": 100, "output_tokens": 10}
    for command in (dculab.simulate, dculab.study):
        answer = command(**asked, requests_per_second=3.0)
        given = (*options(asked), "--requests-per-second", "3.0")
        assert answer.json == program(command.__name__, *given, "--format", "json")[1]


@pytest.mark.whole
def test_calibrations(program, tmp_path):
    trace, machine = tmp_path / "trace.jsonl", MEASURED / "machine.yaml"
    trace.write_bytes(gzip.decompress((MEASURED / "others/fp8-cache.jsonl.gz").read_bytes()))
    arguments = ["--machine", machine, "--hold-out", 0.3, "--machine-file"]
    answer = dculab.calibrate(trace, machine=machine, hold_out=0.3, machine_file=tmp_path / "ours.yaml")
    assert answer.json == program("calibrate", trace, *arguments, tmp_path / "theirs.yaml", "--format", "json")[1]
    assert (tmp_path / "ours.yaml").read_text() == (tmp_path / "theirs.yaml").read_text()
