"""The shapes of the models that train.py trains, and their config.json."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM

import cross_layer  # noqa: F401 (makes the Auto classes know dculab_cla)
import experts

CONTEXT = 1024
VOCABULARY = 2048
SHAPES = {
    "tiny": dict(hidden_size=256, intermediate_size=768, num_hidden_layers=4, num_attention_heads=8),
    "draft": dict(hidden_size=128, intermediate_size=384, num_hidden_layers=2, num_attention_heads=4),
}
KV_HEADS = {"gqa4": 4, "gqa2": 2, "mqa": 1}  # Llamas as `tiny`, else
MLA_MOE = {
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "moe_intermediate_size": 64,
    "n_routed_experts": 16,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "n_group": 4,
    "topk_group": 2,
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "q_lora_rank": 128,
    "kv_lora_rank": 48,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "num_nextn_predict_layers": 0,
    "rms_norm_eps": 1e-6,
}


def common(shape):
    """Keys that all model types share."""
    return {
        **shape,
        "num_key_value_heads": shape["num_attention_heads"],
        "head_dim": shape["hidden_size"] // shape["num_attention_heads"],
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "vocab_size": VOCABULARY,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "initializer_range": 0.02,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "use_cache": True,
        "torch_dtype": "bfloat16",
    }


def without(keys, *names):
    return {name: value for name, value in keys.items() if name not in names}


def config_json(name):
    """The complete config.json of a model, in the form that is usual for its class."""
    if name in ("tiny", "draft"):
        return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", **common(SHAPES[name])}
    keys = common(SHAPES["tiny"])
    if name in KV_HEADS:
        return {**config_json("tiny"), "num_key_value_heads": KV_HEADS[name]}
    if name == "qknorm":
        return {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", **without(keys, "mlp_bias"), "rms_norm_eps": 1e-6}
    if name == "cla2":
        readers = {"num_key_value_heads": 2, "kv_source_layers": [0, 0, 2, 2]}
        return {"architectures": ["CrossLayerForCausalLM"], "model_type": "dculab_cla", **keys, **readers}
    heads = without(keys, "head_dim", "mlp_bias")
    return {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", **heads, **MLA_MOE}


NAMES = (*SHAPES, *KV_HEADS, "qknorm", "cla2", "mla-moe")


def build(name, attention):
    """A model with random FP32 weights; attention is the implementation's name in transformers."""
    config = AutoConfig.for_model(**config_json(name))
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=torch.float32)
    if config.model_type == "deepseek_v3":
        experts.use_trained_experts(model)
    return model
