#include "present/measure/probe_report.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "config/unit_text.hpp"
#include "core/activation_mode.hpp"
#include "engine/probe/explanation.hpp"
#include "present/measure/probe_fields.hpp"
#include "present/output/field_csv.hpp"

namespace dculab::present {
namespace {

constexpr const char* kEmulated =
    "EMULATED: the host plays the GPU, lane by lane, on tiny shapes; these figures say nothing about any GPU";

[[nodiscard]] Table memory_table(const engine::HostMeasurements& host) {
  Table table;
  table.title = "Memory (reads; highest of the runs, median in brackets)";
  table.columns = {"level", "size", "latency"};
  for (const engine::ReadRate& rate : host.levels.front().read)
    table.columns.push_back(counted(rate.threads, "thread"));
  table.columns.push_back("lines in flight");
  const auto add = [&table](const std::string& label, const engine::LevelMeasurement& level) {
    Row row{label, config::short_text(level.size), config::short_text(level.latency.median)};
    for (const engine::ReadRate& read : level.read)
      row.emplace_back(config::short_text(read.rate.highest) + " (" + config::short_text(read.rate.median) + ")");
    row.emplace_back(level.outstanding > 0 ? number(level.outstanding) : "");
    table.rows.push_back(std::move(row));
  };
  for (const engine::LevelMeasurement& level : host.levels) add(level.name, level);
  add("DRAM, 4 KB pages", host.dram_small_pages);
  return table;
}

[[nodiscard]] Table peak_table(const engine::HostMeasurements& host) {
  Table table;
  table.title = "Arithmetic";
  table.columns = {"peak"};
  for (const engine::ArithmeticRate& rate : host.peaks.front().rate)
    table.columns.push_back(counted(rate.threads, "thread"));
  for (const engine::PeakMeasurement& peak : host.peaks) {
    Row row{peak.name};
    for (const engine::ArithmeticRate& rate : peak.rate) row.emplace_back(config::short_text(rate.rate.highest));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// By kernel and rows of activations; cell(figure) -> text.
template <class ByRows, class MakeCell>
[[nodiscard]] Table matmul_table(std::string title, const std::map<sim::MatmulKernel, ByRows>& kernels,
                                 MakeCell&& cell) {
  Table table;
  table.title = std::move(title);
  table.columns = {"weights, activations"};
  for (const auto& [rows, figure] : kernels.begin()->second) table.columns.push_back(counted(rows, "row"));
  for (const auto& [kernel, by_rows] : kernels) {
    Row row{std::string(name(kernel.weights)) + ", " + std::string(name(kernel.activations))};
    for (const auto& [rows, figure] : by_rows) row.push_back(cell(figure));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// A row for each size, a column for each kind and number of processes.
[[nodiscard]] Table exchange_table(const engine::HostMeasurements& host) {
  Table table;
  table.title = "Exchanges of processes through shared memory (median of the runs)";
  table.columns = {"bytes of each"};
  std::map<double, Row> rows;
  for (const engine::ExchangeMeasurement& each : host.exchanges) {
    const std::string column = std::string(exchange_name(each.kind)) + ", " + std::to_string(each.ranks);
    if (std::ranges::find(table.columns, column) == table.columns.end()) table.columns.push_back(column);
  }
  for (const engine::ExchangeMeasurement& each : host.exchanges) {
    Row& row = rows[each.bytes.value()];
    if (row.empty()) {
      row.resize(table.columns.size(), "");
      row.front() = each.bytes > Bytes() ? config::short_text(each.bytes) : "";
    }
    const std::string column = std::string(exchange_name(each.kind)) + ", " + std::to_string(each.ranks);
    const auto place = std::ranges::find(table.columns, column) - table.columns.begin();
    row[static_cast<std::size_t>(place)] = config::short_text(each.time.median);
  }
  for (auto& [bytes, row] : rows) table.rows.push_back(std::move(row));
  return table;
}

[[nodiscard]] std::vector<Table> matmul_tables(const sim::Machine& machine) {
  const auto rate_cell = [](FlopsPerSecond rate) { return config::short_text(rate); };
  const auto share_cell = [](double share) { return percent(share); };
  const std::string in_cache = "Matmul kernels, weights in L2, all threads (highest of the runs)";
  const std::string in_memory = "Weights that they read from memory, of DRAM's bandwidth (highest of the runs)";
  const std::string is_short = ", " + std::to_string(sim::kShortRow) + " in-features";
  return {matmul_table(in_cache, machine.matmul_rates, rate_cell),
          matmul_table(in_cache + is_short, machine.short_matmul_rates, rate_cell),
          matmul_table(in_memory, machine.matmul_dram_shares, share_cell),
          matmul_table(in_memory + is_short, machine.short_matmul_dram_shares, share_cell)};
}

[[nodiscard]] Table gpu_table(const engine::GpuMeasurements& gpu) {
  Table table;
  table.columns = {"", "size", "measured"};
  const auto add = [&table](const char* what, const std::string& size, const auto& figure) {
    table.rows.push_back({what, size, config::short_text(figure)});
  };
  for (const engine::CopyRate& copy : gpu.copy)
    add("copy within the device, read + written", config::short_text(copy.size), copy.rate);
  add("read, by a one-row product", config::short_text(gpu.read_size), gpu.read);
  add("kernel launch, on the device", "", gpu.launch);
  add("kernel launch, on the host", "", gpu.host_launch);
  add("upload from pageable memory", "", gpu.upload);
  add("download to pageable memory", "", gpu.download);
  const std::string n = std::to_string(gpu.product.n);
  add("product, f16", n + " x " + n, gpu.product.f16);
  add("product, f32", n + " x " + n, gpu.product.f32);
  return table;
}

}  // namespace

std::string_view exchange_name(engine::ExchangeKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"meeting", "all-reduce", "all-to-all"};
  return kNames[static_cast<std::size_t>(kind)];
}

Report host_probe_report(const engine::HostMeasurements& host, const sim::Machine& machine) {
  Report report = report_of("dculab/probe/1", ReportedHost{host, machine});
  report.heading = {machine.description, "clock " + config::short_text(host.clock) + "; fork and join of " +
                                             std::to_string(host.threads) + " threads " +
                                             config::short_text(machine.overheads.kernel_launch)};
  if (const std::string warning = engine::busy_warning(host); !warning.empty())
    report.heading.push_back("warning: " + warning);
  report.tables = {memory_table(host), peak_table(host)};
  if (!host.exchanges.empty()) report.tables.push_back(exchange_table(host));
  for (Table& table : matmul_tables(machine)) report.tables.push_back(std::move(table));
  report.tables.back().notes = host.notes;
  return report;
}

Report gpu_probe_report(const engine::GpuMeasurements& gpu, engine::DeviceReality reality) {
  const bool emulated = reality == engine::DeviceReality::emulated;
  Report report = report_of("dculab/probe-gpu/1", ReportedGpu{gpu, emulated});
  report.tables.push_back(gpu_table(gpu));
  report.heading.push_back(gpu.device.name + ", " + std::to_string(gpu.device.compute_units) +
                           " compute units, waves of " + std::to_string(gpu.device.wave_size) + ", " +
                           config::short_text(gpu.device.memory) + " memory");
  if (emulated) report.heading.emplace_back(kEmulated);
  return report;
}

}  // namespace dculab::present
