#include "cli/study/recommendation.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "config/unit_text.hpp"
#include "sim/study/serving_setting.hpp"
#include "study/decide/attention_difference.hpp"

namespace dculab::cli {
namespace {

[[nodiscard]] std::map<sim::Choice, study::AttentionCauses> causes_by_choice(const std::vector<PricedPoint>& points) {
  std::map<sim::Choice, int> counts;
  for (const PricedPoint& priced : points) ++counts[priced.point->choice];
  std::map<sim::Choice, study::AttentionCauses> result;
  for (const PricedPoint& priced : points)
    study::add_to(result[priced.point->choice], priced.plan, priced.price, 1.0 / counts[priced.point->choice]);
  return result;
}

// The alternatives along one axis, the other held at the recommended value.
[[nodiscard]] Table why_table(const std::map<sim::Choice, study::AttentionCauses>& causes, sim::Choice best,
                              bool along_blocks) {
  Table table;
  table.title = along_blocks ? "Block sizes at " + study::heads_text(best.kv_heads)
                             : "KV heads at block size " + std::to_string(best.block_size);
  table.columns = {along_blocks ? "block" : "KV heads",
                   "step",
                   "against choice",
                   "attention",
                   "KV bytes",
                   "look-ups",
                   "KV waste",
                   "what differs most"};
  const study::AttentionCauses& reference = causes.at(best);
  for (const auto& [choice, cause] : causes) {
    const bool on_axis = along_blocks ? choice.kv_heads == best.kv_heads : choice.block_size == best.block_size;
    if (!on_axis) continue;
    const bool chosen = choice == best;
    const bool slower = cause.step >= reference.step;
    table.rows.push_back(
        {std::to_string(along_blocks ? choice.block_size : choice.kv_heads) + (chosen ? " *" : ""),
         Cell(config::short_text(Seconds(cause.step)), cause.step),
         chosen ? Cell("", 0)
                : Cell(signed_percent(cause.step / reference.step - 1, 2), cause.step / reference.step - 1),
         Cell(config::short_text(Seconds(cause.attention)), cause.attention),
         Cell(config::short_text(Bytes(cause.kv_bytes)), cause.kv_bytes),
         Cell(config::short_text(Seconds(cause.lookups)), cause.lookups), Cell(percent(cause.wasted, 2), cause.wasted),
         chosen ? ""
                : (slower ? "more " + study::largest_cause(reference, cause)
                          : "less " + study::largest_cause(cause, reference))});
  }
  return table;
}

struct ChoiceVerdict {
  sim::ScoredChoice best;
  sim::ScoredChoice fastest;
  std::optional<sim::ScoredChoice> own;  // the fastest with the model's own KV heads, where the sweep has them
  int query_heads = 0;
};

[[nodiscard]] double slower(const sim::ScoredChoice& choice, const sim::ScoredChoice& than) {
  return choice.seconds / than.seconds - 1;
}

[[nodiscard]] std::string to_text(const ChoiceVerdict& verdict, const std::string& machine) {
  const sim::Choice best = verdict.best.choice;
  const sim::Choice fastest = verdict.fastest.choice;
  std::string text = "→ on speed alone " + machine + " should use " + study::heads_text(best.kv_heads) +
                     " (group size " + std::to_string(verdict.query_heads / best.kv_heads) + ") and block size " +
                     std::to_string(best.block_size);
  if (best != fastest)
    text += ": " + percent(slower(verdict.best, verdict.fastest), 2) + " slower than the fastest choice (" +
            study::heads_text(fastest.kv_heads) + ", block " + std::to_string(fastest.block_size) + ")" +
            (best.kv_heads > fastest.kv_heads ? ", and every KV head kept is accuracy kept"
                                              : ", a tie, and a smaller block wastes fewer slots");
  if (!verdict.own) return text;
  if (verdict.own->choice.kv_heads == best.kv_heads) return text + "; these are the model's own KV heads";
  return text + "; the model's own " + study::heads_text(verdict.own->choice.kv_heads) + " cost " +
         signed_percent(slower(*verdict.own, verdict.best), 2) + ", and no retraining";
}

[[nodiscard]] Json to_json(const sim::ScoredChoice& scored) {
  return {{"num_key_value_heads", scored.choice.kv_heads},
          {"block_size", scored.choice.block_size},
          {"step_seconds", scored.seconds.value()}};
}

[[nodiscard]] Json to_json(const ChoiceVerdict& verdict) {
  Json json = to_json(verdict.best);
  json["fastest"] = to_json(verdict.fastest);
  if (verdict.own) {
    json["own_kv_heads"] = to_json(*verdict.own);
    json["own_kv_heads"]["slower"] = slower(*verdict.own, verdict.best);
  }
  return json;
}

[[nodiscard]] ChoiceVerdict judge(const std::vector<sim::ScoredChoice>& ranked, int own_kv_heads, int query_heads) {
  const auto own = std::find_if(ranked.begin(), ranked.end(), [own_kv_heads](const sim::ScoredChoice& each) {
    return each.choice.kv_heads == own_kv_heads;
  });
  ChoiceVerdict verdict{sim::recommend(ranked, sim::kAccuracyTie), ranked.front(), {}, query_heads};
  if (own != ranked.end()) verdict.own = *own;
  return verdict;
}

}  // namespace

sim::Question recommendation_of(const std::vector<PricedPoint>& points, const sim::Machine& base) {
  return [&points, &base](const sim::Machine& machine) {
    std::vector<sim::ChoiceTime> times;
    sim::StepPrice price;
    for (const PricedPoint& priced : points) {
      sim::price_step(machine_of(*priced.point, machine, base), priced.plan, price);
      times.push_back({priced.point->choice, priced.point->workload, price.seconds});
    }
    const sim::ScoredChoice best = sim::recommend(sim::rank_choices(times), sim::kAccuracyTie);
    return sim::Answer{study::heads_text(best.choice.kv_heads) + ", block " + std::to_string(best.choice.block_size),
                       best.seconds.value()};
  };
}

void add_recommendation(const std::vector<PricedPoint>& points, int own_kv_heads, const sim::Machine& machine,
                        Report& report, Json& json) {
  std::vector<sim::ChoiceTime> times;
  std::set<int> kv_heads, block_sizes;
  for (const PricedPoint& priced : points) {
    times.push_back({priced.point->choice, priced.point->workload, priced.price.seconds});
    kv_heads.insert(priced.point->choice.kv_heads);
    block_sizes.insert(priced.point->choice.block_size);
  }
  const std::vector<sim::ScoredChoice> ranked = sim::rank_choices(times);
  if (ranked.size() < 2) {
    report.tables.back().notes.push_back("Nothing to choose: the sweep has one number of KV heads and one block size.");
    return;
  }
  const ChoiceVerdict verdict = judge(ranked, own_kv_heads, points.front().point->model.num_attention_heads);
  const std::map<sim::Choice, study::AttentionCauses> causes = causes_by_choice(points);
  if (block_sizes.size() > 1) report.tables.push_back(why_table(causes, verdict.best.choice, true));
  if (kv_heads.size() > 1) report.tables.push_back(why_table(causes, verdict.best.choice, false));
  report.tables.back().notes.push_back(to_text(verdict, machine.name));
  json["recommendation"] = to_json(verdict);
}

}  // namespace dculab::cli
