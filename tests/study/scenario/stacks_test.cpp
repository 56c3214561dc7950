// Whose kernels: names of stacks and programs, and what none of their kernels serves.
#include "study/scenario/stacks.hpp"

#include <set>

#include "core/error.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/sim/models.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

sim::Machine running(const std::string& machine, const std::string& stack) {
  sim::Machine result = resolve_machine(machine);
  result.stack = resolve_stack(stack, result);
  return result;
}

TEST_CASE("every shipped stack reads, is named like its file, and offers kernels that exist for its devices") {
  std::set<std::string> names;
  for (const sim::Stack& stack : shipped_stacks()) {
    CAPTURE(stack.name);
    CHECK(names.insert(stack.name).second);
    CHECK_FALSE(stack.description.empty());
    CHECK(stack.kernels.attention_decode.empty() == (stack.name == "dculab"));
  }
  for (const char* expected : {"dculab", "vllm-cuda", "vllm-rocm", "vllm-dtk", "vllm-0.3.3-dtk", "sglang-cuda",
                               "sglang-dtk", "llama.cpp-cuda", "llama.cpp-hip", "tensorrt-llm", "gpt-fast", "pytorch"})
    CHECK(names.contains(expected));
}

TEST_CASE("the file of our own stack says what a machine runs without one") {
  const sim::Machine machine = resolve_machine("z100");
  const sim::Stack read = resolve_stack("dculab", machine);
  CHECK(read.name == machine.stack.name);
  CHECK(read.description == machine.stack.description);
  CHECK(read.is_own());
  CHECK(read.kernels_per_op == 1);
}

TEST_CASE("a program's name chooses its youngest stack for the machine") {
  CHECK(running("k100-ai", "vllm").stack.name == "vllm-dtk");
  CHECK(running("z100", "vllm").stack.name == "vllm-0.3.3-dtk");
  CHECK(running("mi300x", "vLLM").stack.name == "vllm-rocm");
  CHECK(running("mi300x", "vllm-0.5-rocm").stack.name == "vllm-0.5-rocm");
  CHECK(running("h100-sxm", "vllm").stack.name == "vllm-cuda");
  CHECK(running("bw1000", "sglang").stack.name == "sglang-dtk");
}

TEST_CASE("a stack that there is not, or not for the machine, is refused with those that are") {
  CHECK_THROWS_WITH(running("z100", "vlm"), ContainsSubstring("no stack 'vlm'") &&
                                                ContainsSubstring("offered for z100") &&
                                                ContainsSubstring("vllm-0.3.3-dtk"));
  CHECK_THROWS_WITH(running("z100", "tensorrt-llm"),
                    ContainsSubstring("stack 'tensorrt-llm' is not for z100") && ContainsSubstring("llama.cpp-hip"));
}

TEST_CASE("what no kernel of a stack serves is refused, our own is warned of") {
  const ModelShape model = sim::test::llama_3_8b();
  const auto refused = [&model](const sim::Machine& machine, const EngineOptions& options) {
    try {
      require_served(machine, model, options);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EngineOptions options;
  options.block_size = 64;
  CHECK(refused(running("k100-ai", "vllm"), options).empty());
  options.block_size = 16;
  CHECK_THAT(refused(running("k100-ai", "vllm"), options), ContainsSubstring("it takes 64, 128"));
  options.block_size = 4;
  CHECK_THAT(refused(running("mi300x", "vllm"), options), ContainsSubstring("takes block sizes of multiples of 16"));
  options = {};
  options.kv_cache_dtype = Dtype::kivi4;
  CHECK_THAT(refused(running("h100-sxm", "vllm"), options), ContainsSubstring("kv_cache_dtype kivi4 is not served"));
  const sim::Machine own = resolve_machine("z100");
  CHECK(refused(own, options).empty());
  CHECK(unserved(own, options).size() == 1);
  options.kv_retention = {.policy = RetentionPolicy::window, .window_tokens = 64};
  options.kv_cache_dtype = Dtype::f16;
  CHECK(unserved(own, options).size() == 1);
  CHECK_THAT(refused(running("z100", "vllm"), options), ContainsSubstring("its kernels keep every token"));
}

}  // namespace
}  // namespace dculab::study
