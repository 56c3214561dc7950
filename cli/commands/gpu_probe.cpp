#include "cli/commands/gpu_probe.hpp"

#include <optional>

#include "config/machine_file.hpp"
#include "config/unit_text.hpp"
#include "core/error.hpp"
#include "files/output.hpp"
#include "study/measure/gpu_machine.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::cli {
namespace {

constexpr const char* kEmulated =
    "EMULATED: the host plays the GPU, lane by lane, on tiny shapes; these figures say nothing about any GPU";

[[nodiscard]] bool is_emulated(const GpuProbeChoices& choices) {
  return choices.device.kind == engine::DeviceKind::host_gpu;
}

void refuse(const GpuProbeChoices& choices) {
  if (choices.machine_file.empty()) {
    if (!choices.like.empty()) throw InputError("--like", "is what --machine-file starts from; add it");
    return;
  }
  if (is_emulated(choices))
    throw InputError("--machine-file", "host-gpu emulates a GPU, its times mean nothing; probe hip:N or cuda:N");
  if (choices.like.empty())
    throw InputError("--machine-file",
                     "a GPU's caches, latencies and registers cannot be measured here; add --like MACHINE, the "
                     "shipped GPU to take them from");
}

[[nodiscard]] present::Table make_table(const engine::GpuMeasurements& gpu) {
  present::Table table;
  table.columns = {"", "size", "measured"};
  const auto add = [&table](const char* what, const std::string& size, const auto& figure) {
    table.rows.push_back({what, size, present::Cell(config::short_text(figure), figure.value())});
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

[[nodiscard]] present::Json to_json(const engine::GpuMeasurements& gpu, bool emulated) {
  present::Json json{{"device", gpu.device.name},
                     {"emulated", emulated},
                     {"compute_units", gpu.device.compute_units},
                     {"wave_size", gpu.device.wave_size},
                     {"memory_bytes", gpu.device.memory.value()},
                     {"copy_bytes_per_second", gpu.copy_bandwidth().value()},
                     {"read_bytes_per_second", gpu.read.value()},
                     {"launch_seconds", gpu.launch.value()},
                     {"host_launch_seconds", gpu.host_launch.value()},
                     {"upload_bytes_per_second", gpu.upload.value()},
                     {"download_bytes_per_second", gpu.download.value()},
                     {"f16_flop_per_second", gpu.product.f16.value()},
                     {"f32_flop_per_second", gpu.product.f32.value()}};
  for (const engine::CopyRate& copy : gpu.copy)
    json["copies"].push_back({{"bytes", copy.size.value()}, {"bytes_per_second", copy.rate.value()}});
  return json;
}

}  // namespace

void run_gpu_probe(const GpuProbeChoices& choices) {
  refuse(choices);
  std::optional<sim::Machine> like;
  if (!choices.like.empty()) like = study::resolve_machine(choices.like);
  const engine::OpenDevice device = engine::open_device(choices.device);
  const bool emulated = is_emulated(choices);
  const engine::GpuMeasurements gpu =
      engine::probe_gpu(device.gpu, emulated ? engine::DeviceReality::emulated : engine::DeviceReality::real);
  present::Report report{"dculab/probe-gpu/1", {}, {make_table(gpu)}, to_json(gpu, emulated)};
  report.heading.push_back(gpu.device.name + ", " + std::to_string(gpu.device.compute_units) +
                           " compute units, waves of " + std::to_string(gpu.device.wave_size) + ", " +
                           config::short_text(gpu.device.memory) + " memory");
  if (emulated) report.heading.emplace_back(kEmulated);
  if (like) files::write_file_atomically(choices.machine_file, config::machine_yaml(study::to_machine(gpu, *like)));
  present::show(report, choices.output);
}

}  // namespace dculab::cli
