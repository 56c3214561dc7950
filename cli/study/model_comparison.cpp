#include "cli/study/model_comparison.hpp"

#include <algorithm>
#include <set>

#include "cli/output/axis_title.hpp"
#include "config/unit_text.hpp"
#include "model/plan_step.hpp"
#include "sim/memory/capacity.hpp"
#include "study/decide/model_order.hpp"

namespace dculab::cli {
namespace {

constexpr const char* kBatchAxis = "workload.batch";
constexpr const char* kBlockAxis = "kv_cache.block_size";

[[nodiscard]] bool names_model(const std::string& key) { return key == "model" || key == "model.name"; }

// One model at one point of the other axes: the points of its batches and block sizes.
struct ModelPoints {
  std::string model;
  std::string others;  // "context 4096": the choices of the other axes
  std::vector<const config::SweepPoint*> sweep;
  std::vector<PricedPoint> priced;
};

[[nodiscard]] ModelPoints names_of(const config::SweepPoint& point) {
  ModelPoints names;
  for (const auto& [key, value] : point.choices) {
    if (names_model(key))
      names.model = value;
    else if (key != kBatchAxis && key != kBlockAxis)
      names.others += (names.others.empty() ? "" : ", ") + axis_title(key) + " " + value;
  }
  return names;
}

[[nodiscard]] std::vector<ModelPoints> by_model(const std::vector<config::SweepPoint>& sweep,
                                                const std::vector<PricedPoint>& priced) {
  std::vector<ModelPoints> groups;
  for (std::size_t index = 0; index < priced.size(); ++index) {
    ModelPoints names = names_of(sweep[index]);
    auto found = std::ranges::find_if(groups, [&names](const ModelPoints& group) {
      return group.model == names.model && group.others == names.others;
    });
    if (found == groups.end()) found = groups.insert(groups.end(), std::move(names));
    found->sweep.push_back(&sweep[index]);
    found->priced.push_back(priced[index]);
  }
  return groups;
}

// A model with the block size that is best for it.
struct ModelLine {
  study::ComparedModel compared;
  const PricedPoint* example = nullptr;  // with that block size
  sim::Capacity capacity;
  bool chose_block = false;  // among several
};

[[nodiscard]] ModelLine line_of(const config::Scenario& scenario, const ModelPoints& points,
                                const sim::Machine& machine) {
  const auto decision = step_decision(points.priced, heads_question(points.sweep.front()->scenario), machine);
  const auto has_block = [&decision](const PricedPoint& priced) {
    return !decision || priced.point->choice == decision->choice;
  };
  const auto chosen = std::ranges::find_if(points.priced, has_block);
  const StudyPoint& point = *chosen->point;
  const config::SweepPoint& at = *points.sweep[static_cast<std::size_t>(chosen - points.priced.begin())];
  const auto step_time = [&scenario, &machine, &at](int batch) {
    config::SweepPoint other = at;
    config::apply_axis(other.scenario, kBatchAxis, std::to_string(batch));
    const StudyPoint priced = study_points(scenario, machine, {other}).front();
    return sim::price_step(machine_of(priced, machine, machine), plan_step(priced.model, priced.options, priced.batch))
        .seconds;
  };
  const sim::Capacity capacity = sim::capacity(machine_of(point, machine, machine), point.model, point.options,
                                               point.batch.sequences.front().context_tokens());
  const std::int64_t room = std::min<std::int64_t>(capacity.max_sequences, point.options.max_num_seqs);
  return {.compared = {points.model, room, step_time},
          .example = &*chosen,
          .capacity = capacity,
          .chose_block = decision && decision->blocks.choices.size() > 1};
}

[[nodiscard]] std::vector<int> swept_batches(const std::vector<ModelPoints>& groups) {
  std::set<int> batches;
  for (const ModelPoints& group : groups)
    for (const PricedPoint& priced : group.priced)
      batches.insert(static_cast<int>(priced.point->batch.sequences.size()));
  return {batches.begin(), batches.end()};
}

// Sequences that a step has at most: what fits, as far as the scheduler admits it.
[[nodiscard]] Seconds fullest_step(const ModelLine& line) {
  return line.compared.step_time(static_cast<int>(line.compared.max_sequences));
}

[[nodiscard]] double tokens_per_second(const ModelLine& line) {
  const StudyPoint& point = *line.example->point;
  const double tokens = static_cast<double>(point.batch.num_tokens()) /
                        static_cast<double>(point.batch.sequences.size()) *
                        static_cast<double>(line.compared.max_sequences);
  return tokens / fullest_step(line).value();
}

[[nodiscard]] std::vector<Cell> row_of(const ModelLine& line, const std::vector<int>& batches, Json& json) {
  const StudyPoint& point = *line.example->point;
  const Bytes kv = kv_bytes_per_token(point.model, point.options.kv_cache_dtype);
  const std::int64_t tokens = line.capacity.num_blocks * point.options.block_size;
  Json entry{
      {"model", line.compared.name}, {"block_size", point.options.block_size},       {"kv_bytes_per_token", kv.value()},
      {"kv_cache_tokens", tokens},   {"max_sequences", line.compared.max_sequences}, {"steps", Json::array()}};
  std::vector<Cell> row{line.compared.name, Cell(config::short_text(kv), kv.value()), std::to_string(tokens),
                        std::to_string(point.options.block_size)};
  for (const int batch : batches) {
    if (batch > line.compared.max_sequences) {
      row.emplace_back("no room");
      continue;
    }
    const Seconds seconds = line.compared.step_time(batch);
    row.emplace_back(config::short_text(seconds), seconds.value());
    entry["steps"].push_back({{"batch", batch}, {"step_seconds", seconds.value()}});
  }
  row.emplace_back(std::to_string(line.compared.max_sequences));
  const double rate = line.compared.max_sequences > 0 ? tokens_per_second(line) : 0;
  row.emplace_back(number(rate), rate);
  entry["tokens_per_second"] = rate;
  json["lines"].push_back(std::move(entry));
  return row;
}

[[nodiscard]] Table table_of(const std::string& others, const std::vector<ModelLine>& lines,
                             const std::vector<int>& batches, const sim::Machine& machine, Json& json) {
  Table table;
  table.title = "Models on " + machine.name + (others.empty() ? "" : ", " + others);
  const bool chose_block = std::ranges::any_of(lines, &ModelLine::chose_block);
  table.columns = {"model", "KV / token", "tokens that fit", chose_block ? "best block" : "block"};
  for (const int batch : batches) table.columns.push_back("step, batch " + std::to_string(batch));
  table.columns.insert(table.columns.end(), {"most sequences", "tokens/s with those"});
  for (const ModelLine& line : lines) table.rows.push_back(row_of(line, batches, json));
  return table;
}

void add_order(const std::vector<ModelLine>& lines, const std::vector<int>& batches, const sim::Machine& machine,
               Table& table, Json& json) {
  std::vector<study::ComparedModel> compared;
  for (const ModelLine& line : lines) compared.push_back(line.compared);
  json["order_changes"] = Json::array();
  for (const study::OrderChange& change : study::order_changes(compared, batches)) {
    table.notes.push_back("→ " + machine.name + ": from batch " + std::to_string(change.batch) + " on, " +
                          change.faster + " is faster than " + change.slower);
    json["order_changes"].push_back({{"batch", change.batch}, {"faster", change.faster}, {"slower", change.slower}});
  }
  const auto is_short = [&batches](const ModelLine& line) { return line.compared.max_sequences < batches.back(); };
  if (!json["order_changes"].empty() && std::ranges::any_of(lines, is_short))
    table.notes.emplace_back("Batches count as far as both models have room.");
  if (json["order_changes"].empty() && batches.size() > 1)
    table.notes.push_back("→ " + machine.name + ": no two of the models change places between batch " +
                          std::to_string(batches.front()) + " and " + std::to_string(batches.back()));
}

}  // namespace

bool sweeps_models(const config::Scenario& scenario) {
  return std::ranges::any_of(scenario.sweep, [](const config::SweepAxis& axis) { return names_model(axis.key); });
}

void add_model_comparison(const config::Scenario& scenario, const std::vector<config::SweepPoint>& sweep,
                          const std::vector<PricedPoint>& priced, const sim::Machine& machine, Report& report,
                          Json& json) {
  std::vector<ModelPoints> groups = by_model(sweep, priced);
  const std::vector<int> batches = swept_batches(groups);
  json["models"] = Json::array();
  while (!groups.empty()) {
    const std::string others = groups.front().others;
    const auto rest =
        std::ranges::stable_partition(groups, [&others](const ModelPoints& group) { return group.others == others; });
    std::vector<ModelLine> lines;
    for (auto group = groups.begin(); group != rest.begin(); ++group)
      lines.push_back(line_of(scenario, *group, machine));
    Json comparison{{"at", others}, {"lines", Json::array()}};
    Table table = table_of(others, lines, batches, machine, comparison);
    add_order(lines, batches, machine, table, comparison);
    report.tables.push_back(std::move(table));
    json["models"].push_back(std::move(comparison));
    groups.erase(groups.begin(), rest.begin());
  }
}

}  // namespace dculab::cli
