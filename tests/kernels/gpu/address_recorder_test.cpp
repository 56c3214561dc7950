// Does a recorded launch say what the waves of a GPU would have asked memory for?
#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "kernels/gpu/runtime.hpp"
#include "tests/support/catch.hpp"

namespace dculab {

inline bool operator==(const WaveAccess& a, const WaveAccess& b) {
  return std::tie(a.address, a.bytes, a.lane_bytes, a.instruction, a.kind) ==
         std::tie(b.address, b.bytes, b.lane_bytes, b.instruction, b.kind);
}
inline std::ostream& operator<<(std::ostream& out, const WaveAccess& a) {
  return out << (a.kind == AccessKind::load ? "load " : "store ") << a.bytes << " bytes at " << a.address << " for "
             << a.lane_bytes << " of lanes, instruction " << a.instruction;
}

namespace kernels::gpu::host_build {
namespace {

using host::LaneOrder;

constexpr std::size_t kValues = 1024;

struct Buffers {
  std::vector<float> input = std::vector<float>(kValues), output = std::vector<float>(kValues);
};

struct Launch {
  int workgroups = 1, threads = 64, wave_size = 64;
};

// The trace of a kernel that is given `buffers`: input at 0, output a page after its end.
AddressTrace record(Buffers& buffers, const Launch& launch, LaneOrder order, const std::function<void()>& kernel) {
  host::AddressRecorder recorder;
  recorder.add_buffer(buffers.input.data(), kValues * sizeof(float), OperandRole::activation);
  recorder.add_buffer(buffers.output.data(), kValues * sizeof(float), OperandRole::output);
  host::run_grid({.x = launch.workgroups, .threads = launch.threads},
                 {.wave_size = launch.wave_size, .order = order, .recorder = &recorder}, kernel);
  return recorder.take("a kernel");
}

constexpr std::uint64_t kOutput = kValues * sizeof(float);  // where it stands in a trace
constexpr AccessKind kLoad = AccessKind::load, kStore = AccessKind::store;

using Accesses = std::vector<WaveAccess>;

// What a kernel of one wave of 64 asks for: the same in every order of its lanes.
template <typename Kernel>
void expect(const Accesses& expected, Kernel kernel) {
  for (const LaneOrder order : {LaneOrder::forward, LaneOrder::reversed, LaneOrder::shuffled}) {
    Buffers buffers;
    const AddressTrace trace =
        record(buffers, {}, order, [&] { kernel(buffers.input.data(), buffers.output.data(), thread_index()); });
    CHECK(trace.accesses == expected);
    CHECK(trace.wave_begin == std::vector<std::size_t>{0, expected.size()});
  }
}

}  // namespace

TEST_CASE("lanes that continue each other are one access", "[gpu][trace]") {
  expect({{0, 256, 256, 0, kLoad}, {kOutput, 256, 256, 1, kStore}},
         [](const float* in, float* out, int i) { store(out + i, load(in + i)); });
  expect({{0, 1024, 1024, 0, kLoad}},
         [](const float* in, float*, int i) { (void)load(reinterpret_cast<const Pack<float, 4>*>(in) + i); });
}

TEST_CASE("lanes that are apart are an access each, of one instruction", "[gpu][trace]") {
  Accesses strided;
  for (std::uint64_t i = 0; i < 64; ++i) strided.push_back({i * 32, 4, 4, 0, kLoad});
  expect(strided, [](const float* in, float*, int i) { (void)load(in + i * 8); });
}

TEST_CASE("lanes that read the same bytes ask more than there is", "[gpu][trace]") {
  expect({{12, 4, 256, 0, kLoad}}, [](const float* in, float*, int) { (void)load(in + 3); });
  expect({{0, 64, 256, 0, kLoad}}, [](const float* in, float*, int i) { (void)load(in + i / 4); });
}

TEST_CASE("lanes that take no part are left out", "[gpu][trace]") {
  expect({{0, 160, 160, 0, kLoad}}, [](const float* in, float*, int i) {
    if (i < 40) (void)load(in + i);
  });
}

TEST_CASE("each turn of a loop is an instruction, also where lanes make different numbers of turns", "[gpu][trace]") {
  expect({{0, 256, 256, 0, kLoad}, {256, 256, 256, 1, kLoad}, {512, 128, 128, 2, kLoad}},
         [](const float* in, float*, int i) {
           for (int at = i; at < 160; at += 64) (void)load(in + at);
         });
}

TEST_CASE("what lanes do in branches of their own are instructions of their own", "[gpu][trace]") {
  for (const LaneOrder order : {LaneOrder::forward, LaneOrder::reversed}) {
    Buffers buffers;
    float sum = 0;
    auto trace = record(buffers, {}, order, [&] {
      const int i = thread_index();
      if (i < 32)
        sum += load(buffers.input.data() + i);
      else
        sum -= load(buffers.input.data() + 512 + i);
    });
    std::sort(trace.accesses.begin(), trace.accesses.end(),
              [](const WaveAccess& a, const WaveAccess& b) { return a.address < b.address; });
    REQUIRE(trace.accesses.size() == 2);
    CHECK(trace.accesses[0].bytes == 128);
    CHECK(trace.accesses[1].address == (512 + 32) * 4);
    CHECK(trace.accesses[0].instruction != trace.accesses[1].instruction);
  }
}

TEST_CASE("instructions keep their order across barriers and shuffles", "[gpu][trace]") {
  expect({{512, 256, 256, 0, kLoad},
          {256, 256, 256, 1, kLoad},
          {kOutput, 256, 256, 2, kStore},
          {0, 256, 256, 3, kLoad},
          {kOutput + 256, 256, 256, 4, kStore}},
         [](const float* in, float* out, int i) {
           float value = load(in + 128 + i);
           barrier();
           value += load(in + 64 + i);
           value = shuffle_xor<64>(value, 1);
           store(out + i, value);
           barrier();
           store(out + 64 + i, load(in + i));
         });
}

TEST_CASE("a loop with a shuffle inside does not mix its turns", "[gpu][trace]") {
  expect({{0, 256, 256, 0, kLoad}, {256, 256, 256, 1, kLoad}, {512, 256, 256, 2, kLoad}},
         [](const float* in, float*, int i) {
           for (int turn = 0; turn < 3; ++turn) (void)shuffle_xor<64>(load(in + turn * 64 + i), 1);
         });
}

TEST_CASE("a condition that differs between lanes does not split the instructions of a loop", "[gpu][trace]") {
  expect({{0, 256, 256, 0, kLoad},
          {kOutput, 128, 128, 1, kStore},
          {256, 256, 256, 2, kLoad},
          {kOutput + 256, 128, 128, 3, kStore}},
         [](const float* in, float* out, int i) {
           const bool stores = i < 32;
           for (int turn = 0; turn < 2; ++turn) {
             const float value = load(in + turn * 64 + i);
             barrier();
             if (stores) store(out + turn * 64 + i, value);
             barrier();
           }
         });
}

TEST_CASE("waves and workgroups are told apart", "[gpu][trace]") {
  for (const LaneOrder order : {LaneOrder::forward, LaneOrder::reversed, LaneOrder::shuffled}) {
    Buffers buffers;
    const auto trace = record(buffers, {.workgroups = 2, .threads = 80, .wave_size = 32}, order, [&] {
      const int i = workgroup_x() * 80 + thread_index();
      const float value = load(buffers.input.data() + i);
      barrier();
      if (thread_index() >= 64) store(buffers.output.data() + i, value);
    });
    CHECK(trace.kernel == "a kernel");
    CHECK(trace.workgroups == 2);
    CHECK(trace.waves_per_workgroup == 3);
    CHECK(trace.wave_size == 32);
    CHECK(trace.wave_begin == std::vector<std::size_t>{0, 1, 2, 4, 5, 6, 8});
    CHECK(trace.accesses == Accesses{{0, 128, 128, 0, kLoad},
                                     {128, 128, 128, 0, kLoad},
                                     {256, 64, 64, 0, kLoad},
                                     {kOutput + 256, 64, 64, 1, kStore},
                                     {320, 128, 128, 0, kLoad},
                                     {448, 128, 128, 0, kLoad},
                                     {576, 64, 64, 0, kLoad},
                                     {kOutput + 576, 64, 64, 1, kStore}});
  }
}

TEST_CASE("an access outside of every buffer is refused, and the next launch is recorded", "[gpu][trace]") {
  Buffers buffers;
  host::AddressRecorder recorder;
  recorder.add_buffer(buffers.input.data() + 1, 10 * sizeof(float), OperandRole::activation);
  const auto read_at = [&](std::ptrdiff_t i) {
    host::run_grid({.threads = 2}, {.recorder = &recorder}, [&] { (void)load(buffers.input.data() + 1 + i); });
  };
  CHECK_THROWS_AS(read_at(-1), std::out_of_range);
  CHECK_THROWS_WITH(read_at(10), ContainsSubstring("4 bytes at offset 40 of a buffer of 40"));
  CHECK_NOTHROW(read_at(9));
  CHECK(recorder.take("last").accesses == Accesses{{36, 4, 8, 0, kLoad}});
}

TEST_CASE("traces do not depend on where the host's memory is, nor on what was launched before", "[gpu][trace]") {
  std::vector<float> memory(4 * kValues);
  const auto trace_at = [&](std::size_t first, std::size_t second, int launches) {
    float* const in = memory.data() + first;
    float* const out = memory.data() + second;
    host::AddressRecorder recorder;
    recorder.add_buffer(in, 5000, OperandRole::weight);  // two pages
    recorder.add_buffer(out, 400, OperandRole::output);
    for (int i = 0; i < launches; ++i)
      host::run_grid({.threads = 64}, {.recorder = &recorder},
                     [&] { store(out + thread_index(), load(in + 3 * thread_index())); });
    return recorder.take("copy");
  };
  const auto trace = trace_at(0, 2048, 1);
  CHECK(trace.accesses.back() == WaveAccess{8192, 256, 256, 1, kStore});
  CHECK(trace.buffers.at(0).role == OperandRole::weight);
  CHECK(trace.buffers.at(1).address == 8192);
  CHECK(trace.buffers.at(1).bytes == 400);
  CHECK(trace_at(2048, 0, 1).accesses == trace.accesses);
  CHECK(trace_at(7, 3001, 3).accesses == trace.accesses);
}

}  // namespace kernels::gpu::host_build
}  // namespace dculab
