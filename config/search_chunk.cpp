#include "config/search_chunk.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "config/little_endian.hpp"

namespace dculab::config {
namespace {

constexpr std::uint64_t kMostBounds = std::uint64_t{std::numeric_limits<std::uint8_t>::max()} + 1;
constexpr std::uint64_t kPointHead = 2;  // outcome and bound

void put(std::string& bytes, std::uint64_t value) { bytes += to_little_endian(value); }

void put(std::string& bytes, const std::string& text) {
  put(bytes, text.size());
  bytes += text;
}

// Takes values off the front of bytes that may be anything. Once they end too early, nothing more is there.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] std::string_view bytes(std::uint64_t size) {
    if (size > bytes_.size()) is_whole_ = false;
    const std::string_view taken = bytes_.substr(0, is_whole_ ? size : 0);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  [[nodiscard]] std::uint64_t word() {
    const std::string_view taken = bytes(kWordBytes);
    return is_whole_ ? from_little_endian(taken) : 0;
  }
  [[nodiscard]] std::string text() { return std::string(bytes(word())); }

  [[nodiscard]] bool is_whole() const { return is_whole_; }
  [[nodiscard]] std::uint64_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  bool is_whole_ = true;
};

// Whether a point says what pricing can have said.
[[nodiscard]] bool is_possible(const SearchChunk& chunk, std::size_t index, std::span<const std::size_t> asked) {
  const SearchPoint& point = chunk.points[index];
  if (point.outcome > Outcome::refused) return false;
  if (point.outcome == Outcome::refused) return !chunk.refusal.empty();
  const std::span<const double> figures = chunk.figures(index);
  return point.bound < chunk.bounds.size() &&
         std::ranges::none_of(asked, [&](std::size_t metric) { return std::isnan(figures[metric]); });
}

}  // namespace

std::string encode(const SearchChunk& chunk) {
  std::string bytes;
  put(bytes, chunk.refusal);
  put(bytes, chunk.bounds.size());
  for (const std::string& bound : chunk.bounds) put(bytes, bound);
  for (std::size_t index = 0; index < chunk.points.size(); ++index) {
    bytes += static_cast<char>(chunk.points[index].outcome);
    bytes += static_cast<char>(chunk.points[index].bound);
    for (const double figure : chunk.figures(index)) put(bytes, std::bit_cast<std::uint64_t>(figure));
  }
  return bytes;
}

std::optional<SearchChunk> decode(std::string_view bytes, const ChunkShape& shape) {
  ByteReader reader(bytes);
  SearchChunk chunk(shape.num_metrics);
  chunk.refusal = reader.text();
  const std::uint64_t num_bounds = reader.word();
  if (num_bounds > kMostBounds) return std::nullopt;
  for (std::uint64_t bound = 0; bound < num_bounds && reader.is_whole(); ++bound) chunk.bounds.push_back(reader.text());
  const std::uint64_t point_bytes = kPointHead + shape.num_metrics * kWordBytes;
  if (!reader.is_whole() || reader.left() % point_bytes != 0 || reader.left() / point_bytes != shape.num_points)
    return std::nullopt;
  for (std::uint64_t point = 0; point < shape.num_points; ++point) {
    const std::string_view head = reader.bytes(kPointHead);
    chunk.points.push_back({static_cast<Outcome>(head[0]), static_cast<std::uint8_t>(head[1])});
    for (std::size_t metric = 0; metric < shape.num_metrics; ++metric)
      chunk.all_figures.push_back(std::bit_cast<double>(reader.word()));
    if (!is_possible(chunk, point, shape.asked)) return std::nullopt;
  }
  return chunk;
}

}  // namespace dculab::config
