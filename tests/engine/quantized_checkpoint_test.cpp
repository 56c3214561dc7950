// Quantized checkpoints: those of AutoGPTQ and AutoAWQ give transformers' logits and tokens, ours come back as written.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "core/error.hpp"
#include "engine/checkpoint/model_folder.hpp"
#include "engine/checkpoint/model_loader.hpp"
#include "engine/checkpoint/packed_integers.hpp"
#include "engine/checkpoint/quantized_model_writer.hpp"
#include "engine/checkpoint/quantized_tensors.hpp"
#include "engine/checkpoint/safetensors_writer.hpp"
#include "engine/quantize/model_quantizer.hpp"
#include "engine/tokenizer/tokenizer.hpp"
#include "model/folder/model_config.hpp"
#include "model/folder/model_files.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/quantized_folders.hpp"
#include "tests/engine/support/shipped_text.hpp"
#include "tests/engine/support/stepper.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

namespace fs = std::filesystem;

constexpr float kLogitsTolerance = 1e-4F;  // of F32 sums, as for the models that are not quantized

std::vector<Logits> run_prefill(const ModelWeights& weights, const std::vector<TokenId>& tokens,
                                ActivationMode activations) {
  Stepper stepper(weights, {.activations = activations});
  return stepper.step({{0, Phase::prefill, tokens}});
}

// What is in the folder is what was quantized.
void require_same_integers(const QuantizedModel& model, const fs::path& folder) {
  const auto config = read_quantization_config(folder);
  REQUIRE(config);
  const Checkpoint checkpoint(folder);
  for (const QuantizedModule& module : model.modules) {
    const kernels::QuantizedMatrix& matrix = module.matrix;
    const auto read = read_quantized_matrix(checkpoint, {module.name, matrix.rows, matrix.columns}, *config);
    REQUIRE(read.q == matrix.q);
    REQUIRE(read.zeros == matrix.zeros);
    REQUIRE(read.scales == matrix.scales);
    REQUIRE(read.g_idx == matrix.g_idx);
  }
}

}  // namespace

TEST_CASE("checkpoints of AutoGPTQ, AutoAWQ and dculab give the logits and greedy tokens of transformers") {
  for (const char* variant :
       {"int4_desc_act", "int4_v2", "int3", "int2", "int8_channel", "awq", "dculab_int4", "dculab_int8"}) {
    const GoldenModel golden("../gptq/" + std::string(variant));
    INFO(variant);
    REQUIRE(golden.prompts().size() == 3);
    const ModelWeights weights = load_weights(golden.folder());
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
        for (std::size_t id = 0; token == 0 && id < vocab_size; ++id)
          REQUIRE(std::fabs(rows[i][id] - expected[id]) <= kLogitsTolerance);
        feeds[i] = {static_cast<SequenceId>(i), Phase::decode, {best_token(rows[i])}};
      }
    }
  }
}

TEST_CASE("what is quantized is read back with the same integers, in either format") {
  const fs::path source = kGoldenFolder / "mha";
  const ModelWeights weights = load_weights(source);
  const std::vector<TokenId> tokens = random_tokens(300, weights.shape.vocab_size);
  for (const auto format : {QuantizedFormat::gptq, QuantizedFormat::gptq_v2})
    for (const int bits : {2, 4, 8})
      for (const bool desc_act : {false, true}) {
        QuantizeOptions options = options_of(QuantizationMethod::gptq, bits, 16, format);
        options.config.desc_act = desc_act;
        REQUIRE(problems(options, weights).empty());
        const QuantizedModel model = quantize_model(weights, tokens, options, {});
        REQUIRE(model.modules.size() == 14);
        const TemporaryFolder folder;
        write_quantized_model(to_write(model, options, source), folder.path("out"));
        const auto config = read_quantization_config(folder.path("out"));
        REQUIRE(config);
        REQUIRE((config->bits == bits && config->group_size == 16 && config->desc_act == desc_act));
        require_same_integers(model, folder.path("out"));
        const ModelWeights loaded = load_weights(folder.path("out"));
        REQUIRE(loaded.shape.layer_format() == WeightFormat{bits == 8 ? Dtype::int8 : Dtype::int4, 16});
        const float logit = run_prefill(loaded, {5, 6, 7}, ActivationMode::exact)[0][0];
        REQUIRE(std::isfinite(logit));
      }
}

TEST_CASE("3 bits, which straddle words, are read back with the same integers, in either format") {
  const ModelWeights weights = load_weights(kShippedModel);
  for (const auto format : {QuantizedFormat::gptq, QuantizedFormat::gptq_v2}) {
    const QuantizeOptions options = options_of(QuantizationMethod::rtn, 3, 128, format);
    const QuantizedModel model = quantize_model(weights, {}, options, {});
    const TemporaryFolder folder;
    write_quantized_model(to_write(model, options, kShippedModel), folder.path("out"));
    require_same_integers(model, folder.path("out"));
    REQUIRE(load_weights(folder.path("out")).shape.layer_format() == WeightFormat{Dtype::int4, 128});
  }
}

TEST_CASE("int8 methods stay close to the model, with 8-bit activations too", "[once]") {
  // A trained model: in a random one, errors may grow from layer to layer.
  const fs::path source = kShippedModel;
  const ModelWeights weights = load_weights(source);
  const std::vector<TokenId> tokens = shipped_tokens("calibration.txt", 1024);
  const std::vector<TokenId> prompt(tokens.begin(), tokens.begin() + 30);
  const Logits expected = run_prefill(weights, prompt, ActivationMode::exact)[0];
  double norm = 0;
  for (const float logit : expected) norm += static_cast<double>(logit) * logit;
  for (const auto method :
       {QuantizationMethod::absmax, QuantizationMethod::zero_point, QuantizationMethod::smooth_quant}) {
    const QuantizeOptions options = options_of(method, 8, -1, QuantizedFormat::gptq);
    REQUIRE(problems(options, weights).empty());
    const QuantizedModel model = quantize_model(weights, tokens, options, {});
    REQUIRE(model.changed.size() == (method == QuantizationMethod::smooth_quant ? 8 : 0));
    const TemporaryFolder folder;
    write_quantized_model(to_write(model, options, source), folder.path("out"));
    for (const ActivationMode mode : {ActivationMode::exact, ActivationMode::int8}) {
      const Logits actual = run_prefill(load_weights(folder.path("out")), prompt, mode)[0];
      double error = 0;
      for (std::size_t i = 0; i < actual.size(); ++i)
        error += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
      INFO(name(method) << ", error " << std::sqrt(error / norm));
      REQUIRE(std::sqrt(error / norm) < 0.05);  // 8 bits: steps of 1/127, two of them in a product, four layers
    }
  }
}

TEST_CASE("GPTQ's output error is within 2 % of AutoGPTQ's on the shipped model's first layer", "[once]") {
  ModelWeights weights = load_weights(kShippedModel);
  weights.layers.resize(1);
  weights.shape.layers.assign(1, 0);
  const std::vector<TokenId> tokens = shipped_tokens("calibration.txt", 1024);
  std::ifstream file(fs::path(DCULAB_SOURCE_DIR) / "tests/golden/gptq/shipped_layer.csv");
  std::string line;
  std::getline(file, line);
  std::map<std::tuple<std::string, int, int>, double> expected;  // by module, bits, desc_act
  while (std::getline(file, line)) {
    std::ranges::replace(line, ',', ' ');
    std::istringstream fields(line);
    std::string module;
    int bits = 0, desc_act = 0;
    double error = 0;
    REQUIRE(fields >> module >> bits >> desc_act >> error);
    expected[{module, bits, desc_act}] = error;
  }
  REQUIRE(expected.size() == 28);
  std::size_t compared = 0;
  for (const int bits : {3, 4})
    for (const int desc_act : {0, 1}) {
      QuantizeOptions options = options_of(QuantizationMethod::gptq, bits, 128, QuantizedFormat::gptq_v2);
      options.config.desc_act = desc_act == 1;
      options.true_sequential = false;  // so that all of the layer's inputs are those of the unquantized model
      for (const QuantizedModule& module : quantize_model(weights, tokens, options, {}).modules) {
        const auto reference = expected.find({module.name, bits, desc_act});
        if (reference == expected.end()) continue;
        INFO(module.name << ", " << bits << " bits, desc_act " << desc_act);
        CHECK_THAT(module.relative_error, WithinRel(reference->second, 0.02));
        ++compared;
      }
    }
  REQUIRE(compared == expected.size());
}

TEST_CASE("GPTQ beats rounding to nearest on every layer of the shipped model at 4 and 3 bits", "[once]") {
  const ModelWeights weights = load_weights(kShippedModel);
  const std::vector<TokenId> tokens = shipped_tokens("calibration.txt", 1024);
  for (const int bits : {4, 3}) {
    QuantizeOptions options = options_of(QuantizationMethod::gptq, bits, 128, QuantizedFormat::gptq);
    options.true_sequential = false;
    const QuantizedModel better = quantize_model(weights, tokens, options, {});
    options.method = QuantizationMethod::rtn;
    const QuantizedModel nearest = quantize_model(weights, tokens, options, {});
    for (std::size_t i = 0; i < better.modules.size(); ++i) {
      INFO(bits << " bits, " << better.modules[i].name);
      CHECK(better.modules[i].relative_error < nearest.modules[i].relative_error);
    }
  }
}

TEST_CASE("options that cannot be are refused with what is wrong") {
  const ModelWeights weights = load_weights(kGoldenFolder / "mha");
  const auto first = [&](const QuantizeOptions& options) {
    const auto found = problems(options, weights);
    return found.empty() ? std::string("none") : found.front();
  };
  const auto gptq = [](int bits, int group) {
    return options_of(QuantizationMethod::gptq, bits, group, QuantizedFormat::gptq);
  };
  CHECK_THAT(first(gptq(5, 16)), ContainsSubstring("--bits must be 2, 3, 4 or 8"));
  CHECK_THAT(first(gptq(4, 12)), ContainsSubstring("--group-size must be a multiple of 8"));
  CHECK_THAT(first(gptq(4, 128)), ContainsSubstring("q_proj: groups of 128 do not divide its 32 in-features"));
  CHECK_THAT(first(gptq(3, 16)), ContainsSubstring("multiples of 32"));
  CHECK_THAT(first(options_of(QuantizationMethod::absmax, 4, -1, QuantizedFormat::gptq)),
             ContainsSubstring("absmax has 8 bits and a scale per row"));
  REQUIRE_THROWS_WITH(quantize_model(weights, {}, gptq(4, 16), {}), ContainsSubstring("needs calibration text"));
  const ModelWeights quantized = load_weights(kGoldenFolder / "../gptq/int4_v2");
  REQUIRE_THAT(problems(gptq(4, 32), quantized).front(), ContainsSubstring("quantized already"));
}

TEST_CASE("packed integers: every width comes back from a stream that strides over words") {
  for (const int bits : {2, 3, 4, 8}) {
    constexpr std::size_t kStride = 3, kCount = 64;
    std::vector<std::uint32_t> words(kCount * 8 / 32 * kStride + kStride);
    const auto value = [bits](std::size_t i) { return static_cast<std::uint8_t>((i * 7 + 3) % (1U << bits)); };
    for (std::size_t i = 0; i < kCount; ++i) write_packed(words.data(), kStride, i, bits, value(i));
    for (std::size_t i = 0; i < kCount; ++i) REQUIRE(read_packed(words.data(), kStride, i, bits) == value(i));
    for (std::size_t i = 0; i < words.size(); ++i)
      if (i % kStride != 0) REQUIRE(words[i] == 0);
  }
}

TEST_CASE("a folder is written whole or not at all") {
  const TemporaryFolder folder;
  const fs::path full = folder.path("full");
  fs::create_directory(full);
  std::ofstream(full / "notes.txt") << "mine";
  REQUIRE_THROWS_WITH(require_new_folder(full), ContainsSubstring("exists already"));
  REQUIRE_THROWS_WITH(require_new_folder(folder.path("absent") / "out"), ContainsSubstring("cannot be created"));
  const std::vector<std::byte> bytes(8);
  const TensorToWrite tensor{"a", "F32", {2}, bytes};
  REQUIRE_THROWS_AS(write_safetensors(folder.path("x.safetensors"), {tensor, tensor}), std::invalid_argument);
  REQUIRE_THROWS_AS(write_safetensors(folder.path("x.safetensors"), {{"a", "F32", {3}, bytes}}), std::invalid_argument);
  REQUIRE_THROWS_AS(write_safetensors(folder.path("x.safetensors"), {{"__metadata__", "F32", {2}, bytes}}),
                    std::invalid_argument);
  REQUIRE(std::distance(fs::directory_iterator(folder.path("full").parent_path()), fs::directory_iterator()) == 1);
  write_safetensors(folder.path("x.safetensors"), {tensor, {"b", "F16", {4}, bytes}});
  const MappedFile file(folder.path("x.safetensors"));
  REQUIRE_THAT(
      read_model_text(folder.path("x.safetensors")),
      ContainsSubstring(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                        R"("b":{"dtype":"F16","shape":[4],"data_offsets":[8,16]}}     )"));
  const TensorTable table = read_tensor_table(file.bytes(), "x.safetensors");
  REQUIRE(table.at("a").shape == std::vector<std::int64_t>{2});
  REQUIRE(table.at("b").dtype == "F16");
}

}  // namespace dculab::engine
