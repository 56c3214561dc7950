// The points of a search in chunks: what a thread prices at a time, and what a journal keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "config/search_chunk.hpp"
#include "config/study_journal.hpp"
#include "sim/study/ordered_chunks.hpp"
#include "study/search/search_summary.hpp"
#include "study/search/sweep_space.hpp"

namespace dculab::study {

// Points of a chunk: what is lost when the study is killed.
[[nodiscard]] std::uint64_t chunk_points(const SweepSpace& space);

// The chunks of part `shard` of `shards`, counted from 1.
[[nodiscard]] sim::ChunkRange chunks_of(const SweepSpace& space, int shard, int shards);

// What the journal of that part begins with.
[[nodiscard]] config::JournalHeader header_of(const SweepSpace& space, int shard, int shards);

// Nothing where the payload is not that of the chunk.
[[nodiscard]] std::optional<config::SearchChunk> decode_chunk(const SweepSpace& space, std::uint64_t chunk,
                                                              std::string_view payload);

// The points of a chunk, the first of which is `begin`.
using OnPoints = std::function<void(std::uint64_t begin, const config::SearchChunk& points)>;

// Takes in the chunks of a whole study, in order. `on_points` may be empty.
class ChunkReader {
 public:
  ChunkReader(const SweepSpace& space, OnPoints on_points);

  // False where the payload is not that of the chunk.
  [[nodiscard]] bool add(std::uint64_t chunk, std::string_view payload);

  // Throws InputError where the journal is damaged.
  void add_all(const config::StudyJournal& journal);

  // Throws InputError where all points were refused.
  [[nodiscard]] SearchSummary finish() &&;

 private:
  const SweepSpace& space_;
  OnPoints on_points_;
  SearchSummary summary_;
};

}  // namespace dculab::study
