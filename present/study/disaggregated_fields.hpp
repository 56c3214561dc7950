// The fields of what `dculab recommend --decode-machine` answers.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "fields/field_list.hpp"
#include "present/study/disaggregated_command.hpp"
#include "present/study/fleet_fields.hpp"
#include "study/decide/disaggregated_recommendation.hpp"

namespace dculab::present {

// A pool of the chosen candidate.
struct ReportedPool {
  const study::DisaggregatedFleet& fleet;
  const study::Layout& layout;
  int replicas = 0;
};

struct ReportedPair {
  const study::DisaggregatedFleet& fleet;
  const study::PoolPair& pair;
};

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ReportedPool> {
  using Pool = present::ReportedPool;
  static constexpr std::string_view id = "pool";
  static constexpr std::string_view doc = "Replicas that prefill, or that decode.";
  static constexpr auto fields =
      std::tuple(field("layout", "in words", [](const Pool& pool) { return study::layout_text(pool.layout.devices); }),
                 field("tensor_parallel_size", "devices that share every layer", unit::count,
                       [](const Pool& pool) { return pool.layout.devices.tensor_parallel_size; }),
                 field("expert_parallel_size", "devices that share the routed experts; 1: none do", unit::count,
                       [](const Pool& pool) { return pool.layout.devices.experts.size; }),
                 field("replicas", "of the pool", unit::count, &Pool::replicas),
                 field("devices", "of all of them", unit::count,
                       [](const Pool& pool) { return pool.replicas * pool.layout.devices.devices(); }),
                 field("most_requests_per_second", "that a replica serves, in closed form", unit::requests_per_second,
                       [](const Pool& pool) {
                         return pool.layout.served.output_tokens_per_second / pool.fleet.load.output_tokens;
                       }));
};

template <>
struct FieldList<present::ReportedPair> {
  using Pair = present::ReportedPair;
  static constexpr std::string_view id = "pool_pair";
  static constexpr std::string_view doc = "Layouts of both pools, and how many replicas of each serve the load.";
  static constexpr auto fields = std::tuple(
      field("prefill", "layout, in words",
            [](const Pair& each) { return study::layout_text(each.fleet.prefill[each.pair.prefill].devices); }),
      field("decode", "layout, in words",
            [](const Pair& each) { return study::layout_text(each.fleet.decode[each.pair.decode].devices); }),
      field("kv_cache_dtype", "format of K and V", names_up_to<Dtype::fp4>(),
            [](const Pair& each) { return name(each.fleet.prefill[each.pair.prefill].setting.kv_cache_dtype); }),
      field("prefill_replicas", "that serve the load; at least, where it was not simulated", unit::count,
            [](const Pair& each) { return each.pair.prefill_replicas; }),
      field("decode_replicas", "the same", unit::count, [](const Pair& each) { return each.pair.decode_replicas; }),
      field("devices", "of all replicas", unit::count,
            [](const Pair& each) { return each.fleet.num_devices(each.pair); }),
      field("simulated", "with the whole load", [](const Pair& each) { return each.pair.simulated; }),
      field("why_not", "where it does not serve the load",
            [](const Pair& each) { return when(!each.pair.why_not.empty(), [&] { return each.pair.why_not; }); }));
};

template <>
struct FieldList<study::FleetAlone> {
  using Alone = study::FleetAlone;
  static constexpr std::string_view id = "fleet_alone";
  static constexpr std::string_view doc = "The same load on one kind of machine, by replicas that do both.";
  static constexpr auto fields =
      std::tuple(field("machine", "its name", &Alone::machine), field("fleet", "that serves it", &Alone::fleet),
                 field("why_not", "where none does",
                       [](const Alone& each) { return when(!each.fleet.has_value(), [&] { return each.why_not; }); }));
};

template <>
struct FieldList<study::DisaggregatedRecommendation> {
  using Found = study::DisaggregatedRecommendation;
  static constexpr std::string_view id = "disaggregated";
  static constexpr std::string_view doc =
      "Replicas that prefill and replicas that decode, which serve a load together.";

  [[nodiscard]] static std::vector<present::ReportedPair> pairs(const Found& found) {
    std::vector<present::ReportedPair> all;
    for (const study::PoolPair& pair : found.fleet.pairs) all.push_back({found.fleet, pair});
    return all;
  }

  static constexpr auto fields = std::tuple(
      field("model", "its name", &Found::model),
      field("prefill_machine", "its name", [](const Found& found) { return found.prefill_machine().name; }),
      field("decode_machine", "its name", [](const Found& found) { return found.decode_machine().name; }),
      field("prompt_tokens", "of a request", unit::tokens,
            [](const Found& found) { return found.fleet.load.prompt_tokens; }),
      field("output_tokens", "of a request", unit::tokens,
            [](const Found& found) { return found.fleet.load.output_tokens; }),
      field("requests_per_second", "of the whole load", unit::requests_per_second,
            [](const Found& found) { return found.fleet.rate; }),
      field("devices_of_server", "that were offered, of each kind", unit::count,
            [](const Found& found) { return found.fleet.prefill_offer.devices; }),
      field("prefill", "the chosen pool",
            [](const Found& found) {
              return present::ReportedPool{found.fleet, found.fleet.prefill_layout(),
                                           found.fleet.choice().prefill_replicas};
            }),
      field("decode", "the chosen pool",
            [](const Found& found) {
              return present::ReportedPool{found.fleet, found.fleet.decode_layout(),
                                           found.fleet.choice().decode_replicas};
            }),
      field("devices", "of both pools", unit::count, [](const Found& found) { return found.fleet.num_devices(); }),
      field("servers", "that hold them", unit::count, [](const Found& found) { return found.fleet.servers(); }),
      field("kv_cache_dtype", "of both pools", names_up_to<Dtype::fp4>(),
            [](const Found& found) { return name(found.fleet.server.options.kv_cache_dtype); }),
      field("block_size", "of both pools", unit::tokens,
            [](const Found& found) { return found.fleet.server.options.block_size; }),
      field("max_num_seqs", "of each scheduler", unit::count,
            [](const Found& found) { return found.fleet.server.options.max_num_seqs; }),
      field("max_num_batched_tokens", "of a step", unit::tokens,
            [](const Found& found) { return found.fleet.server.options.max_num_batched_tokens; }),
      field("expected", "of all requests", [](const Found& found) { return found.fleet.expected; }),
      field("chosen", "its place in pairs", unit::count, [](const Found& found) { return found.fleet.chosen; }),
      field("pairs", "those tried", &pairs),
      field("simulations", "that were run to choose", unit::count,
            [](const Found& found) { return found.fleet.simulations; }),
      field("alone", "without disaggregation, on each kind of machine", &Found::alone),
      field("no_worse", "the machine of `alone` that disaggregation gains nothing over",
            [](const Found& found) {
              const study::FleetAlone* alone = found.no_worse();
              return when(alone != nullptr, [&] { return alone->machine; });
            }),
      field("serve_commands", "of a prefill and of a decode replica; empty where vLLM is not known to be set so",
            [](const Found& found) { return present::disaggregated_commands(found); }),
      field("serve_note", "what must be known beside them, or why there are none",
            [](const Found& found) { return present::disaggregated_note(found); }));
};

}  // namespace dculab
