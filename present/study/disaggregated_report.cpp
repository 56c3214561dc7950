#include "present/study/disaggregated_report.hpp"

#include <string>
#include <utility>

#include "config/unit_text.hpp"
#include "present/output/field_csv.hpp"
#include "present/output/field_json.hpp"
#include "present/study/disaggregated_command.hpp"
#include "present/study/fleet_text.hpp"
#include "present/study/recommend_fields.hpp"
#include "study/scenario/resolve.hpp"
#include "study/scenario/stacks.hpp"

namespace dculab::present {
namespace {

using Found = study::DisaggregatedRecommendation;

// "2 prefill replicas of TP 2 on h100-sxm"
[[nodiscard]] std::string pool_text(int replicas, const char* role, const study::Layout& layout,
                                    const sim::Machine& machine) {
  return counted(replicas, std::string(role) + " replica") + " of " + study::layout_text(layout.devices) + " on " +
         machine.name;
}

[[nodiscard]] std::string pools_text(const Found& found) {
  const study::PoolPair& pair = found.fleet.choice();
  return pool_text(pair.prefill_replicas, "prefill", found.fleet.prefill_layout(), found.prefill_machine()) + ", " +
         pool_text(pair.decode_replicas, "decode", found.fleet.decode_layout(), found.decode_machine());
}

// "5 requests/s within TTFT 2 s: 2 prefill replicas of TP 2 on ..., ...; 16 devices in 3 servers"
[[nodiscard]] std::string choice_text(const Found& found, const ServiceLevel& slo) {
  const study::DisaggregatedFleet& fleet = found.fleet;
  return number(fleet.rate) + " requests/s" + level_text(slo) + ": " + pools_text(found) + "; " +
         counted(fleet.num_devices(), "device") + " in " + counted(fleet.servers(), "server");
}

// "4 replicas of TP 4"
[[nodiscard]] std::string alone_text(const study::FleetChoice& fleet) {
  const study::Layout& layout = fleet.choice();
  return counted(layout.replicas, "replica") + " of " + study::layout_text(layout.devices);
}

// "do not disaggregate: 2 devices of h100-sxm alone serve it (2 replicas of TP 1)"; empty where the pools gain
// something.
[[nodiscard]] std::string verdict_text(const Found& found) {
  const study::FleetAlone* alone = found.no_worse();
  if (alone == nullptr) return {};
  return "do not disaggregate: " + counted(alone->fleet->choice().num_devices(), "device") + " of " + alone->machine +
         " alone serve it (" + alone_text(*alone->fleet) + ")";
}

// "→ without disaggregation: 16 devices of k100-ai (4 replicas of TP 4), or no number of h100-sxm"
[[nodiscard]] std::string comparison_line(const Found& found) {
  std::string text = "→ without disaggregation: ";
  for (const study::FleetAlone& each : found.alone) {
    if (&each != &found.alone.front()) text += ", or ";
    text += each.fleet ? counted(each.fleet->choice().num_devices(), "device") + " of " + each.machine + " (" +
                             alone_text(*each.fleet) + ")"
                       : "no number of " + each.machine;
  }
  if (const std::string verdict = verdict_text(found); !verdict.empty()) text += "; " + verdict;
  return text;
}

void add_service(const study::ReplicaService& service, Row& row) {
  row.insert(row.end(), {config::short_text(service.ttft_p90), config::short_text(service.tpot_p90),
                         config::short_text(service.latency_mean)});
}

[[nodiscard]] std::vector<std::string> comparison_notes(const Found& found, const ServiceLevel& slo) {
  const study::DisaggregatedFleet& fleet = found.fleet;
  const EngineOptions& engine = fleet.server.options;
  std::vector<std::string> notes{"→ " + choice_text(found, slo),
                                 "→ KV dtype " + std::string(name(engine.kv_cache_dtype)) + ", block size " +
                                     std::to_string(engine.block_size) + ", " +
                                     counted(engine.max_num_seqs, "sequence") + " at a time, max_num_batched_tokens " +
                                     std::to_string(engine.max_num_batched_tokens),
                                 expectation_line(fleet.expected, " at " + number(fleet.rate) + " requests/s")};
  if (std::string line = attainment_line(fleet.expected, slo, doubt_text(fleet.expected, slo)); !line.empty())
    notes.push_back(std::move(line));
  notes.push_back(comparison_line(found));
  for (const study::FleetAlone& each : found.alone)
    if (!each.fleet) notes.push_back(each.why_not);
  for (std::string& line : disaggregated_commands(found)) notes.push_back(std::move(line));
  notes.push_back(disaggregated_note(found));
  return notes;
}

[[nodiscard]] Table comparison_table(const Found& found, const ServiceLevel& slo) {
  const study::DisaggregatedFleet& fleet = found.fleet;
  Table table;
  table.title = found.model + ": " + number(fleet.rate) + " requests/s of " + std::to_string(fleet.load.prompt_tokens) +
                " + " + std::to_string(fleet.load.output_tokens) + " tokens, with and without disaggregation";
  table.columns = {"served by", "devices", "servers", "TTFT P90", "TPOT P90", "mean latency"};
  Row& chosen = table.rows.emplace_back(
      Row{pools_text(found), std::to_string(fleet.num_devices()), std::to_string(fleet.servers())});
  add_service(*fleet.choice().simulated, chosen);
  for (const study::FleetAlone& each : found.alone) {
    if (!each.fleet) continue;
    Row& row = table.rows.emplace_back(Row{alone_text(*each.fleet) + " on " + each.machine + " alone",
                                           std::to_string(each.fleet->choice().num_devices()),
                                           std::to_string(each.fleet->servers())});
    add_service(*each.fleet->choice().simulated, row);
  }
  table.notes = comparison_notes(found, slo);
  return table;
}

[[nodiscard]] Row pair_row(const study::DisaggregatedFleet& fleet, const study::PoolPair& pair, bool is_chosen) {
  const study::Layout &prefill = fleet.prefill[pair.prefill], &decode = fleet.decode[pair.decode];
  const bool at_least = !pair.simulated;
  Row row{study::layout_text(prefill.devices) + (is_chosen ? " *" : ""),
          study::layout_text(decode.devices),
          std::string(dculab::name(prefill.setting.kv_cache_dtype)),
          std::to_string(decode.served.batch),
          std::to_string(pair.prefill_replicas),
          std::to_string(pair.decode_replicas),
          (at_least ? "≥ " : "") + std::to_string(fleet.num_devices(pair))};
  if (pair.simulated)
    add_service(*pair.simulated, row);
  else
    row.insert(row.end(), 3, "");
  row.push_back(pair.simulated || !pair.why_not.empty() ? pair.why_not : "the choice is better");
  return row;
}

[[nodiscard]] Table pairs_table(const Found& found) {
  const study::DisaggregatedFleet& fleet = found.fleet;
  Table table;
  table.title = "Layouts of both pools on servers of " + counted(fleet.prefill_offer.devices, "device");
  table.columns = {"prefill", "decode",   "KV dtype", "at a time",    "prefill replicas", "decode replicas",
                   "devices", "TTFT P90", "TPOT P90", "mean latency", "why not"};
  for (std::size_t index = 0; index < fleet.pairs.size(); ++index)
    table.rows.push_back(pair_row(fleet, fleet.pairs[index], index == fleet.chosen));
  const auto add_unfit = [&table](const std::vector<study::Layout>& layouts, const std::string& pool) {
    for (const study::Layout& layout : layouts)
      if (layout.served.batch == 0)
        table.notes.push_back(pool + " " + study::layout_text(layout.devices) + ": " + layout.why_not);
  };
  add_unfit(fleet.prefill, "Prefill");
  add_unfit(fleet.decode, "Decode");
  table.notes.push_back(
      "At a time: sequences of each scheduler. TTFT, TPOT and latency: " + std::to_string(fleet.simulations) +
      " simulations of the whole load with both pools, KV transfer included.");
  return table;
}

// The answer once more, below the tables.
[[nodiscard]] std::vector<std::string> conclusion_of(const Found& found, const ServiceLevel& slo) {
  const study::ExpectedService& expected = found.fleet.expected;
  const std::string doubt = doubt_text(expected, slo);
  std::vector<std::string> sentences{found.model + ", " + choice_text(found, slo) + "; expect " +
                                     expected_text(expected) + (doubt.empty() ? "" : "; " + doubt) + "."};
  if (const std::string verdict = verdict_text(found); !verdict.empty())
    sentences.insert(sentences.begin(), found.model + ": " + verdict + ".");
  for (std::string& command : disaggregated_commands(found)) sentences.push_back(std::move(command));
  return sentences;
}

}  // namespace

Report disaggregated_report(const study::RecommendationQuestion& question, const std::vector<Found>& found) {
  const config::Scenario& scenario = question.scenario;
  ReportedRecommendations reported{.question = scenario.question, .slo = scenario.slo};
  for (const Found& each : found) reported.disaggregated.emplace_back(each);
  reported.machine_facts.emplace();
  for (const Found& each : found)
    for (const sim::Machine* machine : {&each.prefill_machine(), &each.decode_machine()})
      set_of_machine(*reported.machine_facts, machine->name, machine_facts(*machine));
  Report report = report_of("dculab/recommend/1", reported, study::whose_kernels(scenario));
  add_warnings(report, study::model_notes(scenario));
  for (const Found& each : found) {
    report.tables.push_back(comparison_table(each, scenario.slo));
    report.tables.push_back(pairs_table(each));
    for (std::string& sentence : conclusion_of(each, scenario.slo)) reported.conclusion.push_back(std::move(sentence));
  }
  set_answer(reported, report);
  return report;
}

}  // namespace dculab::present
