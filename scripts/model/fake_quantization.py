"""What the engine's quantized weights, activations and KV cache hold, with gradients that go straight through.

Rounding has no gradient of use: backwards it counts as no change (the straight-through estimator), and what a grid cuts
off gets none. The formulas are those of kernels/quantized_matrix.hpp (weights; activations as ActivationMode::int8)
and docs/reference/kv-cache.md (int8), so that the engine computes with the numbers that training saw.
"""

import torch
from torch import nn
from torch.nn.utils import parametrize

SMALLEST_ACTIVATION = 2.0**-100
SMALLEST_SCALE = 2.0**-24  # of F16
CELL = 0.4  # of a step: how far a weight may begin from the level that it is rounded to; 0.5 is the next one's


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(context, exact, rounded):
        return rounded

    @staticmethod
    def backward(context, gradient):
        return gradient, None


def straight_through(exact, rounded):
    """`rounded`, whose gradient is that of `exact`."""
    return StraightThrough.apply(exact, rounded.detach())


@torch.no_grad()
def int8_activations(x, group):
    """One scale for each token and `group` in-features."""
    parts = x.unflatten(-1, (-1, group))
    largest = parts.abs().amax(-1, keepdim=True)
    codes = (parts * (127 / largest.clamp(min=SMALLEST_ACTIVATION))).round()
    return (codes * (largest / 127) * (largest >= SMALLEST_ACTIVATION)).flatten(-2)


@torch.no_grad()
def int8_cache(x):
    """One scale for each token and KV head."""
    scale = x.abs().amax(-1, keepdim=True) / 127
    return (x / scale.masked_fill(scale == 0, 1)).round() * scale


def activation_group(group):
    """The engine's activation_group_size: in-features of an activation that share a scale."""
    return next(size for size in range(min(group, 128), 0, -1) if size == 8 or (group % size == 0 and size % 8 == 0))


def f16(scale):
    """Scales as checkpoints hold them."""
    return straight_through(scale, scale.half().float().clamp(min=SMALLEST_SCALE))


def min_max_grid(groups, bits):
    """(scale, zero point) from the smallest and largest weight of a group, 0 within their range; LLM-QAT's MinMax."""
    levels = 2**bits - 1
    low, high = groups.amin(-1, keepdim=True).clamp(max=0), groups.amax(-1, keepdim=True).clamp(min=0)
    scale = f16((high - low) / levels)
    return scale, (-low / scale).round().clamp(1, levels)  # AutoGPTQ's format has no zero point of 0


def nearest_grid(groups, bits, steps=24):
    """Of grids that cut off up to three quarters of a group's range the one nearest to its weights, in mean square."""
    scale, zero = min_max_grid(groups, bits)
    best, best_error = scale, torch.full_like(scale, torch.inf)
    for step in range(steps):
        tried = f16(scale * (1 - 0.75 * step / steps))
        error = (on_grid(groups, tried, zero, bits) - groups).square().sum(-1, keepdim=True)
        best, best_error = torch.where(error < best_error, tried, best), torch.minimum(error, best_error)
    return best, zero


def on_grid(groups, scale, zero, bits):
    """scale * (q - zero) with q in [0, 2^bits): gradients for the weights within, and for the scale as LSQ has them."""
    clamped = torch.maximum(torch.minimum(groups / scale, 2**bits - 1 - zero), -zero)
    return straight_through(clamped, clamped.round()) * scale


def in_cells(weight, chosen, scale):
    """Weights that are rounded to `chosen`, values of a grid, and else as near to `weight` as CELL steps allow.

    Such weights are as good as the grid's to begin with, but many of them need little to be rounded to another level.
    """
    margin = CELL * scale.expand(-1, -1, weight.shape[1] // scale.shape[1]).flatten(1)
    return torch.maximum(torch.minimum(weight, chosen + margin), chosen - margin)


class FakeWeight(nn.Module):
    """A parametrization of a Linear's weight [out-features, in-features], a grid for each row and group of columns.

    With a `grid` to begin with, (scales, zero points) [rows, groups, 1], the scales are parameters (LSQ, Esser et al.,
    arXiv:1902.08153); without, each step takes the grid anew from the smallest and largest weight (LLM-QAT).
    """

    def __init__(self, bits, group, grid=None):
        super().__init__()
        self.bits, self.group, self.scale = bits, group, None
        if grid is not None:
            self.scale = nn.Parameter(grid[0])
            self.register_buffer("zero", grid[1])

    def groups(self, weight):
        return weight.unflatten(1, (-1, self.group))

    def grid(self, weight):
        if self.scale is None:
            return min_max_grid(self.groups(weight).detach(), self.bits)
        return f16(self.scale), self.zero

    def forward(self, weight):
        return on_grid(self.groups(weight), *self.grid(weight), self.bits).flatten(1)

    @torch.no_grad()
    def integers(self, weight):
        """(q [rows, columns], scales [rows, groups], zero points [rows, groups])"""
        scale, zero = self.grid(weight)
        q = ((self.groups(weight) / scale).round() + zero).clamp(0, 2**self.bits - 1)
        return q.flatten(1).int(), scale[..., 0], zero[..., 0].int()


class Bf16Weight(nn.Module):
    """Norms are stored in BF16."""

    def forward(self, weight):
        return straight_through(weight, weight.bfloat16().float())


def linears(model):
    """(name, module) of each matrix that is quantized: all of the layers'."""
    return [(name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear)]


def nearest_grids(model, bits, group):
    """The nearest grid of each matrix, by name."""
    weights = {name: linear.weight.detach().unflatten(1, (-1, group)) for name, linear in linears(model)}
    return {name: nearest_grid(groups, bits) for name, groups in weights.items()}


def quantize(model, bits, group, grids=None, activations=True, cache=True):
    """Makes a Llama of llama.py compute as the engine does with `--activations int8 --kv-cache-dtype int8`.

    `grids`: by name of a matrix what FakeWeight begins with.
    """
    for name, linear in linears(model):
        fake = FakeWeight(bits, group, grids and grids[name])
        parametrize.register_parametrization(linear, "weight", fake, unsafe=True)
    for _, module in list(model.named_modules()):
        if type(module).__name__ == "Norm":
            parametrize.register_parametrization(module, "weight", Bf16Weight(), unsafe=True)
    width = activation_group(group)
    if activations:
        model.inputs = lambda x: straight_through(x, int8_activations(x, width))
    if cache:
        model.cached = lambda x: straight_through(x, int8_cache(x))
