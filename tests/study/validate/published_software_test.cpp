// Names of published programs and libraries, and what they are priced as.
#include "study/validate/published_software.hpp"

#include <algorithm>

#include "core/letter_case.hpp"
#include "lower/kernel_library.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

template <class Kernel>
bool is_listed(std::span<const Kernel* const> all, std::string_view name) {
  return name.empty() || std::ranges::find(all, name, &Kernel::name) != all.end();
}

TEST_CASE("the table names stacks and kernels that there are") {
  const std::vector<sim::Stack> stacks = shipped_stacks();
  for (const PublishedSoftware& row : published_software()) {
    CAPTURE(row.begins);
    CHECK(lower_case(std::string(row.begins)) == row.begins);
    CHECK(std::ranges::count(published_software(), row.begins, &PublishedSoftware::begins) == 1);
    for (const std::string_view name : row.stacks)
      CHECK((name.empty() || std::ranges::find(stacks, name, &sim::Stack::name) != stacks.end()));
    CHECK(is_listed(lower::matmul_kernels(), row.kernels.matmul));
    CHECK(is_listed(lower::attention_kernels(), row.kernels.attention_prefill));
    CHECK(is_listed(lower::attention_kernels(), row.kernels.attention_decode));
    CHECK(is_listed(lower::collective_kernels(), row.kernels.all_reduce));
    CHECK(is_listed(lower::expert_kernels(), row.kernels.experts));
  }
}

TEST_CASE("the longest row that has something for the machine counts") {
  const std::vector<sim::Stack> stacks = shipped_stacks();
  const auto stack_of = [&stacks](const char* software, const char* machine) {
    const sim::Machine file = resolve_machine(machine);
    return as_run_by(find_software(software, file, stacks), file, stacks).stack.name;
  };
  CHECK(stack_of("vLLM", "mi300x") == "vllm-0.5-rocm");
  CHECK(stack_of("vLLM", "a100-40gb") == "vllm-0.5-cuda");
  CHECK(stack_of("vLLM 0.14.0 vllm_flash_attn", "h100-sxm") == "vllm-cuda");
  CHECK(stack_of("VLLM (rocm dev docker)", "mi300x") == "vllm-rocm");
  CHECK(stack_of("vLLM 0.18.1+das tuned", "bw1000") == "vllm-0.18-dtk");
  CHECK(stack_of("vLLM 0.18.1+das tuned", "mi300x") == "vllm-rocm");
  CHECK(stack_of("vLLM", "h100-sxm") == "vllm-0.5-cuda");
  CHECK(stack_of("vLLM 0.20.1", "h100-sxm") == "vllm-cuda");
  CHECK(stack_of("vLLM 0.2.7", "h100-sxm") == "vllm-0.5-cuda");
  CHECK(stack_of("vLLM 0.6.1", "mi300x") == "vllm-0.5-rocm");
  CHECK(stack_of("vLLM 0.6.3", "mi300x") == "vllm-rocm");
  CHECK(stack_of("vLLM", "z100") == "vllm-0.3.3-dtk");
  CHECK(stack_of("", "h100-sxm") == "unnamed kernels");
  CHECK(stack_of("PyTorch 2", "h100-sxm") == "pytorch");
  CHECK(stack_of("vidur", "h100-sxm") == "vidur kernels");
  CHECK(stack_of("rocBLAS/Tensile HHS_BH TN", "mi50") == "rocBLAS kernels");
  CHECK(stack_of("hipBLASLt HHS NN", "mi250x-gcd") == "hipBLASLt kernels");
  CHECK_THROWS_WITH(stack_of("SGLang", "mi300x"), ContainsSubstring("SGLang has no stack for mi300x"));
  CHECK_THROWS_WITH(stack_of("Another 2", "mi300x"),
                    ContainsSubstring("nothing is known of the kernels of 'Another 2'"));
  CHECK(engine_of("llama.cpp-gfx906 repack") == "llama.cpp");
  CHECK(engine_of("Another 2") == "another");
}

}  // namespace
}  // namespace dculab::study
