"""Which steps scripts/gpu-validate records: models with random weights, and grids of `dculab bench`."""

import json

DECODE = ["--phase", "decode", "--block-size", "16", "--context", "1024", "--repeats", "5"]
PREFILL = ["--phase", "prefill", "--block-size", "16", "--batch", "1", "--context", "128,512,2048", "--repeats", "5"]
TINY = ["--repeats", "1", "--warm-up", "0"]

# Llama-3-8B with two layers of 32 KV heads, which mean pooling turns into fewer: the largest KV cache of the full grids
# takes 8.6 GB, a trace some minutes.
MODEL = {"num_hidden_layers": 2, "num_key_value_heads": 32, "vocab_size": 32000, "max_position_embeddings": 16384,
         "torch_dtype": "float16"}
TINY_MODEL = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4,
              "num_key_value_heads": 4, "vocab_size": 256, "max_position_embeddings": 256, "torch_dtype": "float16"}

# A machine is fitted to these.
FULL = ["--kv-heads", "1,2,4,8,16,32", "--block-size", "1,8,16,32,64,128,256"]
FULL_GRIDS = {
    "decode": [*FULL, "--phase", "decode", "--batch", "1,16,64", "--context", "256,1024,4096", "--repeats", "5"],
    "decode-long": [*FULL, "--phase", "decode", "--batch", "1,4,16", "--context", "16384", "--repeats", "5"],
    "prefill": [*FULL, "--phase", "prefill", "--batch", "1", "--context", "128,512,2048", "--repeats", "3"],
    "prefill-batch": [*FULL, "--phase", "prefill", "--batch", "4,16", "--context", "64", "--repeats", "3"],
}
# Steps of the full grids, so that a quick run is compared with the same steps of the H200.
QUICK_GRIDS = {
    "decode": ["--kv-heads", "1,8,32", "--block-size", "16,64", "--phase", "decode", "--batch", "1,16", "--context",
               "256,1024", "--repeats", "3"],
    "prefill": ["--kv-heads", "8", "--block-size", "16", "--phase", "prefill", "--batch", "1", "--context",
                "128,512,2048", "--repeats", "3"],
}
TINY_GRIDS = {
    "decode": ["--kv-heads", "1,2,4", "--block-size", "1,16", "--phase", "decode", "--batch", "1,3", "--context", "17,40",
               *TINY],
    "prefill": ["--kv-heads", "1,2,4", "--block-size", "1,16", "--phase", "prefill", "--batch", "1", "--context", "9,20",
                *TINY],
}

# Other kernels than those of halves: a model of scenarios/models with a few layers, its weights, and the grid. They go to
# a folder of their own, for the fit is that of the grids above.
FULL_OTHERS = {
    "int4": ("llama-3-8b", 2, "int4", [*DECODE, "--batch", "1,2,4,8,16,64,128"]),
    "int4-prefill": ("llama-3-8b", 2, "int4", PREFILL),
    "int8": ("llama-3-8b", 2, "int8", [*DECODE, "--batch", "1,4,8,16,64", "--activations", "int8"]),
    "fp8": ("llama-3-8b", 2, "fp8", [*DECODE, "--batch", "1,4,8,16,64"]),
    "fp8-cache": ("llama-3-8b", 2, "f16",
                  ["--phase", "decode", "--kv-cache-dtype", "fp8_e4m3", "--kv-heads", "1,2,8", "--block-size", "16,64",
                   "--batch", "1,16,64", "--context", "1024,4096", "--repeats", "5"]),
    "experts": ("qwen3-30b-a3b", 2, "bf16", [*DECODE, "--batch", "1,4,16,64,256"]),
    "experts-prefill": ("qwen3-30b-a3b", 2, "bf16", PREFILL),
    "latents": ("deepseek-v2-lite", 3, "bf16", ["--phase", "decode", "--block-size", "16,64", "--context", "1024,4096",
                                                 "--batch", "1,4,16,64", "--repeats", "5"]),
    "latents-prefill": ("deepseek-v2-lite", 3, "bf16", PREFILL),
}
TINY_OTHERS = {
    "int4": ("llama-3-8b", 1, "int4",
             ["--phase", "decode", "--block-size", "16", "--batch", "1", "--context", "17", *TINY]),
}


def grids(emulated, quick):
    return TINY_GRIDS if emulated else QUICK_GRIDS if quick else FULL_GRIDS


def other_grids(emulated, quick):
    return {} if quick else TINY_OTHERS if emulated else FULL_OTHERS


def step_count(grid):
    """How many steps `dculab bench` times: every combination of these options' values."""
    count = 1
    for option, values in zip(grid, grid[1:]):
        if option in ("--kv-heads", "--block-size", "--batch", "--context"):
            count *= len(values.split(","))
    return count


def write_model(models, parent, base, changes, name):
    """The folder of a model that is `base` of `models` with other keys."""
    config = json.loads((models / base / "config.json").read_text())
    folder = parent / name
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config | changes, indent=2) + "\n")
    return folder
