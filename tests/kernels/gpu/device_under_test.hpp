// The devices that every GPU kernel is tested on, and tensors on them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "kernels/gpu/device.hpp"
#include "kernels/gpu/open_device.hpp"
#include "kernels/reference/stored_value.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitized.hpp"

namespace dculab::kernels::gpu {

// The host build with waves of 64 and 32, whose lanes get their turns forward, reversed and shuffled, and with matrix
// cores; or, when DCULAB_TEST_DEVICE is hip:N or cuda:N, that GPU alone. Sanitized, one order for each wave size: what
// is touched does not depend on the order.
inline void for_each_device(const std::function<void(Device&)>& body) {
  const char* gpu = std::getenv("DCULAB_TEST_DEVICE");
  if (gpu != nullptr) {
    const std::string name = gpu;
    const int index = std::stoi(name.substr(name.find(':') + 1));
    const auto device = name.rfind("cuda", 0) == 0 ? open_cuda_device(index) : open_hip_device(index);
    body(*device);
    return;
  }
  for (const int wave_size : {64, 32}) {
    for (const auto order : {host::LaneOrder::forward, host::LaneOrder::reversed, host::LaneOrder::shuffled}) {
      if (kSanitized && (order == host::LaneOrder::shuffled) != (wave_size == 64)) continue;
      if (kSanitized && order == host::LaneOrder::forward) continue;
      const auto device = open_host_device({.wave_size = wave_size, .order = order});
      INFO("waves of " << wave_size << ", lane order " << static_cast<int>(order));
      body(*device);
    }
  }
  const auto device = open_host_device(
      {.wave_size = 64, .order = host::LaneOrder::reversed, .matrix_cores = host::HostMatrixCores::present});
  INFO("waves of 64, matrix cores");
  body(*device);
}

// Values on a device, in a stored format; there as long as this lives.
class DeviceTensor {
 public:
  DeviceTensor(Device& device, const void* bytes, std::size_t count, OperandRole holds = OperandRole::activation)
      : device_(&device), bytes_(count), memory_(device.allocate(std::max<std::size_t>(count, 1), holds)) {
    device.upload(memory_, bytes, count);
    device.synchronize();
  }
  // All bytes 0xFF: NaN in every float format.
  DeviceTensor(Device& device, std::size_t count)
      : device_(&device), bytes_(count), memory_(device.allocate(std::max<std::size_t>(count, 1))) {
    device.fill(memory_, 0xFF, count);
  }
  template <typename T>
  DeviceTensor(Device& device, const std::vector<T>& values, OperandRole holds = OperandRole::activation)
      : DeviceTensor(device, values.data(), values.size() * sizeof(T), holds) {}
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;
  ~DeviceTensor() { device_->release(memory_); }

  template <typename T = void>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_);
  }
  template <typename T>
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    device_->download(values.data(), memory_, values.size() * sizeof(T));
    return values;
  }
  // Widened to float.
  [[nodiscard]] std::vector<float> read_numbers(Dtype dtype) const {
    const auto raw = read<std::byte>();
    std::vector<float> values(raw.size() * 8 / static_cast<std::size_t>(bits(dtype)));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(reference::load_value(raw.data(), dtype, i));
    return values;
  }

 private:
  Device* device_;
  std::size_t bytes_;
  void* memory_;
};

// The values of a tensor stored in `dtype`, as floats: what the reference is given.
inline std::vector<float> widen(std::span<const std::byte> stored, Dtype dtype) {
  std::vector<float> values(stored.size() * 8 / static_cast<std::size_t>(bits(dtype)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(reference::load_value(stored.data(), dtype, i));
  return values;
}

inline std::size_t bytes_of(Dtype dtype, std::size_t count) {
  return count * static_cast<std::size_t>(bits(dtype)) / 8;
}

inline constexpr double kUlp = 0x1p-24;  // rounding of f32, relative

// Half the smallest step of f32 or f16, below which rounding is not relative.
inline double smallest_step(Dtype dtype) { return dtype == Dtype::f32 ? 0x1p-126 : 0x1p-25; }

// Relative error of rounding once to `dtype`.
inline double rounding(Dtype dtype) {
  return dtype == Dtype::f32 ? 0x1p-24 : dtype == Dtype::f16 ? 0x1p-11 : dtype == Dtype::bf16 ? 0x1p-8 : 0x1p-3;
}

// The cache that `k` and `v` hold.
inline KvCacheView on_device(KvCacheView view, const DeviceTensor& k, const DeviceTensor& v) {
  view.k = k.as();
  view.v = v.as();
  return view;
}

}  // namespace dculab::kernels::gpu
