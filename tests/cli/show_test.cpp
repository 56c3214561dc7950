// `dculab show`: every value of a machine, a stack, a model and a scenario, and where it comes from.
#include <algorithm>
#include <map>
#include <sstream>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

std::map<std::string, std::string> shown_values(const std::string& what) {
  const Json shown = run_for_json({"show", what});
  CHECK(shown.at("schema") == "dculab/show/1");
  std::map<std::string, std::string> values;
  for (const Json& each : shown.at("values")) values[each.at("key")] = each.at("value");
  return values;
}

TEST_CASE("show tells what is used where a machine file says nothing") {
  const auto h200 = shown_values("h200");
  CHECK(h200.at("memory.L1.ways") == "16");
  CHECK(h200.contains("memory.DRAM.bandwidth_per_unit"));
  CHECK(h200.at("memory.L2.outstanding") == "any number");
  CHECK(h200.at("kernel_target") == "sm_90");
  CHECK(shown_values("b200").at("kernel_target") == "none");
  CHECK(h200.at("compute_capability") == "9.0");
  CHECK(shown_values("z100").at("compute_capability") == "none");
  CHECK(h200.at("peaks.fp8_e5m2") == "as f16");
  CHECK(h200.at("network_link") == "50 GB/s");
  CHECK(shown_values("x86-server").at("peer_link") == "none");
}

TEST_CASE("show tells what a stack says, and what holds where it says nothing", "[main]") {
  std::map<std::string, std::string> values = shown_values("vllm-triton");
  CHECK(values.at("kernels.attention_decode") == "triton_mla");  // the last of the list, for latents
  CHECK(values.at("parameters.triton_unified_attention_3d.segments") == "16");
  CHECK(values.at("host.per_step") == "the machine's");
  CHECK(values.at("graphs.decode_sequences") == "512");
  check_refused({"show", "vllm-triton", "--set", "stack.kernels_per_op=2"}, {"'vllm-triton' is a stack"});
  const std::string dtk = run_dculab({"show", "vllm-dtk", "--format", "csv"}).out;
  CHECK_THAT(dtk, ContainsSubstring("takes weights of int8, int4, int3, int2; vLLM, csrc/quantization/gptq/q_gemm.cu"));
  CHECK_THAT(dtk, ContainsSubstring("ALiBi: not known; DTK flash_attn 2.8"));
  CHECK_THAT(dtk, ContainsSubstring("f32, f16, bf16, int8, int4"));
}

TEST_CASE("show wraps long texts where there is no terminal, and leaves keys whole") {
  for (const char* what : {"k100-ai", "vllm-dtk"}) {
    const std::string text = run_dculab({"show", what}).out;
    std::istringstream lines(text.substr(text.find("\n\n")));  // behind the heading
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("─")) CHECK(line.size() <= 112);
  }
  CHECK_THAT(run_dculab({"show", "vllm-dtk"}).out, ContainsSubstring("\nparameters.triton_mla.num_kv_splits "));
}

TEST_CASE("show tells every value of a machine, a model and a scenario, and where it comes from", "[main]") {
  const Json machine = run_for_json({"show", "z100"});
  for (const Json& each : machine.at("values")) {
    INFO(each.dump());
    const std::string kind = each.at("kind");
    if (each.at("key").get<std::string>().starts_with("memory."))
      CHECK((kind != "" || each.at("key") == "memory.L1.scope" || each.at("key") == "memory.L2.scope" ||
             each.at("key") == "memory.DRAM.scope"));
    if (!kind.empty()) CHECK_FALSE(each.at("source").get<std::string>().empty());
  }
  CHECK(shown_values("z100").contains("sustained.dram_bandwidth"));

  const auto model = shown_values("llama-3-8b");
  CHECK(model.at("num_key_value_heads") == "8");
  CHECK(model.at("group size") == "4");
  CHECK(model.at("rope_theta") == "500000");

  const Json scenario = run_for_json({"show", "llama3_on_dcu", "--set", "kv_cache.block_size=64"});
  const auto overridden = [](const Json& each) { return each.at("source") == "--set kv_cache.block_size=64"; };
  CHECK(std::count_if(scenario.at("values").begin(), scenario.at("values").end(), overridden) == 1);
  const auto values = shown_values("llama3_on_dcu");
  CHECK(values.at("kv_cache.block_size") == "16");
  CHECK(values.at("engine.activation_dtype") == "f16");
  CHECK(shown_values("serving/chat_on_cpu").at("engine.activation_dtype") == "f32");
  check_refused({"show", "z100", "--set", "kv_cache.block_size=64"}, {"--set", "'z100' is a machine"});
  check_refused({"show", "llama-3-8b", "--set", "weights=f16"}, {"--set", "'llama-3-8b' is a model"});
}

}  // namespace
}  // namespace dculab::cli::test
