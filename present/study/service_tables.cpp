#include "present/study/service_tables.hpp"

#include "config/unit_text.hpp"
#include "present/study/variant_text.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string time_cell_of(Seconds time) { return time > Seconds() ? config::short_text(time) : ""; }

[[nodiscard]] Row pool_row(const std::string& variant, const char* name, const sim::ServicePool& pool) {
  Row row{variant, name};
  row.emplace_back(std::to_string(pool.batch) + (pool.limit == sim::BatchLimit::memory ? " (memory)" : ""));
  row.emplace_back(std::to_string(pool.tokens));
  row.emplace_back(number(pool.tokens_per_second));
  row.push_back(time_cell_of(pool.steps));
  for (const char* each : sim::kPoolTerms) row.push_back(time_cell_of(pool.term(each)));
  row.push_back(time_cell_of(pool.term("hidden exchange")));
  row.push_back(time_cell_of(pool.reading));
  row.push_back(time_cell_of(pool.sending));
  return row;
}

}  // namespace

Table pools_table(const std::vector<study::VariantCost>& costs, const config::Compare& compare,
                  const std::string& machine) {
  Table table;
  table.title = "What a step of each pool spends on " + machine;
  table.columns = {"variant", "pool", "batch", "tokens", "tokens/s a node", "step"};
  for (const char* each : sim::kPoolTerms) table.columns.emplace_back(each);
  for (const char* each : {"hidden exchange", "KV reads", "KV transfer"}) table.columns.emplace_back(each);
  for (std::size_t index = 0; index < costs.size(); ++index) {
    if (!costs[index].service || !costs[index].fits()) continue;
    const std::string& variant = index == 0 ? compare.baseline : compare.variants[index - 1].name;
    table.rows.push_back(pool_row(variant, "prefill", costs[index].service->prefill));
    table.rows.push_back(pool_row(variant, "decode", costs[index].service->decode));
  }
  table.notes = {
      "batch and tokens: of a group of devices with sequences of its own; step: the sum of the terms behind it.",
      "hidden exchange, KV reads and KV transfer run beside the step, which waits for the slowest of them; "
      "with the first it would be longer by as much."};
  return table;
}

std::string bound_of(const study::VariantCost& cost, const std::string& metric) {
  if (!cost.service) return largest_share(cost);
  const sim::ServicePool& pool = metric.starts_with("input") ? cost.service->prefill : cost.service->decode;
  const sim::PoolBound bound = sim::bound_of(pool);
  return bound.share ? bound.name + " " + percent(*bound.share, 2) : bound.name;
}

std::vector<std::string> service_assumptions(const config::Scenario& scenario) {
  const RequestWorkload& work = scenario.workload.served;
  return {
      "assumed: requests of " + exact_number(work.prompt.center) + " + " + exact_number(work.output.center) +
          " tokens, all alike, and always more of them than the pools can take (sim/study/service_run.hpp)",
      "assumed: all groups of devices that share experts have as many tokens, and wait for the device with the most "
      "rows (docs/decisions/0030-expert-parallelism.md)"};
}

}  // namespace dculab::present
