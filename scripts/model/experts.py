"""The experts of a mixture of experts as they are trained here: every expert reads every token.

transformers holds the experts of a layer in one tensor and gives each expert its own tokens. For so small a model on a
CPU it is quicker to compute all experts as one wide feed-forward network and to multiply by weights that are
0 for the experts that were not chosen. The result is the same, and so are the tensors' names in the file.
"""

import torch
from torch.nn import functional


class Expert(torch.nn.Module):
    def __init__(self, hidden, intermediate, spread):
        super().__init__()
        self.gate_proj = torch.nn.Linear(hidden, intermediate, bias=False)
        self.up_proj = torch.nn.Linear(hidden, intermediate, bias=False)
        self.down_proj = torch.nn.Linear(intermediate, hidden, bias=False)
        for layer in self.children():
            torch.nn.init.normal_(layer.weight, std=spread)


class TrainedExperts(torch.nn.ModuleList):
    """Takes the place of DeepseekV3Experts; `tokens` counts what every expert was chosen for."""

    def __init__(self, config):
        size = (config.hidden_size, config.moe_intermediate_size, config.initializer_range)
        super().__init__(Expert(*size) for _ in range(config.n_routed_experts))
        self.register_buffer("tokens", torch.zeros(config.n_routed_experts), persistent=False)

    def stacked(self, name, dim):
        return torch.cat([getattr(expert, name).weight for expert in self], dim=dim)

    def forward(self, x, chosen, weights):
        """x: (tokens, hidden); chosen, weights: (tokens, experts per token)"""
        shares = torch.zeros(len(x), len(self), dtype=weights.dtype).scatter(1, chosen, weights)
        self.tokens += (shares > 0).sum(0)
        inner = functional.silu(functional.linear(x, self.stacked("gate_proj", 0)))
        inner = inner * functional.linear(x, self.stacked("up_proj", 0))
        inner = inner.unflatten(1, (len(self), -1)) * shares[:, :, None].to(inner.dtype)
        return functional.linear(inner.flatten(1), self.stacked("down_proj", 1)).to(x.dtype)


def use_trained_experts(model):
    for layer in model.model.layers:
        if hasattr(layer.mlp, "experts"):
            layer.mlp.experts = TrainedExperts(model.config)


def balance(model, rate):
    """Moves each expert's bias against its load since the last call (DeepSeek-V3, arXiv:2412.19437, section 2.1.2)."""
    for layer in model.model.layers:
        if hasattr(layer.mlp, "experts"):
            tokens = layer.mlp.experts.tokens
            layer.mlp.gate.e_score_correction_bias += rate * torch.sign(tokens.mean() - tokens)
            tokens.zero_()
