// What a search knows of a chunk of points once they are priced, and how a journal keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dculab::config {

enum class Outcome : std::uint8_t {
  met,       // priced, and all constraints hold
  excluded,  // a constraint does not hold
  refused,   // there can be no such step or server, or it has no figure that is asked about
};

struct SearchPoint {
  Outcome outcome = Outcome::refused;
  std::uint8_t bound = 0;  // of SearchChunk::bounds
};

struct SearchChunk {
  explicit SearchChunk(std::size_t num_metrics_each) : num_metrics(num_metrics_each) {}

  // By metric; of a refused point 0.
  [[nodiscard]] std::span<const double> figures(std::size_t point) const {
    return std::span(all_figures).subspan(point * num_metrics, num_metrics);
  }

  std::size_t num_metrics;
  std::vector<SearchPoint> points;
  std::vector<double> all_figures;  // [points, num_metrics]
  std::vector<std::string> bounds;
  std::string refusal;  // of the first refused point; empty where there is none
};

[[nodiscard]] std::string encode(const SearchChunk& chunk);

// What the bytes must hold.
struct ChunkShape {
  std::size_t num_metrics = 0;
  std::uint64_t num_points = 0;
  std::span<const std::size_t> asked;  // metrics that a priced point must have: their figures are numbers
};

// Nothing where the bytes are not those of a chunk of this shape, whatever they are.
[[nodiscard]] std::optional<SearchChunk> decode(std::string_view bytes, const ChunkShape& shape);

}  // namespace dculab::config
