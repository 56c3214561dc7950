#include "study/measure/probed_gpu.hpp"

#include "core/error.hpp"
#include "study/measure/gpu_machine.hpp"
#include "study/measure/nearest_machine.hpp"
#include "study/scenario/resolve.hpp"

namespace dculab::study {
namespace {

void refuse_machine(const GpuProbeQuestion& question) {
  if (!question.wants_machine) {
    if (!question.like.empty()) throw InputError("--like", "is what --machine-file starts from; add it");
    return;
  }
  if (question.device.kind == engine::DeviceKind::host_gpu)
    throw InputError("--machine-file", "host-gpu emulates a GPU, its times mean nothing; probe hip:N or cuda:N");
}

}  // namespace

ProbedGpu probe_gpu(const GpuProbeQuestion& question) {
  refuse_machine(question);
  if (!question.like.empty()) (void)resolve_machine(question.like);  // before a device is opened
  const engine::OpenDevice device = engine::open_device(question.device);
  std::optional<sim::Machine> like;
  if (question.wants_machine) like = machine_like(question.like, device.gpu->info());
  const bool emulated = question.device.kind == engine::DeviceKind::host_gpu;
  const auto reality = emulated ? engine::DeviceReality::emulated : engine::DeviceReality::real;
  ProbedGpu probed{.measurements = engine::probe_gpu(device.gpu, reality), .reality = reality, .machine = {}};
  if (like) probed.machine = to_machine(probed.measurements, *like);
  return probed;
}

}  // namespace dculab::study
