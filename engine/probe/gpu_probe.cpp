#include "engine/probe/gpu_probe.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "engine/kv/random_values.hpp"
#include "engine/memory/device_memory.hpp"
#include "lower/dculab_gpu/geometry.hpp"

namespace dculab::engine {
namespace {

using DevicePointer = std::shared_ptr<kernels::gpu::Device>;
using kernels::gpu::Device;
using SteadyClock = std::chrono::steady_clock;

// What is measured, sized for a device or for the host that plays one.
struct ProbeSizes {
  DeviceEffort effort;
  std::vector<std::size_t> copies;  // bytes, ascending
  int read_rows = 0, read_columns = 0;
  int product = 0;  // rows and columns of each matrix
  int launches = 0;
  std::size_t link = 0;  // bytes
};

[[nodiscard]] ProbeSizes sizes_for(const Device& device, DeviceReality reality) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  if (reality == DeviceReality::emulated) return {kEmulationEffort, {kMiB / 16, kMiB}, 64, 64, 64, 4, kMiB};
  ProbeSizes sizes{kDeviceEffort, {}, 65536, 4096, 4096, 500, 256 * kMiB};
  const Bytes room = device.info().free_memory / 4.0;  // source, destination, and as much for others
  for (const std::size_t mib : {1, 4, 16, 64, 256, 1024})
    if (static_cast<double>(mib * kMiB) <= room.value() || mib == 1) sizes.copies.push_back(mib * kMiB);
  return sizes;
}

[[nodiscard]] DeviceMemory random_memory(const DevicePointer& device, std::size_t bytes) {
  DeviceMemory memory(device, bytes);
  fill_randomly(*device, memory.as(), bytes, Dtype::f16, 1);
  return memory;
}

[[nodiscard]] CopyRate measure_copy(const DevicePointer& device, std::size_t bytes, const DeviceEffort& effort) {
  const DeviceMemory source = random_memory(device, bytes), destination(device, bytes);
  const Bytes size(static_cast<double>(bytes));
  const Seconds time =
      median_launch_time(*device, effort, [&](int) { device->copy(destination.as(), source.as(), bytes); });
  return {size, 2.0 * size / time};
}

// The time of y[m, n] = x[m, k] w[n, k]^T, all in `dtype`.
[[nodiscard]] Seconds measure_product(const DevicePointer& device, Dtype dtype, int m, int n, int k,
                                      const DeviceEffort& effort) {
  const auto bytes = [dtype](int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * static_cast<std::size_t>(bits(dtype)) /
           8;
  };
  const DeviceMemory x = random_memory(device, bytes(m, k)), w = random_memory(device, bytes(n, k));
  const DeviceMemory y(device, bytes(m, n));
  const DeviceMemory workspace(device, lower::dculab_gpu::matmul_workspace(m, n, k) * sizeof(float));
  const kernels::gpu::Matmul args{.x = {x.as(), dtype},
                                  .w = {w.as(), dtype},
                                  .y = {y.as(), dtype},
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .y_stride = n,
                                  .workspace = workspace.as<float>()};
  return median_launch_time(*device, effort, [&](int) { device->matmul(args); });
}

void measure_read(const DevicePointer& device, const ProbeSizes& sizes, GpuMeasurements& gpu) {
  gpu.read_size = Bytes(2.0 * sizes.read_rows * sizes.read_columns);
  gpu.read = gpu.read_size / measure_product(device, Dtype::f16, 1, sizes.read_rows, sizes.read_columns, sizes.effort);
}

// RMSNorm of one token of 64 values: a kernel that is over before the next one can start.
void measure_launch(const DevicePointer& device, const ProbeSizes& sizes, GpuMeasurements& gpu) {
  constexpr int kWidth = 64;
  const DeviceMemory residual(device, kWidth * sizeof(float)), weight(device, kWidth * sizeof(float)),
      out(device, kWidth * sizeof(float));
  device->fill(residual.as(), 0, kWidth * sizeof(float));
  device->fill(weight.as(), 0, kWidth * sizeof(float));
  const auto launch = [&](int) {
    device->rms_norm({.x = {},
                      .residual = residual.as<float>(),
                      .weight = {weight.as(), Dtype::f32},
                      .out = {out.as(), Dtype::f32},
                      .num_tokens = 1,
                      .width = kWidth});
  };
  std::vector<Seconds> device_times, host_times;
  for (int repeat = 0; repeat < sizes.effort.repeats + 1; ++repeat) {
    device->synchronize();
    const auto start = SteadyClock::now();
    Seconds host;
    device_times.push_back(time_launches(*device, 0, sizes.launches,
                                         [&](int index) {
                                           launch(index);
                                           host = Seconds(
                                               std::chrono::duration<double>(SteadyClock::now() - start).count());
                                         }) /
                           sizes.launches);
    host_times.push_back(host / sizes.launches);
  }
  const auto median = [](std::vector<Seconds>& times) {
    times.erase(times.begin());  // the first round loads the kernel
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
  };
  gpu.launch = median(device_times);
  gpu.host_launch = median(host_times);
}

// By the host's clock: the driver moves pageable memory in pieces of its own.
void measure_link(const DevicePointer& device, const ProbeSizes& sizes, GpuMeasurements& gpu) {
  const DeviceMemory there(device, sizes.link);
  std::vector<std::byte> here(sizes.link, std::byte{1});
  const Bytes size(static_cast<double>(sizes.link));
  const auto fastest = [&](auto&& move) {
    BytesPerSecond best;
    for (int repeat = 0; repeat < sizes.effort.repeats + 1; ++repeat) {
      const auto start = SteadyClock::now();
      move();
      device->synchronize();
      best = std::max(best, size / Seconds(std::chrono::duration<double>(SteadyClock::now() - start).count()));
    }
    return best;
  };
  gpu.upload = fastest([&] { device->upload(there.as(), here.data(), sizes.link); });
  gpu.download = fastest([&] { device->download(here.data(), there.as(), sizes.link); });
}

}  // namespace

GpuMeasurements probe_gpu(const DevicePointer& device, DeviceReality reality) {
  const ProbeSizes sizes = sizes_for(*device, reality);
  GpuMeasurements gpu;
  gpu.device = device->info();
  for (const std::size_t bytes : sizes.copies) gpu.copy.push_back(measure_copy(device, bytes, sizes.effort));
  measure_read(device, sizes, gpu);
  measure_launch(device, sizes, gpu);
  measure_link(device, sizes, gpu);
  const int n = sizes.product;
  const FlopCount flops(2.0 * n * n * n);
  gpu.product = {n, flops / measure_product(device, Dtype::f16, n, n, n, sizes.effort),
                 flops / measure_product(device, Dtype::f32, n, n, n, sizes.effort)};
  return gpu;
}

BytesPerSecond measure_copy_bandwidth(const DevicePointer& device, DeviceReality reality) {
  const ProbeSizes sizes = sizes_for(*device, reality);
  return measure_copy(device, sizes.copies.back(), sizes.effort).rate;
}

}  // namespace dculab::engine
