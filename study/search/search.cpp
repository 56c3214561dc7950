#include "study/search/search.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "study/search/point_pricer.hpp"

namespace dculab::study {
namespace {

constexpr std::uint64_t kTablePoints = 100'000;

[[nodiscard]] std::string price_chunk(const SweepSpace& space, PointPricer& pricer, std::uint64_t chunk) {
  config::SearchChunk priced(space.metrics().size());
  const std::uint64_t points = chunk_points(space), end = std::min(space.size(), (chunk + 1) * points);
  for (std::uint64_t point = chunk * points; point < end; ++point) pricer.price(point, priced);
  return config::encode(priced);
}

void price_chunks(const SweepSpace& space, sim::ChunkRange chunks, int threads,
                  const std::function<void(std::uint64_t, std::string)>& deliver) {
  const auto make_worker = [&space]() -> sim::ChunkWorker {
    return [&space, pricer = std::make_shared<PointPricer>(space)](std::uint64_t chunk) {
      return price_chunk(space, *pricer, chunk);
    };
  };
  sim::work_in_order(chunks, threads, make_worker, deliver);
}

[[nodiscard]] std::optional<config::StudyJournal> journal_of(const SweepSpace& space, const SearchOptions& options,
                                                             const SearchEvents& events) {
  if (options.journal.empty()) return std::nullopt;
  const auto is_whole = [&space](std::uint64_t chunk, std::string_view payload) {
    return decode_chunk(space, chunk, payload).has_value();
  };
  std::optional<config::StudyJournal> journal(std::in_place, options.journal,
                                              header_of(space, options.shard, options.shards), options.start, is_whole);
  if (journal->num_dropped_bytes() > 0 && events.on_dropped_bytes) events.on_dropped_bytes(*journal);
  return journal;
}

// Prices what the journal does not have. `reader`: takes in all chunks; null for a shard.
void price_rest(const SweepSpace& space, const SearchOptions& options, const SearchEvents& events,
                ChunkReader* reader) {
  std::optional<config::StudyJournal> journal = journal_of(space, options, events);
  sim::ChunkRange chunks = chunks_of(space, options.shard, options.shards);
  const std::uint64_t begin = chunks.begin;
  if (journal) {
    if (reader != nullptr) reader->add_all(*journal);
    chunks.begin += journal->num_chunks();
  }
  price_chunks(space, chunks, options.workers(), [&](std::uint64_t chunk, const std::string& payload) {
    if (journal) journal->append(payload);
    if (reader != nullptr && !reader->add(chunk, payload))
      throw std::logic_error("a chunk was predicted that cannot be read");
    if (events.progress)
      events.progress("predicting points",
                      static_cast<double>(chunk + 1 - begin) / static_cast<double>(chunks.end - begin));
  });
  if (journal) journal->sync();
}

// Bytes; the most so far.
[[nodiscard]] double memory_in_use() {
  constexpr double kKibi = 1024;  // in which Linux counts
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return kKibi * static_cast<double>(usage.ru_maxrss);
}

}  // namespace

int SearchOptions::workers() const {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

bool asks_for_search(const config::Scenario& scenario) {
  const auto is_for_search = [](const config::SweepAxis& axis) {
    return axis.draws.has_value() || axis.key == "machine" || axis.key.starts_with("machine.");
  };
  return scenario.document.find("objective") != nullptr || !scenario.pareto.empty() || !scenario.constraints.empty() ||
         std::ranges::any_of(scenario.sweep, is_for_search) || config::num_points(scenario.sweep) > kTablePoints;
}

SearchCost search_cost(const SweepSpace& space, const SearchOptions& options) {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t kMostSamples = 16;
  constexpr std::chrono::milliseconds kLongEnough{500};
  const sim::ChunkRange chunks = chunks_of(space, options.shard, options.shards);
  const std::uint64_t count = chunks.end - chunks.begin, samples = std::min(kMostSamples, count);
  const double memory_before = memory_in_use();
  const Clock::time_point start = Clock::now();
  PointPricer pricer(space);
  double priced = 0, bytes = 0;
  for (std::uint64_t each = 0; each < samples && (each == 0 || Clock::now() - start < kLongEnough); ++each, ++priced)
    bytes += static_cast<double>(price_chunk(space, pricer, chunks.begin + count / samples * each).size());
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count(), threads = options.workers();
  const double times = static_cast<double>(count) / std::max(priced, 1.0);
  return {.points = std::min(space.size(), chunks.end * chunk_points(space)) - chunks.begin * chunk_points(space),
          .threads = options.workers(),
          .time = Seconds(seconds * times / threads),
          .memory = Bytes(memory_before + threads * (memory_in_use() - memory_before)),
          .journal = options.journal.empty() ? Bytes() : Bytes(bytes * times)};
}

SearchSummary search(const SweepSpace& space, const SearchOptions& options, const SearchEvents& events) {
  ChunkReader reader(space, events.on_points);
  price_rest(space, options, events, &reader);
  return std::move(reader).finish();
}

void search_shard(const SweepSpace& space, const SearchOptions& options, const SearchEvents& events) {
  price_rest(space, options, events, nullptr);
}

}  // namespace dculab::study
