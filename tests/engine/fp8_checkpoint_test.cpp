// FP8 checkpoints: what transformers computes with the weights that values and scales stand for, and what is refused.
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/random_weights.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"
#include "kernels/number_format.hpp"
#include "model/folder/model_files.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/golden_steps.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

const fs::path kFp8Folder = fs::path(DCULAB_SOURCE_DIR) / "tests/golden/fp8";
constexpr const char* kModule = "model.layers.1.mlp.down_proj";

void require_golden_tokens(const GoldenModel& golden, const ModelWeights& weights) {
  const auto vocab_size = static_cast<std::size_t>(weights.shape.vocab_size);
  Stepper stepper(weights);
  std::vector<Feed> feeds;
  for (const GoldenPrompt& prompt : golden.prompts())
    feeds.push_back({static_cast<SequenceId>(feeds.size()), Phase::prefill, prompt.tokens});
  for (std::size_t token = 0; token < golden.prompts()[0].greedy.size(); ++token) {
    const std::vector<Logits> rows = stepper.step(feeds);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const GoldenPrompt& prompt = golden.prompts()[i];
      REQUIRE(best_token(rows[i]) == prompt.greedy[token]);
      const float* const expected = prompt.logits.data() + (prompt.tokens.size() - 1) * vocab_size;
      if (token == 0) REQUIRE(largest_difference(rows[i], expected) <= kTolerance);
      feeds[i] = {static_cast<SequenceId>(i), Phase::decode, {best_token(rows[i])}};
    }
  }
}

// Writes the model of `variant` anew; `edit` changes a tensor, or drops it by an empty name.
template <class Edit>
[[nodiscard]] std::string refusal(const char* variant, Edit&& edit) {
  const TemporaryFolder folder;
  const Checkpoint original(kFp8Folder / variant);
  std::vector<TensorToWrite> tensors;
  std::vector<std::vector<std::byte>> kept;
  for (const std::string& name : original.names()) {
    const StoredTensor& tensor = *original.find(name).tensor;
    kept.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
    tensors.push_back({name, tensor.dtype, tensor.shape, {}});
    edit(tensors.back(), kept.back());
    if (tensors.back().name.empty()) tensors.pop_back(), kept.pop_back();
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].bytes = kept[i];
  fs::create_directory(folder.path("model"));
  fs::copy_file(kFp8Folder / variant / "config.json", folder.path("model") / "config.json");
  write_safetensors(folder.path("model") / "model.safetensors", tensors);
  try {
    (void)load_weights(folder.path("model"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("FP8 checkpoints give the logits and greedy tokens of transformers on what they stand for") {
  for (const char* variant : {"block", "block_fused", "channel", "tensor"}) {
    INFO(variant);
    const GoldenModel golden(variant, kFp8Folder);
    REQUIRE(golden.prompts().size() == 3);
    for (const WeightMemory memory : {WeightMemory::huge_pages, WeightMemory::mapped}) {
      const ModelWeights weights = load_weights(golden.folder(), memory);
      REQUIRE(weights.shape.layer_format() == WeightFormat{Dtype::fp8_e4m3, 0});
      REQUIRE(weights.shape.dtype == Dtype::bf16);
      REQUIRE(weights.shape.quantized_lm_head == (std::string_view(variant) == "tensor"));
      require_golden_tokens(golden, weights);
    }
  }
}

TEST_CASE("FP8 checkpoints that are damaged are refused with file and tensor") {
  const std::string weight = std::string(kModule) + ".weight", scale = weight + "_scale_inv";
  const auto changed = [](const std::string& name, auto change) {
    return refusal("block", [&](TensorToWrite& tensor, std::vector<std::byte>& bytes) {
      if (tensor.name == name) change(tensor, bytes);
    });
  };
  CHECK(changed("", [](auto&, auto&) {}) == "none");
  CHECK_THAT(changed(scale, [](TensorToWrite& tensor, auto&) { tensor.name.clear(); }),
             ContainsSubstring("model.safetensors: tensor '" + scale + "' is missing"));
  CHECK_THAT(changed(weight, [](TensorToWrite& tensor, auto&) { tensor.name.clear(); }),
             ContainsSubstring("tensor '" + weight + "' is missing"));
  CHECK_THAT(changed(weight, [](TensorToWrite& tensor, auto&) { tensor.dtype = "I8"; }),
             ContainsSubstring("has dtype I8, but quantization_config makes it F8_E4M3"));
  CHECK_THAT(changed(weight, [](TensorToWrite& tensor, auto&) { std::swap(tensor.shape[0], tensor.shape[1]); }),
             ContainsSubstring("has shape [136, 144], but config.json makes it [144, 136]"));
  CHECK_THAT(changed(weight, [](auto&, std::vector<std::byte>& bytes) { bytes[100] = std::byte{0xFF}; }),
             ContainsSubstring("has a weight that is NaN"));
  CHECK_THAT(changed(scale, [](TensorToWrite& tensor, auto&) { tensor.shape = {4}; }),
             ContainsSubstring("has shape [4]; [2, 2], one value, or one for each of 144 rows are supported"));
  CHECK_THAT(changed(scale, [](TensorToWrite& tensor, auto&) { tensor.dtype = "I16"; }),
             ContainsSubstring("has dtype I16, which is not supported (F32, BF16, F16)"));
  CHECK_THAT(changed(scale, [](auto&, std::vector<std::byte>& bytes) { std::memset(bytes.data(), 0x7F, 2); }),
             ContainsSubstring("has a scale that is NaN or infinite"));
}

TEST_CASE("FP8 blocks that kernels do not take, and formats that are only predicted, are refused") {
  const auto refused = [](const std::string& from, const std::string& to) {
    const TemporaryFolder folder;
    fs::copy(kFp8Folder / "block", folder.path("model"));
    std::string text = read_model_text((kFp8Folder / "block/config.json").string());
    text.replace(text.find(from), from.size(), to);
    std::ofstream(folder.path("model") / "config.json") << text;
    try {
      (void)load_weights(folder.path("model"));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK_THAT(refused("128,\n      128", "128, 96"), ContainsSubstring("FP8 blocks of 128 x 96 weights are predicted"));
  CHECK_THAT(refused(R"("fmt": "e4m3")", R"("fmt": "e5m2")"), ContainsSubstring("predicted, not run"));
  CHECK_THAT(refused(R"("quant_method": "fp8")", R"("quant_method": "bitsandbytes", "load_in_4bit": true)"),
             ContainsSubstring("'bitsandbytes' is predicted, not run"));
}

TEST_CASE("random FP8 weights keep the scale of what they multiply, and take a byte each") {
  ModelShape shape = load_weights(kFp8Folder / "block").shape;
  const ModelWeights weights = random_weights(shape, 5);
  const kernels::WeightView& matrix = weights.layers[0][WeightSlot::down_proj].weights[0];
  REQUIRE((matrix.dtype == Dtype::fp8_e4m3 && matrix.rows == 144 && matrix.scales.column_blocks == 2));
  REQUIRE(weights.outer[WeightSlot::lm_head].weights[0].dtype == Dtype::bf16);
  const auto* const codes = static_cast<const std::uint8_t*>(matrix.data);
  double sum_of_squares = 0;
  for (int i = 0; i < 144 * 136; ++i) {
    const double value =
        kernels::f32_from_fp8_e4m3(codes[i]) * matrix.scales.times_256[0] / kernels::Fp8Scales::kFactor;
    sum_of_squares += value * value;
  }
  REQUIRE_THAT(sum_of_squares / 144, WithinRel(1.0, 0.05));
  Stepper stepper(weights);
  const std::vector<Logits> rows = stepper.step({{0, Phase::prefill, {1, 2, 3, 4}}});
  for (const float logit : rows[0]) REQUIRE(std::isfinite(logit));
}

}  // namespace dculab::engine
