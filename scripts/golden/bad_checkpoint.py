"""What a checkpoint with one mistake is made of: a small Llama, its tensors, and the files of a case."""

import json
import pathlib
import shutil
import struct

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/bad/checkpoint"
CONFIG = dict(model_type="llama", hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
              num_key_value_heads=1, vocab_size=4, max_position_embeddings=16, torch_dtype="float16")
LAYER = "model.layers.0."
SHAPES = {"model.embed_tokens.weight": [4, 8], LAYER + "input_layernorm.weight": [8],
          **{f"{LAYER}self_attn.{name}_proj.weight": [8, 8] for name in "qkvo"},
          LAYER + "post_attention_layernorm.weight": [8],
          **{f"{LAYER}mlp.{name}_proj.weight": [8, 8] for name in ("gate", "up", "down")},
          "model.norm.weight": [8], "lm_head.weight": [4, 8]}
BYTES = {"F32": 4, "F16": 2, "BF16": 2, "I32": 4}


def tensors(shapes=None, dtypes=None):
    """The header of a file that holds `shapes` in order without holes."""
    header, offset = {}, 0
    for name, shape in (shapes or SHAPES).items():
        dtype = (dtypes or {}).get(name, "F16")
        size = BYTES[dtype]
        for count in shape:
            size *= count
        header[name] = dict(dtype=dtype, shape=shape, data_offsets=[offset, offset + int(size)])
        offset += int(size)
    return header


def edited(name, **fields):
    header = tensors()
    header[name] = {**header[name], **fields}
    return header


def without(name):
    return {key: shape for key, shape in SHAPES.items() if key != name}


def size_of(header):
    return max((entry["data_offsets"][1] for entry in header.values()), default=0)


def safetensors(header, data_bytes=None):
    text = header if isinstance(header, str) else json.dumps(header, separators=(",", ":"))
    data = bytes(size_of(header) if data_bytes is None else data_bytes)
    return struct.pack("<Q", len(text)) + text.encode() + data


def write(case, message, config=None, weights=None, **files):
    folder = FOLDER / case
    folder.mkdir(parents=True)
    (folder / "expected_error.txt").write_text("{folder}" + message + "\n")
    if not isinstance(config, str):
        config = json.dumps({**CONFIG, **(config or {})}, indent=1) + "\n"
    (folder / "config.json").write_text(config)
    if weights is not None:
        (folder / "model.safetensors").write_bytes(weights)
    for name, content in files.get("files", {}).items():
        (folder / name).write_bytes(content)
