#include "present/study/fleet_report.hpp"

#include <algorithm>
#include <utility>

#include "config/number_text.hpp"
#include "config/unit_text.hpp"
#include "present/study/fleet_text.hpp"
#include "study/decide/replica_service.hpp"

namespace dculab::present {
namespace {

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
  return chosen + " (" + std::to_string(least) + " to " + std::to_string(most) + " cannot be told apart)";
}

// Why a layout does not serve, with the time that misses the service level or the devices that it needs, or why it was
// not simulated.
[[nodiscard]] std::string unsimulated_text(const study::FleetChoice& fleet, const study::Layout& layout) {
  const std::string lacks = layout.missed           ? ": " + config::short_text(*layout.missed)
                            : layout.needed_devices ? ": at least " + std::to_string(*layout.needed_devices)
                                                    : "";
  if (!layout.why_not.empty() || fleet.rate == 0 || layout.simulated) return layout.why_not + lacks;
  return "the choice needs fewer devices";
}

[[nodiscard]] Row layout_row(const study::Recommendation& result, const study::Layout& layout, bool is_chosen) {
  const study::FleetChoice& fleet = *result.fleet;
  const std::string name = study::layout_text(layout.devices) + (is_chosen ? " *" : "");
  if (layout.served.batch == 0) return {name, "", "", "", "", "", "", "", "", unsimulated_text(fleet, layout)};
  const bool at_least = fleet.rate > 0 && !layout.simulated;
  Row row{name,
          std::string(dculab::name(layout.setting.kv_cache_dtype)),
          std::to_string(layout.served.batch),
          number(layout.served.output_tokens_per_second / result.serving.load.output_tokens),
          config::short_text(layout.served.tpot),
          layout.replicas == 0 ? "" : (at_least ? "≥ " : "") + std::to_string(layout.num_devices())};
  if (layout.simulated)
    row.insert(row.end(),
               {config::short_text(layout.simulated->ttft_p90), config::short_text(layout.simulated->tpot_p90),
                config::short_text(layout.simulated->latency_mean)});
  else
    row.insert(row.end(), 3, "");
  row.push_back(unsimulated_text(fleet, layout));
  return row;
}

}  // namespace

std::string fleet_text(const study::Recommendation& result, const ServiceLevel& slo) {
  const study::FleetChoice& fleet = *result.fleet;
  const study::Layout& layout = fleet.choice();
  const std::string load = fleet.rate == 0         ? "with all devices"
                           : fleet.is_largest_rate ? "at most " + number(fleet.rate) + " requests/s"
                                                   : number(fleet.rate) + " requests/s";
  return load + level_text(slo) + ": " + counted(layout.replicas, "replica") + " of " +
         study::layout_text(layout.devices) + ", " + counted(layout.num_devices(), "device") + " in " +
         counted(fleet.servers(), "server");
}

std::string given_text(const study::Recommendation& result, const ServiceLevel& slo) {
  const double requests = result.tokens().full_requests_per_second, rate = result.offered_requests_per_second;
  const std::string most =
      number(requests) + " requests/s (" + number(requests * result.serving.load.output_tokens) + " tokens/s)";
  const std::string who = result.replicas > 1 ? ": each of " + counted(result.replicas, "replica") : std::string();
  if (!result.expected) return who + " serves at most " + most;
  if (rate > requests) return who + " does not serve " + number(rate) + " requests/s, but at most " + most;
  if (!study::has_limits(slo)) return who + " serves " + number(rate) + " of at most " + most;
  const double met = result.expected->slo_attainment.value;
  if (met >= slo.share)
    return who + " serves " + number(rate) + " requests/s within the SLO, and at most " + most + " without it";
  return who + " serves " + number(rate) + " of at most " + most + ", but only " + share_text(met, slo.share) +
         " of the requests meet the SLO";
}

std::string expected_text(const study::Recommendation& result) { return expected_text(*result.expected); }

std::string doubt_text(const study::Recommendation& result, const ServiceLevel& slo) {
  const std::string text = doubt_text(*result.expected, slo);
  if (text.empty()) return text;
  const auto devices = [&result](int replicas) {
    return counted(std::int64_t{replicas} * result.serving.devices.devices(), "device") + " (" +
           counted(replicas, "replica") + ")";
  };
  if (result.replicas_without_doubt)
    return text + ": " + devices(*result.replicas_without_doubt) + " would be enough there";
  if (!result.fleet) return text + ": --devices N says how many the expected times take";
  if (!result.replicas_in_doubt) return text;
  if (*result.replicas_in_doubt == result.replicas) return text + ", and the offered servers hold no more replicas";
  return text + ": not even " + devices(*result.replicas_in_doubt) + " would be enough there";
}

std::vector<std::string> load_lines(const study::Recommendation& result, const ServiceLevel& slo) {
  std::vector<std::string> lines;
  if (result.fleet) {
    lines.push_back("→ " + fleet_text(result, slo));
    lines.push_back("→ block size " + block_sizes_text(result) + ", " + counted(result.max_num_seqs, "sequence") +
                    " at a time, max_num_batched_tokens " + std::to_string(result.tokens().max_num_batched_tokens) +
                    ", gpu_memory_utilization " + config::exact_number(result.memory.chosen) +
                    " (weights and these sequences take " + percent(result.memory.needed, 2) + " of the memory)");
  }
  if (!result.expected) return lines;
  const double rate = result.offered_requests_per_second;
  const std::string load = rate > 0 ? " at " + number(rate) + " requests/s for each replica" +
                                          (result.replicas > 1 ? ", which take requests in turn" : "")
                                    : " with requests as they were recorded";
  lines.push_back(expectation_line(*result.expected, load));
  if (std::string line = attainment_line(*result.expected, slo, doubt_text(result, slo)); !line.empty())
    lines.push_back(std::move(line));
  if (result.fleet && !result.serving.machine.stack.is_own() && slo.tpot && result.replicas > 1)
    lines.push_back("→ devices of their own for prefill and decode may serve more: --decode-machine " +
                    result.serving.machine.name);
  return lines;
}

Table fleet_table(const study::Recommendation& result) {
  const study::FleetChoice& fleet = *result.fleet;
  Table table;
  table.title = "Layouts of a replica on servers of " + counted(fleet.offer.devices, "device");
  table.title += fleet.rate > 0 ? " for " + number(fleet.rate) + " requests/s" : ", by what they serve";
  table.columns = {"layout",  "KV dtype", "at a time", "requests/s",   "TPOT",
                   "devices", "TTFT P90", "TPOT P90",  "mean latency", "why not"};
  for (std::size_t index = 0; index < fleet.layouts.size(); ++index)
    table.rows.push_back(layout_row(result, fleet.layouts[index], index == fleet.chosen));
  table.notes.emplace_back(
      "At a time: sequences of each scheduler. Requests/s and TPOT: of a replica, in closed form. The last figures are "
      "simulated with a replica's part of the requests and the program's own limits; the answer above has other "
      "limits.");
  return table;
}

}  // namespace dculab::present
