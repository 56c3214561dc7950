// The probe of a GPU, on the host that plays one: that it measures everything, not how fast.
#include "engine/probe/gpu_probe.hpp"

#include "engine/executors/open_executor.hpp"
#include "tests/support/catch.hpp"

namespace dculab::engine {
namespace {

TEST_CASE("every figure of a GPU is measured") {
  const OpenDevice device = open_device(parse_device("host-gpu"));
  const GpuMeasurements gpu = probe_gpu(device.gpu, DeviceReality::emulated);
  CHECK(gpu.device.name == "host build, waves of 64");
  REQUIRE(gpu.copy.size() == 2);
  CHECK(gpu.copy[0].size < gpu.copy[1].size);
  CHECK(gpu.copy_bandwidth() == gpu.copy[1].rate);
  for (const BytesPerSecond rate : {gpu.copy[0].rate, gpu.copy[1].rate, gpu.read, gpu.upload, gpu.download})
    CHECK(rate.value() > 0);
  CHECK(gpu.read_size == Bytes(2 * 64 * 64));
  for (const Seconds time : {gpu.launch, gpu.host_launch}) CHECK(time.value() > 0);
  CHECK(gpu.product.n == 64);
  for (const FlopsPerSecond rate : {gpu.product.f16, gpu.product.f32}) CHECK(rate.value() > 0);
  CHECK(measure_copy_bandwidth(device.gpu, DeviceReality::emulated).value() > 0);
}

TEST_CASE("launches that are timed together come one after the other, each with its own index") {
  const OpenDevice device = open_device(parse_device("host-gpu"));
  std::vector<int> launched;
  const auto launch = [&launched](int index) { launched.push_back(index); };
  CHECK(time_launches(*device.gpu, 3, 2, launch).value() >= 0);
  CHECK(launched == std::vector<int>{3, 4});

  // One to load the kernel, one to see how long it takes, then as many as the effort allows.
  launched.clear();
  (void)median_launch_time(*device.gpu, {Seconds(1), 5, 3}, launch);
  REQUIRE(launched.size() == 2 + 3 * 5);
  for (std::size_t i = 0; i < launched.size(); ++i) CHECK(launched[i] == static_cast<int>(i));
}

}  // namespace
}  // namespace dculab::engine
