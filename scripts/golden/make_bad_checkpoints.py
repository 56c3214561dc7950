"""Writes tests/bad/checkpoint: model folders with one mistake each, and expected_error.txt, the message it must give.

`{folder}` in the message stands for the path of the folder. Standard library only:

    python scripts/golden/make_bad_checkpoints.py
"""

import json
import shutil
import struct

from bad_checkpoint import CONFIG, FOLDER, LAYER, SHAPES, edited, safetensors, size_of, tensors, without, write


def write_configs():
    def line(key):
        keys = list(CONFIG)
        return 2 + (keys.index(key) if key in keys else len(keys))

    def bad(case, message, **config):
        """The last of `config` is what is wrong."""
        number = 2 + list({**CONFIG, **config}).index(list(config)[-1])
        write("config_" + case, f"/config.json:{number}: {message}", config)

    write("config_broken_json", "/config.json:3:14: is not valid JSON (syntax error while parsing object - unexpected "
          "string literal; expected '}')",
          '{\n "model_type": "llama"\n "hidden_size": 8\n}\n')
    write("config_not_an_object", "/config.json:1: must be a JSON object", "[1, 2]\n")
    write("config_duplicate_key", "/config.json:1: key 'hidden_size' stands twice in one JSON object",
          '{"model_type": "llama", "hidden_size": 8, "hidden_size": 16}\n')
    write("config_deep", "/config.json:2: nested deeper than 64 levels; flatten the file",
          '{"model_type": "llama",\n "rope_scaling": {"a": ' + 70 * "[" + 70 * "]" + "}}\n")
    write("config_long_value", f"/config.json:1: 'model_type' '{200 * 'x'}...' is not known, and its config.json has no "
          "hidden_size, so it cannot be predicted; nearest that can be predicted: llama-3-8b", f'{{"model_type": "{400 * "x"}"}}\n')
    config = {key: value for key, value in CONFIG.items() if key != "hidden_size"}
    write("config_missing_size", "/config.json: 'hidden_size' is missing", json.dumps(config) + "\n")
    bad("wrong_type", "'hidden_size' must be an integer", hidden_size="8")
    bad("fraction", "'hidden_size' must be an integer", hidden_size=8.5)
    bad("zero", "'vocab_size' must be positive, not 0", vocab_size=0)
    bad("negative", "'num_key_value_heads' must be positive, not -1", num_key_value_heads=-1)
    bad("huge", "'hidden_size' is out of range", hidden_size=2**40)
    bad("too_many_layers", "'num_hidden_layers' is out of range", num_hidden_layers=10**6)
    bad("other_model", "'model_type' 'foo' cannot be predicted: it has 8 routed experts (num_local_experts); nearest that "
        "can be predicted: qwen3-30b-a3b", num_local_experts=8, model_type="foo")
    bad("bias_not_a_flag", "'attention_bias' must be true or false", attention_bias="yes")
    bad("activation", "'hidden_act' 'mish' is not supported (silu, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh)", hidden_act="mish")
    bad("dtype", "'torch_dtype' 'float64' is not a supported dtype (float32, float16, bfloat16)", torch_dtype="float64")
    bad("indivisible_head", "'hidden_size' is not a multiple of num_attention_heads, and there is no head_dim",
        num_attention_heads=3, hidden_size=8)
    write("config_rope_dynamic", f"/config.json:{line('rope_scaling') + 1}: 'rope_type' 'dynamic' is not a supported "
          "RoPE scaling (default, linear, llama3, yarn, longrope)",
          dict(rope_scaling=dict(rope_type="dynamic", factor=2.0, alpha=1000.0)))
    write("config_rope_no_factor", "/config.json: 'factor' is missing", dict(rope_scaling=dict(type="linear")))
    write("config_indivisible_kv_heads",
          "/config.json: num_attention_heads (2) is not a multiple of num_key_value_heads (3)",
          dict(num_attention_heads=2, num_key_value_heads=3))


def write_families():
    def bad(case, message, model_type, **config):
        config = dict(model_type=model_type, **config)
        number = 2 + list({**CONFIG, **config}).index(list(config)[-1])
        write(f"{model_type}_{case}", f"/config.json:{number}: {message}", config)

    def bad_model(case, message, model_type, shapes, **config):
        write(f"{model_type}_{case}", "/model.safetensors: " + message, dict(model_type=model_type, **config),
              weights=safetensors(tensors(shapes)))

    bad("window_zero", "'sliding_window' must be positive, not 0", "mistral", sliding_window=0)
    bad("layer_types_not_words", "'layer_types' must be a list of strings", "qwen2", use_sliding_window=True,
        layer_types=[1])
    bad_model("missing_bias", f"tensor '{LAYER}self_attn.q_proj.bias' is missing; config.json asks for it", "qwen2",
              SHAPES)
    bad("residual_after_norm", "'apply_residual_connection_post_layernorm' is true, which is not supported", "bloom",
        apply_residual_connection_post_layernorm=True)
    bad("inner", "'n_inner' is not 4 * hidden_size, which BLOOM's MLP is", "bloom", n_inner=16)
    bad("huge", "'hidden_size' is out of range", "bloom", hidden_size=2**29)
    bad("sequential", "'parallel_attn' is false, which new_decoder_architecture does not have", "falcon",
        new_decoder_architecture=True, parallel_attn=False)
    bad("two_norms", "'num_ln_in_parallel_attn' is 2, which needs new_decoder_architecture", "falcon",
        num_ln_in_parallel_attn=2)
    bad("three_norms", "'num_ln_in_parallel_attn' must be 1 or 2", "falcon", new_decoder_architecture=True,
        num_ln_in_parallel_attn=3)
    bad("activation", "'activation' 'relu' is not supported (gelu, gelu_new, gelu_fast, gelu_pytorch_tanh)", "falcon",
        activation="relu")
    norm = "transformer.h.0.input_layernorm."
    fused = "transformer.h.0.self_attention.query_key_value.weight"
    bad_model("fused_shape", f"tensor '{fused}' has shape [16, 8], but config.json makes it [24, 8]", "falcon",
              {"transformer.word_embeddings.weight": [4, 8], norm + "weight": [8], norm + "bias": [8], fused: [16, 8]})


def write_experts():
    """Of mixtures with two experts."""
    experts = LAYER + "block_sparse_moe.experts."
    mlp = {f"{LAYER}mlp.{name}_proj.weight" for name in ("gate", "up", "down")}
    shared = {name: shape for name, shape in SHAPES.items() if name not in mlp}
    mixtral = {**shared, LAYER + "block_sparse_moe.gate.weight": [2, 8],
               **{f"{experts}{expert}.{name}.weight": [8, 8] for expert in range(2) for name in ("w1", "w2", "w3")}}
    fused = {**shared, LAYER + "mlp.gate.weight": [2, 8], LAYER + "mlp.experts.gate_up_proj": [2, 16, 8],
             LAYER + "mlp.experts.down_proj": [2, 8, 8]}
    up = LAYER + "mlp.experts.gate_up_proj"

    def bad(case, message, shapes=mixtral, **config):
        settings = dict(model_type="mixtral", num_local_experts=2, num_experts_per_tok=2)
        write("experts_" + case, message, {**settings, **config}, weights=safetensors(tensors(shapes)))

    def bad_file(case, message, shapes=mixtral, **config):
        bad(case, "/model.safetensors: tensor " + message, shapes, **config)

    bad("too_few", "/config.json: num_experts_per_tok (3) is more than the 2 experts to choose from",
        num_experts_per_tok=3)
    bad_file("count", f"'{LAYER}block_sparse_moe.gate.weight' has shape [2, 8], but config.json makes it [4, 8]",
             num_local_experts=4)
    bad_file("missing", f"'{experts}1.w2.weight' is missing; config.json asks for it",
             {name: shape for name, shape in mixtral.items() if name != experts + "1.w2.weight"})
    bad_file("cut", f"'{experts}1.w1.weight' has shape [4, 8], but config.json makes it [8, 8]",
             {**mixtral, experts + "1.w1.weight": [4, 8]})
    bad_file("fused_count", f"'{up}' has shape [3, 16, 8], but config.json makes it [2, 16, 8]",
             {**fused, up: [3, 16, 8]})
    bad_file("fused_width", f"'{up}' has shape [2, 8, 8], but config.json makes it [2, 16, 8]",
             {**fused, up: [2, 8, 8]})
    whole = safetensors(tensors(mixtral))
    last = experts + "1.w3.weight"
    end = size_of(tensors(mixtral))
    write("experts_truncated", f"/model.safetensors: tensor '{last}' ends at byte {end} of the data, but the file holds "
          f"only {end - 10} (truncated?); download it again",
          dict(model_type="mixtral", num_local_experts=2, num_experts_per_tok=2), weights=whole[:-10])


def write_files():
    query = LAYER + "self_attn.q_proj.weight"
    total = size_of(tensors())

    def bad(case, message, weights):
        write("file_" + case, "/model.safetensors: " + message, weights=weights)

    def bad_tensor(case, message, header, data_bytes=total):
        bad(case, f"tensor '{query}' {message}", safetensors(header, data_bytes))

    whole = safetensors(tensors())
    header_bytes = struct.unpack("<Q", whole[:8])[0]
    bad("empty", "is too short to be a safetensors file (0 bytes)", b"")
    bad("seven_bytes", "is too short to be a safetensors file (7 bytes)", bytes(7))
    bad("header_length_lies", f"claims a header of 99999999 bytes, but only {len(whole) - 8} follow (truncated?); "
        "download it again", struct.pack("<Q", 99999999) + whole[8:])
    bad("header_length_overflows", "claims a header of 18446744073709551615 bytes (the limit is 100000000); "
        "it is not a safetensors file", struct.pack("<Q", 2**64 - 1) + whole[8:])
    bad("truncated_header", f"claims a header of {header_bytes} bytes, but only 100 follow (truncated?); "
        "download it again", whole[:108])
    bad("header_not_an_object", "has a header that is not a JSON object", safetensors("[]", 0))
    write("file_duplicate_tensor", "/model.safetensors:1: key 'a' stands twice in one JSON object", weights=safetensors(
        '{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},"a":{"dtype":"F16","shape":[1],"data_offsets":[2,4]}}', 4))
    bad("truncated", f"tensor 'lm_head.weight' ends at byte {total} of the data, but the file holds only {total - 10} "
        "(truncated?); download it again", whole[:-10])
    bad("left_over_bytes", "6 bytes after the last tensor belong to none", whole + bytes(6))
    begin, end = tensors()[query]["data_offsets"]
    bad_tensor("offsets_reversed", "has data_offsets that end before they begin", edited(query, data_offsets=[end, begin]))
    bad_tensor("offsets_beyond_file", f"ends at byte 18446744073709551615 of the data, but the file holds only {total} "
               "(truncated?); download it again", edited(query, data_offsets=[begin, 2**64 - 1]))
    bad_tensor("offsets_negative", "has data_offsets that are not [begin, end]", edited(query, data_offsets=[-2, end]))
    bad_tensor("offsets_contradict_shape", "spans 126 bytes, but F16 [8, 8] needs 128",
               edited(query, data_offsets=[begin, end - 2]))
    bad_tensor("overlap", f"begins at byte {begin - 16} of the data, but the tensors before it end at {begin} (overlap)",
               edited(query, data_offsets=[begin - 16, end - 16]))
    shifted = {name: {**entry, "data_offsets": [o + (4 if o >= begin else 0) for o in entry["data_offsets"]]}
               for name, entry in tensors().items()}
    shifted[LAYER + "input_layernorm.weight"]["data_offsets"][1] = begin
    bad_tensor("hole", f"begins at byte {begin + 4} of the data, but the tensors before it end at {begin} (hole)",
               shifted, total + 4)
    bad_tensor("shape_overflows", "has a shape [4294967296, 4294967296] whose size overflows 64 bits",
               edited(query, shape=[2**32, 2**32]))
    bad_tensor("shape_negative", "has a shape with something else than sizes", edited(query, shape=[-8, 8]))
    bad_tensor("shape_absent", "must have dtype, shape and data_offsets and nothing else",
               {**tensors(), query: dict(dtype="F16", data_offsets=[begin, end])})
    bad_tensor("unknown_dtype", "has the unknown dtype 'F13'", edited(query, dtype="F13"))


def write_models():
    query = LAYER + "self_attn.q_proj.weight"
    up = LAYER + "mlp.up_proj.weight"

    def bad(case, message, shapes=None, dtypes=None):
        write("model_" + case, "/model.safetensors: " + message, weights=safetensors(tensors(shapes, dtypes)))

    bad("missing_tensor", f"tensor '{up}' is missing; config.json asks for it", without(up))
    bad("missing_head", "tensor 'lm_head.weight' is missing; config.json asks for it", without("lm_head.weight"))
    bad("wrong_shape", f"tensor '{up}' has shape [8, 4], but config.json makes it [8, 8]", {**SHAPES, up: [8, 4]})
    bad("wrong_rank", f"tensor '{up}' has shape [64], but config.json makes it [8, 8]", {**SHAPES, up: [64]})
    bad("integer_weights", f"tensor '{up}' has dtype I32, which is not supported (F32, F16, BF16)", None, {up: "I32"})
    bad("mixed_dtypes", f"tensor '{up}' is bf16, but other matrices are f16; mixed dtypes are not supported", None,
        {up: "BF16"})
    bad("quantized", f"tensor '{query}' is missing; the checkpoint is quantized, but neither config.json "
        "nor quantize_config.json says how", {**without(query), query.replace(".weight", ".qweight"): [1, 8]})
    write("model_no_weights", ": holds no weights (neither model.safetensors nor model.safetensors.index.json); "
          "pickled .bin files are not read: convert them to safetensors")


def quantized_shapes(bits=4, group_size=8):
    shapes, dtypes = {}, {}
    for name, shape in SHAPES.items():
        if not name.endswith("_proj.weight"):
            shapes[name] = shape
            continue
        module = name.removesuffix(".weight")
        words = 8 * bits // 32
        for tensor, size in (("qweight", [words, 8]), ("qzeros", [8 // group_size, words]),
                             ("scales", [8 // group_size, 8]), ("g_idx", [8])):
            shapes[f"{module}.{tensor}"] = size
            dtypes[f"{module}.{tensor}"] = "F16" if tensor == "scales" else "I32"
    return shapes, dtypes


def write_quantized():
    shapes, dtypes = quantized_shapes()
    up = LAYER + "mlp.up_proj."
    plain = dict(quant_method="gptq", bits=4, group_size=8)

    def bad(case, message, settings=None, changes=None, types=None, drop=None):
        config = {**CONFIG, "quantization_config": {**plain, **(settings or {})}}
        changed = {name: size for name, size in {**shapes, **(changes or {})}.items() if name != drop}
        write("quantized_" + case, message, config=json.dumps(config, indent=1) + "\n",
              weights=safetensors(tensors(changed, {**dtypes, **(types or {})})))

    def bad_config(case, key, message, settings):
        lines = json.dumps({**CONFIG, "quantization_config": {**plain, **settings}}, indent=1).split("\n")
        line = 1 + max(number for number, text in enumerate(lines) if text.strip().startswith(f'"{key}"'))
        bad(case, f"/config.json:{line}: '{key}' {message}", settings)

    bad_config("method", "quant_method", "'quip' is not supported (gptq, awq, fp8, compressed-tensors, mxfp4, bitsandbytes); use the F16 or BF16 checkpoint",
               dict(quant_method="quip"))
    bad_config("bits", "bits", "must be 2, 3, 4 or 8, not 5", dict(bits=5))
    bad_config("group", "group_size", "must be positive, or -1 for a scale per row", dict(group_size=0))
    bad_config("format", "checkpoint_format", "'marlin' is not supported (gptq, gptq_v2); convert the checkpoint to one "
               "of them", dict(checkpoint_format="marlin"))
    tied = {key: value for key, value in CONFIG.items() if key != "torch_dtype"}
    tied.update(tie_word_embeddings=True, torch_dtype="float16", quantization_config={**plain, "lm_head": True})
    write("quantized_head", "/config.json: lm_head is quantized, but it is the embedding (tie_word_embeddings), which is "
          "not", json.dumps(tied, indent=1) + "\n", weights=safetensors(tensors(shapes, dtypes)))
    bad_config("dynamic", "dynamic", "gives some matrices settings of their own, which is not supported",
               dict(dynamic={"-:down": {}}))
    bad_config("awq_version", "version", "'gemv' is not supported (gemm)", dict(quant_method="awq", version="gemv"))
    query = LAYER + "self_attn.q_proj."
    bad("group_does_not_divide", f"/model.safetensors: tensor '{query}qweight' has 8 in-features, which groups of 16 do "
        "not divide", dict(group_size=16))
    bad("sizes", f"/model.safetensors: tensor '{query}qweight' is of a [8, 8] matrix, whose sizes are not multiples of 32",
        dict(bits=3))
    bad("missing_scales", f"/model.safetensors: tensor '{up}scales' is missing; the model is quantized",
        drop=up + "scales")
    bad("wrong_shape", f"/model.safetensors: tensor '{up}qweight' has shape [2, 8], but its matrix and its settings make "
        "it [1, 8]", changes={up + "qweight": [2, 8]})
    bad("wrong_dtype", f"/model.safetensors: tensor '{up}scales' has dtype F32, but a quantized matrix needs F16",
        types={up + "scales": "F32"})


def write_shards():
    first = dict(list(SHAPES.items())[:6])
    second = dict(list(SHAPES.items())[6:])
    name = "model-{}-of-2.safetensors"
    shard_of = {**dict.fromkeys(first, name.format(1)), **dict.fromkeys(second, name.format(2))}
    shards = {name.format(1): safetensors(tensors(first)), name.format(2): safetensors(tensors(second))}
    index_name = "model.safetensors.index.json"

    def bad(case, message, index, files):
        text = index if isinstance(index, str) else json.dumps(dict(metadata={}, weight_map=index), indent=1) + "\n"
        write("shards_" + case, message, files={index_name: text.encode(), **files})

    down = LAYER + "mlp.down_proj.weight"
    line = 4 + sorted(shard_of).index(down)
    ordered = {tensor: shard_of[tensor] for tensor in sorted(shard_of)}
    bad("missing_file", f"/{index_name}:4: 'lm_head.weight' is in the shard '{name.format(2)}', which is missing; "
        "download it again", ordered, {name.format(1): shards[name.format(1)]})
    bad("missing_tensor", f"/{index_name}:{line}: '{down}' is not in the shard '{name.format(2)}' that should hold it",
        ordered, {**shards, name.format(2): safetensors(tensors({k: v for k, v in second.items() if k != down}))})
    bad("outside_folder", f"/{index_name}:{line}: '{down}' must name a file beside the index, not '../secret.safetensors'",
        {**ordered, down: "../secret.safetensors"}, shards)
    bad("unlisted_tensor", f"/{index_name}: tensor '{down}' is missing; config.json asks for it",
        {tensor: file for tensor, file in ordered.items() if tensor != down}, shards)
    long_name = json.dumps(dict(weight_map={"lm_head.weight": 300 * "a"}), indent=1) + "\n"
    bad("long_name", f"/{index_name}:3: 'lm_head.weight' is in the shard '{200 * 'a'}...', which is missing (File name too "
        "long); download it again", long_name, {})
    bad("no_weight_map", f"/{index_name}: has no weight_map", "{}\n", shards)


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    write_configs()
    write_families()
    write_experts()
    write_files()
    write_models()
    write_quantized()
    write_shards()
