#include "config/trace_experts.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "config/model_fields.hpp"

namespace dculab::config {
namespace {

using Json = nlohmann::ordered_json;

// What a device of several has of the experts.
ExpertPart read_expert_part(MapReader reader) {
  ExpertPart part;
  reader.required("devices", part.devices, between(2, kMostSharingDevices));
  reader.required("devices_per_node", part.devices_per_node, between(1, kMostSharingDevices));
  reader.required("attention_devices", part.attention_devices, between(1, kMostSharingDevices));
  reader.required("rows_per_token", part.rows_per_token, above(0));
  if (const Node* node = reader.required("copies")) {
    reader.read(*node, part.copies, between(0, 1));
    if (part.copies.empty()) reader.complain(*node, "copies: must not be empty");
  }
  reader.optional("other_nodes", part.other_nodes, between(0, kMostSharingDevices));
  reader.required("dispatch_dtype", part.dispatch_dtype);
  reader.finish();
  return part;
}

Json expert_part_json(const ExpertPart& part) {
  Json json{{"devices", part.devices},
            {"devices_per_node", part.devices_per_node},
            {"attention_devices", part.attention_devices},
            {"rows_per_token", part.rows_per_token},
            {"copies", part.copies}};
  if (part.other_nodes > 0) json["other_nodes"] = part.other_nodes;
  json["dispatch_dtype"] = name(part.dispatch_dtype);
  return json;
}

}  // namespace

Experts read_trace_experts(MapReader reader) {
  Experts experts;
  visit_expert_sizes(experts, [&reader](std::string_view key, int& value) {
    reader.required(key, value, between(1, kLargestModelField));
  });
  visit_expert_flags(experts, [&reader](std::string_view key, bool& value) { reader.optional(key, value); });
  reader.optional("activation", experts.activation, kActivations);
  reader.optional("scoring", experts.scoring, kScorings);
  reader.optional("normalized", experts.normalized);
  reader.optional("scaling", experts.scaling, above(0));
  if (reader.optional("part") != nullptr) experts.part = read_expert_part(reader.optional_map("part"));
  reader.finish();
  return experts;
}

nlohmann::ordered_json trace_experts_json(const Experts& experts) {
  Json json;
  visit_expert_sizes(experts, [&json](std::string_view key, int value) { json[std::string(key)] = value; });
  visit_expert_flags(experts, [&json](std::string_view key, bool value) {
    if (value) json[std::string(key)] = true;
  });
  if (experts.activation != ActivationKind::silu) json["activation"] = word_of(kActivations, experts.activation);
  if (experts.scoring != ExpertScoring::softmax) json["scoring"] = word_of(kScorings, experts.scoring);
  json["normalized"] = experts.normalized;
  if (experts.scaling != 1.0) json["scaling"] = experts.scaling;
  if (experts.part) json["part"] = expert_part_json(*experts.part);
  return json;
}

}  // namespace dculab::config
