"""Writes tests/golden/fp8: tiny random models whose matrices are float8_e4m3fn with scales, as checkpoints have them.

A folder for each way of scaling: config.json with quantization_config, model.safetensors, and expected.safetensors: for
prompt i, `prompt.i` [n] and `greedy.i` [m] (I32), `logits.i` [n, vocab_size] (F32), computed by transformers in F32 from
the weights that value times scale give. Activations are not quantized.

    pip install torch==2.15.0 transformers==5.23.0 safetensors==0.8.0
    python scripts/golden/make_fp8_goldens.py [VARIANT ...]
"""

import json
import pathlib
import shutil
import sys

import safetensors.torch
import torch
import transformers

from golden_models import expected_tensors, require_pinned, write_expected

PINNED = {torch: "2.15.0", transformers: "5.23.0", safetensors: "0.8.0"}
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/fp8"
LARGEST = 448.0  # of float8_e4m3fn
BLOCK = 128

# Rows and columns that whole blocks do not divide.
SIZES = dict(hidden_size=144, intermediate_size=136, num_hidden_layers=2, num_attention_heads=4, vocab_size=96,
             max_position_embeddings=128, initializer_range=0.1, rms_norm_eps=1e-5, tie_word_embeddings=False,
             bos_token_id=1, eos_token_id=2, pad_token_id=None, num_key_value_heads=2)
DEEPSEEK = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
            "weight_block_size": [BLOCK, BLOCK]}


def compressed_tensors(strategy, ignore):
    weights = {"num_bits": 8, "type": "float", "strategy": strategy, "symmetric": True, "dynamic": False}
    group = {"weights": weights, "input_activations": None, "output_activations": None, "targets": ["Linear"]}
    return {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": group},
            "ignore": ignore}


# name: (model, rows and columns of a block (0: all), name and dtype of scales, whether lm_head has them, config)
QWEN3 = transformers.Qwen3Config(**SIZES, head_dim=32)
PHI3 = transformers.Phi3Config(**{**SIZES, "hidden_size": 160})  # heads of a multiple of 8
VARIANTS = {
    "block": (QWEN3, (BLOCK, BLOCK), "weight_scale_inv", torch.bfloat16, False, DEEPSEEK),
    "block_fused": (PHI3, (BLOCK, BLOCK), "weight_scale_inv", torch.float32, False, DEEPSEEK),
    "channel": (QWEN3, (1, 0), "weight_scale", torch.bfloat16, False, compressed_tensors("channel", ["lm_head"])),
    "tensor": (QWEN3, (0, 0), "weight_scale", torch.float32, True, compressed_tensors("tensor", [])),
}


def quantize(weight, block, scale_dtype):
    """Values in float8_e4m3fn, scales [row blocks, column blocks], and the weights that they stand for."""
    rows, columns = (size or whole for size, whole in zip(block, weight.shape))
    scales = torch.stack([torch.stack([part.abs().max() / LARGEST for part in strip.split(columns, 1)])
                          for strip in weight.split(rows, 0)]).to(scale_dtype)
    wide = scales.float().repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    wide = wide[:weight.shape[0], :weight.shape[1]]
    values = (weight / wide).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
    return values, scales, values.float() * wide


def make_model(config, seed):
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config)
    for name, parameter in model.named_parameters():
        if "norm" in name:  # all ones would hide a norm that is left out
            parameter.copy_(1.0 + 0.3 * torch.randn_like(parameter))
        parameter.copy_(parameter.bfloat16())
    return model


def quantize_model(model, block, scale_name, scale_dtype, with_head):
    """Tensors of the checkpoint; the model's weights become what they stand for."""
    tensors = {key: value.bfloat16() for key, value in model.state_dict().items()}
    for name, linear in model.named_modules():
        if not isinstance(linear, torch.nn.Linear) or (name == "lm_head" and not with_head):
            continue
        # Outliers make the scales of blocks differ.
        weight = linear.weight * torch.exp(0.5 * torch.randn(linear.out_features, 1))
        values, scales, linear.weight.data = quantize(weight, block, scale_dtype)
        tensors[f"{name}.weight"] = values
        tensors[f"{name}.{scale_name}"] = scales.reshape(1) if block == (0, 0) else scales
    return tensors


def write_variant(name):
    config, block, scale_name, scale_dtype, with_head, quantization = VARIANTS[name]
    folder = FOLDER / name
    for seed in range(100):
        model = make_model(config, seed)
        tensors = quantize_model(model, block, scale_name, scale_dtype, with_head)
        expected = expected_tensors(model)
        if expected is None:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        config.save_pretrained(folder)
        text = json.loads((folder / "config.json").read_text())
        text |= {"dtype": "bfloat16", "quantization_config": quantization}
        (folder / "config.json").write_text(json.dumps(text, indent=2) + "\n")
        safetensors.torch.save_file({key: value.contiguous() for key, value in tensors.items()},
                                    folder / "model.safetensors", metadata={"format": "pt"})
        write_expected(folder, expected)
        print(name, "seed", seed)
        return
    raise SystemExit(f"{name}: no seed gives clear greedy choices")


def main():
    require_pinned(PINNED)
    with torch.no_grad():
        for name in sys.argv[1:] or VARIANTS:
            write_variant(name)


if __name__ == "__main__":
    main()
