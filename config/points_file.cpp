#include "config/points_file.hpp"

#include <array>
#include <charconv>
#include <map>

#include "config/csv_rows.hpp"
#include "config/known_format.hpp"
#include "config/map_reader.hpp"
#include "core/batch.hpp"
#include "core/error.hpp"
#include "files/input.hpp"
#include "model/model_shape.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestPointsFile = 64 << 20;
constexpr double kMostRequests = 1 << 20;
constexpr double kMostHeads = 1 << 12;  // and the size of one
constexpr double kMostBytes = 1e15;

// What column `m` counts.
enum class Counts : std::uint8_t { rows, bytes };

struct KindRow {
  PointKind kind;
  std::string_view word;
  std::array<std::string_view, 2> units;  // any of them; the second may be empty
  Counts m = Counts::rows;
  double largest = 1e12;  // value
};
constexpr std::array<KindRow, 16> kPointKinds{{
    {PointKind::request_latency, "request_latency", {"s"}},
    {PointKind::ttft, "ttft", {"s"}},
    {PointKind::offline_output_rate, "offline_output_rate", {"tokens/s"}},
    {PointKind::prefill_rate, "prefill_rate", {"tokens/s"}},
    {PointKind::decode_rate, "decode_rate", {"tokens/s"}},
    {PointKind::matmul, "matmul", {"s"}},
    {PointKind::attention_prefill, "attention_prefill", {"s"}},
    {PointKind::attention_decode, "attention_decode", {"s"}},
    {PointKind::all_reduce, "all_reduce", {"s"}, Counts::bytes},
    {PointKind::copy_bandwidth, "copy_bandwidth", {"GB/s"}, Counts::bytes},
    {PointKind::cache_bandwidth, "cache_bandwidth", {"GB/s"}, Counts::bytes},
    {PointKind::cache_latency, "cache_latency", {"s"}, Counts::bytes},
    {PointKind::launch_overhead, "launch_overhead", {"s"}, Counts::bytes},
    {PointKind::peak_rate, "peak_rate", {"FLOP/s", "OP/s"}, Counts::rows, 1e18},
    {PointKind::fused_moe, "fused_moe", {"s"}},
    {PointKind::serving_output_rate, "serving_output_rate", {"tokens/s"}},
}};

const KindRow& row(PointKind kind) {
  for (const KindRow& candidate : kPointKinds)
    if (candidate.kind == kind) return candidate;
  return kPointKinds.front();
}

template <class Count>
void read_count(MapReader& reader, std::string_view key, std::optional<Count>& target, Bounds bounds) {
  Count value = 0;
  const Node* node = reader.optional(key);
  if (node == nullptr) return;
  reader.read(*node, value, bounds);
  target = value;
}

void read_sizes(MapReader& reader, PublishedPoint& point) {
  if (row(point.kind).m == Counts::bytes)
    read_count(reader, "m", point.bytes, between(1, kMostBytes));
  else
    read_count(reader, "m", point.m, between(1, kLargestModelField));
  for (const auto& [key, target] : {std::pair("n", &point.n), std::pair("k", &point.k)})
    read_count(reader, key, *target, between(1, kLargestModelField));
  for (const auto& [key, target] : {std::pair("heads", &point.heads), std::pair("kv_heads", &point.kv_heads),
                                    std::pair("head_size", &point.head_size)})
    read_count(reader, key, *target, between(1, kMostHeads));
}

// "8" of the word "E=8" among `words`, which spaces, commas and semicolons part. Adds a problem where the word says no
// count, or stands twice.
void read_word(std::string_view words, std::string_view key, std::optional<int>& target, const Node& at,
               ProblemList& problems) {
  constexpr std::string_view kApart = " ,;";
  while (!words.empty()) {
    const std::size_t end = std::min(words.find_first_of(kApart), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (!word.starts_with(key)) continue;
    const std::string_view digits = word.substr(key.size());
    int count = 0;
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    const bool is_count = error == std::errc() && rest == digits.data() + digits.size() && count > 0;
    if (!is_count || count > kLargestModelField || target)
      return problems.add(at, "notes: '" + std::string(word) + "' " +
                                  (target ? "says " + std::string(key) + " once more" : "is not a count") +
                                  "; a fused_moe has one E=8 and one top-k=2");
    target = count;
  }
}

void read_experts(MapReader& reader, PublishedPoint& point, ProblemList& problems) {
  const Node* notes = reader.optional("notes");
  if (point.kind != PointKind::fused_moe || notes == nullptr) return;
  read_word(point.notes, "E=", point.num_experts, *notes, problems);
  read_word(point.notes, "top-k=", point.num_experts_per_tok, *notes, problems);
  if (point.num_experts && point.num_experts_per_tok && *point.num_experts_per_tok > *point.num_experts)
    problems.add(*notes, "notes: top-k=" + std::to_string(*point.num_experts_per_tok) + " is more than the " +
                             std::to_string(*point.num_experts) + " experts (E)");
}

void read_value(MapReader& reader, PublishedPoint& point) {
  reader.required("value", point.value, between(1e-12, row(point.kind).largest));
  Choices<std::string> units;
  for (const std::string_view unit : row(point.kind).units)
    if (!unit.empty()) units.emplace_back(unit, std::string(unit));
  reader.required("unit", point.unit, units);
}

PublishedPoint read_point(const Node& node, ProblemList& problems) {
  PublishedPoint point;
  point.line = node.place.line;
  MapReader reader(&node, "", problems);
  Choices<PointKind> kinds;
  for (const KindRow& candidate : kPointKinds) kinds.emplace_back(candidate.word, candidate.kind);
  reader.required("id", point.id);
  reader.required("kind", point.kind, kinds);
  reader.required("machine", point.machine);
  reader.required("devices", point.devices, between(1, 1 << 20));
  for (const auto& [key, target] :
       {std::pair("software", &point.software), std::pair("model", &point.model), std::pair("weights", &point.weights),
        std::pair("kv_dtype", &point.kv_dtype), std::pair("notes", &point.notes), std::pair("clock", &point.clock),
        std::pair("kernel", &point.kernel)})
    reader.optional(key, *target);
  read_experts(reader, point, problems);
  read_count(reader, "batch", point.batch, between(1, kMostRequests));
  read_count(reader, "kv_block_size", point.kv_block_size, between(1, kLongestContext));
  read_sizes(reader, point);
  for (const auto& [key, target] :
       {std::pair("prompt_tokens", &point.prompt_tokens), std::pair("output_tokens", &point.output_tokens),
        std::pair("context_tokens", &point.context_tokens)})
    read_count(reader, key, *target, between(0, kLongestContext));
  read_value(reader, point);
  reader.required("source", point.source);
  reader.finish();
  return point;
}

}  // namespace

std::string_view name(PointKind kind) { return row(kind).word; }

bool is_of_hardware(PointKind kind) {
  switch (kind) {
    case PointKind::copy_bandwidth:
    case PointKind::cache_bandwidth:
    case PointKind::cache_latency:
    case PointKind::launch_overhead:
    case PointKind::peak_rate:
      return true;
    default:
      return false;
  }
}

std::vector<PublishedPoint> read_points(const std::string& file, const std::string& text) {
  ProblemList problems(file);
  std::vector<PublishedPoint> points;
  std::map<std::string, int> line_of_id;
  for (const Node& row : csv_rows(file, text, problems)) {
    points.push_back(read_point(row, problems));
    const auto [first, is_new] = line_of_id.emplace(points.back().id, points.back().line);
    if (!is_new)
      problems.add({points.back().line, 0}, "",
                   "id: stands on line " + std::to_string(first->second) + " too; rename one");
  }
  problems.throw_if_any();
  return points;
}

std::vector<PublishedPoint> read_points_file(const std::string& path) {
  const std::string text = files::read_text(path, kLargestPointsFile);
  if (const auto format = recognize(text); format && *format != KnownFormat::points)
    throw InputError(path, "is " + std::string(description(*format)));
  return read_points(path, text);
}

}  // namespace dculab::config
