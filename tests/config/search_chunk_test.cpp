// Chunks of priced points: what was encoded is decoded, and anything else is told apart.
#include "config/search_chunk.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/catch.hpp"

namespace dculab::config {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<std::size_t, 1> kAsked{1};

[[nodiscard]] SearchChunk some_chunk() {
  SearchChunk chunk(2);
  chunk.points = {{Outcome::met, 1}, {Outcome::refused, 0}, {Outcome::excluded, 0}};
  chunk.all_figures = {kNaN, 2.5, 0, 0, 1e-300, -7};
  chunk.bounds = {"DRAM", "compute"};
  chunk.refusal = "the context is longer than the model's";
  return chunk;
}

[[nodiscard]] ChunkShape shape() { return {2, 3, kAsked}; }

TEST_CASE("a chunk is read back as it was") {
  const std::string bytes = encode(some_chunk());
  const auto chunk = decode(bytes, shape());
  REQUIRE(chunk.has_value());
  CHECK(chunk->refusal == some_chunk().refusal);
  CHECK(chunk->bounds == some_chunk().bounds);
  CHECK(std::isnan(chunk->figures(0)[0]));
  CHECK(chunk->figures(2)[1] == -7);
  CHECK(encode(*chunk) == bytes);
}

TEST_CASE("a chunk that is too short, too long or of other points is refused") {
  const std::string bytes = encode(some_chunk());
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK_FALSE(decode(bytes.substr(0, size), shape()));
  CHECK_FALSE(decode(bytes + '\0', shape()));
  CHECK_FALSE(decode(bytes + std::string(18, '\0'), shape()));
  CHECK_FALSE(decode(bytes, {2, 4, kAsked}));
  CHECK_FALSE(decode(bytes, {3, 3, kAsked}));
}

TEST_CASE("a chunk that says what pricing cannot have said is refused") {
  const auto refused = [](auto change) {
    SearchChunk chunk = some_chunk();
    change(chunk);
    return !decode(encode(chunk), shape());
  };
  CHECK(refused([](SearchChunk& chunk) { chunk.points[0].outcome = static_cast<Outcome>(3); }));
  CHECK(refused([](SearchChunk& chunk) { chunk.points[0].bound = 2; }));
  CHECK(refused([](SearchChunk& chunk) { chunk.bounds.clear(); }));
  CHECK(refused([](SearchChunk& chunk) { chunk.bounds.resize(257); }));
  CHECK(refused([](SearchChunk& chunk) { chunk.refusal.clear(); }));
  CHECK(refused([](SearchChunk& chunk) { chunk.all_figures[1] = kNaN; }));
  CHECK_FALSE(refused([](SearchChunk& chunk) { chunk.all_figures[0] = 1; }));
}

TEST_CASE("bytes that are changed at random are refused or a chunk of the same shape") {
  std::mt19937 random(7);
  const std::string bytes = encode(some_chunk());
  int read = 0;
  for (int time = 0; time < 20'000; ++time) {
    std::string changed = bytes;
    for (unsigned change = 0; change < 1 + random() % 3; ++change)
      changed[random() % changed.size()] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
    const auto chunk = decode(changed, shape());
    if (!chunk) continue;
    ++read;
    REQUIRE(chunk->points.size() == 3);
    REQUIRE(chunk->all_figures.size() == 6);
    for (const SearchPoint& point : chunk->points)
      REQUIRE((point.outcome == Outcome::refused || point.bound < chunk->bounds.size()));
  }
  CHECK(read > 1000);
}

}  // namespace
}  // namespace dculab::config
