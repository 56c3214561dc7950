// The whole engine: text in, text out, against transformers and against itself.
#include "engine/generate/generator.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/error.hpp"
#include "model/kv/kv_bytes.hpp"
#include "tests/engine/support/golden_model.hpp"
#include "tests/engine/support/shipped_text.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

const std::filesystem::path kTextFolder = kGoldenFolder / "text";

GeneratorOptions exact_options() {
  GeneratorOptions options;
  options.engine.kv_cache_dtype = Dtype::f32;
  options.num_threads = 2;
  return options;
}

TextRequest golden_request() { return {.prompt = text_of(kTextFolder / "prompt.txt"), .max_tokens = 24}; }

// Different lengths, temperatures and seeds.
std::vector<TextRequest> varied_requests() {
  const std::vector<std::string> prompts{"once upon a time", "a", "the machine counted the words of a story",
                                         "small words again and again and again", "machine"};
  std::vector<TextRequest> requests;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    TextRequest request{.prompt = prompts[i], .max_tokens = 10 + 7 * static_cast<int>(i)};
    if (i > 0) request.sampling = {.temperature = 0.5 * static_cast<double>(i), .top_k = 40, .top_p = 0.95, .seed = i};
    requests.push_back(request);
  }
  return requests;
}

}  // namespace

TEST_CASE("generated text and tokens are those of transformers") {
  const GoldenModel golden("text");
  Generator generator(kTextFolder, exact_options());
  const std::vector<TextRequest> requests{golden_request()};
  std::string streamed;
  const Generation generation =
      generator.generate(requests, [&](std::size_t, std::string_view text) { streamed += text; });
  const Completion& completion = generation.completions.at(0);
  REQUIRE(completion.prompt_token_ids == golden.read<TokenId>("prompt.text"));
  REQUIRE(completion.token_ids == golden.read<TokenId>("greedy.text"));
  REQUIRE(completion.text == text_of(kTextFolder / "expected.txt"));
  REQUIRE(completion.finish_reason == FinishReason::length);
  REQUIRE(streamed == completion.text);
  REQUIRE(generation.report.num_generated_tokens == 24);
}

TEST_CASE("what a request gets does not depend on the others, on chunks or on preemption") {
  const std::vector<TextRequest> requests = varied_requests();
  Generator plain(kTextFolder, exact_options());
  std::vector<std::vector<TokenId>> alone;
  for (const TextRequest& request : requests)
    alone.push_back(plain.generate(std::span(&request, 1)).completions.at(0).token_ids);

  GeneratorOptions chunked = exact_options();
  chunked.engine.max_num_batched_tokens = 8;
  chunked.engine.block_size = 4;
  GeneratorOptions cramped = exact_options();
  cramped.engine.block_size = 4;
  cramped.kv_cache_memory = kv_bytes_per_token(plain.shape(), Dtype::f32) * 4 * 22;
  GeneratorOptions swapping = cramped, cached = cramped;
  swapping.engine.preemption_mode = cached.engine.preemption_mode = PreemptionMode::swap;
  swapping.engine.swap_space = cached.engine.swap_space = 100 * kv_bytes_per_token(plain.shape(), Dtype::f32) * 4;
  cached.engine.enable_prefix_caching = true;
  for (const GeneratorOptions& options : {exact_options(), chunked, cramped, swapping, cached}) {
    Generator generator(kTextFolder, options);
    CHECK(generator.executor().kv_cache().num_host_blocks ==
          (options.engine.preemption_mode == PreemptionMode::swap ? 100 : 0));
    const Generation together = generator.generate(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      INFO("request " << i);
      REQUIRE(together.completions[i].token_ids == alone[i]);
    }
    CHECK((together.report.num_preemptions > 0) == options.kv_cache_memory.has_value());
  }
}

TEST_CASE("prefix caching changes no text and finds what was computed") {
  std::vector<TextRequest> requests = varied_requests();
  requests.push_back(requests[2]);
  requests[2].prompt += " and small words";
  requests.push_back(requests[2]);
  Generator plain(kTextFolder, exact_options());
  const Generation expected = plain.generate(requests);
  CHECK(expected.report.num_cached_tokens == 0);
  GeneratorOptions options = exact_options();
  options.engine.enable_prefix_caching = true;
  options.engine.block_size = 4;
  options.engine.max_num_seqs = 1;
  Generator cached(kTextFolder, options);
  const Generation generation = cached.generate(requests);
  for (std::size_t i = 0; i < requests.size(); ++i)
    CHECK(generation.completions[i].token_ids == expected.completions[i].token_ids);
  // The last two: the beginning of the third prompt, and all of it but a token.
  const auto last = static_cast<std::int64_t>(generation.completions.back().prompt_token_ids.size());
  CHECK(generation.report.num_cached_tokens >= last - 4);
  CHECK(generation.report.requests.back().num_cached_tokens > 0);
  CHECK(generation.report.num_prompt_tokens == expected.report.num_prompt_tokens);
}

TEST_CASE("prompts that come together find what they begin with, and get the texts they get alone") {
  std::vector<TextRequest> requests;
  const std::string common = "once upon a time there was a small house in a wood, and in it lived";
  // The last is the same again: it reads the whole prompt in the step that writes it.
  for (const char* own : {" the hare", " the tortoise", " a crow", "", ""})
    requests.push_back({.prompt = common + own, .max_tokens = 8});
  for (const int block_size : {1, 4}) {
    INFO("block size " << block_size);
    GeneratorOptions options = exact_options();
    options.engine.block_size = block_size;
    Generator plain(kTextFolder, options);
    std::vector<std::vector<TokenId>> alone;
    for (const TextRequest& request : requests)
      alone.push_back(plain.generate(std::span(&request, 1)).completions.at(0).token_ids);
    options.engine.enable_prefix_caching = true;
    Generator cached(kTextFolder, options);
    const Generation together = cached.generate(requests);
    const auto prompt = std::ssize(together.completions.back().prompt_token_ids);
    for (std::size_t i = 0; i < requests.size(); ++i) CHECK(together.completions[i].token_ids == alone[i]);
    CHECK(together.report.num_steps == 8);
    CHECK(together.report.num_cached_tokens >= 4 * (prompt / block_size * block_size - block_size));
  }
}

// On a model whose heads the GPU kernels serve.
TEST_CASE("prompts that come together find what they begin with on --device host-gpu", "[gpu]") {
  const auto folder = std::filesystem::path(DCULAB_SOURCE_DIR) / "scenarios/models/dculab-tiny-draft";
  GeneratorOptions options = exact_options();
  options.device.kind = DeviceKind::host_gpu;
  options.engine.kv_cache_dtype = Dtype::f16;
  options.engine.block_size = 4;
  options.engine.max_num_seqs = 4;
  options.engine.max_num_batched_tokens = 64;
  std::vector<TextRequest> requests;
  for (const char* own : {" dog", "", ""})
    requests.push_back({.prompt = std::string("Once upon a time there was a") + own, .max_tokens = 2});
  Generator plain(folder, options);
  std::vector<std::vector<TokenId>> alone;
  for (const TextRequest& request : requests)
    alone.push_back(plain.generate(std::span(&request, 1)).completions.at(0).token_ids);
  options.engine.enable_prefix_caching = true;
  const Generation together = Generator(folder, options).generate(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) CHECK(together.completions[i].token_ids == alone[i]);
  const auto prompt = std::ssize(together.completions.back().prompt_token_ids);
  REQUIRE(prompt > 4);
  CHECK(together.report.num_steps == 2);
  CHECK(together.report.num_cached_tokens >= 2 * ((prompt - 1) / 4 * 4));  // whole blocks, and a token is computed
}

TEST_CASE("samples of a prompt are what their seeds give alone") {
  TextRequest request{.prompt = "once upon a time", .max_tokens = 12, .sampling = {.temperature = 1.0, .seed = 40}};
  Generator generator(kTextFolder, exact_options());
  std::vector<TextRequest> requests{request, request};
  requests[0].n = 3;
  requests[1].sampling.seed = 99;
  const Generation together = generator.generate(requests);
  REQUIRE(together.completions.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    TextRequest alone = request;
    alone.sampling.seed = i < 3 ? 40 + i : 99;
    CHECK(generator.generate(std::span(&alone, 1)).completions[0].token_ids == together.completions[i].token_ids);
  }
  CHECK(together.completions[0].token_ids != together.completions[1].token_ids);
  const auto prompt = static_cast<std::int64_t>(together.completions[0].prompt_token_ids.size());
  CHECK(together.report.num_prompt_tokens == 2 * prompt);  // once for all samples
  requests[0].sampling.temperature = 0;
  CHECK_THROWS_WITH(generator.generate(requests),
                    ContainsSubstring("3 samples at temperature 0 would all be the same"));
}

TEST_CASE("StreamingLLM goes on where the model's positions end") {
  GeneratorOptions options = exact_options();
  options.engine.block_size = 4;
  options.engine.kv_retention = {.policy = RetentionPolicy::sinks, .sink_tokens = 4, .window_tokens = 60};
  Generator generator(kTextFolder, options);
  REQUIRE(generator.shape().max_position_embeddings == 128);
  // 67 tokens are kept of a sequence: 17 blocks.
  CHECK(generator.executor().kv_cache().num_blocks == 256 * 17);
  std::vector<TextRequest> requests{golden_request()};
  requests[0].max_tokens = 300;
  requests[0].eos = EosHandling::ignore;
  CHECK(generator.generate(requests).completions[0].token_ids.size() == 300);
  options.engine.enable_prefix_caching = true;
  CHECK_THROWS_WITH(Generator(kTextFolder, options),
                    ContainsSubstring("cannot be combined with enable_prefix_caching"));
}

TEST_CASE("a stop token ends the text and is not part of it") {
  const auto folder = std::filesystem::temp_directory_path() / "dculab_generator_test";
  std::filesystem::remove_all(folder);
  std::filesystem::copy(kTextFolder, folder);
  const auto greedy = GoldenModel("text").read<TokenId>("greedy.text");
  const auto stop = std::find(greedy.begin(), greedy.end(), greedy[6]);  // where this token comes first
  std::ofstream(folder / "generation_config.json") << "{\"eos_token_id\": [2, " << *stop << "]}";
  Generator generator(folder, exact_options());
  std::vector<TextRequest> requests{golden_request(), golden_request()};
  requests[1].eos = EosHandling::ignore;
  const Generation generation = generator.generate(requests);
  REQUIRE(generation.completions[0].token_ids == std::vector<TokenId>(greedy.begin(), stop + 1));
  REQUIRE(generation.completions[0].finish_reason == FinishReason::stop);
  REQUIRE(generation.completions[0].text ==
          generator.tokenizer().decode(std::vector<TokenId>(greedy.begin(), stop), SpecialText::skip));
  REQUIRE(generation.completions[1].token_ids == greedy);
  std::filesystem::remove_all(folder);
}

TEST_CASE("requests that can never be served are refused before anything runs") {
  Generator generator(kTextFolder, exact_options());
  std::string long_prompt;
  for (int i = 0; i < 200; ++i) long_prompt += "q";
  std::vector<TextRequest> requests{golden_request(), {.prompt = long_prompt, .max_tokens = 5}};
  bool ran = false;
  const OnText on_text = [&](std::size_t, std::string_view) { ran = true; };
  REQUIRE_THROWS_WITH(generator.generate(requests, on_text),
                      ContainsSubstring("prompt 2: the prompt of 200 tokens with max_tokens 5 is longer than "
                                        "max_position_embeddings (128)"));
  requests[1].prompt = "caf\xe9";
  REQUIRE_THROWS_WITH(generator.generate(requests, on_text),
                      ContainsSubstring("prompt 2: the prompt is not UTF-8 from byte 4 on"));
  requests[1] = {.prompt = "a", .sampling = {.temperature = -1}};
  REQUIRE_THROWS_WITH(generator.generate(requests, on_text), ContainsSubstring("temperature must be"));
  REQUIRE_FALSE(ran);
}

TEST_CASE("a request that can never be served may cost itself") {
  Generator generator(kTextFolder, exact_options());
  std::vector<TextRequest> requests{
      golden_request(), {.prompt = "\xff", .sampling = {.temperature = 1}, .n = 2}, golden_request()};
  const Generation generation = generator.generate(requests, {}, WhenRefused::end_itself);
  REQUIRE(generation.completions.size() == 4);
  CHECK(generation.report.requests.size() == 2);
  CHECK(generation.completions[0].token_ids == generation.completions[3].token_ids);
  CHECK(generation.completions[0].refusal.empty());
  for (const std::size_t refused : {1, 2}) {
    CHECK_THAT(generation.completions[refused].refusal, ContainsSubstring("not UTF-8"));
    CHECK(generation.completions[refused].token_ids.empty());
  }
}

TEST_CASE("a generator that cannot work is refused") {
  GeneratorOptions options = exact_options();
  options.kv_cache_memory = Bytes(1e18);
  REQUIRE_THROWS_WITH(Generator(kTextFolder, options), ContainsSubstring("GiB of memory is available"));
  options.kv_cache_memory = Bytes(10);
  REQUIRE_THROWS_WITH(Generator(kTextFolder, options), ContainsSubstring("no room for a single block"));
  options = exact_options();
  options.engine.block_size = 12;
  REQUIRE_THROWS_WITH(Generator(kTextFolder, options), ContainsSubstring("block_size must be a power of two"));
  REQUIRE_THROWS_AS(Generator(kGoldenFolder / "mha", exact_options()), InputError);  // no tokenizer.json
}

TEST_CASE("the KV cache is sized for what requests can use") {
  Generator generator(kTextFolder, exact_options());
  // 256 sequences of 128 tokens in blocks of 16: less than any machine's memory.
  REQUIRE(generator.executor().kv_cache().num_blocks == 256 * 8);
  REQUIRE(generator.defaults().eos_token_ids == std::vector<TokenId>{2});
}

}  // namespace dculab::engine
