"""Writes fake-quantized weights as a GPTQ checkpoint (AutoGPTQ's format), and reads such a checkpoint back."""

import json
import shutil

import numpy as np
import torch
from safetensors.torch import load_file, save_file

COPIED = ("generation_config.json", "tokenizer.json", "tokenizer_config.json")


def packed(values, bits):
    """Integers [n, m] -> int32 [n * bits / 32, m]: one little-endian stream of bits along the first dimension."""
    values = values.numpy().astype(np.uint32)
    words = np.zeros((len(values) * bits // 32, values.shape[1]), np.uint32)
    for i in range(32 // bits):
        words |= values[i :: 32 // bits] << np.uint32(i * bits)
    return torch.from_numpy(words.view(np.int32))


def unpacked(words, bits):
    words = words.numpy().view(np.uint32)
    parts = [words >> np.uint32(i * bits) & np.uint32(2**bits - 1) for i in range(32 // bits)]
    return torch.from_numpy(np.stack(parts, 1).reshape(-1, words.shape[1]).astype(np.int32))


def gptq_tensors(name, q, scales, zeros, bits):
    columns, groups = q.shape[1], scales.shape[1]
    return {
        f"{name}.qweight": packed(q.T.contiguous(), bits),
        f"{name}.qzeros": packed(zeros - 1, bits).T.contiguous(),
        f"{name}.scales": scales.T.half().contiguous(),
        f"{name}.g_idx": (torch.arange(columns) // (columns // groups)).int(),
    }


def zero_points(tensors, name, bits):
    return (unpacked(tensors[f"{name}.qzeros"].T.contiguous(), bits) + 1) % 2**bits


def dequantized(tensors, name, bits):
    """weight [rows, columns] of a matrix of a checkpoint"""
    q = unpacked(tensors[f"{name}.qweight"], bits).T
    group = tensors[f"{name}.g_idx"].long()
    return tensors[f"{name}.scales"].float().T[:, group] * (q - zero_points(tensors, name, bits)[:, group])


def record(bits, group):
    return {
        "quant_method": "gptq",
        "bits": bits,
        "group_size": group,
        "desc_act": False,
        "sym": False,
        "lm_head": False,
        "checkpoint_format": "gptq",
        "meta": {"quantizer": ["dculab:llm-qat"]},
    }


def write(source, folder, plain, matrices, bits, group):
    """`plain`: tensors as they are; `matrices`: name -> (q, scales, zeros); the rest comes from the folder `source`."""
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = record(bits, group)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in COPIED:
        shutil.copyfile(source / name, folder / name)
    tensors = {name: tensor.detach().bfloat16().contiguous() for name, tensor in plain.items()}
    for name, integers in matrices.items():
        tensors |= gptq_tensors(name, *integers, bits)
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)


def read(folder):
    """(tensors, names of the matrices, bits)"""
    bits = json.loads((folder / "config.json").read_text(encoding="utf-8"))["quantization_config"]["bits"]
    tensors = load_file(str(folder / "model.safetensors"))
    return tensors, [name.removesuffix(".qweight") for name in tensors if name.endswith(".qweight")], bits


def read_grids(folder):
    """By name of a matrix (scales, zero points), [rows, groups, 1]."""
    tensors, matrices, bits = read(folder)
    scales = {name: tensors[f"{name}.scales"].float().T for name in matrices}
    return {name: (scales[name][..., None], zero_points(tensors, name, bits)[..., None]) for name in matrices}


def read_dense(folder):
    """All weights of a GPTQ folder as name -> F32, matrices as the numbers that their integers stand for."""
    tensors, matrices, bits = read(folder)
    dense = {f"{name}.weight": dequantized(tensors, name, bits) for name in matrices}
    return dense | {name: tensor.float() for name, tensor in tensors.items() if name.endswith(".weight")}
