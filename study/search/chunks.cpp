#include "study/search/chunks.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace dculab::study {
namespace {

constexpr std::uint64_t kStepsInChunk = 1024;  // some 7 ms

[[nodiscard]] std::uint64_t num_chunks(const SweepSpace& space) {
  return (space.size() + chunk_points(space) - 1) / chunk_points(space);
}

}  // namespace

std::uint64_t chunk_points(const SweepSpace& space) { return space.is_served() ? 1 : kStepsInChunk; }

sim::ChunkRange chunks_of(const SweepSpace& space, int shard, int shards) {
  const std::uint64_t chunks = num_chunks(space);
  const auto part = [&](std::uint64_t number) { return chunks / shards * number + chunks % shards * number / shards; };
  return {part(shard - 1), part(shard)};
}

config::JournalHeader header_of(const SweepSpace& space, int shard, int shards) {
  const sim::ChunkRange chunks = chunks_of(space, shard, shards);
  return {space.identity(), space.document(), chunks.begin, chunks.end, shard, shards};
}

std::optional<config::SearchChunk> decode_chunk(const SweepSpace& space, std::uint64_t chunk,
                                                std::string_view payload) {
  const std::uint64_t begin = chunk * chunk_points(space), end = std::min(space.size(), begin + chunk_points(space));
  return config::decode(payload, {space.metrics().size(), end - begin, space.asked()});
}

ChunkReader::ChunkReader(const SweepSpace& space, OnPoints on_points)
    : space_(space), on_points_(std::move(on_points)), summary_(space) {}

bool ChunkReader::add(std::uint64_t chunk, std::string_view payload) {
  const std::uint64_t begin = chunk * chunk_points(space_);
  const auto points = decode_chunk(space_, chunk, payload);
  if (!points) return false;
  summary_.add(begin, *points);
  if (on_points_) on_points_(begin, *points);
  return true;
}

void ChunkReader::add_all(const config::StudyJournal& journal) {
  for (std::uint64_t index = 0; index < journal.num_chunks(); ++index)
    if (const std::uint64_t chunk = journal.header().begin + index; !add(chunk, journal.read(index)))
      throw InputError(journal.path(), "this journal is damaged in chunk " + std::to_string(index + 1) + " of " +
                                           std::to_string(journal.num_chunks()) +
                                           "; study --salvage keeps those before it and predicts the rest again");
}

SearchSummary ChunkReader::finish() && {
  if (summary_.count(config::Outcome::refused) == space_.size())
    throw InputError(space_.scenario().file, "no point of the sweep can be: " + summary_.refusal());
  return std::move(summary_);
}

}  // namespace dculab::study
