"""Writes tests/golden/gptq: what AutoGPTQ and AutoAWQ make of small matrices and of a tiny random Llama.

`layers.safetensors`: a weight [rows, columns] and the Hessian [columns, columns] of calibration inputs; layers.csv: the
relative output error ||(W - Wq) X|| / ||W X|| that AutoGPTQ's GPTQ reaches on them, case by case; shipped_layer.csv: the
same for the first layer of dculab-tiny, on the first 1,024 tokens of its calibration text (asymmetric, groups of 128).
A folder for each way of quantizing a tiny Llama: config.json with quantization_config, model.safetensors with the tensors
that the tool packed, and expected.safetensors: for prompt i, `prompt.i` [n] and `greedy.i` [m] (I32), `logits.i`
[n, vocab_size] (F32), computed by transformers in F32 from the weights as the tool itself unpacks them.

AutoGPTQ and AutoAWQ are archived, and import CUDA extensions that nothing here needs: their files are loaded alone.

    pip install torch==2.15.0 transformers==5.23.0 safetensors==0.8.0
    git clone https://github.com/AutoGPTQ/AutoGPTQ && git -C AutoGPTQ checkout 9f7d370
    git clone https://github.com/casper-hansen/AutoAWQ && git -C AutoAWQ checkout 88e4c76
    python scripts/golden/make_gptq_goldens.py AutoGPTQ AutoAWQ [shipped_layer | VARIANT ...]

shipped_layer.csv was made with torch 1.13.0 and transformers 4.46.3; its four digits are no finer than that.
"""

import csv
import importlib.util
import json
import pathlib
import shutil
import sys
import types

import safetensors.torch
import torch
import transformers

from golden_models import expected_tensors, require_pinned, write_expected

PINNED = {torch: "2.15.0", transformers: "5.23.0", safetensors: "0.8.0"}
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/golden/gptq"
SHIPPED = ROOT / "scenarios/models/dculab-tiny"
ROWS, COLUMNS, TOKENS = 48, 128, 512

BASE = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=96, max_position_embeddings=128, initializer_range=0.2, rms_norm_eps=1e-5,
            tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=None)
VARIANTS = {
    "int4_desc_act": dict(bits=4, group_size=32, desc_act=True, sym=False),
    "int4_v2": dict(bits=4, group_size=32, desc_act=False, sym=True, checkpoint_format="gptq_v2"),
    "int3": dict(bits=3, group_size=32, desc_act=False, sym=False),
    "int2": dict(bits=2, group_size=32, desc_act=False, sym=False),
    "int8_channel": dict(bits=8, group_size=-1, desc_act=False, sym=True),
    "awq": dict(bits=4, group_size=32, zero_point=True, version="gemm", quant_method="awq"),
}


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def package(name):
    sys.modules[name] = module = types.ModuleType(name)
    module.__path__ = []
    return module


def load_tools(autogptq, autoawq):
    for name in ("auto_gptq", "auto_gptq.quantization", "awq", "awq.utils"):
        package(name)
    torch.cuda.synchronize = lambda: None
    load("auto_gptq.quantization.quantizer", autogptq / "auto_gptq/quantization/quantizer.py")
    gptq = load("auto_gptq.quantization.gptq", autogptq / "auto_gptq/quantization/gptq.py")
    linear = load("auto_gptq.qlinear_cuda", autogptq / "auto_gptq/nn_modules/qlinear/qlinear_cuda.py")
    package("awq.utils.module").try_import = lambda _: (None, "")
    package("awq.utils.utils").get_best_device = lambda: "cpu"
    packing = load("awq.utils.packing_utils", autoawq / "awq/utils/packing_utils.py")
    awq = load("awq.modules.linear.gemm", autoawq / "awq/modules/linear/gemm.py")
    return types.SimpleNamespace(GPTQ=gptq.GPTQ, QuantLinear=linear.QuantLinear, AwqLinear=awq.WQLinear_GEMM,
                                 dequantize_awq=packing.dequantize_gemm)


def run_gptq(tools, linear, inputs, bits, group_size, desc_act, sym, **_):
    """Quantizes `linear` in place; scales, zeros, g_idx as QuantLinear.pack takes them, and the Hessian."""
    solver = tools.GPTQ(linear)
    solver.quantizer.configure(bits, perchannel=True, sym=sym)
    for sample in inputs:
        solver.add_batch(sample, None)
    # AutoGPTQ divides by batches, the paper and this project by tokens: a factor that changes nothing but the loss.
    scale, zero, g_idx = solver.fasterquant(percdamp=0.01, group_size=group_size, actorder=desc_act)
    return scale, zero, g_idx


def correlated(tokens, columns):
    mix = torch.randn(columns, columns) / columns**0.5
    channels = torch.exp(0.8 * torch.randn(columns))  # some in-features are far larger than others
    return torch.randn(tokens, columns) @ mix * channels


def layer_inputs(model, tokens, layer):
    """What each matrix of the layer reads while the model reads the text: {name: [tokens, in_features]}."""
    inputs, hooks = {}, []
    for name, module in model.model.layers[layer].named_modules():
        if isinstance(module, torch.nn.Linear):
            def keep(_, args, name=name):
                inputs[name] = args[0][0].clone()
            hooks.append(module.register_forward_pre_hook(keep))
    model(tokens[None])
    for hook in hooks:
        hook.remove()
    return inputs


def write_shipped_layer(tools):
    model = transformers.AutoModelForCausalLM.from_pretrained(SHIPPED).float()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(SHIPPED / "tokenizer.json"))
    text = (SHIPPED / "calibration.txt").read_text(encoding="utf-8")
    tokens = torch.tensor(tokenizer.encode(text, add_special_tokens=False)[:1024])
    with open(FOLDER / "shipped_layer.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["module", "bits", "desc_act", "relative_error"])
        for name, x in layer_inputs(model, tokens, 0).items():
            weight = dict(model.model.layers[0].named_modules())[name].weight.data
            for bits in (3, 4):
                for desc_act in (False, True):
                    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
                    linear.weight.data = weight.clone()
                    run_gptq(tools, linear, [x[None]], bits, 128, desc_act, sym=False)
                    relative = (((weight - linear.weight.data) @ x.T).norm() / (weight @ x.T).norm()).item()
                    table.writerow([f"model.layers.0.{name}", bits, int(desc_act), f"{relative:.4g}"])


def write_layers(tools):
    torch.manual_seed(7)
    x = correlated(TOKENS, COLUMNS)
    weight = torch.randn(ROWS, COLUMNS) * torch.exp(0.3 * torch.randn(ROWS, 1))
    hessian = 2 / TOKENS * x.T @ x
    safetensors.torch.save_file(dict(weight=weight, hessian=hessian), FOLDER / "layers.safetensors")
    with open(FOLDER / "layers.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["bits", "group_size", "desc_act", "sym", "relative_error"])
        for bits in (2, 3, 4, 8):
            for group_size in (32, COLUMNS):
                for desc_act in (False, True):
                    for sym in (False, True):
                        linear = torch.nn.Linear(COLUMNS, ROWS, bias=False)
                        linear.weight.data = weight.clone()
                        run_gptq(tools, linear, [x[None]], bits, group_size, desc_act, sym)
                        error = (weight - linear.weight.data) @ x.T
                        relative = (error.norm() / (weight @ x.T).norm()).item()
                        table.writerow([bits, group_size, int(desc_act), int(sym), f"{relative:.6g}"])


def make_model(seed):
    torch.manual_seed(seed)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**BASE))
    for name, parameter in model.named_parameters():
        if "norm" in name:  # all ones would hide a norm that is left out
            parameter.copy_(1.0 + 0.3 * torch.randn_like(parameter))
        parameter.copy_(parameter.half())  # what F16 can store; not the buffers, which hold RoPE's frequencies
    return model


def layer_linears(model):
    return [(name, module) for name, module in model.named_modules()
            if isinstance(module, torch.nn.Linear) and name != "lm_head"]


def quantize_gptq(tools, model, settings):
    """Tensors of the checkpoint; the model's weights become what they stand for."""
    tensors = {}
    for name, linear in layer_linears(model):
        torch.manual_seed(linear.in_features)  # matrices that share an input see the same text
        inputs = [correlated(256, linear.in_features)[None]]
        scale, zero, g_idx = run_gptq(tools, linear, inputs, **settings)
        assert zero.min() >= 1, "the first format cannot store a zero point of 0"
        packed = tools.QuantLinear(settings["bits"], settings["group_size"], linear.in_features, linear.out_features,
                                   False, weight_dtype=torch.float16)
        linear.weight.data = linear.weight.data.half()
        packed.pack(linear, scale.float(), zero.float(), g_idx)
        packed.scales = packed.scales.half()
        for tensor in ("qweight", "qzeros", "scales", "g_idx"):
            tensors[f"{name}.{tensor}"] = getattr(packed, tensor).contiguous().clone()
        packed.scales = packed.scales.float()
        linear.weight.data = packed(torch.eye(linear.in_features)).T.contiguous()
        if settings.get("checkpoint_format") == "gptq_v2":  # every field of a word one larger
            one = sum(1 << shift for shift in range(0, 32, settings["bits"]))
            words = tensors[f"{name}.qzeros"].to(torch.int64) + one
            tensors[f"{name}.qzeros"] = ((words + 2**31) % 2**32 - 2**31).to(torch.int32)
    return tensors


def quantize_awq(tools, model, settings):
    tensors = {}
    for name, linear in layer_linears(model):
        groups = linear.weight.data.reshape(linear.out_features, -1, settings["group_size"])
        low, high = groups.amin(2), groups.amax(2)
        scale = ((high - low).clamp(min=1e-5) / 15).half().float()
        zero = (-torch.round(low / scale)).clamp(0, 15)
        steps = (torch.round(groups / scale[..., None]) + zero[..., None]).clamp(0, 15) - zero[..., None]
        linear.weight.data = (steps * scale[..., None]).reshape(linear.weight.shape)
        packed = tools.AwqLinear.from_linear(linear, 4, settings["group_size"], scales=scale.T.contiguous(),
                                             zeros=zero.T.contiguous())
        for tensor in ("qweight", "qzeros", "scales"):
            tensors[f"{name}.{tensor}"] = getattr(packed, tensor).contiguous().clone()
        linear.weight.data = tools.dequantize_awq(packed.qweight, packed.qzeros, packed.scales.float(), 4,
                                                  settings["group_size"]).T.contiguous()
    return tensors


def write_variant(tools, name, settings):
    folder = FOLDER / name
    for seed in range(100):
        model = make_model(seed)
        is_awq = settings.get("quant_method") == "awq"
        packed = (quantize_awq if is_awq else quantize_gptq)(tools, model, settings)
        torch.manual_seed(seed)
        expected = expected_tensors(model)
        if expected is None:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        plain = {key: value.half() for key, value in model.state_dict().items()
                 if not key.endswith("_proj.weight")}
        safetensors.torch.save_file({**plain, **packed}, folder / "model.safetensors", metadata={"format": "pt"})
        write_expected(folder, expected)
        config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", **BASE, "rope_theta": 10000.0,
                  "torch_dtype": "float16", "quantization_config": {"quant_method": "gptq", **settings}}
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        print(name, "seed", seed)
        return
    raise SystemExit(f"{name}: no seed gives clear greedy choices")


def main():
    tools = load_tools(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        if sys.argv[3:] in ([], ["shipped_layer"]):
            write_shipped_layer(tools)
        if sys.argv[3:] == ["shipped_layer"]:
            return
        require_pinned(PINNED)
        if not sys.argv[3:]:
            write_layers(tools)
        for name in sys.argv[3:] or VARIANTS:
            write_variant(tools, name, VARIANTS[name])


if __name__ == "__main__":
    main()
