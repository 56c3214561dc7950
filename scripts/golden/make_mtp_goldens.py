"""Writes tests/golden/mtp: the tiny DeepSeek-V3 of tests/golden/families with a layer of multi-token prediction.

transformers leaves that layer out, so it is computed here: x = eh_proj [enorm(embedding of the next token);
hnorm(what the model's head reads)], one more decoder layer, logits = lm_head(shared_head.norm(x)); from its own x it
goes on for further tokens (DeepSeek-V3, arXiv:2412.19437, section 2.2; vLLM, models/deepseek_mtp.py). The decoder layer
is written here too, in double precision, and first held against the logits that transformers gave for the model itself.

Expected tensors: for prompt i, `prompt.i` [n] and `next.i` [1] (I32) as in the model's own goldens; `logits.i` [n,
vocab_size] of the layer at each position, `hidden.i` [n, hidden_size] its x, `drafts.i` [4] (I32): what it says behind
next.i, each token behind its own guess.

    python scripts/golden/make_mtp_goldens.py
"""

import json
import math
import pathlib
import shutil

import torch
from safetensors.torch import load_file, save_file

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
SOURCE, FOLDER = GOLDEN / "families/deepseek_v3", GOLDEN / "mtp"
DRAFTS, MARGIN = 4, 1e-2  # between best and second logit: no rounding may turn the choice


def norm(x, weight, epsilon):
    return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * weight


def magnitude(factor, scale):
    return 0.1 * scale * math.log(factor) + 1 if factor > 1 else 1.0


class Model:
    """DeepSeek-V3 with YaRN, as config.json and the tensors say."""

    def __init__(self, config, tensors):
        self.config, self.tensors = config, {name: t.double() for name, t in tensors.items()}
        rope = config["rope_parameters"]
        self.frequencies = self.yarn(rope, config["qk_rope_head_dim"])
        self.rope_scale = magnitude(rope["factor"], rope["mscale"]) / magnitude(rope["factor"], rope["mscale_all_dim"])
        head_dim = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
        self.score_scale = magnitude(rope["factor"], rope["mscale_all_dim"]) ** 2 / math.sqrt(head_dim)

    @staticmethod
    def yarn(rope, size):
        def turns(count):  # the plane that turns so often within the original context
            original = rope["original_max_position_embeddings"]
            return size * math.log(original / (count * 2 * math.pi)) / (2 * math.log(rope["rope_theta"]))

        low, high = max(math.floor(turns(32)), 0), min(math.ceil(turns(1)), size - 1)
        plane = torch.arange(size // 2, dtype=torch.float64)
        plain = rope["rope_theta"] ** (-2 * plane / size)
        kept = 1 - ((plane - low) / max(high - low, 1e-3)).clamp(0, 1)
        return plain * kept + plain / rope["factor"] * (1 - kept)

    def rotate(self, x, first):
        """Neighbouring values of x [tokens, heads, size] are turned; the turned pairs stand in halves."""
        angles = torch.outer(torch.arange(first, first + len(x), dtype=torch.float64), self.frequencies)[:, None]
        cos, sin = angles.cos() * self.rope_scale, angles.sin() * self.rope_scale
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, prefix, x, cache):
        """`cache`: the (latents, rotated keys) of the tokens before; a list that grows."""
        c, get = self.config, lambda name: self.tensors[f"{prefix}self_attn.{name}.weight"]
        heads, plain, turned = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"]
        rank, first = c["kv_lora_rank"], sum(len(part[0]) for part in cache)
        query = norm(x @ get("q_a_proj").T, get("q_a_layernorm"), 1e-6) @ get("q_b_proj").T
        query = query.view(len(x), heads, plain + turned)
        query = torch.cat([query[..., :plain], self.rotate(query[..., plain:], first)], -1)
        both = x @ get("kv_a_proj_with_mqa").T
        cache.append((norm(both[:, :rank], get("kv_a_layernorm"), 1e-6), self.rotate(both[:, None, rank:], first)))
        latents, keys = (torch.cat(parts) for parts in zip(*cache))
        expanded = (latents @ get("kv_b_proj").T).view(len(latents), heads, plain + c["v_head_dim"])
        key = torch.cat([expanded[..., :plain], keys.expand(-1, heads, -1)], -1)
        scores = torch.einsum("qhd,khd->hqk", query, key) * self.score_scale
        seen = torch.arange(len(latents))[None] <= torch.arange(first, first + len(x))[:, None]
        weights = scores.masked_fill(~seen, -math.inf).softmax(-1)
        return torch.einsum("hqk,khd->qhd", weights, expanded[..., plain:]).flatten(1) @ get("o_proj").T

    def mlp(self, prefix, x):
        gate, up, down = (self.tensors[f"{prefix}{part}_proj.weight"] for part in ("gate", "up", "down"))
        return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T

    def experts(self, prefix, x):
        c, out = self.config, self.mlp(f"{prefix}mlp.shared_experts.", x)
        scores = (x @ self.tensors[f"{prefix}mlp.gate.weight"].T).sigmoid()
        choice = scores + self.tensors[f"{prefix}mlp.gate.e_score_correction_bias"]
        groups = choice.view(len(x), c["n_group"], -1)
        best = groups.topk(2, -1).values.sum(-1).topk(c["topk_group"], -1).indices
        allowed = torch.zeros(len(x), c["n_group"]).scatter(1, best, 1).bool()
        choice = groups.masked_fill(~allowed[..., None], 0).flatten(1)
        for row, chosen in enumerate(choice.topk(c["num_experts_per_tok"], -1).indices):
            weights = scores[row, chosen] / (scores[row, chosen].sum() + 1e-20) * c["routed_scaling_factor"]
            for weight, expert in zip(weights, chosen):
                out[row] += weight * self.mlp(f"{prefix}mlp.experts.{expert}.", x[row])
        return out

    def layer(self, index, x, cache):
        prefix, epsilon = f"model.layers.{index}.", self.config["rms_norm_eps"]
        get = lambda name: self.tensors[f"{prefix}{name}.weight"]
        x = x + self.attention(prefix, norm(x, get("input_layernorm"), epsilon), cache)
        y = norm(x, get("post_attention_layernorm"), epsilon)
        dense = index < self.config["first_k_dense_replace"]
        return x + (self.mlp(prefix + "mlp.", y) if dense else self.experts(prefix, y))

    def hidden(self, tokens):
        """What the model's head reads."""
        x = self.tensors["model.embed_tokens.weight"][tokens]
        for index in range(self.config["num_hidden_layers"]):
            x = self.layer(index, x, [])
        return norm(x, self.tensors["model.norm.weight"], self.config["rms_norm_eps"])

    def head(self, x):
        return x @ self.tensors["lm_head.weight"].T

    def predict(self, tokens, hidden, cache):
        """(the MTP layer's x, its logits) for the next tokens and the hidden states before them"""
        index, epsilon = self.config["num_hidden_layers"], self.config["rms_norm_eps"]
        get = lambda name: self.tensors[f"model.layers.{index}.{name}.weight"]
        embedded = norm(self.tensors["model.embed_tokens.weight"][tokens], get("enorm"), epsilon)
        x = torch.cat([embedded, norm(hidden, get("hnorm"), epsilon)], -1) @ get("eh_proj").T
        x = self.layer(index, x, cache)
        return x, self.head(norm(x, get("shared_head.norm"), epsilon))


def random_layer(tensors, config, seed):
    """Tensors of the layer behind the last, of the sizes of the last."""
    torch.manual_seed(seed)
    last, index, hidden = config["num_hidden_layers"] - 1, config["num_hidden_layers"], config["hidden_size"]
    sizes = {name.split(f"layers.{last}.")[1]: t.shape for name, t in sorted(tensors.items()) if f"layers.{last}." in name}
    sizes |= {"enorm.weight": [hidden], "hnorm.weight": [hidden], "shared_head.norm.weight": [hidden]}
    sizes |= {"eh_proj.weight": [hidden, 2 * hidden]}
    made = {}
    for name, size in sizes.items():
        values = torch.randn(*size) * (0.35 if len(size) > 1 else 0.1) + (1 if "norm" in name else 0)
        like = tensors.get(f"model.layers.{last}.{name}", tensors["model.norm.weight"])
        made[f"model.layers.{index}.{name}"] = values.to(like.dtype)
    return made


def expected(model, known):
    """None where a choice is not clear."""
    tensors, margin = {}, math.inf
    for i in range(3):
        prompt, following = known[f"prompt.{i}"], known[f"greedy.{i}"][:1]
        hidden, cache = model.hidden(prompt.long()), []
        given = (model.head(hidden) - known[f"logits.{i}"]).abs().max()
        assert given < 1e-4 * known[f"logits.{i}"].abs().max(), "the model is not that of transformers"
        x, logits = model.predict(torch.cat([prompt, following])[1:].long(), hidden, cache)
        tensors |= {f"prompt.{i}": prompt, f"next.{i}": following, f"logits.{i}": logits.float(), f"hidden.{i}": x.float()}
        drafts = []
        for _ in range(DRAFTS):
            best = logits[-1].topk(2)
            margin = min(margin, (best.values[0] - best.values[1]).item())
            drafts.append(best.indices[0].item())
            x, logits = model.predict(torch.tensor(drafts[-1:]), x[-1:], cache)
        tensors[f"drafts.{i}"] = torch.tensor(drafts, dtype=torch.int32)
    return tensors if margin >= MARGIN else None


def main():
    config = json.loads((SOURCE / "config.json").read_text())
    tensors, known = load_file(SOURCE / "model.safetensors"), load_file(SOURCE / "expected.safetensors")
    for seed in range(100):
        whole = tensors | random_layer(tensors, config, seed)
        result = expected(Model(config, whole), known)
        if result is not None:
            break
    FOLDER.mkdir(exist_ok=True)
    shutil.copyfile(SOURCE / "config.json", FOLDER / "config.json")
    save_file(whole, FOLDER / "model.safetensors", metadata={"format": "pt"})
    save_file({name: t.contiguous() for name, t in result.items()}, FOLDER / "expected.safetensors")
    for file in FOLDER.iterdir():
        file.chmod(0o644)
    print(f"seed {seed}, drafts " + ", ".join(str(result[f"drafts.{i}"].tolist()) for i in range(3)))


if __name__ == "__main__":
    main()
