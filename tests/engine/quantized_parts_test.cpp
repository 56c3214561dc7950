// Matrices that share an input, quantized: Q, K and V in one fused tensor, and in tensors of their own with an
// act-order each. The logits are those of the weights that the file stands for, loaded as a plain checkpoint.
#include <algorithm>
#include <fstream>

#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/quantized_tensors.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"
#include "engine/checkpoint/stored_values.hpp"
#include "engine/quantize/weight_grid.hpp"
#include "model/folder/model_config.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

// Writes `quantized`, made from `source`, as a plain F32 folder.
void write_dequantized(const fs::path& source, const fs::path& quantized, const fs::path& output) {
  const Checkpoint original(source), stored(quantized);
  const auto config = read_quantization_config(quantized);
  std::vector<std::vector<float>> values;
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : original.names()) {
    const StoredTensor& tensor = *original.find(name).tensor;
    const std::string module = name.substr(0, name.rfind('.'));
    if (name.ends_with(".weight") && stored.find(module + ".qweight").tensor != nullptr) {
      REQUIRE(stored.find(name).tensor == nullptr);
      values.push_back(dequantized(read_quantized_matrix(
          stored, {module, static_cast<int>(tensor.shape[0]), static_cast<int>(tensor.shape[1])}, *config)));
    } else {
      const auto dtype = parse_dtype(tensor.dtype);
      values.emplace_back(tensor.bytes.size() * 8 / static_cast<std::size_t>(bits(*dtype)));
      widen(stored.find(name).tensor->bytes.data(), *dtype, values.back());
    }
    tensors.push_back({name, "F32", tensor.shape, {}});
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].bytes = std::as_bytes(std::span(values[i]));
  fs::create_directory(output);
  fs::copy_file(source / "config.json", output / "config.json");
  write_safetensors(output / "model.safetensors", tensors);
}

void require_logits_of_dequantized(const fs::path& source, const TemporaryFolder& folder) {
  write_dequantized(source, folder.path("quantized"), folder.path("plain"));
  Stepper quantized(load_weights(folder.path("quantized"))), plain(load_weights(folder.path("plain")));
  std::vector<Feed> feeds{{0, Phase::prefill, random_tokens(37, 96)}, {1, Phase::prefill, {5, 6, 7}}};
  for (int step = 0; step < 4; ++step) {
    const std::vector<Logits> actual = quantized.step(feeds), expected = plain.step(feeds);
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      REQUIRE(largest_difference(actual[i], expected[i].data()) <= kTolerance);
      feeds[i] = {static_cast<SequenceId>(i), Phase::decode, {best_token(expected[i])}};
    }
  }
}

// Gives in-features another group each: a matrix as good as any, in another act-order.
void turn_order(kernels::QuantizedMatrix& matrix, int by) {
  matrix.g_idx.resize(static_cast<std::size_t>(matrix.columns));
  for (int column = 0; column < matrix.columns; ++column)
    matrix.g_idx[static_cast<std::size_t>(column)] = (column + by) % matrix.groups();
}

}  // namespace

TEST_CASE("fused Q, K and V are quantized as one tensor of the checkpoint's name, and taken apart when loaded") {
  for (const char* variant : {"bloom", "bloom_six_heads", "falcon_7b", "falcon_40b", "falcon_11b", "falcon_rw"})
    for (const auto method : {QuantizationMethod::gptq, QuantizationMethod::rtn})
      for (const bool desc_act : {false, true}) {
        if (desc_act && method == QuantizationMethod::rtn) continue;
        INFO(variant << ' ' << name(method) << ' ' << desc_act);
        const fs::path source = kFamilyFolder / variant;
        const ModelWeights weights = load_weights(source);
        QuantizeOptions options = options_of(method, 4, 16, QuantizedFormat::gptq);
        options.config.desc_act = desc_act;
        REQUIRE(problems(options, weights).empty());
        const QuantizedModel model = quantize_model(weights, random_tokens(300, weights.shape.vocab_size), options, {});
        REQUIRE(model.modules.size() == 8);  // query_key_value, dense and two of the MLP, in two layers
        const TemporaryFolder folder;
        write_quantized_model(to_write(model, options, source), folder.path("quantized"));
        const Checkpoint checkpoint(folder.path("quantized")), original(source);
        const std::string fused = "transformer.h.1.self_attention.query_key_value";
        REQUIRE(checkpoint.find(fused + ".qweight").tensor->shape ==
                std::vector<std::int64_t>{original.find(fused + ".weight").tensor->shape[1] / 8,
                                          original.find(fused + ".weight").tensor->shape[0]});
        require_logits_of_dequantized(source, folder);
      }
}

TEST_CASE("lm_head is quantized if asked, on what it reads, and never where it is the embedding") {
  const fs::path source = kFamilyFolder / "qwen2";
  const ModelWeights weights = load_weights(source);
  for (const auto method : {QuantizationMethod::gptq, QuantizationMethod::rtn}) {
    QuantizeOptions options = options_of(method, 4, 16, QuantizedFormat::gptq);
    options.config.lm_head = true;
    REQUIRE(problems(options, weights).empty());
    const QuantizedModel model = quantize_model(weights, random_tokens(300, weights.shape.vocab_size), options, {});
    REQUIRE(model.modules.back().name == "lm_head");
    REQUIRE(model.modules.back().relative_error > 0.0);
    REQUIRE(model.modules.back().relative_error < 0.2);
    const TemporaryFolder folder;
    write_quantized_model(to_write(model, options, source), folder.path("quantized"));
    const ModelWeights loaded = load_weights(folder.path("quantized"));
    REQUIRE(loaded.shape.quantized_lm_head);
    REQUIRE(loaded.outer[WeightSlot::lm_head].weights[0].dtype == Dtype::int4);
    require_logits_of_dequantized(source, folder);
  }
  QuantizeOptions tied = options_of(QuantizationMethod::rtn, 4, 16, QuantizedFormat::gptq);
  tied.config.lm_head = true;
  REQUIRE(problems(tied, load_weights(kFamilyFolder / "bloom")).front().find("its embedding") != std::string::npos);
}

TEST_CASE("Q, K and V of one layer may each have an act-order of their own, gate and up too") {
  const fs::path source = kGoldenFolder / "gqa";
  const ModelWeights weights = load_weights(source);
  QuantizeOptions options = options_of(QuantizationMethod::gptq, 4, 8, QuantizedFormat::gptq);
  options.config.desc_act = true;
  QuantizedModel model = quantize_model(weights, random_tokens(300, weights.shape.vocab_size), options, {});
  for (QuantizedModule& module : model.modules) {
    if (module.name.ends_with("k_proj")) turn_order(module.matrix, 1);
    if (module.name.ends_with("v_proj")) module.matrix.g_idx.clear();  // as stored
    if (module.name.ends_with("up_proj")) turn_order(module.matrix, 2);
  }
  const TemporaryFolder folder;
  write_quantized_model(to_write(model, options, source), folder.path("quantized"));
  const ModelWeights loaded = load_weights(folder.path("quantized"));
  const WeightSlots& layer = loaded.layers.front();
  REQUIRE(layer[WeightSlot::qkv_proj].weights[kQ].permutation != nullptr);
  REQUIRE(layer[WeightSlot::qkv_proj].weights[kK].permutation != nullptr);
  REQUIRE(layer[WeightSlot::qkv_proj].weights[kK].permutation != layer[WeightSlot::qkv_proj].weights[kQ].permutation);
  REQUIRE(layer[WeightSlot::qkv_proj].weights[kV].permutation == nullptr);
  require_logits_of_dequantized(source, folder);
}

}  // namespace dculab::engine
