"""Writes tests/golden/kernels: what torch, transformers and ml_dtypes compute for the kernels' references.

fp8.safetensors        `e4m3`, `e5m2` [256] F32: what each code stands for.
attention.safetensors  for each case, `case.q` [new tokens, heads, head_dim], `case.k`, `case.v` [context, kv_heads,
                       head_dim] (F32, or FP8 codes as U8), `case.expected` like q in F64, and where they apply
                       `case.slopes` [heads], `case.window` [1], `case.scales` [2] (of K and V).
gptq.safetensors       for each case, `case.qweight`, `case.qzeros`, `case.scales`, `case.g_idx` as a checkpoint has them,
                       `case.zero_offset`, `case.group_size` [1], `case.weight` [in, out] F64 before packing,
                       `case.x` [m, in], `case.y` [m, out] F64.
layers.safetensors     layer_norm, GELU, int8 product and top-k; names in layers().
slopes.safetensors     `n` [n] F32: ALiBi slopes of n heads.
Floats are computed in F64 unless said otherwise.

    pip install torch==2.15.0 transformers==5.23.0 safetensors==0.8.0 ml_dtypes==0.6.0 numpy==2.4.6
    python scripts/golden/make_kernel_goldens.py
"""

import pathlib

import ml_dtypes
import numpy
import safetensors
import safetensors.torch
import torch
import transformers
from transformers.masking_utils import causal_mask_function, sliding_window_causal_mask_function
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

from golden_models import require_pinned

PINNED = {torch: "2.15.0", transformers: "5.23.0", safetensors: "0.8.0", ml_dtypes: "0.6.0", numpy: "2.4.6"}
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/kernels"
FP8 = {"e4m3": (torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn), "e5m2": (torch.float8_e5m2, ml_dtypes.float8_e5m2)}


def fp8():
    tensors = {}
    codes = torch.arange(256, dtype=torch.uint8)
    for name, (torch_type, numpy_type) in FP8.items():
        values = codes.view(torch_type).to(torch.float32)
        other = codes.numpy().view(numpy_type).astype(numpy.float32)
        if not numpy.array_equal(values.numpy(), other, equal_nan=True):
            raise SystemExit(f"torch and ml_dtypes disagree on {name}")
        tensors[name] = values
    return tensors


def slopes():
    """BLOOM's bias of a token at position 1 is the slope."""
    return {str(n): build_alibi_tensor(torch.ones(1, 2), n, torch.float32)[:, 0, 1].contiguous()
            for n in (1, 2, 3, 6, 8, 12, 16, 20, 32, 40, 71, 112, 128)}


def attention_case(heads, kv_heads, head_dim, context, new_tokens, alibi=False, window=0, kv=None):
    """Scaled dot-product attention of the last new_tokens tokens. head_dim 4 and 16: 1 / sqrt is exact in F32."""
    q = torch.randn(new_tokens, heads, head_dim)
    case = {"q": q}
    keys_values = []
    for name, scale in (("k", 0.037), ("v", 0.21)):
        values = torch.randn(context, kv_heads, head_dim)
        stored = values
        if kv:
            codes = (values / scale).to(FP8[kv][0])
            stored, values = codes.view(torch.uint8), codes.to(torch.float64) * torch.tensor(scale).to(torch.float64)
        case[name] = stored
        keys_values.append(values.to(torch.float64).repeat_interleave(heads // kv_heads, dim=1).transpose(0, 1))
    if kv:
        case["scales"] = torch.tensor([0.037, 0.21])
    sees = sliding_window_causal_mask_function(window) if window else causal_mask_function
    positions = torch.arange(context)
    visible = sees(0, 0, positions[-new_tokens:, None], positions[None, :])
    bias = torch.zeros(heads, new_tokens, context, dtype=torch.float64)
    if window:
        case["window"] = torch.tensor([window], dtype=torch.int32)
    if alibi:
        case["slopes"] = slopes()[str(heads)]
        bias = bias + case["slopes"].to(torch.float64)[:, None, None] * positions  # softmax ignores - slope * query
    bias = bias.masked_fill(~visible, -torch.inf)
    out = torch.nn.functional.scaled_dot_product_attention(q.to(torch.float64).transpose(0, 1), *keys_values, bias)
    case["expected"] = out.transpose(0, 1)
    return case


def attention():
    cases = {
        "causal": attention_case(4, 4, 16, 37, 37),
        "alibi": attention_case(8, 8, 4, 33, 5, alibi=True),
        "alibi_12_heads": attention_case(12, 4, 4, 20, 20, alibi=True),
        "window": attention_case(6, 2, 16, 37, 12, window=7),
        "window_of_1": attention_case(2, 1, 4, 9, 3, window=1),
        "window_beyond_context": attention_case(2, 2, 4, 9, 9, window=100),
        "fp8_e4m3": attention_case(6, 2, 16, 35, 1, kv="e4m3"),
        "fp8_e5m2": attention_case(6, 2, 16, 35, 4, kv="e5m2"),
        "all": attention_case(12, 3, 4, 40, 10, alibi=True, window=17, kv="e4m3"),
    }
    return flatten(cases)


def pack(values, axis):
    """Eight int4 values along `axis` per word, lowest nibble first: what AutoGPTQ's pack() does with | and <<."""
    values = numpy.moveaxis(values.astype(numpy.uint32), axis, 0)
    words = numpy.zeros((values.shape[0] // 8, *values.shape[1:]), dtype=numpy.uint32)
    for row in range(values.shape[0]):
        words[row // 8] |= values[row] << numpy.uint32(4 * (row % 8))
    return torch.from_numpy(numpy.moveaxis(words, 0, axis).copy().view(numpy.int32))


def gptq_case(in_features, out_features, group_size, zero_offset, act_order=False, m=3):
    groups = in_features // group_size
    g_idx = torch.arange(in_features) // group_size
    if act_order:
        g_idx = g_idx[torch.randperm(in_features)]
    q = torch.randint(0, 16, (in_features, out_features))
    stored_zeros = torch.randint(0, 16, (groups, out_features))
    stored_zeros[0, 0] = 15  # with offset 1 the zero point is 16
    scales = (0.01 + 0.05 * torch.rand(groups, out_features)).to(torch.float16)
    weight = scales.to(torch.float64)[g_idx] * (q - (stored_zeros + zero_offset)[g_idx])
    x = torch.randn(m, in_features)
    case = {"qweight": pack(q.numpy(), 0), "qzeros": pack(stored_zeros.numpy(), 1), "scales": scales, "weight": weight,
            "zero_offset": torch.tensor([zero_offset], dtype=torch.int32),
            "group_size": torch.tensor([group_size], dtype=torch.int32), "x": x, "y": x.to(torch.float64) @ weight}
    if act_order:
        case["g_idx"] = g_idx.to(torch.int32)
    return case


def gptq():
    return flatten({
        "v1": gptq_case(64, 16, 32, 1),
        "v2": gptq_case(64, 8, 32, 0),
        "act_order": gptq_case(96, 24, 32, 1, act_order=True),
        "one_group": gptq_case(40, 8, 40, 1),
    })


def layers():
    functional = torch.nn.functional
    tensors = {}
    x, weight, bias = torch.randn(3, 45) * 2 + 5, torch.randn(45), torch.randn(45)
    wide = [t.to(torch.float64) for t in (x, weight, bias)]
    tensors.update({"norm.x": x, "norm.weight": weight, "norm.bias": bias,
                    "norm.expected": functional.layer_norm(wide[0], (45,), wide[1], wide[2], 1e-5),
                    "norm.without_bias": functional.layer_norm(wide[0], (45,), wide[1], None, 1e-5)})
    x = torch.cat([torch.linspace(-6, 6, 49), torch.tensor([-40.0, -13.0, 0.0, 13.0, 40.0])])
    tensors.update({"gelu.x": x, "gelu.erf": functional.gelu(x.to(torch.float64)),
                    "gelu.tanh": functional.gelu(x.to(torch.float64), approximate="tanh")})
    a, b = (torch.randint(-128, 128, (rows, 52), dtype=torch.int8) for rows in (3, 7))
    x_scale, w_scale = torch.rand(3), torch.rand(7)
    product = (a.to(torch.int64) @ b.to(torch.int64).T).to(torch.float64)
    tensors.update({"int8.x": a, "int8.w": b, "int8.x_scale": x_scale, "int8.w_scale": w_scale,
                    "int8.y": product * x_scale.to(torch.float64)[:, None] * w_scale.to(torch.float64)})
    x = torch.randn(3, 101)
    top = x.topk(9)
    tensors.update({"top_k.x": x, "top_k.values": top.values, "top_k.indices": top.indices.to(torch.int32)})
    return tensors


def flatten(cases):
    return {f"{case}.{name}": tensor.contiguous() for case, tensors in cases.items() for name, tensor in tensors.items()}


def main():
    require_pinned(PINNED)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for make in (fp8, slopes, attention, gptq, layers):
        torch.manual_seed(3)
        file = FOLDER / f"{make.__name__}.safetensors"
        safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in make().items()}, file)
        file.chmod(0o644)
        print(file.name, file.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
