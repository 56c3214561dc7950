// The fields of what `dculab probe` measured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/probe/gpu_probe.hpp"
#include "engine/probe/host_measurements.hpp"
#include "present/output/field_json.hpp"
#include "sim/hardware/machine.hpp"

namespace dculab::present {

struct ReportedHost {
  const engine::HostMeasurements& host;
  const sim::Machine& machine;  // made of the measurements
};

struct ReportedGpu {
  const engine::GpuMeasurements& gpu;
  bool emulated = false;
};

struct ProbedLevel {
  const sim::MemoryLevel& level;
};

struct PeakRate {
  std::string name;
  int threads = 1;
  FlopsPerSecond rate;
};

// What a matmul kernel reaches with weights in a cache, or of DRAM's bandwidth with weights in memory.
template <class Figure>
struct MatmulFigure {
  std::string kernel;
  int in_features = 0, rows = 0;
  Figure figure{};
};
using MatmulRate = MatmulFigure<FlopsPerSecond>;
using MatmulShare = MatmulFigure<double>;

[[nodiscard]] std::string_view exchange_name(engine::ExchangeKind kind);

}  // namespace dculab::present

namespace dculab {

template <>
struct FieldList<present::ProbedLevel> {
  using Self = present::ProbedLevel;
  static constexpr std::string_view id = "probed_level";
  static constexpr std::string_view doc = "A memory level, as it was measured.";
  static constexpr auto fields =
      std::tuple(field("name", "of the level", [](const Self& reported) { return reported.level.name; }),
                 field("size_bytes", "of one instance", [](const Self& reported) { return reported.level.size; }),
                 field("bandwidth_bytes_per_second", "of all threads that read",
                       [](const Self& reported) { return reported.level.bandwidth; }),
                 field("latency_seconds", "of a load", [](const Self& reported) { return reported.level.latency; }),
                 field("outstanding", "lines in flight of a thread; 0: they do not limit", unit::count,
                       [](const Self& reported) { return reported.level.outstanding; }),
                 field("kept_for_seconds", "that a line stays while others use the level; 0: for good",
                       [](const Self& reported) { return reported.level.retention_time; }));
};

template <>
struct FieldList<present::PeakRate> {
  using Rate = present::PeakRate;
  static constexpr std::string_view id = "peak_rate";
  static constexpr std::string_view doc = "Peak arithmetic, as it was measured.";
  static constexpr auto fields = std::tuple(field("name", "of the instructions: f32_fma", &Rate::name),
                                            field("threads", "that computed", unit::count, &Rate::threads),
                                            field("flop_per_second", "the highest of the runs", &Rate::rate));
};

template <>
struct FieldList<engine::ExchangeMeasurement> {
  using Exchange = engine::ExchangeMeasurement;
  static constexpr std::string_view id = "exchange";
  static constexpr std::string_view doc = "An exchange of processes through shared memory.";
  static constexpr auto fields =
      std::tuple(field("kind", "what they do", one_of("meeting", "all-reduce", "all-to-all"),
                       [](const Exchange& each) { return present::exchange_name(each.kind); }),
                 field("processes", "of one thread each", unit::count, &Exchange::ranks),
                 field("bytes", "of each process", &Exchange::bytes),
                 field("seconds", "median of the runs", [](const Exchange& each) { return each.time.median; }),
                 field("lowest_seconds", "of the runs", [](const Exchange& each) { return each.time.lowest; }));
};

template <>
struct FieldList<present::MatmulRate> {
  using Rate = present::MatmulRate;
  static constexpr std::string_view id = "matmul_rate";
  static constexpr std::string_view doc = "A matmul kernel with weights in L2, all threads.";
  static constexpr auto fields = std::tuple(field("kernel", "formats of weights and activations", &Rate::kernel),
                                            field("in_features", "of the weights", unit::count, &Rate::in_features),
                                            field("rows", "of activations", unit::count, &Rate::rows),
                                            field("flop_per_second", "the highest of the runs", &Rate::figure));
};

template <>
struct FieldList<present::MatmulShare> {
  using Share = present::MatmulShare;
  static constexpr std::string_view id = "matmul_dram_share";
  static constexpr std::string_view doc = "A matmul kernel with weights in memory, all threads.";
  static constexpr auto fields = std::tuple(
      field("kernel", "formats of weights and activations", &Share::kernel),
      field("in_features", "of the weights", unit::count, &Share::in_features),
      field("rows", "of activations", unit::count, &Share::rows),
      field("share", "of DRAM's bandwidth, at which it gets through the weights", unit::share, &Share::figure));
};

template <>
struct FieldList<present::ReportedHost> {
  using Self = present::ReportedHost;
  static constexpr std::string_view id = "probed_host";
  static constexpr std::string_view doc = "This host, as it was measured.";
  static constexpr std::string_view csv_rows = "memory";

  [[nodiscard]] static std::optional<std::vector<present::ProbedLevel>> memory(const Self& reported) {
    std::vector<present::ProbedLevel> levels;
    for (const sim::MemoryLevel& level : reported.machine.memory) levels.push_back({level});
    return unless_empty(std::move(levels));
  }
  [[nodiscard]] static std::optional<std::vector<present::PeakRate>> peaks(const Self& reported) {
    std::vector<present::PeakRate> peaks;
    for (const engine::PeakMeasurement& peak : reported.host.peaks)
      for (const engine::ArithmeticRate& rate : peak.rate)
        peaks.push_back({peak.name, rate.threads, rate.rate.highest});
    return unless_empty(std::move(peaks));
  }

  // Of rows of weights that are long, then of short ones.
  template <class Figure>
  [[nodiscard]] static std::optional<std::vector<present::MatmulFigure<Figure>>> matmuls(
      const std::map<sim::MatmulKernel, std::map<int, Figure>>& of_long,
      const std::map<sim::MatmulKernel, std::map<int, Figure>>& of_short) {
    std::vector<present::MatmulFigure<Figure>> reported;
    const auto add = [&reported](int in_features, const auto& kernels) {
      for (const auto& [kernel, by_rows] : kernels)
        for (const auto& [rows, figure] : by_rows) reported.push_back({name(kernel), in_features, rows, figure});
    };
    add(sim::kLongRow, of_long);
    add(sim::kShortRow, of_short);
    return unless_empty(std::move(reported));
  }

  static constexpr auto fields = std::tuple(
      field("cpu", "its name", [](const Self& reported) { return reported.host.cpu; }),
      field("vector_target", "of the kernels", [](const Self& reported) { return reported.host.vector_target; }),
      field("threads", "that were used", unit::count, [](const Self& reported) { return reported.host.threads; }),
      field("clock_hertz", "while it computed", [](const Self& reported) { return reported.host.clock; }),
      field("memory", "levels, the nearest first", &memory), field("peaks", "by instructions and threads", &peaks),
      field("exchanges", "where they were measured",
            [](const Self& reported) { return unless_empty(reported.host.exchanges); }),
      field("matmul_rates", "by kernel and rows",
            [](const Self& reported) {
              return matmuls(reported.machine.matmul_rates, reported.machine.short_matmul_rates);
            }),
      field("matmul_dram_shares", "by kernel and rows",
            [](const Self& reported) {
              return matmuls(reported.machine.matmul_dram_shares, reported.machine.short_matmul_dram_shares);
            }),
      field("foreign_load", "of the CPUs, that others used during the probe", unit::share,
            [](const Self& reported) { return reported.host.foreign_load; }));
};

template <>
struct FieldList<engine::CopyRate> {
  using Copy = engine::CopyRate;
  static constexpr std::string_view id = "copy_rate";
  static constexpr std::string_view doc = "A copy within a device.";
  static constexpr auto fields = std::tuple(field("bytes", "that are copied", &Copy::size),
                                            field("bytes_per_second", "read and written", &Copy::rate));
};

template <>
struct FieldList<present::ReportedGpu> {
  using Self = present::ReportedGpu;
  static constexpr std::string_view id = "probed_gpu";
  static constexpr std::string_view doc = "A GPU, as it was measured.";
  static constexpr auto fields = std::tuple(
      field("device", "its name", [](const Self& reported) { return reported.gpu.device.name; }),
      field("emulated", "the host plays the GPU: the figures say nothing about any", &Self::emulated),
      field("compute_units", "of the device", unit::count,
            [](const Self& reported) { return reported.gpu.device.compute_units; }),
      field("wave_size", "lanes", unit::count, [](const Self& reported) { return reported.gpu.device.wave_size; }),
      field("memory_bytes", "of the device", [](const Self& reported) { return reported.gpu.device.memory; }),
      field("copy_bytes_per_second", "within the device, read and written",
            [](const Self& reported) { return reported.gpu.copy_bandwidth(); }),
      field("read_bytes_per_second", "by a product of one row", [](const Self& reported) { return reported.gpu.read; }),
      field("launch_seconds", "of a kernel, on the device", [](const Self& reported) { return reported.gpu.launch; }),
      field("host_launch_seconds", "of a kernel, on the host",
            [](const Self& reported) { return reported.gpu.host_launch; }),
      field("upload_bytes_per_second", "from pageable memory",
            [](const Self& reported) { return reported.gpu.upload; }),
      field("download_bytes_per_second", "to pageable memory",
            [](const Self& reported) { return reported.gpu.download; }),
      field("f16_flop_per_second", "of a square product",
            [](const Self& reported) { return reported.gpu.product.f16; }),
      field("f32_flop_per_second", "of a square product",
            [](const Self& reported) { return reported.gpu.product.f32; }),
      field("copies", "by size", [](const Self& reported) { return unless_empty(reported.gpu.copy); }));
};

}  // namespace dculab
