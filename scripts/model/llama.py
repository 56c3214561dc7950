"""A Llama in plain torch, whose products' inputs, K and V can be replaced on their way: what quantization needs.

It reads and has the tensor names of Hugging Face, and needs no `transformers`. K is replaced after its rotation, as
the engine's cache holds it. `features` are the residual after each layer.
"""

import json
import math

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import silu


def unchanged(values):
    return values


def rotations(config, places):
    """(cos, sin), [places, head_dim]"""
    half = torch.arange(0, config["head_dim"], 2).float() / config["head_dim"]
    angles = torch.arange(places).float()[:, None] / config["rope_theta"] ** half
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


def rotated(x, rotation):
    first, second = x.chunk(2, -1)
    return x * rotation[0] + torch.cat((-second, first), -1) * rotation[1]


class Norm(nn.Module):
    def __init__(self, size, epsilon):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(size)), epsilon

    def forward(self, x):
        return x * (x.square().mean(-1, keepdim=True) + self.epsilon).rsqrt() * self.weight


class Cache:
    """K and V of `places` tokens of each row and layer, for generation."""

    def __init__(self, config, rows, places):
        shape = (config["num_hidden_layers"], 2, rows, config["num_attention_heads"], places, config["head_dim"])
        self.values, self.filled = torch.zeros(shape), 0

    def extended(self, layer, key, value):
        end = self.filled + key.shape[2]
        for held, new in zip(self.values[layer], (key, value)):
            held[:, :, self.filled : end] = new
        return self.values[layer][:, :, :, :end]


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, self.heads = config["hidden_size"], config["num_attention_heads"]
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(hidden, hidden, bias=False) for _ in range(4))

    def forward(self, x, hooks, rotation, cache, layer):
        def heads(y):
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        x = hooks.inputs(x)
        query = rotated(heads(self.q_proj(x)), rotation)
        key = hooks.cached(rotated(heads(self.k_proj(x)), rotation))
        value = hooks.cached(heads(self.v_proj(x)))
        if cache is not None:
            key, value = cache.extended(layer, key, value)
        new, all_places = query.shape[2], key.shape[2]
        scores = query @ key.transpose(2, 3) / math.sqrt(key.shape[3])
        if new > 1:
            scores = scores + torch.full((new, all_places), -math.inf).triu(all_places - new + 1)
        out = (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)
        return self.o_proj(hooks.inputs(out))


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj, self.up_proj = (nn.Linear(hidden, inner, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x, hooks):
        x = hooks.inputs(x)
        return self.down_proj(hooks.inputs(silu(self.gate_proj(x)) * self.up_proj(x)))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, epsilon = config["hidden_size"], config["rms_norm_eps"]
        self.input_layernorm, self.self_attn = Norm(hidden, epsilon), Attention(config)
        self.post_attention_layernorm, self.mlp = Norm(hidden, epsilon), FeedForward(config)

    def forward(self, x, hooks, rotation, cache, layer):
        x = x + self.self_attn(self.input_layernorm(x), hooks, rotation, cache, layer)
        return x + self.mlp(self.post_attention_layernorm(x), hooks)


class Body(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = Norm(config["hidden_size"], config["rms_norm_eps"])


class Llama(nn.Module):
    """`inputs` sees what a product multiplies, [rows, tokens, in-features]; `cached` sees K and V, [.., head_dim]."""

    def __init__(self, config):
        super().__init__()
        self.config, self.model = config, Body(config)
        self.inputs = self.cached = unchanged
        self.rotation = rotations(config, config["max_position_embeddings"])

    def forward(self, ids, cache=None):
        """(logits [rows, tokens, vocabulary], features: one [rows, tokens, hidden] a layer)"""
        begin = cache.filled if cache else 0
        rotation = [values[begin : begin + ids.shape[1]] for values in self.rotation]
        x, features = self.model.embed_tokens(ids), []
        for number, layer in enumerate(self.model.layers):
            x = layer(x, self, rotation, cache, number)
            features.append(x)
        if cache:
            cache.filled += ids.shape[1]
        return self.model.norm(x) @ self.model.embed_tokens.weight.T, features


def load(folder):
    """The model of a folder with multi-head attention and tied embeddings, in F32."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config["num_key_value_heads"] != config["num_attention_heads"] or not config["tie_word_embeddings"]:
        raise SystemExit(f"{folder}: only multi-head attention and tied embeddings are known here")
    model = Llama(config)
    model.load_state_dict({name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()})
    return model
