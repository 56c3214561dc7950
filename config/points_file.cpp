#include "config/points_file.hpp"

#include <array>
#include <map>

#include "config/csv_text.hpp"
#include "config/map_reader.hpp"

namespace dculab::config {
namespace {

constexpr std::size_t kLargestFile = 64 << 20;

struct KindRow {
  PointKind kind;
  std::string_view word;
  std::string_view unit;
};
constexpr std::array<KindRow, 8> kKinds{{
    {PointKind::request_latency, "request_latency", "s"},
    {PointKind::ttft, "ttft", "s"},
    {PointKind::offline_output_rate, "offline_output_rate", "tokens/s"},
    {PointKind::prefill_rate, "prefill_rate", "tokens/s"},
    {PointKind::decode_rate, "decode_rate", "tokens/s"},
    {PointKind::matmul, "matmul", "s"},
    {PointKind::attention_prefill, "attention_prefill", "s"},
    {PointKind::attention_decode, "attention_decode", "s"},
}};

const KindRow& row(PointKind kind) {
  for (const KindRow& candidate : kKinds)
    if (candidate.kind == kind) return candidate;
  return kKinds.front();
}

// A row as a map, so that the strict reader serves CSV too. Empty cells are absent keys.
Node row_node(const std::vector<std::string>& columns, std::vector<std::string> cells, int line) {
  Node node;
  node.kind = NodeKind::map;
  node.place = {line, 0};
  for (std::size_t index = 0; index < columns.size(); ++index) {
    if (cells[index].empty()) continue;
    Node cell;
    cell.kind = NodeKind::scalar;
    cell.text = std::move(cells[index]);
    cell.key = columns[index];
    cell.key_place = cell.place = node.place;
    node.children.push_back(std::move(cell));
  }
  return node;
}

void read_count(MapReader& reader, std::string_view key, std::optional<int>& target, Range range) {
  int value = 0;
  const Node* node = reader.optional(key);
  if (node == nullptr) return;
  reader.read(*node, value, range);
  target = value;
}

PublishedPoint read_point(const Node& node, ProblemList& problems) {
  PublishedPoint point;
  point.line = node.place.line;
  MapReader reader(&node, "", problems);
  Choices<PointKind> kinds;
  for (const KindRow& candidate : kKinds) kinds.emplace_back(candidate.word, candidate.kind);
  reader.required("id", point.id);
  reader.required("kind", point.kind, kinds);
  reader.required("machine", point.machine);
  reader.required("devices", point.devices, between(1, 1 << 20));
  for (const auto& [key, target] :
       {std::pair("software", &point.software), std::pair("model", &point.model), std::pair("weights", &point.weights),
        std::pair("kv_dtype", &point.kv_dtype), std::pair("notes", &point.notes)})
    reader.optional(key, *target);
  for (const auto& [key, target] :
       {std::pair("kv_block_size", &point.kv_block_size), std::pair("batch", &point.batch), std::pair("m", &point.m),
        std::pair("n", &point.n), std::pair("k", &point.k), std::pair("heads", &point.heads),
        std::pair("kv_heads", &point.kv_heads), std::pair("head_size", &point.head_size)})
    read_count(reader, key, *target, between(1, 1 << 30));
  for (const auto& [key, target] :
       {std::pair("prompt_tokens", &point.prompt_tokens), std::pair("output_tokens", &point.output_tokens),
        std::pair("context_tokens", &point.context_tokens)})
    read_count(reader, key, *target, between(0, 1 << 30));
  reader.required("value", point.value, above(0));
  const std::string unit(row(point.kind).unit);
  reader.required("unit", point.unit, Choices<std::string>{{unit, unit}});
  reader.required("source", point.source);
  reader.finish();
  return point;
}

std::vector<std::string> read_columns(const std::string& file, CsvReader& reader) {
  CsvRecord record;
  bool is_there = false;
  try {
    is_there = reader.next(record);
  } catch (const InputError& error) {
    throw InputError(file, record.line, error.what());
  }
  if (!is_there) throw InputError(file, "is empty; its first line must name the columns");
  return record.cells;
}

}  // namespace

std::string_view name(PointKind kind) { return row(kind).word; }

std::vector<PublishedPoint> read_points(const std::string& file, const std::string& text) {
  CsvReader reader(text);
  const std::vector<std::string> columns = read_columns(file, reader);
  ProblemList problems(file);
  std::vector<PublishedPoint> points;
  std::map<std::string, int> line_of_id;
  CsvRecord record;
  const auto read_next = [&] {
    if (!reader.next(record)) return false;
    if (record.cells.size() != columns.size())
      throw InputError(std::to_string(record.cells.size()) + " cells, but the first line names " +
                       std::to_string(columns.size()) + " columns");
    points.push_back(read_point(row_node(columns, std::move(record.cells), record.line), problems));
    const auto [first, is_new] = line_of_id.emplace(points.back().id, record.line);
    if (!is_new) throw InputError("id: stands on line " + std::to_string(first->second) + " too; rename one");
    return true;
  };
  for (bool more = true; more;) {
    try {
      more = read_next();
    } catch (const InputError& error) {
      problems.add({record.line, 0}, "", error.what());
    }
  }
  problems.throw_if_any();
  return points;
}

std::vector<PublishedPoint> read_points_file(const std::string& path) {
  return read_points(path, read_text_file(path, kLargestFile));
}

}  // namespace dculab::config
