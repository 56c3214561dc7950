// `dculab study`: the shipped question about two DCUs, and the edges of a sweep.
#include <algorithm>

#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"

namespace dculab::cli::test {
namespace {

const Arguments kStudy{"study", "llama3_on_dcu"};

Arguments study_with(const Arguments& more) {
  Arguments arguments = kStudy;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST_CASE("the shipped study prices every point on both DCUs and recommends", "[main]") {
  const Json study = run_for_json(kStudy);
  CHECK(study.at("schema") == "dculab/study/1");
  REQUIRE(study.at("machines").size() == 2);
  for (const Json& machine : study.at("machines")) {
    INFO(machine.at("machine"));
    const Json& points = machine.at("points");
    CHECK(points.size() == 36);
    double fastest = std::numeric_limits<double>::infinity();
    for (const Json& point : points) {
      const double step = point.at("step_seconds");
      fastest = std::min(fastest, step);
      CHECK(point.at("interval_seconds")[0].get<double>() <= step);
      CHECK(point.at("interval_seconds")[1].get<double>() >= step);
      CHECK(point.at("choices").size() == 2);
    }
    const Json& best = machine.at("recommendation");
    const auto is_recommended = [&best](const Json& point) {
      const Json& choices = point.at("choices");
      return choices.at("model.num_key_value_heads") == std::to_string(best.at("num_key_value_heads").get<int>()) &&
             choices.at("kv_cache.block_size") == std::to_string(best.at("block_size").get<int>());
    };
    const auto chosen = std::find_if(points.begin(), points.end(), is_recommended);
    REQUIRE(chosen != points.end());
    CHECK(chosen->at("step_seconds").get<double>() == Approx(best.at("step_seconds").get<double>()));
    CHECK(best.at("step_seconds").get<double>() <= 1.06 * fastest);
    CHECK(best.at("own_kv_heads").at("num_key_value_heads") == 8);
    CHECK(best.at("own_kv_heads").at("slower").get<double>() ==
          Approx(best.at("own_kv_heads").at("step_seconds").get<double>() / best.at("step_seconds").get<double>() - 1));
  }
}

TEST_CASE("the verdict says what it rests on and what the model's own KV heads cost") {
  const std::string text = run_dculab(kStudy).out;
  CHECK_THAT(text, ContainsSubstring("→ on speed alone z100 should use "));
  CHECK_THAT(text, ContainsSubstring("the model's own 8 KV heads cost +"));
}

TEST_CASE("where the model's own KV heads are best or are not in the sweep, no cost is claimed") {
  const Folder folder;
  const auto verdict = [&folder](const std::string& kv_heads) {
    const std::string file = folder.write("study.yaml",
                                          "schema: dculab/scenario/1\nquestion: Which block?\nmodel: llama-3-8b\n"
                                          "machine: z100\nworkload: {phase: decode, batch: 4, context_tokens: 1000}\n"
                                          "sweep: {kv_cache.block_size: [1, 16], model.num_key_value_heads: " +
                                              kv_heads + "}\n");
    return run_dculab({"study", file}).out;
  };
  CHECK_THAT(verdict("[8]"), ContainsSubstring("these are the model's own KV heads\n"));
  CHECK_THAT(verdict("[4]"), !ContainsSubstring("own"));
}

TEST_CASE("a sweep of one point is priced, and nothing is recommended") {
  const Arguments one = study_with({"--set", "model.num_key_value_heads=8", "kv_cache.block_size=16"});
  const Json study = run_for_json(one);
  for (const Json& machine : study.at("machines")) {
    CHECK(machine.at("points").size() == 1);
    CHECK_FALSE(machine.contains("recommendation"));
  }
  const std::string text = run_dculab(one).out;
  CHECK_THAT(text, ContainsSubstring("Nothing to choose"));
  CHECK_THAT(text, !ContainsSubstring("should use"));
}

TEST_CASE("CSV is the first table") {
  const Finished done = run_dculab(study_with({"--set", "machine=z100", "--format", "csv"}));
  CHECK(done.exit_code == 0);
  CHECK(done.out.starts_with("KV heads,block,step,"));
  CHECK(std::count(done.out.begin(), done.out.end(), '\n') == 37);
}

}  // namespace
}  // namespace dculab::cli::test
