// What a probe measured, as people and programs see it.
#include "present/measure/probe_report.hpp"

#include <algorithm>

#include "tests/present/document_errors.hpp"
#include "tests/support/catch.hpp"

namespace dculab::present {
namespace {

template <typename Q>
engine::ByThreads<Q> reached(int threads, double rate) {
  return {threads, {Q(rate), Q(rate), Q(rate)}, ""};
}

engine::LevelMeasurement level_of(const std::string& name) {
  engine::LevelMeasurement level;
  level.name = name;
  level.size = Bytes(1 << 20);
  level.latency.median = Seconds(1e-8);
  level.read = {reached<BytesPerSecond>(1, 1e10), reached<BytesPerSecond>(4, 3e10)};
  return level;
}

engine::HostMeasurements small_host() {
  engine::HostMeasurements host;
  host.cpu = "a CPU";
  host.threads = 4;
  host.clock = Hertz(3e9);
  host.levels = {level_of("L1"), level_of("DRAM")};
  host.dram_small_pages = level_of("DRAM");
  host.peaks = {{"f32_fma", Dtype::f32, "", {reached<FlopsPerSecond>(1, 1e11), reached<FlopsPerSecond>(4, 4e11)}}};
  host.notes = {"a note"};
  return host;
}

sim::Machine small_machine() {
  sim::Machine machine;
  machine.description = "a host";
  const sim::MatmulKernel kernel{.weights = Dtype::bf16, .activations = ActivationMode::exact};
  machine.matmul_rates[kernel] =
      machine.short_matmul_rates[kernel] = {{1, FlopsPerSecond(1e10)}, {8, FlopsPerSecond(5e10)}};
  machine.matmul_dram_shares[kernel] = machine.short_matmul_dram_shares[kernel] = {{1, 0.9}};
  return machine;
}

const Table* find(const Report& report, const std::string& title) {
  const auto found =
      std::ranges::find_if(report.tables, [&](const Table& each) { return each.title.starts_with(title); });
  return found == report.tables.end() ? nullptr : &*found;
}

TEST_CASE("a host's memory, arithmetic and kernels have a table each, and a busy host a warning") {
  engine::HostMeasurements host = small_host();
  const Report report = host_probe_report(host, small_machine());
  CHECK(test::document_errors(report) == std::vector<std::string>{});
  CHECK(report.heading.size() == 2);
  REQUIRE(find(report, "Memory") != nullptr);
  CHECK(find(report, "Memory")->columns ==
        std::vector<std::string>{"level", "size", "latency", "1 thread", "4 threads", "lines in flight"});
  CHECK(find(report, "Memory")->rows.size() == 3);  // DRAM again, on small pages
  REQUIRE(find(report, "Arithmetic") != nullptr);
  CHECK(find(report, "Arithmetic")->rows[0][2] == "400 GFLOP/s");
  CHECK(find(report, "Exchanges") == nullptr);
  CHECK(report.tables.back().notes == std::vector<std::string>{"a note"});
  CHECK(report.json["matmul_rates"].size() == 4);
  CHECK(report.json["matmul_rates"][3]["rows"] == 8);
  host.foreign_load = 0.5;
  CHECK_THAT(host_probe_report(host, small_machine()).heading.back(),
             ContainsSubstring("warning: other processes used 50"));
}

TEST_CASE("exchanges have a row for each size, and a column for each kind and number of processes") {
  engine::HostMeasurements host = small_host();
  const auto exchange = [](engine::ExchangeKind kind, int ranks, double bytes) {
    const Seconds time(1e-6);
    return engine::ExchangeMeasurement{kind, ranks, Bytes(bytes), {time, time, time}};
  };
  host.exchanges = {exchange(engine::ExchangeKind::meeting, 2, 0), exchange(engine::ExchangeKind::all_reduce, 2, 1024),
                    exchange(engine::ExchangeKind::all_reduce, 4, 1024)};
  const Report report = host_probe_report(host, small_machine());
  const Table* table = find(report, "Exchanges");
  REQUIRE(table != nullptr);
  CHECK(table->columns == std::vector<std::string>{"bytes of each", "meeting, 2", "all-reduce, 2", "all-reduce, 4"});
  REQUIRE(table->rows.size() == 2);
  CHECK(table->rows[0][0].empty());
  CHECK(table->rows[0][2].empty());
  CHECK(table->rows[1][3] == "1 us");
  CHECK(report.json["exchanges"][1]["kind"] == "all-reduce");
}

TEST_CASE("an emulated GPU says that its figures mean nothing") {
  engine::GpuMeasurements gpu;
  gpu.device = {"Z100", 64, 60, Bytes(16e9), Bytes(15e9)};
  gpu.copy = {{Bytes(1e6), BytesPerSecond(2e12)}, {Bytes(1e9), BytesPerSecond(7e11)}};
  gpu.product = {4096, FlopsPerSecond(1e13), FlopsPerSecond(6e12)};
  const Report real = gpu_probe_report(gpu, engine::DeviceReality::real);
  CHECK(test::document_errors(real) == std::vector<std::string>{});
  CHECK(real.heading.size() == 1);
  CHECK(real.json["copy_bytes_per_second"] == 7e11);
  CHECK(real.json["emulated"] == false);
  CHECK(real.tables.at(0).rows.size() == 9);
  CHECK(real.tables.at(0).rows.back()[1] == "4096 x 4096");
  const Report emulated = gpu_probe_report(gpu, engine::DeviceReality::emulated);
  CHECK_THAT(emulated.heading.back(), ContainsSubstring("EMULATED"));
}

}  // namespace
}  // namespace dculab::present
