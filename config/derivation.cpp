#include "config/derivation.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "config/yaml_writer.hpp"
#include "sim/hardware/design.hpp"
#include "sim/hardware/figure.hpp"

namespace dculab::config {
namespace {

// A peak that was measured under load, or published at another clock. Half and double are slips: of sparsity, of FLOP
// per multiply-add, of a double-rate memory clock.
constexpr Bounds kShares = between(0.55, 1.02);

[[nodiscard]] bool has_own(const sim::Machine& machine, std::string_view level) {
  const auto found = std::ranges::find(machine.memory, level, &sim::MemoryLevel::name);
  return found != machine.memory.end() && found->scope == sim::Scope::compute_unit;
}

// "memory.L2.bandwidth" -> "L2"
[[nodiscard]] std::string_view level_of(std::string_view key) {
  const std::size_t first = key.find('.') + 1;
  return key.substr(first, key.rfind('.') - first);
}

[[nodiscard]] std::optional<FigureKind> kind_of(const sim::Machine& machine, std::string_view key) {
  if (key.starts_with("peaks.")) return FigureKind::peak;
  if (!key.starts_with("memory.")) return std::nullopt;
  if (key.ends_with(".latency")) return FigureKind::latency;
  if (!key.ends_with(".bandwidth")) return std::nullopt;
  return has_own(machine, level_of(key)) ? FigureKind::own_bandwidth : FigureKind::shared_bandwidth;
}

[[nodiscard]] std::string number_text(double value) {
  std::array<char, 64> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

[[nodiscard]] std::string rate_text(const DerivationField& field, double rate) {
  return field.dimension ? exact_text(*field.dimension, rate) : number_text(rate);
}

// Reads the rate in its own unit, with the range of the field.
template <class T>
[[nodiscard]] double read_as(MapReader& reader, const Node& node, const DerivationField& field) {
  T rate{};
  reader.read(node, rate, field.bounds);
  if constexpr (std::is_same_v<T, double>)
    return rate;
  else
    return rate.value();
}

[[nodiscard]] double read_rate(MapReader& reader, const Node& node, const DerivationField& field) {
  if (field.dimension == Dimension::flop) return read_as<FlopCount>(reader, node, field);
  if (field.dimension == Dimension::bytes) return read_as<Bytes>(reader, node, field);
  if (field.dimension == Dimension::bandwidth) return read_as<BytesPerSecond>(reader, node, field);
  return read_as<double>(reader, node, field);
}

[[nodiscard]] bool follows_channels(sim::Follows follows) {
  return follows == sim::Follows::channels || follows == sim::Follows::channels_and_clock;
}

void require_channels(MapReader& reader, const Node& node, const sim::Machine& machine, const std::string& key) {
  const std::string level = "memory." + std::string(level_of(key));
  if (sim::figure_value(machine, level + ".channels").value_or(0) > 0) return;
  reader.complain(node, key + "." + node.key + ": " + level + " has no channels; add to it channels: {value: 16, " +
                            "kind: ..., source: ...}, or state the bandwidth as a value alone, which follows nothing");
}

}  // namespace

bool may_follow(const sim::Machine& machine, const std::string& key) { return kind_of(machine, key).has_value(); }

std::optional<sim::Derivation> read_derivation(MapReader& reader, const sim::Machine& machine, const std::string& key) {
  const std::optional<FigureKind> kind = kind_of(machine, key);
  std::optional<sim::Derivation> found;
  std::string offered;
  const bool is_stated = reader.optional("value") != nullptr;
  bool is_given = is_stated;
  for (const DerivationField& field : kDerivations) {
    if (field.figure != kind) continue;
    offered += (offered.empty() ? "" : ", ") + std::string(field.key);
    const Node* node = reader.optional(field.key);
    if (node == nullptr) continue;
    is_given = true;
    if (found) reader.complain(*node, key + ": one of " + offered + " is enough; keep one");
    if (follows_channels(field.follows)) require_channels(reader, *node, machine, key);
    if (const double rate = read_rate(reader, *node, field); rate > 0)
      found = sim::Derivation{field.follows, rate, is_stated};
  }
  if (!is_given) reader.complain(*reader.node(), key + ": needs a value, or what it follows: " + offered);
  return found;
}

void check_share(MapReader& reader, const sim::Machine& machine, const std::string& key,
                 const sim::Derivation& derivation, double value) {
  const double derived = sim::derived_value(machine, key, derivation);
  if (derived <= 0) return;  // of a design with other problems
  // Of a latency the clocks are a part.
  const bool is_time = derivation.follows == sim::Follows::clock;
  const double share = is_time ? derived / value : value / derived;
  if (is_time ? share <= kShares.high : contains(kShares, share)) return;
  const Dimension dimension = is_time                   ? Dimension::seconds
                              : key.starts_with("peak") ? Dimension::flop_rate
                                                        : Dimension::bandwidth;
  reader.complain(
      *reader.optional("value"),
      key + ": " + short_text(dimension, value) + ", but " + short_text(dimension, derived) +
          " follow from the machine's units, clock and channels; " +
          (is_time ? "a latency has no more clocks than it takes" : "a share must be " + describe(kShares)) +
          "; correct one of them, or leave value out");
}

void add_derivation(Node& figure, const sim::Machine& machine, const std::string& key,
                    const sim::Derivation& derivation) {
  const std::optional<FigureKind> kind = kind_of(machine, key);
  const auto field = std::ranges::find_if(kDerivations, [&](const DerivationField& each) {
    return each.figure == kind && each.follows == derivation.follows;
  });
  if (field != kDerivations.end()) add(figure, field->key, word_node(rate_text(*field, derivation.rate)));
}

}  // namespace dculab::config
