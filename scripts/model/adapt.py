"""Weights to begin with that come from dculab-tiny: a new kind of attention then needs far fewer steps.

What has the same name and shape is copied. The rest is fitted to what dculab-tiny computes on some text
(`ids`), which further training has to repair:
- qknorm: the norms get the RMS of the queries and keys.
- cla2: a KV head is the mean of those of the query heads that read it, in the layers that keep KV.
- mla-moe: the latents are principal components of the queries, and of keys and values; the rotated key is
  that of head 0, with every second of its frequencies. An expert begins with 64 of the 768 neurons.
"""

import torch

HEAD = 32  # values in a head of dculab-tiny
HEADS = 8


def observe(base, ids):
    """What each linear layer of the model reads: name -> (tokens, values)"""
    inputs, hooks = {}, []
    for name, module in base.named_modules():
        if isinstance(module, torch.nn.Linear):
            hooks.append(module.register_forward_hook(lambda m, x, y, n=name: inputs.update({n: x[0].flatten(0, 1)})))
    base(input_ids=ids, use_cache=False)
    for hook in hooks:
        hook.remove()
    return inputs


def rms(x):
    return x.square().mean().sqrt()


def copy_alike(model, base):
    have = base.state_dict()
    alike = {n: have[n] for n, t in model.state_dict().items() if n in have and have[n].shape == t.shape}
    model.load_state_dict(alike, strict=False)


def adapt_norms(attention, old, x):
    attention.q_norm.weight.fill_(rms(old.q_proj(x)))
    attention.k_norm.weight.fill_(rms(old.k_proj(x)))


def adapt_shared(attention, old):
    if attention.source == attention.layer_idx:
        groups = attention.config.num_key_value_heads
        for new, full in ((attention.k_proj, old.k_proj), (attention.v_proj, old.v_proj)):
            new.weight.copy_(full.weight.unflatten(0, (groups, -1, HEAD)).mean(1).flatten(0, 1))


def factored(down, norm, up, weight, x):
    """up(norm(down(x))) becomes the nearest to weight @ x that its rank allows, but for the norm's sake."""
    components = torch.linalg.svd(x @ weight.T, full_matrices=False).Vh[: len(norm.weight)]
    down[:] = components @ weight
    up.copy_(components.T)
    norm.weight.fill_(rms(x @ down.T))


def adapt_latent(attention, old, x):
    """Pair i of a Llama head, (i, i + 16), turns as fast as pair i / 2, (i, i + 1), of the 16 rotated values."""
    rope, latent = attention.qk_rope_head_dim, attention.kv_lora_rank
    pairs = torch.tensor([(i, i + HEAD // 2) for i in range(0, HEAD // 2, HEAD // rope)]).flatten()
    query, key, value = (p.weight.unflatten(0, (HEADS, HEAD)) for p in (old.q_proj, old.k_proj, old.v_proj))
    rotated = torch.zeros(HEADS, rope, query.shape[2])
    rotated[0] = query[0, pairs]
    plain = query.clone()
    plain[0, pairs] = 0
    query = torch.cat((plain, rotated), 1).flatten(0, 1) * (attention.qk_head_dim / HEAD) ** 0.5
    factored(attention.q_a_proj.weight, attention.q_a_layernorm, attention.q_b_proj.weight, query, x)
    down = attention.kv_a_proj_with_mqa.weight
    factored(down[:latent], attention.kv_a_layernorm, attention.kv_b_proj.weight, torch.cat((key, value), 1).flatten(0, 1), x)
    down[latent:] = key[0, pairs]


def adapt_experts(mlp, old, inner):
    """The strongest neurons go to the shared expert, the next to the experts, then again from the strongest on."""
    strength = inner.square().mean(0).sqrt() * old.down_proj.weight.norm(dim=0)
    slices = strength.argsort(descending=True).split(mlp.experts[0].gate_proj.out_features)
    for i, expert in enumerate((mlp.shared_experts, *mlp.experts)):
        chosen = slices[i % len(slices)]
        expert.gate_proj.weight.copy_(old.gate_proj.weight[chosen])
        expert.up_proj.weight.copy_(old.up_proj.weight[chosen])
        expert.down_proj.weight.copy_(old.down_proj.weight[:, chosen])


@torch.no_grad()
def adapt(model, base, ids):
    inputs = observe(base, ids)
    copy_alike(model, base)
    for i, (layer, old) in enumerate(zip(model.model.layers, base.model.layers)):
        attention, x = layer.self_attn, inputs[f"model.layers.{i}.self_attn.q_proj"]
        if hasattr(attention, "q_norm"):
            adapt_norms(attention, old.self_attn, x)
        if hasattr(attention, "source"):
            adapt_shared(attention, old.self_attn)
        if hasattr(attention, "kv_a_layernorm"):
            adapt_latent(attention, old.self_attn, x)
        if hasattr(layer.mlp, "experts"):
            adapt_experts(layer.mlp, old.mlp, inputs[f"model.layers.{i}.mlp.down_proj"])
