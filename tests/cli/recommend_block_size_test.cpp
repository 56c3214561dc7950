// `dculab recommend` on block sizes, beside `study` and `simulate`.
#include <initializer_list>
#include <string>

#include "tests/cli/program.hpp"
#include "tests/cli/recommendations.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

TEST_CASE("block sizes are a set that cannot be told apart and what the others cost, one for all three commands") {
  const Json blocks = decision(recommendation("bw1000"), "kv_cache.block_size");
  CHECK(blocks.at("indistinguishable").size() >= 3);
  for (const Json& cost : blocks.at("costs")) {
    CHECK(cost.at("interval")[0] <= cost.at("cost"));
    CHECK(cost.at("cost") <= cost.at("interval")[1]);
  }
  CHECK_THAT(run_dculab(recommend("bw1000", {})).out, ContainsSubstring("→ bw1000, 8 KV heads: block size 16; ") &&
                                                          ContainsSubstring("cannot be told apart") &&
                                                          ContainsSubstring("no number of KV heads is recommended"));
}

// 13.5 of 14.4 GiB are weights, and lengths vary: `simulate` judges free slots and preemptions as `recommend` does.
TEST_CASE("where memory is short, simulate, study and recommend choose one block size for the same requests") {
  const Folder folder;
  const std::string file = folder.write(
      "short.yaml",
      "schema: dculab/scenario/1\nquestion: Which block size?\nmodel: llama-2-7b\nmachine: mi50\nweights: f16\n"
      "engine: {max_num_seqs: 64}\n"
      "workload: {requests: 64, prompt_tokens: {distribution: lognormal, median: 300, sigma: 0.9, max: 2048},\n"
      "  output_tokens: {distribution: lognormal, median: 150, sigma: 0.7, max: 512}}\n"
      "sweep: {kv_cache.block_size: [4, 16, 32, 128, 256]}\nobjective: {maximize: output_tokens_per_second}\n");
  const Json served = run_for_json({"simulate", file}).at("block_sizes").at(0);
  const Json found = run_for_json({"recommend", file, "--kv-cache-dtype", "f16"}).at("recommendations").at(0);
  const Json& recommended = decision(found, "kv_cache.block_size");
  CHECK(recommended.at("by") == "served requests");
  CHECK(served.at("choice") == recommended.at("choice"));
  CHECK(run_for_json({"study", file}).at("block_sizes").at(0) == served);
  const Arguments both{"--set", "sweep={machine: [mi50, mi50-32gb], kv_cache.block_size: [16, 256]}"};
  const auto asked_of = [&](const char* command) {
    Arguments arguments{command, file};
    arguments.insert(arguments.end(), both.begin(), both.end());
    return run_for_json(arguments).at("block_sizes");
  };
  const Json of_both = asked_of("simulate");
  CHECK(of_both.size() == 2);
  CHECK(asked_of("study") == of_both);
  const auto costs_of = [](const Json& verdict, const std::string& value) {
    for (const Json& cost : verdict.at("costs"))
      if (cost.at("value") == value) return cost.at("cost").get<double>();
    return 0.0;
  };
  for (const Json* verdict : std::initializer_list<const Json*>{&served, &recommended}) {
    CHECK(costs_of(*verdict, "128") > 0.02);
    CHECK(costs_of(*verdict, "256") > costs_of(*verdict, "128"));
  }
}

}  // namespace
}  // namespace dculab::cli::test
