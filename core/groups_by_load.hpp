// Two sets of KV heads of one model, many for quality and few for room: which of them a request gets, by load.
//
//   few    from when  waiting > waiting_above   or  usage > usage_above
//   many   from when  waiting <= waiting_below  and  usage <= usage_below
//
//   waiting = requests that wait for a place;  usage = KV blocks in use / all of them
//
// The load is looked at once a step, before anybody is admitted. Between the thresholds the choice stays as it is
// (hysteresis). A request gets its set when it is first admitted and keeps it until it ends: K and V of fewer heads in
// a layer follow from hidden states that fewer heads have made in the layers before, so a cache cannot be converted
// exactly. Both sets share one pool of KV blocks of equally many bytes: a block has room for block_size tokens of many
// heads, or for as many times more tokens of few as these have fewer heads. (vLLM's hybrid allocator makes pages of
// layers of different kinds equal the same way: vllm/v1/core/kv_cache_utils.py, unify_kv_cache_spec_page_size.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dculab {

enum class HeadSet : std::uint8_t { many, few };
inline constexpr std::size_t kHeadSets = 2;

// by_load, or all requests alike.
enum class HeadAssignment : std::uint8_t { by_load, many, few };

// Where the engine serves both.
inline constexpr const char* kHeadSetsOnCpu = "two sets of KV heads are served with --device cpu, in one process";

struct GroupsByLoad {
  HeadAssignment heads = HeadAssignment::by_load;
  int waiting_above = 2, waiting_below = 0;     // requests
  double usage_above = 0.3, usage_below = 0.1;  // share of the KV blocks

  friend bool operator==(const GroupsByLoad&, const GroupsByLoad&) = default;
};

// Everything that makes the thresholds unusable; empty when they are sound.
[[nodiscard]] std::vector<std::string> problems(const GroupsByLoad& groups);

class HeadSetController {
 public:
  // Precondition: problems(groups) is empty.
  explicit HeadSetController(const GroupsByLoad& groups);

  // What those get who are admitted now.
  [[nodiscard]] HeadSet look(int waiting, double usage);

  [[nodiscard]] int switches() const { return switches_; }  // from one set to the other, either way

 private:
  GroupsByLoad groups_;
  HeadSet chosen_;
  int switches_ = 0;
};

// What was served with each set.
struct HeadSetCounts {
  std::array<std::int64_t, kHeadSets> requests{};  // samples of a prompt count each
  std::array<std::int64_t, kHeadSets> tokens{};    // generated
  std::int64_t steps = 0;                          // of the scheduler,
  std::int64_t steps_of_both = 0;                  // that ran the model once with each set
  int switches = 0;

  HeadSetCounts& operator+=(const HeadSetCounts& other);
  friend bool operator==(const HeadSetCounts&, const HeadSetCounts&) = default;
};

}  // namespace dculab
