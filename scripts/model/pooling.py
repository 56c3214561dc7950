"""KV heads as a weighted sum of the heads that they replace, with weights that are trained: weighted GQA.

Chinnakonduru and Mohapatra (arXiv:2407.10855) train, beside the heads of the model with all of them, a weight of
each head of K and of V (WGQA), of each of its values (a column of their projection), or of each value of its
input (a row). All begin at 1 / heads of the group, where they are the mean of Ainslie et al. When training is
done, the sums are folded into k_proj and v_proj: what is saved is an ordinary model with grouped queries.
"""

import json

import torch

# [heads of a group, values of a head, input] of the weights, 1 where all share one.
KINDS = {
    "head": lambda head_dim, hidden: (1, 1),
    "column": lambda head_dim, hidden: (head_dim, 1),
    "row": lambda head_dim, hidden: (1, hidden),
}


class PooledLinear(torch.nn.Module):
    """Takes the place of k_proj or v_proj."""

    def __init__(self, heads, start, kind):
        """heads: [groups, heads of a group, head_dim, hidden]; start: [groups, heads of a group]"""
        super().__init__()
        self.heads = torch.nn.Parameter(heads.clone())
        shape = KINDS[kind](*heads.shape[2:])
        self.factors = torch.nn.Parameter(start[:, :, None, None].expand(*start.shape, *shape).clone())

    def pooled(self):
        """[groups * head_dim, hidden]"""
        return (self.factors * self.heads).sum(dim=1).flatten(0, 1)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.pooled())


def grouped_rows(weight, groups, head_dim):
    """[heads * head_dim, hidden] -> [groups, heads of a group, head_dim, hidden]"""
    return weight.detach().view(-1, head_dim, weight.shape[-1])[torch.tensor(groups)]


def starting_factors(layer, key, groups):
    """The fitted ones of the report, or the mean."""
    if layer.get(key):
        return torch.tensor(layer[key])[torch.tensor(groups)]
    return torch.full((len(groups), len(groups[0])), 1.0 / len(groups[0]))


def pool(model, source, report_file, kind):
    """Lets `model`, which regroup made of `source`, pool the heads of that one; `report_file`: its --format json."""
    with open(report_file, encoding="utf-8") as file:
        report = json.load(file)
    if report["merge"] == "svd":
        raise SystemExit(f"{report_file}: heads merged by SVD have no weights to train; use --merge mean or fitted")
    for layer, own, old in zip(report["layers"], model.model.layers, source.model.layers, strict=True):
        groups = layer["groups"]
        if len({len(group) for group in groups}) != 1:
            raise SystemExit(f"{report_file}: groups of different sizes cannot be trained here")
        for name, key in (("k_proj", "key_factors"), ("v_proj", "value_factors")):
            if getattr(old.self_attn, name).bias is not None:
                raise SystemExit("layers with biases cannot be pooled here")
            heads = grouped_rows(getattr(old.self_attn, name).weight, groups, old.self_attn.head_dim)
            setattr(own.self_attn, name, PooledLinear(heads, starting_factors(layer, key, groups), kind))


def folded(model):
    """The state of the model with ordinary k_proj and v_proj."""
    state = model.state_dict()
    for name, module in model.named_modules():
        if isinstance(module, PooledLinear):
            del state[f"{name}.heads"], state[f"{name}.factors"]
            state[f"{name}.weight"] = module.pooled().detach()
    return state
