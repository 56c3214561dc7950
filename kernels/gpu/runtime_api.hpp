// What the host does with a GPU: memory, copies, events, launches. HIP and CUDA name these functions alike, so one
// text with a prefix serves both; the host build does the work at once.
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "core/error.hpp"
#include "kernels/gpu/device.hpp"
#include "kernels/gpu/runtime.hpp"

#if DCULAB_GPU_HIP
#define DCULAB_API(name) hip##name
#elif DCULAB_GPU_CUDA
#define DCULAB_API(name) cuda##name
using cudaDeviceProp_t = cudaDeviceProp;
#else
#include <chrono>

#include "kernels/gpu/host/kernel_symbol.hpp"
#endif

namespace dculab::kernels::gpu::DCULAB_GPU_BUILD {

// Workgroups of a launch, and lanes of one of them.
struct LaunchShape {
  int x = 1, y = 1, z = 1;
  int threads = 64;

  [[nodiscard]] bool is_empty() const { return x == 0 || y == 0 || z == 0; }
};

inline constexpr std::size_t kAllocationAlignment = 256;

enum class CopyKind : std::uint8_t { upload, download, within };

#if DCULAB_GPU_HOST

struct Stream {
  host::HostOptions options;
};

inline DeviceInfo describe(const host::HostOptions& options) {
  return {"host build, waves of " + std::to_string(options.wave_size), options.wave_size, 1, Bytes(), Bytes()};
}

inline void* allocate(Stream& stream, std::size_t bytes, OperandRole holds) {
  void* memory = ::operator new(bytes, std::align_val_t(kAllocationAlignment));
  if (stream.options.recorder != nullptr) {
    std::memset(memory, 0, bytes);  // recorded ops read what no op has computed
    stream.options.recorder->add_buffer(memory, bytes, holds);
  }
  return memory;
}
inline void release(Stream& stream, void* memory) noexcept {
  if (stream.options.recorder != nullptr) stream.options.recorder->remove_buffer(memory);
  ::operator delete(memory, std::align_val_t(kAllocationAlignment));
}
inline void* allocate_on_host(Stream&, std::size_t bytes) {
  return ::operator new(bytes, std::align_val_t(kAllocationAlignment));
}
inline void release_on_host(Stream&, void* memory) noexcept {
  ::operator delete(memory, std::align_val_t(kAllocationAlignment));
}
inline void copy(Stream&, void* destination, const void* source, std::size_t bytes, CopyKind) {
  if (bytes > 0) std::memcpy(destination, source, bytes);
}
inline void fill(Stream&, void* destination, int byte, std::size_t bytes) { std::memset(destination, byte, bytes); }
inline void synchronize(Stream&) {}
inline void close_stream(Stream&) noexcept {}

class Mark {
 public:
  void record(Stream&) { time_ = std::chrono::steady_clock::now(); }
  [[nodiscard]] double seconds_until(const Mark& later) const {
    return std::chrono::duration<double>(later.time_ - time_).count();
  }

 private:
  std::chrono::steady_clock::time_point time_;
};

template <typename... Parameters>
void launch(Stream& stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            const std::type_identity_t<Parameters>&... arguments) {
  if (shape.is_empty()) return;
  if (stream.options.recorder != nullptr)
    stream.options.recorder->name_launch(host::kernel_symbol(reinterpret_cast<const void*>(kernel)));
  host::run_grid({shape.x, shape.y, shape.z, shape.threads}, stream.options, [&] { kernel(arguments...); });
}

#else

inline void check(DCULAB_API(Error_t) result, const char* what) {
  if (result != DCULAB_API(Success))
    throw std::runtime_error(std::string("the GPU could not ") + what + ": " + DCULAB_API(GetErrorString)(result));
}

struct Stream {
  DCULAB_API(Stream_t) handle = nullptr;
};

// Makes device `index` the one that this program works on.
inline Stream open_stream(int index) {
  int count = 0;
  if (const auto result = DCULAB_API(GetDeviceCount)(&count); result != DCULAB_API(Success) || count == 0)
    throw InputError(std::string("no GPU was found (") + DCULAB_API(GetErrorString)(result) +
                     "); check the driver and the permissions of the device files, or use --device cpu");
  if (index < 0 || index >= count)
    throw InputError("there is no GPU " + std::to_string(index) + "; devices are numbered 0 to " +
                     std::to_string(count - 1));
  check(DCULAB_API(SetDevice)(index), "open the device");
  Stream stream;
  check(DCULAB_API(StreamCreate)(&stream.handle), "create a stream");
  return stream;
}

inline void close_stream(Stream& stream) noexcept { (void)DCULAB_API(StreamDestroy)(stream.handle); }

inline DeviceInfo describe(int index) {
  DCULAB_API(DeviceProp_t) properties{};
  check(DCULAB_API(GetDeviceProperties)(&properties, index), "describe itself");
  std::size_t free = 0, total = 0;
  check(DCULAB_API(MemGetInfo)(&free, &total), "tell its memory");
  std::string name = properties.name;
#if DCULAB_GPU_HIP
  name = std::string(properties.gcnArchName) + (name.empty() ? "" : ", ") + name;
#endif
  return {name, properties.warpSize, properties.multiProcessorCount, Bytes(static_cast<double>(total)),
          Bytes(static_cast<double>(free))};
}

// Throws InputError when the program holds no code of `kernel` for the device that is open: it was built for others.
template <typename... Parameters>
void require_compiled(void (*kernel)(Parameters...), const DeviceInfo& info) {
  DCULAB_API(FuncAttributes) attributes{};
  const auto result = DCULAB_API(FuncGetAttributes)(&attributes, reinterpret_cast<const void*>(kernel));
  if (result != DCULAB_API(Success))
    throw InputError("the GPU kernels were not compiled for " + info.name + " (" + DCULAB_API(GetErrorString)(result) +
                     "); build again with its architecture in DCULAB_HIP_ARCHITECTURES or DCULAB_CUDA_ARCHITECTURES");
}

inline void* allocate(Stream&, std::size_t bytes, OperandRole) {
  void* memory = nullptr;
  const auto result = DCULAB_API(Malloc)(&memory, bytes);
  if (result == DCULAB_API(ErrorMemoryAllocation))
    throw InputError("the GPU has no room for another " + std::to_string(bytes / 1'000'000) +
                     " MB; use a smaller --kv-cache-memory, --max-num-seqs or --max-num-batched-tokens");
  check(result, "allocate memory");
  return memory;
}
inline void release(Stream&, void* memory) noexcept { (void)DCULAB_API(Free)(memory); }
// The one pair of functions that HIP and CUDA name differently.
inline void* allocate_on_host(Stream&, std::size_t bytes) {
  void* memory = nullptr;
#if DCULAB_GPU_HIP
  const auto result = hipHostMalloc(&memory, bytes, hipHostMallocDefault);
#else
  const auto result = cudaMallocHost(&memory, bytes);
#endif
  if (result == DCULAB_API(ErrorMemoryAllocation))
    throw InputError("the host has no room for " + std::to_string(bytes / 1'000'000) +
                     " MB that a GPU can reach; use a smaller --swap-space");
  check(result, "allocate memory of the host");
  return memory;
}
inline void release_on_host(Stream&, void* memory) noexcept {
#if DCULAB_GPU_HIP
  (void)hipHostFree(memory);
#else
  (void)cudaFreeHost(memory);
#endif
}
inline void copy(Stream& stream, void* destination, const void* source, std::size_t bytes, CopyKind kind) {
  const auto direction = kind == CopyKind::upload     ? DCULAB_API(MemcpyHostToDevice)
                         : kind == CopyKind::download ? DCULAB_API(MemcpyDeviceToHost)
                                                      : DCULAB_API(MemcpyDeviceToDevice);
  if (bytes == 0) return;
  check(DCULAB_API(MemcpyAsync)(destination, source, bytes, direction, stream.handle), "copy memory");
}
inline void fill(Stream& stream, void* destination, int byte, std::size_t bytes) {
  check(DCULAB_API(MemsetAsync)(destination, byte, bytes, stream.handle), "fill memory");
}
inline void synchronize(Stream& stream) { check(DCULAB_API(StreamSynchronize)(stream.handle), "finish its work"); }

class Mark {
 public:
  Mark() { check(DCULAB_API(EventCreate)(&event_), "create an event"); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  ~Mark() { (void)DCULAB_API(EventDestroy)(event_); }

  void record(Stream& stream) { check(DCULAB_API(EventRecord)(event_, stream.handle), "record an event"); }
  [[nodiscard]] double seconds_until(const Mark& later) const {
    check(DCULAB_API(EventSynchronize)(later.event_), "finish its work");
    float milliseconds = 0;
    check(DCULAB_API(EventElapsedTime)(&milliseconds, event_, later.event_), "take a time");
    return milliseconds * 1e-3;
  }

 private:
  DCULAB_API(Event_t) event_ = nullptr;
};

template <typename... Parameters>
void launch(Stream& stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            const std::type_identity_t<Parameters>&... arguments) {
  if (shape.is_empty()) return;
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  const dim3 grid(static_cast<unsigned>(shape.x), static_cast<unsigned>(shape.y), static_cast<unsigned>(shape.z));
  const dim3 workgroup(static_cast<unsigned>(shape.threads));
  check(DCULAB_API(LaunchKernel)(reinterpret_cast<const void*>(kernel), grid, workgroup, pointers, 0, stream.handle),
        "start a kernel");
}

#endif

// Calls `function.operator()<kWave>()` for the wave size of the device; each build compiles those that it can meet.
template <typename Function>
void with_wave_size([[maybe_unused]] const Stream& stream, Function function) {
#if DCULAB_GPU_HIP
  function.template operator()<64>();
#elif DCULAB_GPU_CUDA
  function.template operator()<32>();
#else
  if (stream.options.wave_size == 32) return function.template operator()<32>();
  function.template operator()<64>();
#endif
}

}  // namespace dculab::kernels::gpu::DCULAB_GPU_BUILD
