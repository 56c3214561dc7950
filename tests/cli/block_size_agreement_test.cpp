// `study` of a step, `recommend` and `simulate` of a load give one answer to which block size: the same choice, and the
// same sizes that cannot be told apart from it.
#include <set>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

constexpr const char* kBlockSizeScenario =
    "schema: dculab/scenario/1\nquestion: Which block size?\nmodel: llama-3-8b\nweights: f16\nkv_cache: {dtype: "
    "f16}\nmachine: mi300x\n"
    "sweep:\n  kv_cache.block_size: [8, 16, 32, 64, 128, 256]\n";
constexpr const char* kAgreementStep = "workload: {phase: decode, batch: 32, context_tokens: 600}\n";
constexpr const char* kLoad =
    "engine: {max_num_seqs: 32, max_num_batched_tokens: 2048}\n"
    "workload: {requests: 64, prompt_tokens: 512, output_tokens: 128, arrival: all_at_once}\n"
    "objective: {maximize: output_tokens_per_second}\n";

struct Answer {
  std::string choice;
  std::set<std::string> alike;  // of the sizes of the sweep, the choice among them
};

bool operator==(const Answer& left, const Answer& right) {
  return left.choice == right.choice && left.alike == right.alike;
}

std::ostream& operator<<(std::ostream& out, const Answer& answer) {
  out << answer.choice << " of";
  for (const std::string& size : answer.alike) out << ' ' << size;
  return out;
}

Answer answer_of(const Json& verdict) {
  const std::set<std::string> swept{"8", "16", "32", "64", "128", "256"};
  Answer answer{verdict.at("choice"), {}};
  for (const Json& size : verdict.at("indistinguishable"))
    if (swept.contains(size)) answer.alike.insert(size.get<std::string>());
  return answer;
}

const Json& block_size_of(const Json& recommendation) {
  for (const Json& decision : recommendation.at("decisions"))
    if (decision.at("key") == "kv_cache.block_size") return decision;
  throw std::runtime_error("no decision of the block size");
}

TEST_CASE("study, recommend and simulate give one answer to which block size") {
  const std::string machine = GENERATE("z100", "k100-ai", "bw1000", "mi300x");
  const std::string stack = GENERATE("vllm", "dculab");
  CAPTURE(machine, stack);
  const Folder folder;
  const std::string step = folder.write("step.yaml", std::string(kBlockSizeScenario) + kAgreementStep);
  const std::string load = folder.write("load.yaml", std::string(kBlockSizeScenario) + kLoad);
  const Arguments where{"--set", "machine=" + machine, "--stack", stack};
  const auto asked = [&where](Arguments command) {
    command.insert(command.end(), where.begin(), where.end());
    return run_for_json(command);
  };
  const Json studied = asked({"study", step}).at("machines").at(0).at("recommendation").at("block_sizes");
  const Json recommended = asked({"recommend", load, "--kv-cache-dtype", "f16"}).at("recommendations").at(0);
  const Json simulated = asked({"simulate", load}).at("block_sizes").at(0);
  CHECK(answer_of(studied) == answer_of(block_size_of(recommended)));
  CHECK(answer_of(simulated) == answer_of(studied));
}

}  // namespace
}  // namespace dculab::cli::test
