// Published measurements as CSV.
#include <optional>
#include <set>
#include <string>

#include "config/points_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {
namespace {

constexpr const char* kPointColumns =
    "id,kind,machine,devices,software,model,weights,kv_dtype,kv_block_size,batch,prompt_tokens,output_tokens,"
    "context_tokens,m,n,k,heads,kv_heads,head_size,value,unit,source,notes,clock,kernel";

std::string points_csv(const std::vector<config::PublishedPoint>& points) {
  std::string text = kPointColumns;
  for (const config::PublishedPoint& point : points) {
    const auto add = [&text](const std::string& cell) { text += cell + ","; };
    add("\n" + csv_cell(point.id));
    add(std::string(name(point.kind)));
    add(csv_cell(point.machine));
    add(std::to_string(point.devices));
    for (const auto* each : {&point.software, &point.model, &point.weights, &point.kv_dtype}) add(csv_cell(*each));
    const auto add_count = [&add](const auto& count) { add(count ? std::to_string(*count) : ""); };
    for (const auto& count :
         {point.kv_block_size, point.batch, point.prompt_tokens, point.output_tokens, point.context_tokens})
      add_count(count);
    point.bytes ? add_count(point.bytes) : add_count(point.m);
    for (const auto& count : {point.n, point.k, point.heads, point.kv_heads, point.head_size}) add_count(count);
    add(csv_cell(point.value));
    for (const auto* each : {&point.unit, &point.source}) add(csv_cell(*each));
    for (const auto* each : {&point.notes, &point.clock}) add(csv_cell(*each));
    text += csv_cell(point.kernel);
  }
  return text;
}

}  // namespace

void read_points_csv(std::string_view input) {
  const auto points = config::read_points("fuzz.csv", std::string(input));
  const std::set<std::string> known_units{"s", "tokens/s", "GB/s", "FLOP/s", "OP/s"};
  std::set<std::string> ids;
  for (const config::PublishedPoint& point : points) {
    require(ids.insert(point.id).second, "no two points have one id");
    require(point.value > 0, "what was measured took time");
    require(known_units.contains(point.unit), "a unit is known");
  }
  const std::string text = points_csv(points);
  require(points_csv(read_back([&] { return config::read_points("again.csv", text); })) == text,
          "points are read back as written");
}

}  // namespace dculab::fuzz
