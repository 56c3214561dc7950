// Collectives of the processes of a group, over the memory that they share.
//
// Each rank writes what it hands over into its slot, all meet, and each reads what it needs from the slots of the
// others; what is larger than a slot goes in pieces. An all-reduce is in one stage: every rank adds up all slots, in
// the order of the ranks, so that all get the same bits. A meeting costs each rank one store and a look at each of the
// others; who waits longer than it takes to step from one kernel to the next goes to sleep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "engine/exchange/rank_group.hpp"

namespace dculab::engine {

class Communicator {
 public:
  // One in each process. `watch` is called now and then while the rank waits, and throws if a process that it watches
  // has ended. `group` must outlive it.
  Communicator(RankGroup& group, int rank, std::function<void()> watch);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return group_.ranks(); }

  // All ranks call the same members in the same order with matching sizes. Each throws what ended the work of another
  // rank: InputError where that was one, std::runtime_error otherwise.

  // Returns once all are here.
  void meet();

  // values[i] becomes the sum over all ranks: the same bits on each of them.
  void all_reduce(std::span<float> values);

  // `own` of every rank, one after the other, in `all`: sizes[r] bytes of rank r.
  void all_gather(std::span<const std::byte> own, std::span<const std::size_t> sizes, std::byte* all);

  // Rows of `width` values of every rank side by side: all[row, r * width + i] = own[row, i] of rank r, of which the
  // first `columns` are kept. all: [rows, columns].
  void all_gather_columns(std::span<const float> own, std::size_t width, std::size_t columns, float* all);

  // sizes[s * ranks + d]: bytes that rank s has for rank d, known to all. `own` has those for rank 0, then for rank 1,
  // and so on; `received` gets those of rank 0, then of rank 1, and so on.
  void all_to_all(std::span<const std::byte> own, std::span<const std::size_t> sizes, std::byte* received);

  // What rank 0 has in `bytes`, on every rank.
  void broadcast(std::vector<std::byte>& bytes);

  // How long this rank has waited for others to begin a collective since the last call.
  [[nodiscard]] Seconds take_waited();

 private:
  using Read = std::function<void(int rank, std::size_t offset, std::span<const std::byte> piece)>;
  enum class Timing : std::uint8_t { off, on };

  void meet(Timing timing);
  void await(int rank);
  void require_no_failure() const;
  // Hands over `own` in pieces; `read` gets those of the others, rank by rank. sizes: [ranks].
  void stream(std::span<const std::byte> own, std::span<const std::size_t> sizes, const Read& read);
  [[nodiscard]] std::byte* own_slot() const { return group_.slot(which_, rank_); }

  RankGroup& group_;
  int rank_;
  std::function<void()> watch_;
  std::uint32_t meetings_ = 0;
  int which_ = 0;  // of the slots: which one is written next
  Seconds waited_;
};

}  // namespace dculab::engine
