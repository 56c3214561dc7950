// Memory of a device that is released with its owner.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/gpu/device.hpp"

namespace dculab::engine {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(std::shared_ptr<kernels::gpu::Device> device, std::size_t bytes,
               OperandRole holds = OperandRole::activation)
      : device_(std::move(device)), data_(device_->allocate(bytes > 0 ? bytes : 1, holds)) {}
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(std::move(other.device_)), data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceMemory() {
    if (data_ != nullptr) device_->release(data_);
  }

  template <typename T = void>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  std::shared_ptr<kernels::gpu::Device> device_;
  void* data_ = nullptr;
};

// Memory of the host that a device reaches by itself, likewise.
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(std::shared_ptr<kernels::gpu::Device> device, std::size_t bytes)
      : device_(std::move(device)), data_(device_->allocate_on_host(bytes > 0 ? bytes : 1)) {}
  HostMemory(HostMemory&& other) noexcept
      : device_(std::move(other.device_)), data_(std::exchange(other.data_, nullptr)) {}
  HostMemory& operator=(HostMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~HostMemory() {
    if (data_ != nullptr) device_->release_on_host(data_);
  }

  template <typename T = void>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  std::shared_ptr<kernels::gpu::Device> device_;
  void* data_ = nullptr;
};

}  // namespace dculab::engine
