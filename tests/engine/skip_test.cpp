// The skip set in the engine: prompts with padding get the texts of prompts without, and requests that ask the same
// share what one of them has written, with the kernels of the CPU and of the GPU.
#include <filesystem>

#include "core/error.hpp"
#include "engine/generate/generator.hpp"
#include "engine/tokenizer/pad_token.hpp"
#include "tests/engine/support/generated_texts.hpp"
#include "tests/files/temporary_folder.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

// Its heads are served by the GPU kernels too. Token 0 is <|endoftext|>, which ends texts and is not named as padding.
const std::filesystem::path kFolder = std::filesystem::path(DCULAB_SOURCE_DIR) / "scenarios/models/dculab-tiny-draft";
constexpr const char* kPad = "<|endoftext|>";

struct SkipCase {
  DeviceKind device;
  Dtype kv_cache_dtype;
  int block_size;
};

constexpr SkipCase kCases[] = {{DeviceKind::cpu, Dtype::f32, 4},      {DeviceKind::cpu, Dtype::f16, 16},
                               {DeviceKind::cpu, Dtype::fp8_e4m3, 1}, {DeviceKind::cpu, Dtype::int8, 4},
                               {DeviceKind::host_gpu, Dtype::f16, 4}, {DeviceKind::host_gpu, Dtype::fp8_e4m3, 16}};

GeneratorOptions skip_options(const SkipCase& each) {
  GeneratorOptions options;
  options.device.kind = each.device;
  options.num_threads = 2;
  options.engine.kv_cache_dtype = each.kv_cache_dtype;
  options.engine.block_size = each.block_size;
  options.engine.max_num_seqs = 4;
  options.engine.max_num_batched_tokens = 64;
  return options;
}

std::string label_of(const SkipCase& each) {
  return std::string(each.device == DeviceKind::cpu ? "cpu" : "host-gpu") + ", " +
         std::string(name(each.kv_cache_dtype)) + ", blocks of " + std::to_string(each.block_size);
}

int token_count(const SkipCase& each) { return each.device == DeviceKind::cpu ? 12 : 3; }

}  // namespace

TEST_CASE("a padded prompt gets the text of the prompt without padding", "[skip][gpu]") {
  const std::vector<std::string> prompts{"Once upon a time", "The dog ran to the park, and", "Tom"};
  for (const SkipCase& each : kCases) {
    INFO(label_of(each));
    std::vector<TextRequest> bare, padded;
    int pads = 0;
    for (const std::string& prompt : prompts) {
      bare.push_back({.prompt = prompt, .max_tokens = token_count(each), .eos = EosHandling::ignore});
      padded.push_back(bare.back());
      for (std::size_t pad = prompt.size(); pad < 30; pad += 5, ++pads) padded.back().prompt.insert(0, kPad);
    }
    padded.back().prompt += kPad;  // behind it as well
    ++pads;
    GeneratorOptions options = skip_options(each);
    const Generation expected = Generator(kFolder, options).generate(bare);
    options.engine.kv_skip = {.padding = true, .pad_token_id = 0};
    Generator generator(kFolder, options);
    const Generation skipped = generator.generate(padded);
    CHECK(texts_of(skipped) == texts_of(expected));
    CHECK(skipped.report.num_padding_tokens == pads);
    CHECK(skipped.report.num_prompt_tokens == expected.report.num_prompt_tokens);
    CHECK_THROWS_WITH(generator.generate(std::vector<TextRequest>{{.prompt = kPad}}),
                      ContainsSubstring("the prompt is nothing but padding"));
    if (each.device != DeviceKind::cpu) continue;
    options.engine.kv_skip = {};  // then they are tokens like any other
    const Generation attended = Generator(kFolder, options).generate(padded);
    CHECK(attended.report.num_prompt_tokens == expected.report.num_prompt_tokens + pads);
    CHECK(texts_of(attended) != texts_of(expected));
  }
}

TEST_CASE("requests that ask the same write it once, and each gets the text that it gets alone", "[skip][gpu]") {
  for (const SkipCase& each : kCases) {
    INFO(label_of(each));
    std::vector<TextRequest> requests;
    for (const char* prompt : {"Once upon a time there was a dog", "Tom", "Once upon a time there was a dog",
                               "Once upon a time there was a dog"})
      requests.push_back({.prompt = prompt,
                          .max_tokens = token_count(each),
                          .sampling = {.temperature = 1, .seed = requests.size()},
                          .eos = EosHandling::ignore});
    GeneratorOptions options = skip_options(each);
    const Generation plain = Generator(kFolder, options).generate(requests);
    options.engine.kv_skip.duplicate_prompts = true;
    const Generation skipped = Generator(kFolder, options).generate(requests);
    CHECK(texts_of(skipped) == texts_of(plain));
    const auto prompt = std::ssize(plain.completions.front().prompt_token_ids);
    CHECK(skipped.report.num_duplicate_tokens == 2 * prompt);
    CHECK(skipped.report.num_cached_tokens == 0);
    CHECK(skipped.report.num_prompt_tokens == plain.report.num_prompt_tokens);
  }
}

TEST_CASE("the pad token is the tokenizer's, else the model's", "[skip]") {
  const Tokenizer tokenizer = Tokenizer::load(kFolder / "tokenizer.json");
  const files::test::TemporaryFolder folder;
  CHECK_FALSE(read_pad_token(folder.path(), tokenizer));
  const KvSkip padding{.padding = true};
  CHECK_THROWS_WITH(with_pad_token(padding, folder.path(), tokenizer),
                    ContainsSubstring("names no pad token") && ContainsSubstring("give --pad-token-id"));
  CHECK(with_pad_token({.duplicate_prompts = true}, folder.path(), tokenizer) == KvSkip{.duplicate_prompts = true});
  folder.write("config.json", R"({"pad_token_id": -1})");
  CHECK_FALSE(read_pad_token(folder.path(), tokenizer));
  folder.write("config.json", R"({"pad_token_id": 5})");
  CHECK(read_pad_token(folder.path(), tokenizer) == 5);
  folder.write("generation_config.json", R"({"pad_token_id": 4})");
  CHECK(read_pad_token(folder.path(), tokenizer) == 4);
  folder.write("tokenizer_config.json", R"({"pad_token": null})");
  CHECK(read_pad_token(folder.path(), tokenizer) == 4);
  folder.write("tokenizer_config.json", R"({"pad_token": "<|endoftext|>"})");
  CHECK(read_pad_token(folder.path(), tokenizer) == 0);
  folder.write("tokenizer_config.json", R"({"pad_token": {"content": "<|endoftext|>", "lstrip": false}})");
  CHECK(with_pad_token(padding, folder.path(), tokenizer).pad_token_id == 0);
  CHECK(with_pad_token({.padding = true, .pad_token_id = 9}, folder.path(), tokenizer).pad_token_id == 9);
  folder.write("tokenizer_config.json", R"({"pad_token": "<nobody>"})");
  CHECK_THROWS_WITH(read_pad_token(folder.path(), tokenizer),
                    ContainsSubstring("tokenizer_config.json") && ContainsSubstring("is no token of tokenizer.json"));
}

}  // namespace dculab::engine
