"""Writes the inputs that fuzzing starts from: small files of every format, cut from those of the repository or made up.

Usage: make_seeds.py PROGRAM [CORPUS]    PROGRAM: a built dculab; CORPUS: tests/fuzz/corpus

Each is written as seed-NAME below CORPUS/TARGET, or as seed-bad-NAME where the reader must refuse it. What fuzzing
finds stands beside them, under the hash of its bytes.
"""

import contextlib
import csv
import gzip
import importlib.util
import io
import json
import pathlib
import sqlite3
import struct
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def first_lines(path, count):
    return "\n".join((ROOT / path).read_text(encoding="utf-8").splitlines()[:count]) + "\n"


# ---------------------------------------------------------------- chat templates

def chat_template():
    """Those of the tests that read a conversation, and some that are refused."""
    golden = json.loads((ROOT / "tests/golden/chat_templates.json").read_text(encoding="utf-8"))
    families = dict.fromkeys(case["template"] for case in golden["cases"] if case["variables"] == 4)
    for number, template in enumerate(families):
        yield f"{number}", template
    yield "statements", ("{% set n = namespace(x=0) %}{% for m in messages if m.content %}{% set n.x = n.x + loop.index %}"
                         "{% if loop.last %}{% break %}{% endif %}{% endfor %}{{ n.x }}{% set b %}{{ n.x * 2 }}{% endset %}{{ b }}")
    yield "filters", ("{{ messages | map(attribute='role') | join(', ') | upper }}{{ messages[1:] | selectattr('content') | list | length }}"
                      "{{ messages | tojson(indent=2) }}{{ (missing | default('x')) ~ 'a b'.split()[::-1] }}")
    yield "bad-include", "{% include 'x' %}"
    yield "bad-open", "{{ messages"
    yield "bad-raise", "{{ raise_exception('no') }}"


# ---------------------------------------------------------------- bodies of requests

def completions():
    yield "bench", json.dumps({"model": "m", "prompt": "a b", "repetition_penalty": 1.0, "max_tokens": 128, "logprobs": None,
                               "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True,
                               "temperature": 0.0})
    yield "ids", '{"prompt": [[1, 2, 300]], "stop": ["x", "\\n"], "stop_token_ids": [7], "seed": -1, "top_k": -1, "top_p": 0.5}'
    yield "chat", json.dumps({"messages": [{"role": "system", "content": "s"},
                                           {"role": "user", "content": [{"type": "text", "text": "caf\u00e9"}]},
                                           {"role": "assistant", "content": None, "tool_calls": []}],
                              "max_completion_tokens": 8, "tool_choice": "auto", "response_format": {"type": "text"}})
    yield "bad-tools", '{"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function"}]}'
    yield "bad-ids", '{"prompt": [1, -2, 1e99]}'
    yield "bad-escape", '{"prompt": "\\ud800"}'


# ---------------------------------------------------------------- tables and lines

def accuracy():
    yield "shipped", first_lines("scenarios/accuracy/dculab-tiny.csv", 6)
    yield "group", first_lines("tests/data/group_accuracy.csv", 4)


def points():
    """The first of each kind."""
    rows = []
    for name in ("measured_points_2.csv", "published_points.csv"):
        rows[:0] = csv.DictReader(io.StringIO((ROOT / "tests/data" / name).read_text(encoding="utf-8")))
    kinds = {row["kind"]: row for row in reversed(rows)}
    kinds["kernel"] = next(row for row in rows if row.get("kernel"))
    for kind, row in kinds.items():
        text = io.StringIO()
        writer = csv.DictWriter(text, row.keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerow(row)
        yield kind, text.getvalue()


def foreign(*folders, largest=10_000):
    """What other tools wrote, as far as it is small."""
    for folder in folders:
        for path in sorted((ROOT / "tests/data/foreign" / folder).rglob("*")):
            if path.is_file() and path.stat().st_size <= largest:
                yield path


def benchmarks():
    for path in foreign("vllm", "sglang", "llama-bench"):
        bad = "bad-" if "failed" in path.stem else ""  # no request was answered
        yield f"{bad}{path.parent.name}-{path.name}", path.read_bytes()
    aiperf = json.loads((ROOT / "tests/data/foreign/aiperf/aiperf_qwen_concurrency2_profile_export_aiperf.json").read_text())
    kept = ("request_throughput", "request_latency", "request_count", "time_to_first_token", "inter_token_latency",
            "output_token_throughput", "output_sequence_length", "input_sequence_length", "benchmark_duration")
    load = {"endpoint": {"model_names": ["m"]}, "loadgen": {"concurrency": 2}}
    yield "aiperf", json.dumps({**{key: aiperf[key] for key in kept}, "input_config": load})
    statistics = {"successful": {"mean": 2.5, "count": 3, "percentiles": {"p50": 2, "p90": 3, "p99": 4}}}
    metrics = {name: statistics for name in ("requests_per_second", "request_latency", "prompt_token_count",
                                             "output_token_count", "time_to_first_token_ms", "inter_token_latency_ms",
                                             "output_tokens_per_second")}
    strategy = {"strategy": {"type_": "poisson", "rate": 2.0}, "backend": {"model": "m"}}
    yield "guidellm", json.dumps({"benchmarks": [{"config": strategy, "metrics": metrics, "duration": 3.0}]})


def gguf():
    for path in foreign("gguf"):
        bad = "" if path.stem.startswith("writer_tiny") and "jamba" not in path.stem else "bad-"
        yield bad + path.stem, path.read_bytes()


def serving_runs():
    yield "shipped", first_lines("tests/data/serving_runs.csv", 3)


def requests():
    yield "two", "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,374,44\n1.5e-1,396,109\n"
    for path in foreign("traces", largest=100_000):
        if path.suffix in (".csv", ".jsonl") and path.parent.name == "traces":
            yield path.stem, "\n".join(path.read_text(encoding="utf-8").splitlines()[:3]) + "\n"
    yield "unordered", 'num_decode_tokens,arrived_at,num_prefill_tokens\r\n1,2,3\r\n"4",1,16777216\r\n'


def conversations():
    turns = [{"from": "human", "value": "Hi \u00e9\n"}, {"from": "gpt", "value": "Hello"}]
    yield "two", json.dumps([{"id": "a", "conversations": turns}, {"id": "b", "conversations": turns[1:] + turns}])
    yield "bad-none", json.dumps([{"id": "a", "conversations": []}])


def questions():
    lines = (ROOT / "scenarios/models/dculab-tiny/eval/choice.jsonl").read_text(encoding="utf-8").splitlines()
    yield "shipped", "\n".join(lines[:2]) + "\n"
    yield "context", json.dumps({"id": 1, "context": "c", "answerKey": "2", "question": {
        "stem": "s", "choices": [{"text": "a", "label": "1"}, {"text": "b", "label": "2"}]}})


ROCPD = """
CREATE TABLE rocpd_kernel_dispatch (id, guid, kernel_id, agent_id, start, end);
CREATE TABLE rocpd_info_kernel_symbol (id, guid, display_name);
INSERT INTO rocpd_info_kernel_symbol VALUES (7, 'g', 'gemm');
INSERT INTO rocpd_kernel_dispatch VALUES (1, 'g', 7, 2, 100, 250), (2, 'g', 7, 2, 300, 400);
"""
NSYS = """
CREATE TABLE StringIds (id, value);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, demangledName);
INSERT INTO StringIds VALUES (3, 'gemm');
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 250, 0, 3), (300, 400, 0, 3);
"""


def profile():
    """Steps of a model with one layer, as every profiler lists them."""
    spec = importlib.util.spec_from_file_location("make_profiles", ROOT / "tests/data/profiles/make_profiles.py")
    profiles = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(profiles)
    profiles.LAYERS = 1
    for name in ("rocprof", "rocprofv3", "hipprof_pmc", "hipprof_database", "hipprof_json", "nsys"):
        for engine in ("DCULAB", "VLLM_ROCM", "VLLM_DCU", "VLLM_CUDA"):
            yield f"{name}-{engine.lower()}", getattr(profiles, name)(getattr(profiles, engine), 2)
    events = [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1.25 * step, "dur": 1, "args": {"device": 0}}
              for step in range(3)]
    yield "pytorch", json.dumps({"schemaVersion": 1, "traceEvents": events})
    for name, rows in (("rocpd", ROCPD), ("nsys-sqlite", NSYS)):
        with tempfile.NamedTemporaryFile(suffix=".db") as file, contextlib.closing(sqlite3.connect(file.name)) as made:
            made.executescript("PRAGMA page_size = 512; VACUUM;" + rows)
            made.commit()
            yield name, pathlib.Path(file.name).read_bytes()
    for bad in sorted((ROOT / "tests/bad/profile").iterdir()):
        yield f"bad-{bad.stem}", bad.read_text(encoding="utf-8")


# ---------------------------------------------------------------- checkpoints

def shard_index():
    folder = ROOT / "tests/golden/llama/sharded"
    yield "whole", (folder / "model.safetensors.index.json").read_text(encoding="utf-8")
    yield "one", json.dumps({"weight_map": {"lm_head.weight": "model-00003-of-00003.safetensors"}})
    yield "bad-outside", json.dumps({"metadata": {}, "weight_map": {"a": "../model.safetensors"}})


BYTES = {"F16": 2, "F32": 4, "I32": 4}
WIDTH = 32  # of every matrix, in and out


def safetensors(tensors):
    header, data = {}, b""
    for name, dtype, shape, contents in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(contents)]}
        data += contents
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def plain(name, *shape):
    count = 1
    for size in shape:
        count *= size
    return name, "F16", list(shape), struct.pack("<e", 0.5) * count


def packed(module, bits, group_size, awq, with_order):
    """What GPTQ or AWQ makes of a [WIDTH, WIDTH] matrix."""
    groups = WIDTH // (WIDTH if group_size == -1 else group_size)
    words = WIDTH * bits // 32
    shape = [WIDTH, words] if awq else [words, WIDTH]
    yield module + ".qweight", "I32", shape, struct.pack("<I", 0x76543210) * (words * WIDTH)
    yield module + ".qzeros", "I32", [groups, words], struct.pack("<I", 0x11111111) * (groups * words)
    yield module + ".scales", "F16", [groups, WIDTH], struct.pack("<e", 0.25) * (groups * WIDTH)
    if with_order:
        order = [column * groups // WIDTH for column in reversed(range(WIDTH))]
        yield module + ".g_idx", "I32", [WIDTH], struct.pack(f"<{WIDTH}i", *order)


def quantized_model(quantization, bits=4, group_size=WIDTH, with_order=False):
    config = {"model_type": "llama", "hidden_size": WIDTH, "intermediate_size": WIDTH, "num_hidden_layers": 1,
              "num_attention_heads": 1, "num_key_value_heads": 1, "vocab_size": 4, "max_position_embeddings": 64,
              "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "torch_dtype": "float16"}
    tensors = [plain("model.embed_tokens.weight", 4, WIDTH), plain("model.norm.weight", WIDTH)]
    layer = "model.layers.0."
    tensors += [plain(layer + name + ".weight", WIDTH) for name in ("input_layernorm", "post_attention_layernorm")]
    matrices = [f"{layer}self_attn.{letter}_proj" for letter in "qkvo"]
    matrices += [f"{layer}mlp.{name}_proj" for name in ("gate", "up", "down")]
    for module in matrices:
        if quantization is None:
            tensors.append(plain(module + ".weight", WIDTH, WIDTH))
        else:
            awq = quantization["quant_method"] == "awq"
            tensors += packed(module, bits, group_size, awq, with_order)
    if quantization is not None:
        config["quantization_config"] = {**quantization, "bits": bits, "group_size": group_size}
    return json.dumps(config).encode() + b"\0" + safetensors(tensors)


def quantized():
    gptq, awq = {"quant_method": "gptq", "sym": True}, {"quant_method": "awq", "version": "gemm", "zero_point": True}
    yield "plain", quantized_model(None)
    for bits in (2, 3, 4, 8):
        yield f"gptq{bits}", quantized_model(gptq, bits)
    yield "gptq_v2", quantized_model({**gptq, "checkpoint_format": "gptq_v2"}, 4, 8)
    yield "act_order", quantized_model({**gptq, "desc_act": True}, 4, 16, with_order=True)
    yield "per_row", quantized_model(gptq, 8, -1)
    yield "awq", quantized_model(awq, 4, 16)


# ---------------------------------------------------------------- what the program writes

SCENARIO = """schema: dculab/scenario/1
question: q
model: llama-2-7b
machine: z100
workload: {phase: decode, batch: 4, context_tokens: 512}
sweep: {kv_cache.block_size: [8, 16]}
objective: {minimize: step_time}
"""


def run(program, folder, *arguments):
    subprocess.run([str(program), *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def first_chunk(contents):
    """The payload of the second record: the first one is the journal's header."""
    place = len(b"dculab study journal 2\n")
    size, = struct.unpack_from("<Q", contents, place)
    place += 16 + size + 8
    size, = struct.unpack_from("<Q", contents, place)
    return contents[place + 16:place + 16 + size]


def journal(program):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "journal")
        path.with_name("scenario.yaml").write_text(SCENARIO, encoding="utf-8")
        run(program, folder, "study", "scenario.yaml", "--journal", "journal")
        contents = path.read_bytes()
    yield "whole", contents
    yield "chunk", first_chunk(contents)
    yield "torn", contents[:-5]
    yield "zeros", contents[:-40] + bytes(40)


def trace(program):
    with tempfile.TemporaryDirectory() as folder:
        run(program, folder, "bench", "--model", "dculab-tiny", "--batch", "2", "--context", "64",
            "--trace", "trace.jsonl")
        lines = pathlib.Path(folder, "trace.jsonl").read_text(encoding="utf-8").splitlines()
    yield "first", "\n".join(lines[:2]) + "\n"
    yield "last", "\n".join([lines[0], lines[-1]]) + "\n"


def tar(members, type=tarfile.REGTYPE, format=tarfile.USTAR_FORMAT):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=format) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.type, member.linkname = len(content), type, "x" if type == tarfile.SYMTYPE else ""
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def archive(traces):
    """Results as scripts/gpu-validate packs them, and archives that must be refused."""
    text = dict(traces)["first"].encode()
    machine = (ROOT / "hwmodels/mi50.yaml").read_bytes()
    results = {"results/README.md": b"what this is", "results/machine.yaml": machine,
               "results/decode.jsonl.gz": gzip.compress(text, mtime=0),
               "results/others/int4.jsonl.gz": gzip.compress(text, mtime=0)}
    yield "results", gzip.compress(tar(results), mtime=0)
    yield "pax", tar({"decode.jsonl": text}, format=tarfile.PAX_FORMAT)
    yield "bad-empty", tar({})
    yield "bad-path", tar({"../decode.jsonl": text})
    yield "bad-link", tar({"decode.jsonl": b""}, type=tarfile.SYMTYPE)
    yield "bad-twice", tar({"a/machine.yaml": machine, "b/machine.yaml": machine, "decode.jsonl": text})
    yield "bad-half", tar({"decode.jsonl": text})[:1000]


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    corpus = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "tests/fuzz/corpus"
    makers = (accuracy, benchmarks, chat_template, completions, conversations, gguf, points, profile, quantized, questions,
              requests, serving_runs, shard_index)
    seeds = {make.__name__: make() for make in makers}
    steps = list(trace(program))
    seeds |= {"journal": journal(program), "trace": steps, "archive": archive(steps)}
    for target, files in seeds.items():
        folder = corpus / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, contents in files:
            (folder / f"seed-{name}").write_bytes(contents if isinstance(contents, bytes) else contents.encode())


if __name__ == "__main__":
    main()
