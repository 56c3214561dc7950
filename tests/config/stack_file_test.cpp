// Stack files: what is read, and what is refused with a place.
#include "config/stack_file.hpp"

#include <filesystem>

#include "config/kernel_parameters.hpp"
#include "core/error.hpp"
#include "lower/flash_attention/kernels.hpp"
#include "lower/vllm/kernels.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

constexpr const char* kStack = R"(schema: dculab/stack/1
name: mine
program: vLLM
description: "of a test"
devices: {vendor: [hygon, amd], isa: [gfx928]}
kernels:
  matmul: [skinny_gemv, rocblas]
  attention_prefill: [flash_attention_2]
  attention_decode: [vllm_paged_attention]
split: layers
kernels_per_op: {value: 3, kind: spec, source: "counted"}
unfused: {bytes_per_score: {value: 16, kind: assumed, source: "F32 scores"}}
host: {per_step: {value: 1.4 ms, kind: fitted, source: "serving rows"}}
defaults: {block_size: 64}
limits: {kv_cache_dtypes: [f16], weight_dtypes: [f16, int4], alibi: false}
caveats: {w8a8: "its products run elsewhere"}
)";

std::string text_with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("a stack file says whose kernels run, what else the program does, and where that is from") {
  const sim::Stack stack = read_stack("mine.yaml", kStack);
  CHECK(stack.name == "mine");
  CHECK(stack.devices.vendors == std::vector{lower::Vendor::hygon, lower::Vendor::amd});
  CHECK(stack.caveats.at("gptq-int8-channel") == "its products run elsewhere");
  REQUIRE(stack.kernels.matmul.size() == 2);
  CHECK(stack.kernels.matmul.front()->name == "skinny_gemv");
  CHECK(stack.kernels.attention_prefill.front() == &lower::flash_attention::kFlashAttention2);
  CHECK(stack.kernels.attention_decode.front() == &lower::vllm::kPagedAttention);
  CHECK(stack.split == sim::Split::layers);
  CHECK(stack.kernels_per_op == 3);
  CHECK(stack.kernels.unfused.bytes_per_score == 16);
  CHECK(stack.host_per_step == Seconds(1.4e-3));
  CHECK_FALSE(stack.host_per_sequence);
  CHECK(stack.defaults.block_size == 64);
  CHECK(stack.limits.kv_cache_dtypes == std::vector{Dtype::f16});
  CHECK(stack.limits.weight_dtypes == std::vector{Dtype::f16, Dtype::int4});
  CHECK_FALSE(stack.limits.alibi);
  CHECK(stack.sources.at("host.per_step") == "fitted: serving rows");
  CHECK_FALSE(stack.is_own());
}

TEST_CASE("a stack is for the devices that its file lists") {
  const sim::Stack stack = read_stack("mine.yaml", kStack);
  lower::Device device;
  device.vendor = lower::Vendor::hygon;
  CHECK_FALSE(sim::is_for(stack, device));
  device.isa = "gfx928";
  CHECK(sim::is_for(stack, device));
  device.vendor = lower::Vendor::nvidia;
  CHECK_FALSE(sim::is_for(stack, device));
}

TEST_CASE("a stack file chooses parameters of its kernels") {
  const lower::KernelParameter& size = lower::vllm::kPagedAttention.parameters.front();
  CHECK(read_stack("mine.yaml", kStack).kernels.parameters[size] == 512);
  const std::string chosen =
      text_with(kStack, "split:", "parameters: {vllm_paged_attention: {partition_size: 256}}\nsplit:");
  CHECK(read_stack("mine.yaml", chosen).kernels.parameters[size] == 256);
}

TEST_CASE("a wrong stack file is refused with what is offered") {
  const auto refused = [](const std::string& from, const std::string& to, const std::string& message) {
    CHECK_THROWS_WITH(read_stack("mine.yaml", text_with(kStack, from, to)), ContainsSubstring(message));
  };
  refused("vllm_paged_attention", "vllm_paged_atention", "did you mean 'vllm_paged_attention'?");
  refused("[flash_attention_2]", "[vllm_paged_attention]",
          "kernels.attention_prefill: vllm_paged_attention is for decode only");
  refused("[vllm_paged_attention]", "[sglang_triton_extend]",
          "kernels.attention_decode: sglang_triton_extend is for prefill only");
  refused("split: layers", "parameters: {vllm_paged_attention: {partition_size: 500}}",
          "parameters.vllm_paged_attention.partition_size: '500' is none that the kernel can have; it takes 64, 128");
  refused("split: layers", "parameters: {vllm_paged_attention: {size: 512}}",
          "no parameter of a kernel of mine; known are parameters.vllm_paged_attention.partition_size");
  refused("[flash_attention_2]", "flash_attention_2", "kernels.attention_prefill: must be a list of kernels");
  refused("value: 3", "value: 300", "at most 100");
  refused("kind: spec", "kind: guess", "spec, measured, fitted");
  refused("kernels_per_op: {value: 3, kind: spec, source: \"counted\"}", "kernels_per_op: 3", "must be {value: ...");
  refused("split: layers", "split: rows", "tensor");
  refused("w8a8:", "w8b8:", "caveats.w8b8: 'w8b8' is not a weight format");
  refused("limits:", "limit:", "unknown key");
}

TEST_CASE("a stack is written as it is read") {
  std::string with_parameters(kStack);
  with_parameters += "parameters: {vllm_paged_attention: {partition_size: 1024}}\nage: 3\n";
  for (const std::string& text : {std::string(kStack), with_parameters}) {
    const sim::Stack stack = read_stack("mine.yaml", text);
    const std::string yaml = stack_yaml(stack);
    const sim::Stack again = read_stack("again.yaml", yaml);
    CHECK(stack_yaml(again) == yaml);
    CHECK(again.sources == stack.sources);
    CHECK(again.caveats == stack.caveats);
    CHECK(again.kernels.attention_decode == stack.kernels.attention_decode);
    for (const StackParameter& each : parameters_of(stack))
      CHECK(again.kernels.parameters[*each.parameter] == stack.kernels.parameters[*each.parameter]);
    CHECK(again.host_per_step == stack.host_per_step);
    CHECK(again.devices.isas == stack.devices.isas);
    CHECK(again.split == stack.split);
    CHECK(again.age == stack.age);
    CHECK(again.defaults.block_size == 64);
    CHECK(again.limits.weight_dtypes == stack.limits.weight_dtypes);
    CHECK_FALSE(again.limits.alibi);
  }
}

TEST_CASE("every shipped stack is written as it is read") {
  int stacks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DCULAB_SOURCE_DIR "/stacks")) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path());
    const sim::Stack stack = read_stack_file(entry.path().string());
    const sim::Stack again = read_stack("again.yaml", stack_yaml(stack));
    CHECK(stack_yaml(again) == stack_yaml(stack));
    CHECK(again.sources == stack.sources);
    CHECK(again.kernels.matmul == stack.kernels.matmul);
    ++stacks;
  }
  CHECK(stacks > 10);
}

}  // namespace
}  // namespace dculab::config
