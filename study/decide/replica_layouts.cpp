#include "study/decide/replica_layouts.hpp"

namespace dculab::study {
namespace {

[[nodiscard]] bool is_power_of_two(int value) { return (value & (value - 1)) == 0; }

}  // namespace

std::vector<sim::ReplicaDevices> replica_layouts(const ModelShape& model, int most) {
  std::vector<sim::ReplicaDevices> layouts;
  const auto is_size = [most](int size) { return most % size == 0 || is_power_of_two(size); };
  for (int devices = 1; devices <= most; ++devices) {
    if (!is_size(devices)) continue;
    for (int stages = 1; stages <= devices; ++stages)
      if (devices % stages == 0 && is_power_of_two(stages))
        layouts.push_back({.tensor_parallel_size = devices / stages, .pipeline_parallel_size = stages});
    if (!model.has_experts() || devices == 1) continue;
    for (int shared = 1; shared <= devices; shared *= 2)
      if (devices % shared == 0) layouts.push_back({.tensor_parallel_size = shared, .experts = {.size = devices}});
  }
  return layouts;
}

std::string layout_text(const sim::ReplicaDevices& devices) {
  const std::string shared = "TP " + std::to_string(devices.tensor_parallel_size);
  if (devices.shares_experts())
    return "EP " + std::to_string(devices.experts.size) +
           (devices.tensor_parallel_size > 1 ? ", " + shared : std::string());
  return devices.pipeline_parallel_size > 1 ? shared + " x PP " + std::to_string(devices.pipeline_parallel_size)
                                            : shared;
}

}  // namespace dculab::study
