// Whose kernels: names of stacks and programs, and what none of their kernels serves.
#include "study/scenario/stacks.hpp"
#include "study/scenario/served.hpp"

#include <set>

#include "core/error.hpp"
#include "model/attention_work.hpp"
#include "model/plan_step.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/step_question.hpp"
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

TEST_CASE("every shipped stack runs a dense model in both phases as its file has it") {
  std::set<std::string> seen;
  for (const std::string& name : machine_names())
    for (const sim::Stack& stack : shipped_stacks()) {
      const sim::Machine machine = resolve_machine(name);
      if (!sim::is_for(stack, machine) || !seen.insert(stack.name).second) continue;
      for (const char* phase : {"prefill", "decode"}) {
        CAPTURE(name, stack.name, phase);
        StepQuestion question;
        question.model = "llama-3-8b";
        question.machine = name;
        question.stack = stack.name;
        question.phase = phase;
        const config::Scenario scenario = step_scenario(question);
        const sim::Machine running = resolve_machine(scenario, name);
        CHECK_NOTHROW(resolve_options(scenario, resolve_model(scenario), running));
      }
    }
  CHECK(seen.size() == shipped_stacks().size());
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
  CHECK_THROWS_WITH(running("z100", "mystery"),
                    ContainsSubstring("no stack 'mystery'; offered for z100: ") && ContainsSubstring("vllm-0.3.3-dtk"));
  CHECK_THROWS_WITH(running("z100", "vlm"), ContainsSubstring("no stack 'vlm'; did you mean 'vLLM'?"));
  CHECK_THROWS_WITH(running("z100", "tensorrt-llm"),
                    ContainsSubstring("stack 'tensorrt-llm' is not for z100") && ContainsSubstring("llama.cpp-hip"));
}

// What require_served says; empty where it passes.
std::string refused(const sim::Machine& machine, const ModelShape& model, const EngineOptions& options) {
  try {
    require_served(machine, model, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("what no kernel of a stack serves is refused, our own is warned of") {
  const ModelShape model = sim::test::llama_3_8b();
  EngineOptions options;
  options.block_size = 64;
  CHECK(refused(running("k100-ai", "vllm"), model, options).empty());
  options.block_size = 16;
  CHECK_THAT(refused(running("k100-ai", "vllm"), model, options), ContainsSubstring("it takes 64, 128"));
  options.block_size = 4;
  CHECK_THAT(refused(running("mi300x", "vllm"), model, options),
             ContainsSubstring("takes block sizes of multiples of 16"));
  options = {};
  options.kv_cache_dtype = Dtype::kivi4;
  CHECK_THAT(refused(running("h100-sxm", "vllm"), model, options),
             ContainsSubstring("kv_cache_dtype kivi4 is not served"));
  const sim::Machine own = resolve_machine("z100");
  CHECK(unserved(own, model, options).empty());
  options.kv_cache_dtype = Dtype::kvquant4;
  CHECK(refused(own, model, options).empty());
  CHECK(unserved(own, model, options).size() == 1);
  options.kv_retention = {.policy = RetentionPolicy::window, .window_tokens = 64};
  options.kv_cache_dtype = Dtype::f16;
  CHECK(unserved(own, model, options).empty());
  CHECK_THAT(refused(running("z100", "vllm"), model, options), ContainsSubstring("its kernels keep every token"));
}

EngineOptions stored_in(WeightFormat weights, ActivationMode activations = ActivationMode::exact) {
  EngineOptions options;
  options.block_size = 64;
  options.weights = weights;
  options.activations = activations;
  return options;
}

TEST_CASE("weights that no product of a stack takes are refused with what each takes") {
  const ModelShape model = sim::test::llama_3_8b();
  const WeightFormat int3{Dtype::int3, 128}, int4{Dtype::int4, 128}, rows{Dtype::int8, -1}, fp8{Dtype::fp8_e4m3, 0};
  CHECK_THAT(refused(running("k100-ai", "pytorch"), model, stored_in(int3)),
             ContainsSubstring("no kernel serves qkv_proj of ") &&
                 ContainsSubstring("with weights of gptq-int3: cublas is not for this device; hipblaslt takes weights "
                                   "of f32, f16, bf16, int8 (one scale a row) with activations of int8"));
  CHECK_THAT(refused(running("k100-ai", "vllm"), model, stored_in(int3)), ContainsSubstring("weights int3"));
  CHECK(refused(running("k100-ai", "vllm"), model, stored_in(int4)).empty());
  CHECK(refused(running("z100", "llama.cpp"), model, stored_in(int3)).empty());
  CHECK(refused(running("k100-ai", "pytorch"), model, stored_in(rows, ActivationMode::int8)).empty());
  CHECK_FALSE(refused(running("k100-ai", "pytorch"), model, stored_in(rows)).empty());
  CHECK_FALSE(
      refused(running("k100-ai", "pytorch"), model, stored_in({Dtype::int8, 128}, ActivationMode::int8)).empty());
  CHECK(refused(running("h100-sxm", "pytorch"), model, stored_in(fp8)).empty());
  CHECK_THAT(refused(running("a100-80gb-sxm", "pytorch"), model, stored_in(fp8)), ContainsSubstring("fp8_e4m3"));
  CHECK(refused(running("a100-80gb-sxm", "vllm"), model, stored_in(fp8)).empty());
  const WeightFormat mxfp4{Dtype::mxfp4, 32, ScaleFormat::e8m0}, nf4{Dtype::nf4, 64, ScaleFormat::f32};
  CHECK(refused(running("h100-sxm", "vllm"), model, stored_in(mxfp4)).empty());
  CHECK_THAT(refused(running("h100-sxm", "vllm"), model, stored_in(nf4)),
             ContainsSubstring("with weights of nf4: vllm_marlin takes weights of int8, int4, mxfp4"));
  CHECK_THAT(refused(running("h100-sxm", "vllm-0.5-cuda"), model, stored_in(mxfp4)),
             ContainsSubstring("weights mxfp4"));
}

TEST_CASE("attention is asked for in the phases of the question alone, and weights have a way out") {
  ModelShape model = sim::test::llama_3_8b();
  model.kinds[0].gqa().heads = {32, 8, 324};
  const sim::Machine machine = running("h100-sxm", "vllm");
  const auto refused_in = [&](const std::vector<Phase>& phases) {
    try {
      require_served(machine, model, stored_in({Dtype::bf16, 0}), phases);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused_in({Phase::decode}), ContainsSubstring("no kernel serves decode attention"));
  CHECK_THAT(refused_in({Phase::prefill, Phase::decode}), ContainsSubstring("no kernel serves prefill attention"));
  CHECK(refused_in({}).empty());
  CHECK_THAT(refused(running("k100-ai", "vllm"), sim::test::llama_3_8b(), stored_in({Dtype::fp8_e4m3, 0})),
             ContainsSubstring("; --weights (weights in a scenario) predicts the model with others"));
}

TEST_CASE("weights that our own GPU kernels do not take are said") {
  const ModelShape model = sim::test::llama_3_8b();
  const sim::Machine own = resolve_machine("z100");
  for (const Dtype dtype : {Dtype::int2, Dtype::int3}) {
    REQUIRE(unserved(own, model, stored_in({dtype, 0})).size() == 1);
    CHECK_THAT(unserved(own, model, stored_in({dtype, 0})).front(),
               ContainsSubstring("no kernel of dculab multiplies weights of " + std::string(name(dtype))) &&
                   ContainsSubstring("takes weights of f32, f16, bf16, fp8_e4m3, int4, int8 (one scale a row) with"));
  }
  CHECK(unserved(own, model, stored_in({Dtype::int4, 128})).empty());
  CHECK(unserved(own, model, stored_in({Dtype::fp8_e4m3, 0})).empty());
  CHECK(unserved(own, model, stored_in({Dtype::int8, -1}, ActivationMode::int8)).empty());
  CHECK(unserved(own, model, stored_in({Dtype::int8, -1})).size() == 1);
  const sim::Machine cpu = resolve_machine("x86-server");
  CHECK(unserved(cpu, model, stored_in({Dtype::int3, 128})).empty());
  CHECK(unserved(cpu, model, stored_in({Dtype::fp8_e4m3, 0})).empty());
  CHECK_THAT(unserved(cpu, model, stored_in({Dtype::mxfp4, 32, ScaleFormat::e8m0})).front(),
             ContainsSubstring("no kernel of dculab multiplies weights of mxfp4: predicted as if one did; dculab_cpu"));
}

TEST_CASE("latents are told where no kernel of ours takes their sizes, weights or cache") {
  ModelShape model = sim::test::llama_3_8b();
  model.kinds[0].attention = Mla{
      .num_attention_heads = 16, .kv_lora_rank = 64, .qk_nope_head_dim = 32, .qk_rope_head_dim = 16, .v_head_dim = 32};
  const EngineOptions options = stored_in({});
  CHECK(unserved(resolve_machine("z100"), model, options).empty());
  CHECK(unserved(resolve_machine("x86-server"), model, options).empty());
  CHECK(unserved(running("h100-sxm", "vllm"), model, options).empty());
  REQUIRE(unserved(resolve_machine("z100"), model, stored_in({Dtype::int4, 32})).size() == 1);
  CHECK_THAT(unserved(resolve_machine("z100"), model, stored_in({Dtype::int4, 32})).front(),
             ContainsSubstring("attends over latents of such sizes, weights or cache on a GPU"));
  std::get<Mla>(model.kinds[0].attention).v_head_dim = 36;  // as the engine refuses
  CHECK(unserved(resolve_machine("z100"), model, options).size() == 1);
  std::get<Mla>(model.kinds[0].attention).v_head_dim = 256;
  CHECK(unserved(resolve_machine("z100"), model, options).size() == 1);
  CHECK(unserved(resolve_machine("x86-server"), model, options).empty());
}

TEST_CASE("ALiBi goes to a kernel that takes slopes, is refused without one, and reported where this is not known") {
  ModelShape model = sim::test::llama_3_8b();
  model.kinds[0].gqa().position.kind = PositionKind::alibi;
  const EngineOptions options = stored_in({});
  const auto decode_of = [&model, &options](const sim::Machine& machine) {
    const Op op = plan_attention(model.kinds[0].gqa(), options, uniform_batch(Phase::decode, 1, 2), Phase::decode);
    return lower::attention_kernel_of(machine.stack.kernels, op, machine).name;
  };
  CHECK(decode_of(running("h100-sxm", "vllm")) == "flash_attention_2");
  CHECK(refused(running("h100-sxm", "vllm"), model, options).empty());
  CHECK_THAT(refused(running("h100-sxm", "sglang"), model, options), ContainsSubstring("ALiBi"));
  CHECK(unserved(running("h100-sxm", "vllm"), model, options).empty());
  REQUIRE(unserved(running("k100-ai", "vllm"), model, options).size() == 1);
  CHECK_THAT(unserved(running("k100-ai", "vllm"), model, options).front(),
             ContainsSubstring("whether dtk_flash_attention takes ALiBi's slopes"));
}

TEST_CASE("a soft cap of attention scores is said not to be predicted, on every stack and on a CPU") {
  ModelShape model = sim::test::llama_3_8b();
  model.kinds[0].gqa().logit_soft_cap = 50;
  for (const sim::Machine& machine :
       {resolve_machine("z100"), running("h100-sxm", "vllm"), resolve_machine("x86-server")}) {
    REQUIRE(unserved(machine, model, stored_in({})).size() == 1);
    CHECK_THAT(unserved(machine, model, stored_in({})).front(), ContainsSubstring("soft cap"));
  }
}

TEST_CASE("vLLM of today is for MI200 and newer, older cards have the older one") {
  CHECK(running("mi50", "vllm").stack.name == "vllm-0.5-rocm");
  CHECK(running("mi100", "vllm").stack.name == "vllm-0.5-rocm");
  CHECK(running("mi210", "vllm").stack.name == "vllm-rocm");
  CHECK_THROWS_WITH(running("mi50", "vllm-rocm"),
                    ContainsSubstring("not for mi50") && ContainsSubstring("vllm-0.5-rocm, vllm-triton"));
}

TEST_CASE("what kernels reach by a name that no stack has is told") {
  sim::Machine machine = resolve_machine("k100-ai");
  CHECK(idle_reached(machine).empty());
  for (const char* name : {"all", "dculab", "vLLM", "vllm-dtk", "llama.cpp-hip", "vlm"}) machine.reached[name] = {};
  REQUIRE(idle_reached(machine).size() == 1);
  CHECK_THAT(idle_reached(machine).front(), ContainsSubstring("'vlm'"));
  machine.stack.name = "vlm";  // a file of the user's own
  CHECK(idle_reached(machine).empty());
}

}  // namespace
}  // namespace dculab::study
