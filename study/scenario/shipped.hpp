// What is shipped, and lies in the data folders: what somebody chooses among, a line each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace dculab::study {

struct ShippedModel {
  std::string name;
  double parameters = 0, active_parameters = 0;  // of all experts, of those that a token goes through
  std::string attention;                         // "GQA", "MLA", "GQA, delta net"
  int num_attention_heads = 0, num_key_value_heads = 0;
  int num_layers = 0;
  int max_position_embeddings = 0;
};

struct ShippedMachine {
  std::string name, description;
  Bytes memory;
  BytesPerSecond bandwidth;
  std::optional<FlopsPerSecond> peak;  // of 16-bit floats
};

struct ShippedStack {
  std::string name, program, description;
};

struct ShippedScenario {
  std::string name, question;
};

enum class ShippedKind : std::uint8_t { models, machines, stacks, scenarios };

struct Shipped {
  std::vector<ShippedModel> models;
  std::vector<ShippedMachine> machines;
  std::vector<ShippedStack> stacks;
  std::vector<ShippedScenario> scenarios;
  std::vector<std::string> unreadable;  // why
};

// Of one kind, or of all, each in the order of their names. What cannot be read is left out.
[[nodiscard]] Shipped find_shipped(std::optional<ShippedKind> kind);

}  // namespace dculab::study
