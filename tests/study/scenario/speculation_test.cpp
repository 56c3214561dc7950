// Drafts of a scenario, and the published acceptance lengths that ship.
#include "study/scenario/speculation.hpp"

#include <algorithm>
#include <sstream>

#include "config/csv_rows.hpp"
#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "files/input.hpp"
#include "sim/speculation/acceptance.hpp"
#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

config::Scenario speculative_scenario(const std::string& model, const std::string& config) {
  return config::read_scenario(
      "s.yaml", config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: " + model +
                                                  "\nmachine: h200\nengine: {speculative_config: " + config + "}\n"));
}

TEST_CASE("a draft model has its own weights' format, unless the scenario gives it another") {
  const auto own = resolve_speculation(speculative_scenario(
      "qwen3-32b", "{method: draft_model, model: qwen3-0.6b, num_speculative_tokens: 2, acceptance: 0.8}"));
  REQUIRE(own.has_value());
  CHECK(own->draft->name == "qwen3-0.6b");
  CHECK(own->draft_weights.dtype == Dtype::bf16);
  const auto rounded = resolve_speculation(speculative_scenario(
      "qwen3-32b",
      "{method: draft_model, model: qwen3-0.6b, weights: int8, num_speculative_tokens: 2, acceptance: 0.8}"));
  CHECK(rounded->draft_weights.dtype == Dtype::int8);
  CHECK_FALSE(
      resolve_speculation(speculative_scenario("qwen3-32b", "{method: ngram, num_speculative_tokens: 0}")).has_value());
}

TEST_CASE("layers that draft are counted, and not said to be left out") {
  const std::string mtp = "{method: mtp, num_speculative_tokens: 1, acceptance: 0.9}";
  const auto says_so = [](const config::Scenario& scenario) {
    const std::vector<std::string> notes = model_notes(scenario);
    return std::ranges::any_of(notes, [](const auto& note) { return note.find("further tokens") != note.npos; });
  };
  CHECK_FALSE(says_so(speculative_scenario("deepseek-v3", mtp)));
  CHECK(says_so(speculative_scenario("deepseek-v3", "{method: ngram, num_speculative_tokens: 1, acceptance: 0.9}")));
  CHECK(resolve_model(speculative_scenario("deepseek-v3", mtp)).num_nextn_predict_layers == 1);
}

TEST_CASE("every published acceptance length has a source, and can be") {
  const std::string file = DCULAB_SOURCE_DIR "/scenarios/speculation/published.csv";
  const std::string text = files::read_text(file, 1 << 20);
  std::istringstream lines(text);
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(line ==
        "target,draft,method,num_speculative_tokens,workload,mean_acceptance_length,acceptance_rates,speed_up,source");
  config::ProblemList problems(file);
  const std::vector<Node> rows = config::csv_rows(file, text, problems);
  problems.throw_if_any();
  CHECK(rows.size() > 30);
  for (const Node& row : rows) {
    INFO(row.place.line);
    const auto cell = [&row](const char* column) {
      const Node* found = row.find(column);
      return found == nullptr ? std::string() : found->text;
    };
    CHECK_FALSE(cell("source").empty());
    const std::string tokens = cell("num_speculative_tokens");
    const double mean = std::stod(cell("mean_acceptance_length"));
    CHECK(mean >= 1);
    if (tokens.empty()) continue;
    CHECK(mean <= std::stoi(tokens) + 1);
    // Where the rates are known, they give that length.
    std::istringstream words(cell("acceptance_rates"));
    sim::Acceptance acceptance;
    for (double rate = 0; words >> rate;) acceptance.by_depth.push_back(rate);
    if (acceptance.by_depth.empty()) continue;
    CHECK_THAT(sim::expected_tokens(acceptance, chain_shape(std::stoi(tokens))), WithinAbs(mean, 0.02));
  }
}

}  // namespace
}  // namespace dculab::study
