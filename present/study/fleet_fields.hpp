// The fields of how devices are laid out for a load.
#pragma once

#include <string_view>
#include <tuple>

#include "fields/field_list.hpp"
#include "sim/study/serving_setting.hpp"
#include "study/decide/expected_service.hpp"
#include "study/decide/fleet.hpp"

namespace dculab {

template <>
struct FieldList<study::ReplicaService> {
  using Service = study::ReplicaService;
  static constexpr std::string_view id = "replica_service";
  static constexpr std::string_view doc = "What requests of one replica see, simulated.";
  static constexpr auto fields =
      std::tuple(field("requests_per_second", "that arrive; 0: as the workload's file says", unit::requests_per_second,
                       &Service::requests_per_second),
                 field("requests", "that were simulated", unit::count, &Service::requests),
                 field("slo_attainment", "share of the requests that meet the service level", unit::share,
                       &Service::slo_attainment),
                 field("ttft_p90", "seconds", &Service::ttft_p90), field("tpot_p90", "seconds", &Service::tpot_p90),
                 field("latency_mean", "seconds", &Service::latency_mean));
};

template <>
struct FieldList<study::Layout> {
  using Layout = study::Layout;
  static constexpr std::string_view id = "layout";
  static constexpr std::string_view doc = "How the devices of a replica share the model, and what that serves.";
  static constexpr auto fields =
      std::tuple(field("layout", "in words", [](const Layout& each) { return study::layout_text(each.devices); }),
                 field("tensor_parallel_size", "devices that share every layer", unit::count,
                       [](const Layout& each) { return each.devices.tensor_parallel_size; }),
                 field("pipeline_parallel_size", "stages", unit::count,
                       [](const Layout& each) { return each.devices.pipeline_parallel_size; }),
                 field("expert_parallel_size", "devices that share the routed experts; 1: none do", unit::count,
                       [](const Layout& each) { return each.devices.experts.size; }),
                 field("devices_of_replica", "of a replica", unit::count,
                       [](const Layout& each) { return each.devices.devices(); }),
                 field("kv_cache_dtype", "format of K and V", names_up_to<Dtype::fp4>(),
                       [](const Layout& each) { return name(each.setting.kv_cache_dtype); }),
                 field("max_num_seqs", "of each scheduler; 0: the load cannot be served", unit::count,
                       [](const Layout& each) { return each.served.batch; }),
                 field("limit", "what keeps it from being larger", names_up_to<sim::SequenceLimit::most>(),
                       [](const Layout& each) { return sim::name(each.served.limit); }),
                 field("output_tokens_per_second", "of a replica, in closed form", unit::tokens_per_second,
                       [](const Layout& each) { return each.served.output_tokens_per_second; }),
                 field("replicas", "that serve the load; at least, where none was simulated; 0: they do not",
                       unit::count, &Layout::replicas),
                 field("devices", "of all replicas", unit::count, &Layout::num_devices),
                 field("simulated", "with a replica's part of the requests", &Layout::simulated),
                 field("why_not", "where it does not serve the load",
                       [](const Layout& each) { return when(!each.why_not.empty(), [&] { return each.why_not; }); }),
                 field("missed", "the time that is longer than the service level allows", &Layout::missed));
};

template <>
struct FieldList<study::FleetChoice> {
  using Choice = study::FleetChoice;
  static constexpr std::string_view id = "fleet";
  static constexpr std::string_view doc = "How many devices a load takes, and how they share the model.";
  static constexpr auto fields = std::tuple(
      field("devices_of_server", "that were offered", unit::count,
            [](const Choice& each) { return each.offer.devices; }),
      field("requests_per_second", "of the whole load; 0: as many as can be", unit::requests_per_second, &Choice::rate),
      field("is_largest_rate", "none was asked for: it is the largest that meets the SLO", &Choice::is_largest_rate),
      field("layout", "the chosen one, in words",
            [](const Choice& each) { return study::layout_text(each.choice().devices); }),
      field("devices", "of all replicas", unit::count, [](const Choice& each) { return each.choice().num_devices(); }),
      field("servers", "that hold them", unit::count, &Choice::servers),
      field("chosen", "its place in layouts", unit::count, &Choice::chosen),
      field("layouts", "those tried", &Choice::layouts));
};

template <>
struct FieldList<study::ExpectedFigure> {
  using Figure = study::ExpectedFigure;
  static constexpr std::string_view id = "expected_figure";
  static constexpr std::string_view doc = "A simulated figure with its 90 % interval.";
  static constexpr auto fields = std::tuple(field("value", "simulated with steps as they are priced", &Figure::value),
                                            field("interval", "with all steps at either end of what they take",
                                                  [](const Figure& each) { return interval(each.low, each.high); }));
};

template <>
struct FieldList<study::ExpectedService> {
  using Service = study::ExpectedService;
  static constexpr std::string_view id = "expected_service";
  static constexpr std::string_view doc = "What the requests of a replica see with all that is recommended.";
  static constexpr auto fields = std::tuple(
      field("ttft_p90", "seconds", &Service::ttft_p90), field("tpot_p90", "seconds", &Service::tpot_p90),
      field("slo_attainment", "share of the requests that meet the service level", &Service::slo_attainment),
      field("requests", "that were simulated", unit::count, &Service::requests),
      field("joules_per_output_token", "of all devices, idle ones too; where the machine's file states power",
            &Service::joules_per_output_token),
      field("usd_per_million_tokens", "that are answered; where the machine's file states a price",
            &Service::usd_per_million_tokens));
};

template <>
struct FieldList<study::MemoryShare> {
  using Share = study::MemoryShare;
  static constexpr std::string_view id = "memory_share";
  static constexpr std::string_view doc = "Of a device's memory.";
  static constexpr auto fields = std::tuple(
      field("chosen", "vLLM's gpu_memory_utilization", unit::share, &Share::chosen),
      field("needed", "by weights, activations and max_num_seqs of the longest request", unit::share, &Share::needed),
      field("unmanaged", "by activations and buffers, of it", unit::share, &Share::unmanaged));
};

}  // namespace dculab
