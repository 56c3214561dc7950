// Memory of a device, or of the host for a device, that is released with its owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <utility>

#include "kernels/gpu/device.hpp"

namespace dculab::engine {

enum class MemoryPlace : std::uint8_t { device, host };  // host: pinned, so that the device reaches it by itself

template <MemoryPlace kPlace>
class OwnedMemory {
 public:
  OwnedMemory() = default;
  // `holds`: see Device::allocate; of memory of the device.
  OwnedMemory(std::shared_ptr<kernels::gpu::Device> device, std::size_t bytes,
              OperandRole holds = OperandRole::activation)
      : device_(std::move(device)), data_(allocate(std::max<std::size_t>(bytes, 1), holds)) {}
  OwnedMemory(OwnedMemory&& other) noexcept
      : device_(std::move(other.device_)), data_(std::exchange(other.data_, nullptr)) {}
  OwnedMemory& operator=(OwnedMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~OwnedMemory() {
    if (data_ == nullptr) return;
    kPlace == MemoryPlace::device ? device_->release(data_) : device_->release_on_host(data_);
  }

  template <typename T = void>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  [[nodiscard]] void* allocate(std::size_t bytes, OperandRole holds) {
    return kPlace == MemoryPlace::device ? device_->allocate(bytes, holds) : device_->allocate_on_host(bytes);
  }

  std::shared_ptr<kernels::gpu::Device> device_;
  void* data_ = nullptr;
};

using DeviceMemory = OwnedMemory<MemoryPlace::device>;
using HostMemory = OwnedMemory<MemoryPlace::host>;

// Starts the copy of a vector, or of what lies as in one; none where it is empty.
template <std::ranges::contiguous_range Values>
void upload_values(kernels::gpu::Device& device, const DeviceMemory& to, const Values& values) {
  if (!std::ranges::empty(values)) device.upload(to.as(), std::ranges::data(values), std::span(values).size_bytes());
}

}  // namespace dculab::engine
