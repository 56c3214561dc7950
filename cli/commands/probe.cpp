// `dculab probe`: measures this machine and writes its YAML.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/commands/gpu_probe.hpp"
#include "cli/output_options.hpp"
#include "cli/progress.hpp"
#include "cli/scenario/checks.hpp"
#include "cli/scenario/file_options.hpp"
#include "cli/scenario/step_choices.hpp"
#include "config/machine_file.hpp"
#include "config/unit_text.hpp"
#include "core/activation_mode.hpp"
#include "core/error.hpp"
#include "engine/probe/probe.hpp"
#include "files/output.hpp"
#include "study/measure/host_machine.hpp"
#include "study/scenario/locate.hpp"

namespace dculab::cli {
namespace {

constexpr double kLoadWorthAWarning = 0.03;

struct ProbeChoices {
  bool quick = false;
  int threads = 0;
  std::string device = "cpu";
  std::string like;  // GPUs only
  std::string machine_file;
  present::OutputOptions output;
};

[[nodiscard]] present::Table memory_table(const engine::HostMeasurements& host) {
  present::Table table;
  table.title = "Memory (reads; highest of the runs, median in brackets)";
  table.columns = {"level", "size", "latency"};
  for (const engine::ReadRate& rate : host.levels.front().read)
    table.columns.push_back(std::to_string(rate.threads) + (rate.threads == 1 ? " thread" : " threads"));
  table.columns.push_back("lines in flight");
  const auto add = [&table](const std::string& label, const engine::LevelMeasurement& level) {
    std::vector<present::Cell> row{
        label, present::Cell(config::short_text(level.size), level.size.value()),
        present::Cell(config::short_text(level.latency.median), level.latency.median.value())};
    for (const engine::ReadRate& read : level.read)
      row.emplace_back(config::short_text(read.rate.highest) + " (" + config::short_text(read.rate.median) + ")",
                       read.rate.highest.value());
    row.emplace_back(level.outstanding > 0 ? present::number(level.outstanding) : "", level.outstanding);
    table.rows.push_back(std::move(row));
  };
  for (const engine::LevelMeasurement& level : host.levels) add(level.name, level);
  add("DRAM, 4 KB pages", host.dram_small_pages);
  return table;
}

[[nodiscard]] present::Table peak_table(const engine::HostMeasurements& host) {
  present::Table table;
  table.title = "Arithmetic";
  table.columns = {"peak"};
  for (const engine::ArithmeticRate& rate : host.peaks.front().rate)
    table.columns.push_back(std::to_string(rate.threads) + (rate.threads == 1 ? " thread" : " threads"));
  for (const engine::PeakMeasurement& peak : host.peaks) {
    std::vector<present::Cell> row{peak.name};
    for (const engine::ArithmeticRate& rate : peak.rate)
      row.emplace_back(config::short_text(rate.rate.highest), rate.rate.highest.value());
    table.rows.push_back(std::move(row));
  }
  return table;
}

// By kernel and rows of activations; cell(figure) -> Cell.
template <class ByRows, class MakeCell>
[[nodiscard]] present::Table matmul_table(std::string title, const std::map<sim::MatmulKernel, ByRows>& kernels,
                                          MakeCell&& cell) {
  present::Table table;
  table.title = std::move(title);
  table.columns = {"weights, activations"};
  for (const auto& [rows, figure] : kernels.begin()->second)
    table.columns.push_back(std::to_string(rows) + (rows == 1 ? " row" : " rows"));
  for (const auto& [kernel, by_rows] : kernels) {
    std::vector<present::Cell> row{std::string(name(kernel.weights)) + ", " + std::string(name(kernel.activations))};
    for (const auto& [rows, figure] : by_rows) row.push_back(cell(figure));
    table.rows.push_back(std::move(row));
  }
  return table;
}

[[nodiscard]] std::string_view name_of(engine::ExchangeKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"meeting", "all-reduce", "all-to-all"};
  return kNames[static_cast<std::size_t>(kind)];
}

// A row for each size, a column for each kind and number of processes.
[[nodiscard]] present::Table exchange_table(const engine::HostMeasurements& host) {
  present::Table table;
  table.title = "Exchanges of processes through shared memory (median of the runs)";
  table.columns = {"bytes of each"};
  std::map<double, std::vector<present::Cell>> rows;
  for (const engine::ExchangeMeasurement& each : host.exchanges) {
    const std::string column = std::string(name_of(each.kind)) + ", " + std::to_string(each.ranks);
    if (std::ranges::find(table.columns, column) == table.columns.end()) table.columns.push_back(column);
  }
  for (const engine::ExchangeMeasurement& each : host.exchanges) {
    std::vector<present::Cell>& row = rows[each.bytes.value()];
    if (row.empty()) {
      row.resize(table.columns.size(), present::Cell(""));
      row.front() = present::Cell(each.bytes > Bytes() ? config::short_text(each.bytes) : "", each.bytes.value());
    }
    const std::string column = std::string(name_of(each.kind)) + ", " + std::to_string(each.ranks);
    const auto place = std::ranges::find(table.columns, column) - table.columns.begin();
    row[static_cast<std::size_t>(place)] =
        present::Cell(config::short_text(each.time.median), each.time.median.value());
  }
  for (auto& [bytes, row] : rows) table.rows.push_back(std::move(row));
  return table;
}

[[nodiscard]] std::vector<present::Table> matmul_tables(const sim::Machine& machine) {
  const auto rate_cell = [](FlopsPerSecond rate) { return present::Cell(config::short_text(rate), rate.value()); };
  const auto share_cell = [](double share) { return present::Cell(present::percent(share), share); };
  const std::string in_cache = "Matmul kernels, weights in L2, all threads (highest of the runs)";
  const std::string in_memory = "Weights that they read from memory, of DRAM's bandwidth (highest of the runs)";
  const std::string is_short = ", " + std::to_string(sim::kShortRow) + " in-features";
  return {matmul_table(in_cache, machine.matmul_rates, rate_cell),
          matmul_table(in_cache + is_short, machine.short_matmul_rates, rate_cell),
          matmul_table(in_memory, machine.matmul_dram_shares, share_cell),
          matmul_table(in_memory + is_short, machine.short_matmul_dram_shares, share_cell)};
}

void add_matmuls(present::Json& json, int in_features, const std::map<sim::MatmulKernel, sim::RateByRows>& all_rates,
                 const std::map<sim::MatmulKernel, sim::ShareByRows>& all_shares) {
  const auto entry = [in_features](const sim::MatmulKernel& kernel, int rows) {
    return present::Json{{"kernel", name(kernel)}, {"in_features", in_features}, {"rows", rows}};
  };
  for (const auto& [kernel, rates] : all_rates)
    for (const auto& [rows, rate] : rates)
      json["matmul_rates"].emplace_back(entry(kernel, rows))["flop_per_second"] = rate.value();
  for (const auto& [kernel, shares] : all_shares)
    for (const auto& [rows, share] : shares)
      json["matmul_dram_shares"].emplace_back(entry(kernel, rows))["share"] = share;
}

[[nodiscard]] present::Json to_json(const engine::HostMeasurements& host, const sim::Machine& machine) {
  present::Json json{{"cpu", host.cpu}, {"vector_target", host.vector_target}, {"threads", host.threads}};
  json["clock_hertz"] = host.clock.value();
  for (const sim::MemoryLevel& level : machine.memory)
    json["memory"].push_back({{"name", level.name},
                              {"size_bytes", level.size.value()},
                              {"bandwidth_bytes_per_second", level.bandwidth.value()},
                              {"latency_seconds", level.latency.value()},
                              {"outstanding", level.outstanding},
                              {"kept_for_seconds", level.kept_for.value()}});
  for (const engine::PeakMeasurement& peak : host.peaks)
    for (const engine::ArithmeticRate& rate : peak.rate)
      json["peaks"].push_back(
          {{"name", peak.name}, {"threads", rate.threads}, {"flop_per_second", rate.rate.highest.value()}});
  for (const engine::ExchangeMeasurement& each : host.exchanges)
    json["exchanges"].push_back({{"kind", name_of(each.kind)},
                                 {"processes", each.ranks},
                                 {"bytes", each.bytes.value()},
                                 {"seconds", each.time.median.value()},
                                 {"lowest_seconds", each.time.lowest.value()}});
  add_matmuls(json, sim::kLongRow, machine.matmul_rates, machine.matmul_dram_shares);
  add_matmuls(json, sim::kShortRow, machine.short_matmul_rates, machine.short_matmul_dram_shares);
  json["foreign_load"] = host.foreign_load;
  return json;
}

[[nodiscard]] present::Report make_report(const engine::HostMeasurements& host, const sim::Machine& machine) {
  present::Report report{"dculab/probe/1", {}, {}, to_json(host, machine)};
  report.heading = {machine.description, "clock " + config::short_text(host.clock) + "; fork and join of " +
                                             std::to_string(host.threads) + " threads " +
                                             config::short_text(machine.overheads.kernel_launch)};
  if (host.foreign_load > kLoadWorthAWarning)
    report.heading.push_back("warning: other processes used " + present::percent(host.foreign_load) +
                             " of the CPUs during the probe; the figures are too low by about as much");
  report.tables = {memory_table(host), peak_table(host)};
  if (!host.exchanges.empty()) report.tables.push_back(exchange_table(host));
  for (present::Table& table : matmul_tables(machine)) report.tables.push_back(std::move(table));
  report.tables.back().notes = host.notes;
  return report;
}

void run_cpu_probe(const ProbeChoices& choices) {
  ProgressBar bar;
  const engine::HostMeasurements host = engine::probe_host(
      {.mode = choices.quick ? engine::ProbeMode::quick : engine::ProbeMode::full,
       .threads = choices.threads,
       .progress = [&bar](std::string_view label, double share) { bar.update(std::string(label), share); }});
  bar.clear();
  const sim::Machine machine = study::to_machine(host);
  if (!choices.machine_file.empty()) files::write_file_atomically(choices.machine_file, config::machine_yaml(machine));
  present::show(make_report(host, machine), choices.output);
}

void run_probe(const ProbeChoices& choices) {
  const engine::DeviceChoice device = parse_option("--device", choices.device, engine::parse_device);
  if (device.kind == engine::DeviceKind::cpu) {
    if (!choices.like.empty()) throw InputError("--like", "a CPU is measured whole; --like is for GPUs");
    return run_cpu_probe(choices);
  }
  if (choices.quick || choices.threads != 0) throw InputError("--quick and --threads are for CPUs; leave them out");
  run_gpu_probe({device, choices.like, choices.machine_file, choices.output});
}

}  // namespace

void add_probe(CLI::App& app) {
  CLI::App* command = app.add_subcommand("probe", "Measure this machine, write its YAML");
  auto choices = std::make_shared<ProbeChoices>();
  command->add_flag("--quick", choices->quick, "About 20 seconds instead of a minute");
  command->add_option("--threads", choices->threads, "The most threads to measure with, 0 = all CPUs")
      ->check(thread_count());
  command->add_option(
      "--device", choices->device,
      "cpu; hip:N or cuda:N for a GPU; host-gpu shows the probe of a GPU at work, its times mean nothing");
  reads(
      command->add_option("--like", choices->like,
                          "GPU: the shipped machine whose caches, latencies and registers the written file takes over"),
      study::try_find_machine);
  add_output_file(*command, "--machine-file", choices->machine_file, "Write the machine's YAML here");
  add_output_options(*command, choices->output);
  command->callback([choices] { run_probe(*choices); });
}

}  // namespace dculab::cli
