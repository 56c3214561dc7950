// The two forms of latent attention on a machine, by new tokens.
#include "study/evaluate/latent_forms.hpp"

#include "config/scenario_document.hpp"
#include "core/error.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

LatentFormsQuestion latent_question(const std::string& model, const std::string& more = "") {
  return {.scenario = config::read_scenario(
              "s.yaml", config::parse_value("s.yaml", "schema: dculab/scenario/1\nquestion: q\nmodel: " + model +
                                                          "\nmachine: z100\nworkload: {phase: decode, batch: 2, "
                                                          "context_tokens: 4000}\n" +
                                                          more)),
          .batch = 2,
          .context = 4000};
}

TEST_CASE("a decode absorbs, and the rows go up to the whole context") {
  const LatentFormsAnswer answer = compare_latent_forms(latent_question("deepseek-v2-lite"));
  std::vector<int> new_tokens;
  for (const sim::LatentForms& row : answer.rows) new_tokens.push_back(row.new_tokens);
  CHECK(new_tokens == std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4000});
  CHECK(answer.rows.front().cheaper() == LatentForm::absorb);
  CHECK(answer.rows.front().expanded > Seconds{});
  CHECK(answer.machine.name == "z100");
}

TEST_CASE("a model without latent attention is refused") {
  CHECK_THROWS_WITH(compare_latent_forms(latent_question("llama-3-8b")), ContainsSubstring("has no latent attention"));
}

}  // namespace
}  // namespace dculab::study
