// What this host can do, as measured: memory levels, arithmetic peaks, clock, the cost of using its threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/units.hpp"

namespace dculab::engine {

// Several runs of one measurement. Noise only ever slows: `highest` of a rate is what the hardware was seen to do,
// `median` what it sustains.
template <typename Q>
struct Spread {
  Q median, lowest, highest;
};

// How many threads ran at once, and what they reached together.
template <typename Q>
struct ByThreads {
  int threads = 1;
  Spread<Q> rate;
  std::string how;  // the variant that was fastest, e.g. "2 streams, prefetch 4096 B"; may be empty
};

using ReadRate = ByThreads<BytesPerSecond>;
using ArithmeticRate = ByThreads<FlopsPerSecond>;

enum class Sharing : std::uint8_t { one_core, several_cores };
enum class PageSize : std::uint8_t { small, huge };  // 4 KB, or 2 MB as far as the kernel grants them

struct LevelMeasurement {
  std::string name;  // "L1", "L2", "L3", "DRAM"
  Sharing sharing = Sharing::one_core;
  int instances = 1;
  Bytes size;   // of one instance; for DRAM the memory of the host
  Bytes reach;  // last cache: largest set of the sweep that one thread still found mostly here; 0 where not known
  Bytes line;
  std::vector<ReadRate> read;        // ascending threads, from 1 to all
  Spread<Seconds> latency;           // load to use, one thread, address translation hits
  Spread<Seconds> latency_anywhere;  // the same with the next load anywhere in the memory; for caches the same figure
  double outstanding = 0;  // lines in flight of one core, bandwidth * latency / line; 0 for L1, which has no fills
  Seconds retention_time;  // last cache: until 1/e of what was not read again is still there; 0 where nothing goes
  double huge_share = 0;   // share of the memory that lay on 2 MB pages
};

struct PeakMeasurement {
  std::string name;  // "f32_fma", "f16_tile_fma", ...
  Dtype dtype = Dtype::f32;
  std::string how;
  std::vector<ArithmeticRate> rate;  // ascending threads
};

// A matmul kernel of the engine, all threads together.
struct MatmulMeasurement {
  Dtype weights = Dtype::f32;
  ActivationMode activations = ActivationMode::exact;
  int in_features = 0;                  // of the weights
  int rows = 1;                         // of activations
  Spread<FlopsPerSecond> rate;          // weights in L2: FLOP of the product, 2 per multiply-add
  Spread<BytesPerSecond> weights_read;  // weights in memory: their bytes
};

// One point of the working-set sweep.
struct SweepPoint {
  Bytes working_set;  // per thread
  int threads = 1;
  BytesPerSecond read;
  Seconds latency;  // next load anywhere in the set; one thread only, else 0
};

// What processes do through memory that they share.
enum class ExchangeKind : std::uint8_t { meeting, all_reduce, all_to_all };

struct ExchangeMeasurement {
  ExchangeKind kind = ExchangeKind::meeting;
  int ranks = 2;  // processes of one thread each
  Bytes bytes;    // of each; of an all-to-all what it hands out, as much to each, itself among them
  Spread<Seconds> time;
};

struct HostMeasurements {
  std::string cpu;            // "AMD EPYC"
  std::string vector_target;  // "AVX3"
  int threads = 1;
  Bytes memory;
  Hertz clock;
  std::vector<LevelMeasurement> levels;  // fastest first, DRAM last, on 2 MB pages
  LevelMeasurement dram_small_pages;     // DRAM again, on 4 KB pages
  std::vector<PeakMeasurement> peaks;
  std::vector<MatmulMeasurement> matmuls;      // by in-features, kernel, ascending rows
  std::map<int, Seconds> fork_join;            // by threads: an empty parallel loop
  std::vector<ExchangeMeasurement> exchanges;  // ascending ranks; a meeting first, then by kind and ascending bytes
  std::vector<SweepPoint> sweep;
  double foreign_load = 0;       // share of the CPUs that others used during the whole probe
  double foreign_load_dram = 0;  // the same while DRAM was read
  std::vector<std::string> notes;
  std::map<std::string, std::string> how;  // quantity -> how it was measured
};

}  // namespace dculab::engine
