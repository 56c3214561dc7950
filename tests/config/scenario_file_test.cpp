#include "config/scenario_file.hpp"
#include "config/yaml_text.hpp"

#include <string>
#include <vector>

#include "config/weight_format_text.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

const std::string kStep = R"(schema: dculab/scenario/1
question: Which KV block size should Llama-3-8B use?
model: llama-3-8b
machine: z100
weights: gptq-int4
kv_cache: {dtype: fp8_e4m3, block_size: 16}
attention: {query_heads_per_workgroup: group, partition_tokens: 256}
engine: {max_num_seqs: 64, max_num_batched_tokens: 4096}
workload: {phase: decode, batch: 8, context_tokens: 2048}
sweep:
  kv_cache.block_size: [1, 16, 128]
  model.num_key_value_heads: [8, 32]
measure: {repeats: 5, warm_up: 1, phases: [prefill, decode]}
objective: {minimize: step_time}
)";

const std::string kServing = R"(schema: dculab/scenario/1
question: How many requests can it serve?
model: {name: llama-3-8b, num_key_value_heads: 4}
machines: [z100, k100-ai]
workload: {requests: 200, prompt_tokens: 512, output_tokens: 256, arrival: poisson, requests_per_second: 2.5}
objective: {maximize: output_tokens_per_second, subject_to: {ttft_p90: "<= 2 s", max_sequences: ">= 16"}}
then: [other.yaml]
)";

Scenario scenario_from(const std::string& yaml, const std::vector<std::string>& changes = {}) {
  Node document = parse_yaml("s.yaml", yaml);
  for (const std::string& change : changes) set_override(document, parse_override(change));
  return read_scenario("s.yaml", document);
}

TEST_CASE("a step scenario is read") {
  const Scenario scenario = scenario_from(kStep);
  CHECK(scenario.question == "Which KV block size should Llama-3-8B use?");
  CHECK(scenario.model.name == "llama-3-8b");
  CHECK(scenario.machines == std::vector<std::string>{"z100"});
  CHECK(scenario.weights == WeightFormat{Dtype::int4, 128});
  CHECK(scenario.options.kv_cache_dtype == Dtype::fp8_e4m3);
  CHECK(scenario.options.attention_split.query_heads_per_workgroup == 0);
  CHECK(scenario.options.attention_split.partition_tokens == 256);
  CHECK(scenario.options.max_num_batched_tokens == 4096);
  CHECK(scenario.workload.kind == WorkloadKind::step);
  CHECK(scenario.workload.batch == 8);
  REQUIRE(scenario.sweep.size() == 2);
  CHECK(scenario.sweep[0].key == "kv_cache.block_size");
  CHECK(scenario.sweep[0].values == std::vector<std::string>{"1", "16", "128"});
  CHECK(scenario.measure.repeats == 5);
  CHECK(scenario.measure.phases == std::vector<Phase>{Phase::prefill, Phase::decode});
}

TEST_CASE("a serving scenario is read") {
  const Scenario scenario = scenario_from(kServing);
  CHECK(scenario.model.overrides.at("num_key_value_heads") == 4);
  CHECK(scenario.machines == std::vector<std::string>{"z100", "k100-ai"});
  CHECK(scenario.workload.kind == WorkloadKind::serving);
  CHECK(scenario.workload.served.requests_per_second == 2.5);
  CHECK(scenario.objective.goal == Goal::maximize);
  CHECK(scenario.objective.metric == "output_tokens_per_second");
  REQUIRE(scenario.objective.subject_to.size() == 2);
  CHECK(scenario.objective.subject_to[0].metric == "max_sequences");
  CHECK(scenario.objective.subject_to[0].comparison == Comparison::at_least);
  CHECK(scenario.objective.subject_to[1].value == 2.0);
  CHECK(scenario.then == std::vector<std::string>{"other.yaml"});
  CHECK_FALSE(scenario.weights.has_value());
}

TEST_CASE("requests have fixed or distributed lengths, arrivals and a promise to their users") {
  const Scenario scenario = scenario_from(R"(
schema: dculab/scenario/1
question: q
model: m
machine: z100
engine: {batching: static}
workload:
  requests: 10
  prompt_tokens: {distribution: lognormal, median: 300, sigma: 0.5, max: 900}
  output_tokens: 20
  arrival: bursty
  requests_per_second: 2
  burstiness: 0.25
  prefix_tokens: 8
  seed: 7
slo: {ttft: 2 s, tpot: 50 ms}
)");
  const RequestWorkload& served = scenario.workload.served;
  CHECK(served.prompt.kind == LengthKind::lognormal);
  CHECK(served.prompt.center == 300);
  CHECK(served.prompt.most == 900);
  CHECK(served.output.kind == LengthKind::fixed);
  CHECK(served.output.center == 20);
  CHECK(served.arrival == ArrivalKind::gamma);
  CHECK(served.burstiness == 0.25);
  CHECK(served.prefix_tokens == 8);
  CHECK(served.seed == 7);
  CHECK(scenario.options.batching == Batching::per_batch);
  CHECK(scenario.slo.ttft == Seconds(2));
  CHECK(scenario.slo.tpot == Seconds(50e-3));
  CHECK_FALSE(scenario.slo.latency);
  CHECK_FALSE(is_offline_run(scenario.workload));
}

TEST_CASE("a skip set is a word or a list of them, and its workload has padding and repeated prompts") {
  const auto with = [](const std::string& skip, const std::string& workload) {
    return scenario_from("schema: dculab/scenario/1\nquestion: q\nmodel: m\nmachine: z100\n" + skip +
                         "workload:\n  requests: 10\n  prompt_tokens: 5\n  output_tokens: 5\n" + workload);
  };
  const KvSkip all{.padding = true, .duplicate_prompts = true};
  CHECK(with("kv_cache: {skip: [padding, duplicate_prompts]}\n", "").options.kv_skip == all);
  CHECK(with("kv_cache: {skip: all}\n", "").options.kv_skip == all);
  CHECK(with("kv_cache: {skip: none}\n", "").options.kv_skip == KvSkip{});
  CHECK(with("kv_cache: {skip: padding}\n", "").options.kv_skip == KvSkip{.padding = true});
  CHECK_THROWS_WITH(with("kv_cache: {skip: pads}\n", ""),
                    ContainsSubstring("kv_cache.skip: 'pads' cannot be skipped; use none, padding, duplicate_prompts"));

  const Workload padded = with("", "  pad_to: longest\n  duplicate_prompts: 0.25\n").workload;
  CHECK(padded.served.padding.to == PadTo::longest);
  CHECK(padded.served.duplicate_prompts == 0.25);
  CHECK(with("", "  pad_to: 64\n").workload.served.padding.tokens == 64);
  CHECK((is_offline_run(with("", "  pad_to: none\n").workload) && !is_offline_run(padded)));
  CHECK_THROWS_WITH(with("", "  pad_to: 0\n"), ContainsSubstring("workload.pad_to"));
  CHECK_THROWS_WITH(with("", "  duplicate_prompts: 2\n"), ContainsSubstring("workload.duplicate_prompts"));
}

TEST_CASE("workloads that make no sense are refused where they stand") {
  const auto with = [](const std::string& workload) {
    return "schema: dculab/scenario/1\nquestion: q\nmodel: m\nmachine: z100\nworkload:\n  requests: 10\n" + workload;
  };
  CHECK_THROWS_WITH(scenario_from(with("  prompt_tokens: 5\n  output_tokens: {distribution: normal, mean: 3}\n")),
                    ContainsSubstring("workload.output_tokens.distribution: 'normal'"));
  CHECK_THROWS_WITH(scenario_from(with("  prompt_tokens: {distribution: uniform, min: 3}\n  output_tokens: 5\n")),
                    ContainsSubstring("workload.prompt_tokens.max: missing"));
  CHECK_THROWS_WITH(scenario_from(with("  prompt_tokens: 5\n  file: a.csv\n")),
                    ContainsSubstring("workload.prompt_tokens: the requests of workload.file have their lengths"));
  CHECK_THROWS_WITH(scenario_from(with("  prompt_tokens: 5\n  output_tokens: 5\n  arrival: replay\n")),
                    ContainsSubstring("replay needs workload.file"));
  CHECK_THROWS_WITH(
      scenario_from(with("  prompt_tokens: 5\n  output_tokens: 5\n  arrival: bursty\n")),
      ContainsSubstring("workload.requests_per_second: missing") && ContainsSubstring("workload.burstiness: missing"));
}

TEST_CASE("a workload of requests without their number is told so, unless a file has them") {
  const std::string text = "schema: dculab/scenario/1\nquestion: q\nmodel: m\nmachine: z100\nworkload: ";
  CHECK_THROWS_WITH(scenario_from(text + "{prompt_tokens: 5, output_tokens: 5}\n"),
                    ContainsSubstring("workload.requests: missing"));
  CHECK(scenario_from(text + "{file: a.csv, arrival: replay}\n").workload.served.requests == kAllRequests);
}

TEST_CASE("a sweep is every combination, first axis slowest") {
  const std::vector<SweepPoint> points = sweep_points(scenario_from(kStep));
  REQUIRE(points.size() == 6);
  CHECK(points[0].choices == std::vector<Override>{{"kv_cache.block_size", "1"}, {"model.num_key_value_heads", "8"}});
  CHECK(points[1].scenario.model.overrides.at("num_key_value_heads") == 32);
  CHECK(points[5].scenario.options.block_size == 128);
  CHECK(points[5].scenario.sweep.empty());
  CHECK(points[5].scenario.model.name == "llama-3-8b");
  CHECK(sweep_points(scenario_from(kServing)).size() == 1);
}

TEST_CASE("a section as an axis leaves what other axes say of its keys, in any order") {
  const std::string section = "  deployment: [{tensor_parallel_size: 4}, {data_parallel_size: 4}]\n";
  const std::string key = "  deployment.routing: [round_robin, random]\n";
  for (const std::string& axes : {section + key, key + section}) {
    const std::vector<SweepPoint> points = sweep_points(scenario_from(kServing + "sweep:\n" + axes));
    REQUIRE(points.size() == 4);
    for (const SweepPoint& point : points)
      for (const auto& [axis, value] : point.choices) {
        const sim::Deployment& deployment = point.scenario.deployment;
        INFO(axis << " " << value);
        if (axis == "deployment.routing")
          CHECK((deployment.routing == Routing::random) == (value == "random"));
        else
          CHECK((deployment.tensor_parallel_size == 4) == (value == "{tensor_parallel_size: 4}"));
      }
  }
}

TEST_CASE("every key can be an axis") {
  Scenario scenario = scenario_from(kStep);
  const std::vector<Override> changes{{"kv_cache.block_size", "64"},
                                      {"kv_cache.dtype", "bf16"},
                                      {"model.num_key_value_heads", "2"},
                                      {"workload.batch", "3"},
                                      {"workload.context_tokens", "77"},
                                      {"workload.phase", "prefill"},
                                      {"weights", "int8"},
                                      {"machine", "mi50"},
                                      {"engine.max_num_seqs", "9"},
                                      {"engine.enable_chunked_prefill", "false"},
                                      {"engine.gpu_memory_utilization", "0.5"},
                                      {"engine.preemption_mode", "swap"},
                                      {"engine.swap_space", "512 MiB"},
                                      {"deployment.tensor_parallel_size", "2"},
                                      {"deployment.routing", "least_tokens"},
                                      {"deployment.kv_transfer.bandwidth", "20 GB/s"},
                                      {"attention.query_heads_per_workgroup", "1"}};
  for (const auto& [key, value] : changes) apply_axis(scenario, key, value);
  CHECK(scenario.options.block_size == 64);
  CHECK(scenario.options.kv_cache_dtype == Dtype::bf16);
  CHECK(scenario.model.overrides.at("num_key_value_heads") == 2);
  CHECK(scenario.workload.batch == 3);
  CHECK(scenario.workload.context_tokens == 77);
  CHECK(scenario.workload.phase == Phase::prefill);
  CHECK(scenario.weights == WeightFormat{Dtype::int8, 0});
  CHECK(scenario.machines == std::vector<std::string>{"mi50"});
  CHECK(scenario.options.max_num_seqs == 9);
  CHECK_FALSE(scenario.options.enable_chunked_prefill);
  CHECK(scenario.options.gpu_memory_utilization == 0.5);
  CHECK(scenario.options.preemption_mode == PreemptionMode::swap);
  CHECK(scenario.options.swap_space == 0.5 * kGiB);
  CHECK(scenario.deployment.tensor_parallel_size == 2);
  CHECK(scenario.deployment.routing == Routing::least_tokens);
  CHECK(scenario.deployment.kv_transfer_bandwidth == BytesPerSecond(20e9));
  CHECK(scenario.options.attention_split.query_heads_per_workgroup == 1);
  CHECK(scenario.sweep.empty());
  CHECK_THROWS_WITH(apply_axis(scenario, "kv_cache.block_size", "3"),
                    ContainsSubstring("sweep kv_cache.block_size=3: kv_cache.block_size: '3' is not a power of two"));
}

TEST_CASE("--set overrides, adds and stops a sweep") {
  CHECK(scenario_from(kStep, {"kv_cache.block_size=32"}).options.block_size == 32);
  CHECK(scenario_from(kStep, {"kv_cache.block_size=32"}).sweep.size() == 1);
  CHECK(scenario_from(kStep, {"sweep.kv_cache.block_size=[4, 8]"}).sweep[0].values ==
        std::vector<std::string>{"4", "8"});
  CHECK(scenario_from(kStep, {"sweep.workload.batch=[4, 8]"}).sweep.size() == 3);
  CHECK(scenario_from(kServing, {"machine=mi50"}).machines == std::vector<std::string>{"mi50"});
  CHECK(scenario_from(kServing, {"machines=[mi50, z100]"}).machines == std::vector<std::string>{"mi50", "z100"});
  CHECK(scenario_from(kServing, {"weights=bf16"}).weights == WeightFormat{Dtype::bf16, 0});
  CHECK(scenario_from(kStep, {"model.head_dim=64"}).model.name == "llama-3-8b");
  const Scenario other = scenario_from(kServing, {"model=llama-2-7b"});
  CHECK(other.model.name == "llama-2-7b");
  CHECK(other.model.overrides.at("num_key_value_heads") == 4);
  CHECK(scenario_from(kStep, {"objective={maximize: tokens_per_second}"}).objective.goal == Goal::maximize);
}

TEST_CASE("errors of --set name it") {
  CHECK_THROWS_WITH(scenario_from(kStep, {"kv_cache.blok_size=32"}),
                    "--set kv_cache.blok_size=32: kv_cache.blok_size: unknown key; did you mean 'block_size'?");
  CHECK_THROWS_WITH(scenario_from(kStep, {"kv_cache.block_size=3"}),
                    "--set kv_cache.block_size=3: kv_cache.block_size: '3' is not a power of two; use 1, 2, 4, 8, 16, "
                    "32, 64, 128 or 256");
  CHECK_THROWS_WITH(scenario_from(kStep, {"foo.bar=1"}), ContainsSubstring("--set foo.bar=1: foo: unknown key"));
  CHECK_THROWS_WITH(scenario_from(kStep, {"question.x=1"}),
                    ContainsSubstring("--set question.x=1: question.x: what it belongs"));
  CHECK_THROWS_WITH(scenario_from(kStep, {"weights="}), ContainsSubstring("--set weights=: weights: has no value"));
  CHECK_THROWS_WITH(
      scenario_from(kStep, {"machines=[a, b"}),
      ContainsSubstring("--set machines=[a, b:1: a list or map stands where a key should; is a bracket not closed?"));
  CHECK_THROWS_WITH(scenario_from(kStep, {"nonsense"}), ContainsSubstring("--set nonsense: must be key=value"));
  CHECK_THROWS_WITH(scenario_from(kStep, {"a..b=1"}), ContainsSubstring("must be key=value"));
  CHECK_THROWS_WITH(scenario_from(kStep, {"machines=[a]"}), ContainsSubstring("machine stands there too"));
}

TEST_CASE("a bad value of an axis is reported where it stands") {
  std::string yaml = kStep;
  yaml.replace(yaml.find("[1, 16, 128]"), 12, "[1, 17, 1024]");
  CHECK_THROWS_WITH(
      scenario_from(yaml),
      "s.yaml:11:28: kv_cache.block_size: '17' is not a power of two; use 1, 2, 4, 8, 16, 32, 64, 128 or 256\n"
      "s.yaml:11:32: kv_cache.block_size: '1024' is out of range; it must be at least 1 and at most 256");
}

TEST_CASE("options are the defaults with what the scenario says") {
  const Scenario scenario = scenario_from(kStep);
  ModelShape model;
  model.dtype = Dtype::bf16;
  set_layers(model, 2, LayerKind{});
  EngineOptions cpu;
  cpu.activation_dtype = Dtype::f32;
  const EngineOptions options = resolve_options(scenario, model, cpu);
  CHECK(options.activation_dtype == Dtype::f32);
  CHECK(options.attention_split.partition_tokens == 256);
  CHECK(options.weights == WeightFormat{Dtype::int4, 128});
  CHECK(resolve_options(scenario_from(kServing), model).weights == WeightFormat{Dtype::bf16, 0});
  const ModelShape changed = resolve_model(model, scenario_from(kServing).model);
  CHECK(changed.kinds[0].gqa().heads.num_key_value_heads == 4);
}

TEST_CASE("weight formats are read and written") {
  for (const std::string text : {"f16", "bf16", "int8", "int4", "gptq-int4", "gptq-int4-g32", "gptq-int8-g64", "mxfp4",
                                 "nf4", "nf4-double", "fp4", "fp4-double", "llm-int8"})
    CHECK(weight_format_text(parse_weight_format(text)) == text);
  CHECK(parse_weight_format("mxfp4") == WeightFormat{Dtype::mxfp4, 32, ScaleFormat::e8m0});
  CHECK(parse_weight_format("gptq-int4-g128") == WeightFormat{Dtype::int4, 128});
  CHECK(parse_weight_format("awq") == WeightFormat{Dtype::int4, 128});
  for (const std::string text : {"", "gptq-", "gptq-f16", "int4-g32", "gptq-int4-g", "gptq-int4-g0", "awq-int4"})
    CHECK_THROWS_AS(parse_weight_format(text), InputError);
}

}  // namespace
}  // namespace dculab::config
