// A model folder with quantized matrices, or with what a quantized KV cache needs to know.
#include "study/measure/quantized_folder.hpp"

#include "core/error.hpp"
#include "model/folder/model_config.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/model_folders.hpp"

namespace dculab::study {
namespace {

using engine::QuantizationMethod;

TEST_CASE("bits and groups that are not asked for are those of the method") {
  const auto config = [](const WeightChoices& choices) { return quantize_options(choices, 3).config; };
  CHECK(config({.method = QuantizationMethod::gptq}).bits == 4);
  CHECK(config({.method = QuantizationMethod::gptq}).group_size == 128);
  CHECK_FALSE(config({.method = QuantizationMethod::rtn}).sym);
  CHECK(config({.method = QuantizationMethod::absmax}).bits == 8);
  CHECK(config({.method = QuantizationMethod::absmax}).group_size == -1);
  CHECK(config({.method = QuantizationMethod::absmax}).sym);
  CHECK(config({.method = QuantizationMethod::smooth_quant}).sym);
  CHECK_FALSE(config({.method = QuantizationMethod::zero_point}).sym);
  CHECK(config({.method = QuantizationMethod::rtn, .bits = 3, .group_size = 32}).bits == 3);
  CHECK_THROWS_WITH(config({.method = QuantizationMethod::zero_point, .sym = true}), ContainsSubstring("--sym"));
  const engine::QuantizeOptions once = quantize_options({.one_pass = true, .damp = 0.5}, 3);
  CHECK_FALSE(once.true_sequential);
  CHECK(once.damp == 0.5);
  CHECK(once.num_threads == 3);
}

QuantizeQuestion quantize_question(const files::test::TemporaryFolder& folder) {
  QuantizeQuestion question;
  question.model = kTextModel;
  question.threads = 1;
  question.output = folder.path("model");
  return question;
}

QuantizedAnswer quantize_quietly(const QuantizeQuestion& question) {
  return quantize_folder(question, [](const std::string&, double) {});
}

TEST_CASE("matrices are quantized, and the folder says so") {
  const files::test::TemporaryFolder folder;
  QuantizeQuestion question = quantize_question(folder);
  question.weights = WeightChoices{.method = QuantizationMethod::rtn, .group_size = 16};
  const QuantizedAnswer answer = quantize_quietly(question);
  REQUIRE(answer.model);
  CHECK(answer.model->modules.size() == 14);
  CHECK(answer.calibration_tokens == 0);
  CHECK(answer.kv_scales.empty());
  const ModelShape written = read_model_shape(folder.path("model"));
  REQUIRE(written.quantization);
  CHECK(written.quantization->dtype == Dtype::int4);
  CHECK(written.quantization->group_size == 16);
}

TEST_CASE("scales of an FP8 KV cache are found on the text, of weights that stay as they are") {
  const files::test::TemporaryFolder folder;
  QuantizeQuestion question = quantize_question(folder);
  question.kv_cache_dtype = Dtype::fp8_e4m3;
  question.calibration_file = kTextModel + "/prompt.txt";
  question.calibration_tokens = 5;
  const QuantizedAnswer answer = quantize_quietly(question);
  CHECK_FALSE(answer.model);
  CHECK(answer.calibration_tokens == 5);
  REQUIRE(answer.kv_scales.size() == 2);
  for (const KvScaleRow& row : answer.kv_scales) CHECK(row.scales.k * 224 == Approx(row.range.k));
  CHECK_FALSE(read_model_shape(folder.path("model")).quantization);
}

TEST_CASE("what cannot be quantized is refused, and no folder is left behind") {
  const files::test::TemporaryFolder folder;
  const auto refused = [&](const QuantizeQuestion& question, const std::string& why) {
    CHECK_THROWS_WITH(quantize_quietly(question), ContainsSubstring(why));
    CHECK_FALSE(std::filesystem::exists(folder.path("model")));
  };
  QuantizeQuestion question = quantize_question(folder);
  question.weights = WeightChoices{.method = QuantizationMethod::gptq, .group_size = 16};
  refused(question, "gptq needs calibration text");
  question.calibration_file = folder.write("empty.txt", "");
  refused(question, "holds no text");
  question.weights = WeightChoices{.method = QuantizationMethod::rtn, .bits = 5};
  refused(question, "--bits must be 2, 3, 4 or 8");
}

}  // namespace
}  // namespace dculab::study
