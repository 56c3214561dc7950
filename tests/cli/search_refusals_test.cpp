// What `dculab study` refuses to search, and the options that it would not heed.
#include <filesystem>
#include <vector>

#include "tests/cli/program.hpp"
#include "tests/cli/search_scenarios.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

TEST_CASE("impossible points are counted with a reason, and what cannot be searched is refused", "[main]") {
  const Folder folder;
  const auto file = [&folder](const std::string& more) {
    return folder.write("s.yaml", kHead + "workload: {phase: decode, batch: 1, context_tokens: 100}\n" + more);
  };
  const Json study =
      run_for_json({"study", file("sweep: {workload.context_tokens: [100, 9000], kv_cache.block_size: [16]}\n"
                                  "objective: {minimize: step_time}\n")});
  CHECK(study.at("points").at("refused") == 1);
  CHECK_THAT(study.at("points").at("first_refusal").get<std::string>(), ContainsSubstring("longer than"));
  check_refused({"study", file("objective: {maximize: goodput}\n")}, {"s.yaml", "goodput is no metric of a step"});
  check_refused({"study", file("constraints: [ttft_p90 <= 2 s]\n")}, {"s.yaml", "ttft_p90 is no metric of a step"});
  check_refused({"study", file("constraints: [step_time <= 50]\n")}, {"s.yaml:6:15: ", "without a unit", "<= 50 ms"});
  check_refused({"study", file("constraints: [2 GB >= step_time]\n")}, {"s.yaml:6:15: ", "in another unit"});
  check_refused({"study", file("constraints: [kv_bytes <= 3]\n")}, {"s.yaml:6:15: ", "without a unit"});
  check_refused({"study", file("constraints: [batch <= 3]\n")}, {"s.yaml:6:15: ", "names 'batch'"});
  check_refused({"study", file("pareto: {minimize: [step_time]}\n")}, {"s.yaml:6:", "two metrics or more"});
  check_refused({"study", file("sweep: {machine.memory.L7.size: [3 MiB]}\n")}, {"no figure of z100"});
  const std::string objective = "objective: {minimize: step_time}\n";
  for (const std::string& kind : {std::string(), objective}) {
    check_refused({"study", file("sweep: {measure.repeats: [3, 4]}\n" + kind)},
                  {"sweep.measure.repeats: changes no predicted time"});
    for (const std::string axis : {"batching: [continuous, static]", "preemption_mode: [swap]", "swap_space: [1 GiB]",
                                   "enable_chunked_prefill: [true, false]", "enable_prefix_caching: [true, false]"})
      check_refused({"study", file("sweep: {engine." + axis + "}\n" + kind)},
                    {"sweep.engine." + axis.substr(0, axis.find(':')) + ": changes no predicted time of a step"});
  }
  // These take memory from the KV cache.
  for (const std::string key : {"max_num_seqs", "max_num_batched_tokens"}) {
    const Json fits = run_for_json({"study", file("sweep: {engine." + key + ": [64, 4096]}\n")}).at("machines")[0];
    CHECK(fits.at("points")[0].at("max_sequences") > fits.at("points")[1].at("max_sequences"));
  }
  check_refused({"study", file(objective), "--shard", "2/8"}, {"--shard", "needs --journal"});
  check_refused({"study", file(""), "--shard", "9/8"}, {"'9/8' is not a part such as 2/8"});
  const std::string large = file("sweep: {workload.batch: {from: 1, to: 64, samples: 100000001}}\n");
  check_refused({"study", large},
                {"sweep: 100,000,001 points take about ", "of memory", "--journal FILE", "start it with --yes"});
  check_refused({"study", large, "--journal", folder.path("journal")}, {"for the journal; start it with --yes"});
  const std::string chain = folder.write("chain.yaml", kSearch + "then: [s.yaml]\n");
  check_refused({"study", chain}, {"s.yaml: sweep: ", "start it with --yes"});  // before chain.yaml is searched
}

TEST_CASE("options that a study would not heed are refused, and nothing is written") {
  const Folder folder;
  const std::string plain = kHead + "workload: {phase: decode, batch: 1, context_tokens: 100}\n";
  const std::string sweep = folder.write("sweep.yaml", plain), search = folder.write("search.yaml", kSearch);
  const std::string chain = folder.write("chain.yaml", kSearch + "then: [search.yaml]\n");
  const std::string written = folder.path("written");
  const std::vector<Arguments> of_files{
      {"--points", written}, {"--journal", written}, {"--shard", "2/8"}, {"--resume"}, {"--salvage"}};
  for (const std::string& scenario : {sweep, chain, std::string("papers/opt_gptq"), std::string("group_size")})
    for (const Arguments& option : of_files) {
      Arguments command{"study", scenario};
      command.insert(command.end(), option.begin(), option.end());
      check_refused(command, {option.front(), scenario == chain ? "under `then`" : "is of a search"});
    }
  for (const std::string& scenario : {sweep, std::string("papers/opt_gptq")})
    check_refused({"study", scenario, "--threads", "3"}, {"--threads", "is of a search"});
  for (const std::string& scenario : {std::string("papers/opt_gptq"), std::string("group_size")})
    check_refused({"study", scenario, "--sensitivity"}, {"--sensitivity", "is of a predicted"});
  check_refused({"study", sweep, "--within", "2"}, {"--within", "--sensitivity"});
  check_refused({"study", sweep, "--measure", "--sensitivity"}, {"--sensitivity", "is of a predicted"});
  check_refused({"study", sweep, "--measure", "--threads", "3"}, {"--threads", "is of a search"});
  check_refused({"study", search, "--measure"}, {"a search is predicted"});
  check_refused({"study", search, search, "--points", written}, {"--points", "one scenario"});
  CHECK_FALSE(std::filesystem::exists(written));
}

}  // namespace
}  // namespace dculab::cli::test
