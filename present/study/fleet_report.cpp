#include "present/study/fleet_report.hpp"

#include <algorithm>

#include "config/number_text.hpp"
#include "config/unit_text.hpp"

namespace dculab::present {
namespace {

[[nodiscard]] std::string plural(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// " within TTFT 2 s, TPOT 60 ms"
[[nodiscard]] std::string level_text(const ServiceLevel& slo) {
  std::string text;
  const auto add = [&text](const char* what, const std::optional<Seconds>& most) {
    if (most) text += (text.empty() ? " within " : ", ") + std::string(what) + " " + config::short_text(*most);
  };
  add("TTFT", slo.ttft);
  add("TPOT", slo.tpot);
  add("latency", slo.latency);
  return text;
}

// "16 to 64": sizes that cannot be told apart from the best, around the chosen one.
[[nodiscard]] std::string block_sizes_text(const study::Recommendation& result) {
  int least = result.setting.block_size, most = least;
  for (const study::Decision& decision : result.decisions) {
    if (decision.key != "kv_cache.block_size") continue;
    for (std::size_t index = 0; index < decision.candidates.size(); ++index) {
      if (!decision.verdict.is_tied(index)) continue;
      least = std::min(least, decision.candidates[index].setting.block_size);
      most = std::max(most, decision.candidates[index].setting.block_size);
    }
  }
  const std::string chosen = std::to_string(result.setting.block_size);
  if (least == most) return chosen;
  return chosen + " (" + std::to_string(least) + " to " + std::to_string(most) + " are alike)";
}

[[nodiscard]] std::string expected_text(const char* what, const study::ExpectedFigure& figure) {
  return std::string(what) + " " + config::short_text(figure.value) + " (" + config::short_text(figure.low) + " to " +
         config::short_text(figure.high) + ")";
}

// "; 1.2 J a token, 0.34 USD a million tokens"
[[nodiscard]] std::string cost_text(const study::ExpectedService& expected) {
  std::string text;
  if (expected.joules_per_output_token) text += "; " + number(*expected.joules_per_output_token) + " J a token";
  if (expected.usd_per_million_tokens)
    text += (text.empty() ? "; " : ", ") + number(*expected.usd_per_million_tokens) + " USD a million tokens";
  return text;
}

[[nodiscard]] Row layout_row(const study::Recommendation& result, const study::Layout& layout, bool is_chosen) {
  const std::string name = study::layout_text(layout.devices) + (is_chosen ? " *" : "");
  if (layout.served.batch == 0) return {name, "", "", "", "", "", "", "", layout.why_not};
  Row row{name, std::string(dculab::name(layout.setting.kv_cache_dtype)), std::to_string(layout.served.batch),
          number(layout.served.output_tokens_per_second / result.serving.load.output_tokens)};
  const bool at_least = result.fleet->rate > 0 && layout.replicas > 0 && !layout.simulated;
  row.push_back(layout.replicas == 0 ? "" : (at_least ? "≥ " : "") + std::to_string(layout.num_devices()));
  if (layout.simulated) {
    row.insert(row.end(),
               {config::short_text(layout.simulated->ttft_p90), config::short_text(layout.simulated->tpot_p90),
                config::short_text(layout.simulated->latency_mean), ""});
  } else {
    row.insert(row.end(), {"", config::short_text(layout.served.tpot), "",
                           at_least ? "more devices than the choice" : layout.why_not});
  }
  return row;
}

}  // namespace

std::string fleet_line(const study::Recommendation& result, const ServiceLevel& slo) {
  if (!result.fleet) return "";
  const study::FleetChoice& fleet = *result.fleet;
  const study::Layout& layout = fleet.choice();
  std::string line = "→ ";
  line += fleet.rate > 0 ? number(fleet.rate) + " requests/s" : "the most that is served";
  line += level_text(slo) + ": " + plural(layout.replicas, "replica") + " of " + study::layout_text(layout.devices) +
          ", " + plural(layout.num_devices(), "device") + " in " + plural(fleet.servers(), "server") + "; block size " +
          block_sizes_text(result) + ", " + std::to_string(result.served.batch) +
          " sequences at a time, max_num_batched_tokens " + std::to_string(result.tokens().max_num_batched_tokens) +
          ", gpu_memory_utilization " + config::exact_number(result.memory.set) + " (" +
          percent(result.memory.needed, 2) + " of memory is needed)";
  if (result.expected)
    line += "; expect " + expected_text("TTFT P90", result.expected->ttft_p90) + ", " +
            expected_text("TPOT P90", result.expected->tpot_p90) + " at " + number(result.offered_requests_per_second) +
            " requests/s a replica; " + percent(result.expected->slo_attainment, 2) + " meet the slo" +
            cost_text(*result.expected);
  return line;
}

Table fleet_table(const study::Recommendation& result) {
  const study::FleetChoice& fleet = *result.fleet;
  Table table;
  table.title = "Layouts of a replica on servers of " + plural(fleet.offer.devices, "device");
  table.title += fleet.rate > 0 ? " for " + number(fleet.rate) + " requests/s" : ", by what they serve";
  table.columns = {"layout",   "KV dtype", "at a time",    "requests/s", "devices",
                   "TTFT P90", "TPOT P90", "mean latency", "why not"};
  for (std::size_t index = 0; index < fleet.layouts.size(); ++index)
    table.rows.push_back(layout_row(result, fleet.layouts[index], index == fleet.chosen));
  table.notes.emplace_back(
      "At a time: sequences of each scheduler. Requests/s: of a replica, in closed form. TTFT, TPOT "
      "and latency: simulated with a replica's part of the requests; where TPOT stands alone, in "
      "closed form.");
  return table;
}

}  // namespace dculab::present
