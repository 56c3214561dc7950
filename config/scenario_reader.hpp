// Reads a scenario's document section by section, without looking at its sweep.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "config/key_tree.hpp"
#include "config/map_reader.hpp"
#include "config/scenario_file.hpp"

namespace dculab::config {

// What is read from top-level keys of its own, whatever the others say.
enum class Section : std::uint8_t {
  heading,
  model,
  machines,
  stack,
  weights,
  options,
  deployment,
  workload,
  slo,
  measure,
  objective,
  pareto,
  then,
  choose
};

class Sections {
 public:
  constexpr Sections() = default;
  constexpr Sections(std::initializer_list<Section> sections) {
    for (const Section section : sections) bits_ |= bit(section);
  }
  [[nodiscard]] static constexpr Sections all() {
    Sections sections;
    sections.bits_ = ~0U;
    return sections;
  }
  constexpr void add(Sections more) { bits_ |= more.bits_; }
  // Whether they have one of `wanted`.
  [[nodiscard]] constexpr bool have(Sections wanted) const { return (bits_ & wanted.bits_) != 0; }
  friend constexpr bool operator==(Sections, Sections) = default;

 private:
  [[nodiscard]] static constexpr unsigned bit(Section section) { return 1U << static_cast<unsigned>(section); }
  unsigned bits_ = 0;
};

// Keys of a scenario that are no sections, those of `measure`, and the sizes of a model that a scenario may change.
[[nodiscard]] std::vector<FileKey> plain_scenario_keys();
[[nodiscard]] std::vector<FileKey> measure_keys();
[[nodiscard]] std::vector<std::string_view> changeable_sizes();

// What a dotted key belongs to. A key that belongs to none: all, whose reader refuses it.
[[nodiscard]] Sections sections_of(std::string_view key);

// Fills these sections of `scenario` from its document and reports what is wrong with them. What has been read and has
// not changed since need not be read again, unless something was wrong with it.
void read_sections(Scenario& scenario, const Node& document, ProblemList& problems,
                   Sections sections = Sections::all());

}  // namespace dculab::config
