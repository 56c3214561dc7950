// `dculab study`: the shipped question about two DCUs, and the edges of a sweep.
#include <algorithm>
#include <limits>
#include <map>
#include <string>

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
    CHECK(best.at("num_key_value_heads") == 8);  // the model's own, for the accuracy of others is not known
    CHECK(best.at("kv_heads_by") == "own");
    CHECK(best.at("fastest").at("step_seconds").get<double>() == Approx(fastest));
    CHECK(best.at("block_size") == 16);  // as `recommend` has it
    CHECK(best.at("kv_heads_front").size() >= 4);
    CHECK(best.at("own_kv_heads").at("num_key_value_heads") == 8);
    CHECK(best.at("own_kv_heads").at("slower").get<double>() ==
          Approx(best.at("own_kv_heads").at("step_seconds").get<double>() / best.at("step_seconds").get<double>() - 1));
  }
}

TEST_CASE("the verdict names the block sizes that cannot be told apart, and says that KV heads are a front") {
  const std::string text = run_dculab(kStudy).out;
  CHECK_THAT(
      text, ContainsSubstring("→ z100, 8 KV heads: block size 16; 1, 8, 32, 64 and 128 cannot be told apart from 16") &&
                ContainsSubstring("→ z100: no number of KV heads is recommended, because the accuracy of llama-3-8b") &&
                ContainsSubstring("What fewer KV heads cost other models"));
}

TEST_CASE("accuracy that the scenario names decides the KV heads of a sweep of steps") {
  const Arguments named = study_with({"--set", "accuracy.model=t5-xxl"});
  const Json study = run_for_json(named);
  // T5-XXL loses less than the tolerance at any of these group sizes: the most within 5 % of the fastest are taken,
  // fewer on a K100-AI, whose step is bound by the KV cache.
  const std::map<std::string, int> kv_heads{{"z100", 4}, {"k100-ai", 2}};
  for (const Json& machine : study.at("machines")) {
    const Json& best = machine.at("recommendation");
    CHECK(best.at("num_key_value_heads") == kv_heads.at(machine.at("machine")));
    CHECK(best.at("kv_heads_by") == "accuracy");
  }
  CHECK_THAT(run_dculab(named).out, ContainsSubstring("of average of 7 tasks, as measured on t5-xxl") &&
                                        !ContainsSubstring("What fewer KV heads cost"));
  CHECK_THAT(run_dculab(study_with({"--set", "accuracy.model=t5-xxl", "accuracy.tolerance=0.1 %",
                                    "sweep.model.num_key_value_heads=[2, 4]"}))
                 .out,
             ContainsSubstring("no number of KV heads of the sweep loses at most 0.10 %"));
}

TEST_CASE("a model's own KV heads lose nothing that it has, whatever was measured on another") {
  const Json strict = run_for_json(study_with({"--set", "accuracy.model=t5-xxl", "accuracy.tolerance=0.1 %"}));
  for (const Json& machine : strict.at("machines"))
    CHECK(machine.at("recommendation").at("num_key_value_heads") == 8);  // group size 4, which T5-XXL's curve lacks
}

TEST_CASE("block sizes that the stack's kernels do not take are left out, and said") {
  const std::string text = run_dculab({"study", "block_size", "--set", "machine=z100", "--stack", "vllm"}).out;
  CHECK_THAT(text, ContainsSubstring("z100: left out block sizes 1, 2, 4, 8, ") &&
                       ContainsSubstring("→ z100, 8 KV heads: block size 32; "));
}

TEST_CASE("a sweep of one point is predicted, and nothing is recommended") {
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

TEST_CASE("of variants the best is named at each workload, and what the others cost", "[main]") {
  const Json study = run_for_json({"study", "critical_blocks"});
  const Json& best = study.at("best");
  REQUIRE(best.size() == 6);  // three machines, four sequences and one
  CHECK(best[0].at("machine") == "z100");
  CHECK(best[0].at("choice") == "blocks of 16, 10 %");
  const auto seconds = [&](const Json& entry, const std::string& variant) {
    double least = 1e9;
    for (const Json& point : study.at("comparisons"))
      for (const Json& each : point.at("variants"))
        if (point.at("machine") == entry.at("machine") && each.at("variant") == variant &&
            point.at("choices").at("workload.batch") == entry.at("choices").at("workload.batch"))
          least = std::min(least, each.at("step_time").get<double>());
    return least;
  };
  for (const Json& entry : best) {
    const double fastest = seconds(entry, entry.at("best"));
    CHECK(seconds(entry, entry.at("choice")) <= 1.01 * fastest);
    for (const Json& other : entry.at("costs")) CHECK(seconds(entry, other.at("value")) > 1.01 * fastest);
  }
  CHECK_THAT(run_dculab({"study", "critical_blocks"}).out,
             ContainsSubstring("→ z100, batch=4: 'blocks of 16, 10 %' at partition"));
}

TEST_CASE("a sweep over models compares them, and says from which batch another is faster", "[main]") {
  const Arguments kinds = {"study", "attention_kinds", "--set", "machine=mi300x"};
  const Json machine = run_for_json(kinds).at("machines").at(0);
  CHECK_FALSE(machine.contains("recommendation"));
  REQUIRE(machine.at("models").size() == 1);
  const Json& lines = machine.at("models").at(0).at("lines");
  REQUIRE(lines.size() == 5);
  for (const Json& line : lines) {
    INFO(line.at("model"));
    const std::int64_t tokens = line.at("kv_cache_tokens");
    CHECK(line.at("max_sequences") == std::min<std::int64_t>(256, tokens / 4096));
    for (const Json& step : line.at("steps")) {  // as the points have them
      const auto is_it = [&](const Json& point) {
        const Json& choices = point.at("choices");
        return choices.at("model") == line.at("model") &&
               choices.at("workload.batch") == std::to_string(step.at("batch").get<int>()) &&
               choices.at("kv_cache.block_size") == std::to_string(line.at("block_size").get<int>());
      };
      const Json& points = machine.at("points");
      const auto point = std::ranges::find_if(points, is_it);
      REQUIRE(point != points.end());
      CHECK(step.at("step_seconds").get<double>() == Approx(point->at("step_seconds").get<double>()));
    }
  }
  const Json& changes = machine.at("models").at(0).at("order_changes");
  REQUIRE_FALSE(changes.empty());
  CHECK_THAT(run_dculab(kinds).out,
             ContainsSubstring("→ mi300x: from batch " + std::to_string(changes[0].at("batch").get<int>()) + " on, " +
                               changes[0].at("faster").get<std::string>() + " is faster than "));
}

TEST_CASE("CSV has the points of both machines, with the figures of the JSON") {
  const Arguments csv = study_with({"--format", "csv"});
  const Finished done = run_dculab(csv);
  CHECK(done.exit_code == 0);
  CHECK(
      done.out.starts_with("machine,choices.model.num_key_value_heads,choices.kv_cache.block_size,step_seconds,"
                           "interval_seconds.low,interval_seconds.high,basis,tokens_per_second,bound,max_sequences\n"));
  CHECK(std::count(done.out.begin(), done.out.end(), '\n') == 1 + 2 * 36);
  const Json point = run_for_json(kStudy).at("machines").at(1).at("points").at(35);
  CHECK_THAT(done.out,
             ContainsSubstring("," + point.at("step_seconds").dump() + "," + point.at("interval_seconds").at(0).dump() +
                               "," + point.at("interval_seconds").at(1).dump() + ","));
}

}  // namespace
}  // namespace dculab::cli::test
