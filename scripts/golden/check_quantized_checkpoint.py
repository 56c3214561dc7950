"""Does a checkpoint of `dculab quantize` say the same to AutoGPTQ and transformers as to dculab?

Unpacks every matrix with AutoGPTQ's own QuantLinear, lets transformers continue a prompt greedily in F32 from those weights,
and compares the tokens with those of `dculab run`. Only for checkpoint_format gptq, which is what AutoGPTQ reads.

    python scripts/golden/check_quantized_checkpoint.py AutoGPTQ AutoAWQ DCULAB MODEL_FOLDER [PROMPT]

The first two as for make_gptq_goldens.py. Exits with 1 when a token differs. With DCULAB `-`, MODEL_FOLDER gets an
expected.safetensors as the folders of make_gptq_goldens.py have one. So were tests/golden/gptq/dculab_int4 and
dculab_int8 made, with torch 1.13.0 and transformers 4.41.2:

    dculab quantize --model tests/golden/llama/text --bits 4 --group-size 16 --desc-act \\
      --calibration scenarios/models/dculab-tiny/calibration.txt --output tests/golden/gptq/dculab_int4
    dculab quantize --model tests/golden/llama/text --bits 8 --group-size -1 --sym \\
      --calibration scenarios/models/dculab-tiny/calibration.txt --output tests/golden/gptq/dculab_int8
    python scripts/golden/check_quantized_checkpoint.py AutoGPTQ AutoAWQ - tests/golden/gptq/dculab_int4     (and _int8)

Of what is written config.json, model.safetensors and expected.safetensors are kept.
"""

import json
import pathlib
import subprocess
import sys

import safetensors.torch
import torch
import transformers

from golden_models import expected_tensors, greedy, write_expected
from make_gptq_goldens import load_tools

TOKENS = 48
QUANTIZED = ("qweight", "qzeros", "scales", "g_idx")


def dequantized(tools, tensors, module, settings):
    """[out_features, in_features] as AutoGPTQ computes with it."""
    in_features, out_features = len(tensors[f"{module}.g_idx"]), tensors[f"{module}.scales"].shape[1]
    layer = tools.QuantLinear(settings["bits"], settings["group_size"], in_features, out_features, False)
    for tensor in ("qweight", "qzeros", "g_idx"):
        setattr(layer, tensor, tensors[f"{module}.{tensor}"])
    layer.scales = tensors[f"{module}.scales"].float()
    return layer(torch.eye(in_features)).T


def unpacked_model(tools, folder):
    """The checkpoint's model in F32, its matrices as AutoGPTQ unpacks them."""
    config = json.loads((folder / "config.json").read_text())
    settings = config.pop("quantization_config")
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    state = {name: tensor.float() for name, tensor in tensors.items() if not name.endswith(QUANTIZED)}
    for name in tensors:
        if name.endswith(".qweight"):
            module = name.removesuffix(".qweight")
            state[f"{module}.weight"] = dequantized(tools, tensors, module, settings)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**config)).float()
    model.load_state_dict(state, strict=not model.config.tie_word_embeddings)
    return model


def write_golden(model, folder):
    for seed in range(100):
        torch.manual_seed(seed)
        expected = expected_tensors(model)
        if expected is not None:
            return write_expected(folder, expected)
    raise SystemExit(f"{folder}: no prompts give clear greedy choices")


def same_tokens(model, program, folder, prompt):
    tokens = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json")).encode(prompt)
    expected = greedy(model, torch.tensor(tokens), TOKENS)[0].tolist()
    answer = subprocess.run([program, "run", "--model", str(folder), "--prompt", prompt, "--temperature", "0",
                             "--max-tokens", str(TOKENS), "--ignore-eos", "--kv-cache-dtype", "f32", "--format", "json"],
                            check=True, capture_output=True, text=True).stdout
    actual = json.loads(answer)["completions"][0]["token_ids"]
    same = sum(a == b for a, b in zip(actual, expected))
    print(f"{folder}: {same} of {TOKENS} tokens are the same")
    return actual == expected


def main():
    tools = load_tools(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    program, folder = sys.argv[3], pathlib.Path(sys.argv[4])
    prompt = sys.argv[5] if len(sys.argv) > 5 else "Once upon a time"
    model = unpacked_model(tools, folder)
    if program == "-":
        write_golden(model, folder)
    elif not same_tokens(model, program, folder, prompt):
        raise SystemExit(1)


if __name__ == "__main__":
    with torch.no_grad():
        main()
