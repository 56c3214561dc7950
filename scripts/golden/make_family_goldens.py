"""Writes tests/golden/families: tiny random models of the other families as transformers saves them, and what it computes.

Files and expected tensors are those of make_llama_goldens.py; of mixtures of experts also `experts.i` [layers with
experts, n, experts of a token] (I32), the best first.

    pip install torch==2.15.0 transformers==5.23.0 tokenizers==0.23.3 safetensors==0.8.0
    python scripts/golden/make_family_goldens.py [NAME ...]
"""

import json
import pathlib
import shutil
import sys

import safetensors.torch
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "model"))
from cross_layer import CrossLayerConfig
from golden_models import PROMPT_LENGTHS, expected_tensors, largest_logit, require_pinned, write_expected
from make_llama_goldens import PINNED

EXPERT_MARGIN = 1e-4  # between the scores of neighbouring choices: no rounding may turn them
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/families"

SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=96, initializer_range=0.25,
             bos_token_id=1, eos_token_id=2, pad_token_id=None)
GATED = dict(**SIZES, intermediate_size=48, num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-5,
             tie_word_embeddings=False)
BLOOM = dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=96, initializer_range=0.25, bos_token_id=1,
             eos_token_id=2, pad_token_id=None)
RW = dict(alibi=True, bias=True, parallel_attn=False, multi_query=False)
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32}
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0 + plane / 16 for plane in range(16)],
            "long_factor": [2.0 + plane / 4 for plane in range(16)]}
WIDE = dict(**GATED, head_dim=32)  # the smallest head of the GPU kernels
GEMMA = {key: value for key, value in WIDE.items() if key != "tie_word_embeddings"}
SMALL_MOE = dict(**{**GATED, "intermediate_size": 24})
MOE = dict(**{**GATED, "initializer_range": 0.35}, moe_intermediate_size=24, num_experts_per_tok=3)
NEOX = dict(**{**SIZES, "hidden_size": 64, "num_attention_heads": 2}, intermediate_size=96, max_position_embeddings=256,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5})
# Norms of latents have their own epsilon, and heads of V their own size.
LATENT = dict(**{key: value for key, value in MOE.items() if key != "num_key_value_heads"}, kv_lora_rank=16,
              qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=24, n_routed_experts=8, n_shared_experts=2,
              first_k_dense_replace=1)
LATENT_YARN = {**YARN, "mscale": 0.8, "mscale_all_dim": 1.2}
LONG = (150, 5, 21)  # the window leaves whole tiles of the KV cache behind

# InternLM 2 is Llama with other names, and a matrix of Q, K and V: internlm/internlm2_5-7b-chat, modeling_internlm2.py.
INTERNLM2_NAMES = {"embed_tokens": "tok_embeddings", "input_layernorm": "attention_norm",
                   "self_attn.o_proj": "attention.wo", "post_attention_layernorm": "ffn_norm",
                   "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3",
                   "mlp.down_proj": "feed_forward.w2", "lm_head": "output"}


def as_internlm2(folder):
    """Makes a saved Llama an InternLM 2 that computes the same."""
    config = json.loads((folder / "config.json").read_text())
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    groups, head_dim = config["num_key_value_heads"], config["head_dim"]
    renamed = {}
    for name, tensor in tensors.items():
        if "self_attn.q_proj" in name:
            parts = [tensors[name.replace("q_proj", part + "_proj")] for part in "qkv"]
            rows = torch.cat([part.view(groups, -1, head_dim, config["hidden_size"]) for part in parts], dim=1)
            renamed[name.replace("self_attn.q_proj", "attention.wqkv")] = rows.reshape(-1, config["hidden_size"])
        elif "self_attn.k_proj" not in name and "self_attn.v_proj" not in name:
            for llama, internlm2 in INTERNLM2_NAMES.items():
                name = name.replace(llama, internlm2)
            renamed[name] = tensor
    safetensors.torch.save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    config = {**{key: value for key, value in config.items() if key not in ("attention_bias", "mlp_bias")},
              "architectures": ["InternLM2ForCausalLM"], "model_type": "internlm2", "bias": False}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


# name: (configuration, stored dtype, prompt lengths, part that is saved, what is made of the folder)
VARIANTS = {
    "llama_biases": (transformers.LlamaConfig(**GATED, attention_bias=True, mlp_bias=True), torch.float16),
    "mistral": (transformers.MistralConfig(**GATED, sliding_window=8), torch.float32),
    "mistral_long": (transformers.MistralConfig(**GATED, sliding_window=40), torch.bfloat16, LONG),
    "qwen2": (transformers.Qwen2Config(**GATED), torch.bfloat16),
    "qwen2_window": (transformers.Qwen2Config(**GATED, use_sliding_window=True, sliding_window=12,
                                              max_window_layers=0), torch.float16),
    "qwen2_some_windows": (transformers.Qwen2Config(**GATED, use_sliding_window=True, sliding_window=12,
                                                    max_window_layers=1), torch.float32),
    "qwen3": (transformers.Qwen3Config(**WIDE), torch.float16),
    "gemma2": (transformers.Gemma2Config(**GEMMA, sliding_window=8, query_pre_attn_scalar=12,
                                         attn_logit_softcapping=2.0, final_logit_softcapping=4.0), torch.float32),
    "gemma3": (transformers.Gemma3TextConfig(**GEMMA, sliding_window=8, query_pre_attn_scalar=12,
                                             layer_types=["sliding_attention", "full_attention"]), torch.bfloat16),
    "phi3": (transformers.Phi3Config(**WIDE, sliding_window=20), torch.float16),
    "phi3_longrope": (transformers.Phi3Config(**{**GATED, "num_attention_heads": 1, "num_key_value_heads": 1},
                                              original_max_position_embeddings=128, rope_parameters=LONGROPE),
                      torch.float32),
    "glm4": (transformers.Glm4Config(**WIDE), torch.bfloat16),
    "olmo2": (transformers.Olmo2Config(**WIDE), torch.float32),
    "mixtral": (transformers.MixtralConfig(**SMALL_MOE, num_local_experts=4, num_experts_per_tok=2), torch.float16),
    # As transformers holds it: the experts of a layer in two tensors.
    "mixtral_fused": (transformers.MixtralConfig(**SMALL_MOE, num_local_experts=6, num_experts_per_tok=2, sliding_window=9),
                      torch.bfloat16),
    "qwen2_moe": (transformers.Qwen2MoeConfig(**MOE, num_experts=6, shared_expert_intermediate_size=40,
                                              decoder_sparse_step=2), torch.float32),
    "qwen3_moe": (transformers.Qwen3MoeConfig(**MOE, num_experts=8, head_dim=32, norm_topk_prob=True), torch.float16),
    # DeepSeek-V3's router: sigmoids, groups, a correction bias; one dense layer.
    "glm4_moe": (transformers.Glm4MoeConfig(**MOE, n_routed_experts=8, n_group=4, topk_group=2, n_shared_experts=2,
                                            routed_scaling_factor=1.8, use_qk_norm=True, attention_bias=True),
                 torch.bfloat16),
    "deepseek_v2": (transformers.DeepseekV2Config(**LATENT, q_lora_rank=None, topk_method="greedy"), torch.float16),
    "deepseek_v2_groups": (transformers.DeepseekV2Config(**LATENT, q_lora_rank=24, n_group=4, topk_group=2,
                                                         topk_method="group_limited_greedy", attention_bias=True,
                                                         routed_scaling_factor=3.0), torch.float32),
    "deepseek_v3": (transformers.DeepseekV3Config(**LATENT, q_lora_rank=24, n_group=4, topk_group=2,
                                                  rope_parameters=LATENT_YARN), torch.bfloat16, LONG),
    "cla": (CrossLayerConfig(**{**GATED, "num_hidden_layers": 4}, kv_source_layers=[0, 0, 2, 0], attention_bias=True,
                             mlp_bias=True),
            torch.float16),
    "llama_yarn": (transformers.LlamaConfig(**GATED, rope_parameters=YARN), torch.float32),
    "llama_gelu": (transformers.LlamaConfig(**GATED, hidden_act="gelu"), torch.float32),
    "bloom": (transformers.BloomConfig(**BLOOM), torch.float32),
    # Heads that are no power of two; saved without the head, hence without the prefix of its tensors.
    "bloom_six_heads": (transformers.BloomConfig(**{**BLOOM, "hidden_size": 48, "n_head": 6}), torch.float16,
                        PROMPT_LENGTHS, "transformer"),
    "falcon_7b": (transformers.FalconConfig(**SIZES), torch.bfloat16),
    "falcon_40b": (transformers.FalconConfig(**SIZES, new_decoder_architecture=True, num_kv_heads=2,
                                             tie_word_embeddings=False), torch.float16),
    "falcon_11b": (transformers.FalconConfig(**SIZES, new_decoder_architecture=True, num_kv_heads=1,
                                             num_ln_in_parallel_attn=1), torch.float16),
    "falcon_rw": (transformers.FalconConfig(**SIZES, **RW), torch.float32),
    "gpt_neox": (transformers.GPTNeoXConfig(**NEOX), torch.float16),
    "gpt_neox_sequential": (transformers.GPTNeoXConfig(**NEOX, use_parallel_residual=False), torch.float32),
    "internlm2": (transformers.LlamaConfig(**GATED), torch.float16, PROMPT_LENGTHS, None, as_internlm2),
    "starcoder2": (transformers.Starcoder2Config(**SIZES, intermediate_size=96, num_key_value_heads=2,
                                                 max_position_embeddings=256, sliding_window=20), torch.bfloat16),
}


def make_model(config, dtype, seed):
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Norms of ones and biases of zeros would hide one that is left out.
            if name.endswith("bias"):
                parameter.copy_(0.3 * torch.randn_like(parameter))
            elif parameter.dim() == 1:
                parameter.copy_(1.0 + 0.3 * torch.randn_like(parameter))
        model = model.to(dtype)
        for module in model.modules():  # in F32, as published checkpoints have it
            if hasattr(module, "e_score_correction_bias"):
                module.e_score_correction_bias = 0.2 * torch.randn(module.num_experts)
    return model


def chosen_experts(model, prompt):
    """[layers with experts, tokens, experts of a token]; None where a choice is not clear."""
    logits = model(prompt[None], output_router_logits=True).router_logits
    routers = [module for module in model.modules() if type(module).__name__.lower().endswith("topkrouter")]
    chosen = []
    for router, of_layer in zip(routers, logits, strict=True):
        scores, has_bias = of_layer, hasattr(router, "e_score_correction_bias")
        if has_bias or getattr(router, "topk_method", "") == "group_limited_greedy":
            scores = of_layer.sigmoid() + router.e_score_correction_bias if has_bias else of_layer.softmax(dim=-1)
            groups = scores.view(len(prompt), router.num_group, -1)
            values = groups.topk(2, dim=-1).values.sum(dim=-1) if has_bias else groups.max(dim=-1).values
            best = values.topk(router.topk_group + 1, dim=-1)
            if (best.values[:, -2] - best.values[:, -1]).min() < EXPERT_MARGIN:
                return None
            kept = torch.zeros_like(values).scatter_(1, best.indices[:, :-1], 1).bool()
            scores = groups.masked_fill(~kept[..., None], float("-inf")).view(len(prompt), -1)
        best = scores.topk(router.top_k + 1, dim=-1)
        if (best.values[:, :-1] - best.values[:, 1:]).min() < EXPERT_MARGIN:
            return None
        chosen.append(best.indices[:, :-1])
    return torch.stack(chosen).to(torch.int32)


def add_experts(model, tensors, lengths):
    """False where a choice is not clear."""
    for index in range(len(lengths)):
        chosen = chosen_experts(model, tensors[f"prompt.{index}"].long())
        if chosen is None:
            return False
        tensors[f"experts.{index}"] = chosen
    return True


def fuse_experts(folder):
    """The tensors as the model holds them, under its own names."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def write_variant(name, config, dtype, lengths=PROMPT_LENGTHS, part=None, convert=None):
    folder = FOLDER / name
    for seed in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        model = make_model(config, dtype, seed)
        (getattr(model, part) if part else model).save_pretrained(folder)
        if name.endswith("_fused"):
            fuse_experts(folder)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        tensors = expected_tensors(model, lengths)
        has_experts = any(name.endswith("experts") for name, _ in model.named_modules())
        if tensors and (not has_experts or add_experts(model, tensors, lengths)):
            write_expected(folder, tensors)
            if convert:
                convert(folder)
            print(name, "seed", seed, "logits up to", largest_logit(tensors))
            return
    raise SystemExit(f"{name}: no seed gives clear greedy choices")


def main():
    require_pinned(PINNED)
    names = sys.argv[1:] or VARIANTS
    with torch.no_grad():
        for name in names:
            write_variant(name, *VARIANTS[name])


if __name__ == "__main__":
    main()
