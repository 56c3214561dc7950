// What a GPU does, as measured through the Device interface: copies, reads, launches, the link to the host, products.
//
// Sizes and latencies of its caches, and its registers, are not visible through that interface.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "engine/probe/device_timing.hpp"
#include "kernels/gpu/device.hpp"

namespace dculab::engine {

// A copy within the device.
struct CopyRate {
  Bytes size;           // of what is copied
  BytesPerSecond rate;  // bytes read and bytes written
};

// A square product y[n, n] = x[n, n] w[n, n]^T, by our GEMM or by the vendor's library where it was built in.
struct ProductRate {
  int n = 0;
  FlopsPerSecond f16, f32;
};

struct GpuMeasurements {
  kernels::gpu::DeviceInfo device;
  std::vector<CopyRate> copy;  // ascending sizes; the last is far beyond any cache
  Bytes read_size;
  BytesPerSecond read;              // weights of a product with one row (GEMV), which nothing but read them
  Seconds launch;                   // from one tiny kernel's start to the next one's, many in a row
  Seconds host_launch;              // what the host spends on such a launch
  BytesPerSecond upload, download;  // from and to pageable host memory
  ProductRate product;

  [[nodiscard]] BytesPerSecond copy_bandwidth() const { return copy.back().rate; }
};

enum class DeviceReality : std::uint8_t { real, emulated };

// Emulated: every figure is taken on tiny shapes, to show that the probe works; none of them means anything.
[[nodiscard]] GpuMeasurements probe_gpu(const std::shared_ptr<kernels::gpu::Device>& device, DeviceReality reality);

// The copy of the largest size alone: what other figures of the device are compared with.
[[nodiscard]] BytesPerSecond measure_copy_bandwidth(const std::shared_ptr<kernels::gpu::Device>& device,
                                                    DeviceReality reality);

}  // namespace dculab::engine
