#include "cli/study/recommendation.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "config/unit_text.hpp"
#include "sim/memory/capacity.hpp"
#include "sim/study/serving_setting.hpp"

namespace dculab::cli {
namespace {

// What attention costs in a step, by cause; means over the workloads.
struct Causes {
  double step = 0, attention = 0, memory = 0, latency = 0, lookups = 0, launch = 0, compute = 0;  // s
  double kv_bytes = 0;
  double wasted = 0;  // share of KV memory
};

[[nodiscard]] bool is_attention(const Op& op) {
  return op.kind == OpKind::attention_decode || op.kind == OpKind::attention_prefill;
}

void add_to(Causes& causes, const PricedPoint& priced, double weight) {
  causes.step += weight * priced.price.seconds.value();
  for (std::size_t index = 0; index < priced.plan.ops.size(); ++index) {
    const Op& op = priced.plan.ops[index];
    if (!is_attention(op)) continue;
    const sim::OpPrice& price = priced.price.ops[index];
    const double times = weight * op.count;
    causes.attention += times * price.seconds.value();
    causes.memory += times * price.memory.value();
    causes.latency += times * price.latency.value();
    causes.lookups += times * price.lookups.value();
    causes.launch += times * price.launch.value();
    causes.compute += times * price.compute.value();
    causes.kv_bytes += times * op.operands().front().unique.value();
    causes.wasted += weight * (1 - op.attention.context_tokens / op.attention.padded_tokens);
  }
}

[[nodiscard]] std::map<sim::Choice, Causes> causes_by_choice(const std::vector<PricedPoint>& points) {
  std::map<sim::Choice, int> counts;
  for (const PricedPoint& priced : points) ++counts[priced.point->choice];
  std::map<sim::Choice, Causes> result;
  for (const PricedPoint& priced : points)
    add_to(result[priced.point->choice], priced, 1.0 / counts[priced.point->choice]);
  return result;
}

[[nodiscard]] std::string largest_cause(const Causes& from, const Causes& to) {
  const std::vector<std::pair<std::string, double>> differences{
      {"KV traffic", to.memory - from.memory},
      {"latency with too few bytes in flight", to.latency - from.latency},
      {"block-table look-ups", to.lookups - from.lookups},
      {"workgroup starts", to.launch - from.launch},
      {"arithmetic", to.compute - from.compute}};
  return std::max_element(differences.begin(), differences.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// The alternatives along one axis, the other held at the recommended value.
[[nodiscard]] Table why_table(const std::map<sim::Choice, Causes>& causes, sim::Choice best, bool along_blocks) {
  Table table;
  table.title = along_blocks ? "Block sizes at " + heads_text(best.kv_heads)
                             : "KV heads at block size " + std::to_string(best.block_size);
  table.columns = {along_blocks ? "block" : "KV heads",
                   "step",
                   "against choice",
                   "attention",
                   "KV bytes",
                   "look-ups",
                   "KV waste",
                   "what differs most"};
  const Causes& reference = causes.at(best);
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
                : (slower ? "more " + largest_cause(reference, cause) : "less " + largest_cause(cause, reference))});
  }
  return table;
}

struct Verdict {
  sim::ScoredChoice best;
  sim::ScoredChoice fastest;
  std::optional<sim::ScoredChoice> own;  // the fastest with the model's own KV heads, where the sweep has them
  int query_heads = 0;
};

[[nodiscard]] double slower(const sim::ScoredChoice& choice, const sim::ScoredChoice& than) {
  return choice.seconds / than.seconds - 1;
}

[[nodiscard]] std::string to_text(const Verdict& verdict, const std::string& machine) {
  const sim::Choice best = verdict.best.choice;
  const sim::Choice fastest = verdict.fastest.choice;
  std::string text = "→ on speed alone " + machine + " should use " + heads_text(best.kv_heads) + " (group size " +
                     std::to_string(verdict.query_heads / best.kv_heads) + ") and block size " +
                     std::to_string(best.block_size);
  if (best != fastest)
    text += ": " + percent(slower(verdict.best, verdict.fastest), 2) + " slower than the fastest choice (" +
            heads_text(fastest.kv_heads) + ", block " + std::to_string(fastest.block_size) + ")" +
            (best.kv_heads > fastest.kv_heads ? ", and every KV head kept is accuracy kept"
                                              : ", a tie, and a smaller block wastes fewer slots");
  if (!verdict.own) return text;
  if (verdict.own->choice.kv_heads == best.kv_heads) return text + "; these are the model's own KV heads";
  return text + "; the model's own " + heads_text(verdict.own->choice.kv_heads) + " cost " +
         signed_percent(slower(*verdict.own, verdict.best), 2) + ", and no retraining";
}

[[nodiscard]] Json to_json(const sim::ScoredChoice& scored) {
  return {{"num_key_value_heads", scored.choice.kv_heads},
          {"block_size", scored.choice.block_size},
          {"step_seconds", scored.seconds.value()}};
}

[[nodiscard]] Json to_json(const Verdict& verdict) {
  Json json = to_json(verdict.best);
  json["fastest"] = to_json(verdict.fastest);
  if (verdict.own) {
    json["own_kv_heads"] = to_json(*verdict.own);
    json["own_kv_heads"]["slower"] = slower(*verdict.own, verdict.best);
  }
  return json;
}

[[nodiscard]] Verdict judge(const std::vector<sim::ScoredChoice>& ranked, int own_kv_heads, int query_heads) {
  const auto own = std::find_if(ranked.begin(), ranked.end(), [own_kv_heads](const sim::ScoredChoice& each) {
    return each.choice.kv_heads == own_kv_heads;
  });
  Verdict verdict{sim::recommend(ranked, sim::kAccuracyTie), ranked.front(), {}, query_heads};
  if (own != ranked.end()) verdict.own = *own;
  return verdict;
}

}  // namespace

std::string heads_text(int kv_heads) { return std::to_string(kv_heads) + (kv_heads == 1 ? " KV head" : " KV heads"); }

std::string attention_difference(const PricedPoint& from, const PricedPoint& to) {
  Causes before, after;
  add_to(before, from, 1);
  add_to(after, to, 1);
  return after.attention >= before.attention ? "more " + largest_cause(before, after)
                                             : "less " + largest_cause(after, before);
}

sim::Question recommendation_of(const std::vector<PricedPoint>& points) {
  return [&points](const sim::Machine& machine) {
    std::vector<sim::ChoiceTime> times;
    sim::StepPrice price;
    for (const PricedPoint& priced : points) {
      sim::price_step(machine, priced.plan, price);
      times.push_back({priced.point->choice, priced.point->workload, price.seconds});
    }
    const sim::ScoredChoice best = sim::recommend(sim::rank_choices(times), sim::kAccuracyTie);
    return sim::Answer{heads_text(best.choice.kv_heads) + ", block " + std::to_string(best.choice.block_size),
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
  const Verdict verdict = judge(ranked, own_kv_heads, points.front().point->model.num_attention_heads);
  const std::map<sim::Choice, Causes> causes = causes_by_choice(points);
  if (block_sizes.size() > 1) report.tables.push_back(why_table(causes, verdict.best.choice, true));
  if (kv_heads.size() > 1) report.tables.push_back(why_table(causes, verdict.best.choice, false));
  report.tables.back().notes.push_back(to_text(verdict, machine.name));
  json["recommendation"] = to_json(verdict);
}

}  // namespace dculab::cli
