"""Llama with cross-layer attention (CLA, Brandon et al., arXiv:2405.12981): some layers read another layer's KV.

`kv_source_layers` in config.json has, for every layer, the layer whose keys and values it reads; a layer with
keys and values of its own has its own index. A layer that reads another's has q_proj and o_proj only, and only
the layers that are read have a KV cache. Importing this file makes the Auto classes of transformers know the
model type `dculab_cla`.
"""

from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, LlamaModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaAttention, apply_rotary_pos_emb, eager_attention_forward


class CrossLayerConfig(LlamaConfig):
    model_type = "dculab_cla"
    kv_source_layers: list[int] | None = None


def rotated(x, cos, sin):
    return apply_rotary_pos_emb(x, x[:, :0], cos, sin)[0]


class CrossLayerAttention(LlamaAttention):
    def __init__(self, config, layer_idx):
        super().__init__(config, layer_idx)
        self.source = config.kv_source_layers[layer_idx]
        if self.source != layer_idx:
            del self.k_proj, self.v_proj

    def keys_values(self, x, shape, cos, sin, cache, layers_kv):
        """Computed and cached here, or those of the source layer; layers_kv holds them for the layers to come."""
        if self.source == self.layer_idx:
            key = rotated(self.k_proj(x).view(shape).transpose(1, 2), cos, sin)
            value = self.v_proj(x).view(shape).transpose(1, 2)
            layers_kv[self.layer_idx] = (key, value) if cache is None else cache.update(key, value, self.layer_idx)
        return layers_kv[self.source]

    def forward(self, hidden_states, position_embeddings, attention_mask=None, past_key_values=None, layers_kv=None, **kwargs):
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        cos, sin = position_embeddings
        query = rotated(self.q_proj(hidden_states).view(shape).transpose(1, 2), cos, sin)
        key, value = self.keys_values(hidden_states, shape, cos, sin, past_key_values, layers_kv)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        out, weights = attend(self, query, key, value, attention_mask, dropout=0.0, scaling=self.scaling, **kwargs)
        return self.o_proj(out.reshape(*hidden_states.shape[:-1], -1)), weights


class CrossLayerModel(LlamaModel):
    config_class = CrossLayerConfig
    _can_record_outputs = {"attentions": CrossLayerAttention}

    def __init__(self, config):
        super().__init__(config)
        for index, layer in enumerate(self.layers):
            layer.self_attn = CrossLayerAttention(config, index)
        self.post_init()


class CrossLayerForCausalLM(LlamaForCausalLM):
    config_class = CrossLayerConfig
    _can_record_outputs = {"attentions": CrossLayerAttention}

    def __init__(self, config):
        super().__init__(config)
        self.model = CrossLayerModel(config)
        self.post_init()

    def forward(self, *args, **kwargs):
        return super().forward(*args, layers_kv={}, **kwargs)


AutoConfig.register("dculab_cla", CrossLayerConfig)
AutoModelForCausalLM.register(CrossLayerConfig, CrossLayerForCausalLM)
