// A shipped sweep over models, compared: the figures of each model, and the batches at which two change places.
#include "study/decide/compared_models.hpp"

#include "study/scenario/resolve.hpp"
#include "tests/support/catch.hpp"

namespace dculab::study {
namespace {

using Changes = std::vector<config::Override>;

// The scenario with its sweep priced on a machine. Not copied: points refer to each other.
struct PricedSweep {
  explicit PricedSweep(const Changes& changes)
      : scenario(config::read_scenario_file(DCULAB_SOURCE_DIR "/scenarios/attention_kinds.yaml", changes)),
        machine(resolve_machine(scenario, "bw1000")),
        sweep(config::sweep_points(scenario)),
        points(study_points(scenario, machine, sweep)),
        priced(price_points(points, machine)),
        batches(swept_batches(priced)),
        comparisons(compare_models(scenario, sweep, priced, batches, machine)) {}
  PricedSweep(const PricedSweep&) = delete;

  config::Scenario scenario;
  sim::Machine machine;
  std::vector<config::SweepPoint> sweep;
  std::vector<StudyPoint> points;
  std::vector<PricedPoint> priced;
  std::vector<int> batches;
  std::vector<ModelComparison> comparisons;
};

const PricedSweep& attention_kinds() {
  static const PricedSweep sweep(Changes{{"sweep.model", "[attention-8b-mha, attention-8b-gqa8, attention-8b-mla]"}});
  return sweep;
}

// Of the fastest of the model's block sizes.
Seconds least_price(const PricedSweep& sweep, const std::string& model, int batch) {
  Seconds least(1e9);
  for (const PricedPoint& each : sweep.priced)
    if (each.point->choices.front().second == model && static_cast<int>(each.point->batch.sequences.size()) == batch)
      least = std::min(least, each.price.seconds);
  return least;
}

TEST_CASE("a model of a sweep has a step for every batch that it has room for") {
  const PricedSweep& sweep = attention_kinds();
  CHECK(sweep.batches == std::vector{1, 16, 256});
  REQUIRE(sweep.comparisons.size() == 1);
  CHECK(sweep.comparisons[0].others.empty());
  REQUIRE(sweep.comparisons[0].models.size() == 3);
  for (const SweptModel& model : sweep.comparisons[0].models) {
    CAPTURE(model.compared.name);
    CHECK(model.chose_block);
    CHECK(model.tied_blocks == std::vector{16, 64});
    for (std::size_t index = 0; index < sweep.batches.size(); ++index) {
      const int batch = sweep.batches[index];
      REQUIRE(model.steps[index].has_value() == (batch <= model.compared.max_sequences));
      if (!model.steps[index]) continue;
      const Seconds least = least_price(sweep, model.compared.name, batch);
      CHECK(*model.steps[index] >= least);
      CHECK(*model.steps[index] <= (1 + kPriceResolution) * least);
    }
    const auto most = static_cast<int>(model.compared.max_sequences);
    CHECK(model.tokens_per_second == Approx(most / model.compared.step_time(most).value()));
  }
  CHECK(sweep.comparisons[0].has_short_model);
}

TEST_CASE("the memory of a model of a sweep is that of its own attention") {
  const std::vector<SweptModel>& models = attention_kinds().comparisons[0].models;
  CHECK(models[0].kv_bytes_per_token == 4 * models[1].kv_bytes_per_token);  // 32 KV heads, 8
  CHECK(models[0].kv_cache_tokens < models[1].kv_cache_tokens);
  CHECK(models[1].kv_cache_tokens < models[2].kv_cache_tokens);
}

TEST_CASE("from the batch of a change on the faster model takes less time, and before it did not") {
  const ModelComparison& comparison = attention_kinds().comparisons[0];
  const auto time = [&comparison](const std::string& name, int batch) {
    const auto is_named = [&name](const SweptModel& model) { return model.compared.name == name; };
    return std::ranges::find_if(comparison.models, is_named)->compared.step_time(batch).value();
  };
  REQUIRE_FALSE(comparison.changes.empty());
  for (const auto& [change, lead] : comparison.changes) {
    CAPTURE(change.faster, change.slower, change.batch);
    CHECK(time(change.faster, change.batch) * (1 + kPriceResolution) < time(change.slower, change.batch));
    CHECK(time(change.faster, change.batch - 1) * (1 + kPriceResolution) >= time(change.slower, change.batch - 1));
    CHECK(lead.value == Approx(time(change.slower, change.last) / time(change.faster, change.last) - 1));
    CHECK(lead.low < lead.value);
    CHECK(lead.value < lead.high);
  }
}

TEST_CASE("each point of the other axes has a comparison of its own") {
  const PricedSweep sweep(Changes{{"sweep.model", "[attention-8b-gqa8, attention-8b-mla]"},
                                  {"sweep.kv_cache.block_size", "[16]"},
                                  {"sweep.workload.context_tokens", "[1024, 8192]"}});
  REQUIRE(sweep.comparisons.size() == 2);
  for (const ModelComparison& each : sweep.comparisons) {
    REQUIRE(each.others.size() == 1);
    CHECK(each.others[0].first == "workload.context_tokens");
    CHECK(each.models.size() == 2);
    CHECK_FALSE(each.models[0].chose_block);
  }
  CHECK(sweep.comparisons[0].others[0].second == "1024");
  CHECK(sweep.comparisons[0].models[0].compared.max_sequences > sweep.comparisons[1].models[0].compared.max_sequences);
}

}  // namespace
}  // namespace dculab::study
