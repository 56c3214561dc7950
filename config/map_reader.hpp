// Reads a map strictly: unknown, duplicate and missing keys, wrong types, missing units and values out of range are
// all collected, and reported together as "file:line:column: what is wrong; what to do".
//
//   ProblemList problems(file);
//   MapReader reader(node, "kv_cache", problems);
//   reader.optional("block_size", options.block_size, between(1, 256));
//   reader.finish();           // unknown and duplicate keys
//   problems.throw_if_any();
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/unit_text.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "fields/bounds.hpp"
#include "fields/node.hpp"

namespace dculab::config {

class ProblemList {
 public:
  explicit ProblemList(std::string file) : file_(std::move(file)) {}

  void add(const Node& at, const std::string& message) { add(at.place, at.origin, message); }
  void add(Place place, const std::string& origin, const std::string& message);
  void add(const ProblemList& more);
  void clear() { problems_.clear(), num_hidden_ = 0; }
  [[nodiscard]] bool empty() const { return problems_.empty(); }

  // Throws InputError with one line per problem, in the order of the file. The first 20 are shown, and how many more
  // there are; once there are 100,000 more, adding one throws.
  void throw_if_any() const;

 private:
  struct Problem {
    Place place;
    std::string text;
  };
  static constexpr std::size_t kMostShown = 20, kMostCounted = 100'000;
  void keep(Problem problem);

  std::string file_;
  std::vector<Problem> problems_;  // in the order of the file; those that will be shown
  std::size_t num_hidden_ = 0;
};

// "at least 1 and at most 256"; of a dimension with its units: "at most 1000 s".
[[nodiscard]] std::string describe(Bounds bounds, std::optional<Dimension> dimension = std::nullopt);

// A word that a key may take, and what it means. Fixed words are constexpr arrays: they allocate no memory before main,
// where a failed allocation could not be reported.
template <class T>
using Choice = std::pair<std::string_view, T>;
template <class T>
using Choices = std::vector<Choice<T>>;
template <class T>
using ChoiceView = std::span<const Choice<std::type_identity_t<T>>>;  // T is deduced from what is read

// Each reads one scalar, or says what is wrong with it by throwing InputError without a place.
void read_scalar(const Node& node, std::string& value);
void read_scalar(const Node& node, bool& value);
void read_scalar(const Node& node, int& value);
void read_scalar(const Node& node, std::int64_t& value);
void read_scalar(const Node& node, double& value);
void read_scalar(const Node& node, Dtype& value);
template <int B, int S, int F, int C, int J>
void read_scalar(const Node& node, Quantity<B, S, F, C, J>& value) {
  std::string text;
  read_scalar(node, text);
  value = parse_quantity<Quantity<B, S, F, C, J>>(text);
}

class MapReader {
 public:
  // `path` names the map in messages, "" for the document; `node` and the keys that are asked for must outlive the
  // reader.
  // A null node is an empty map whose missing keys are not reported again.
  MapReader(const Node* node, std::string path, ProblemList& problems);

  // The value of `key`, or null after reporting it missing.
  const Node* required(std::string_view key);
  // The value of `key`, or null.
  const Node* optional(std::string_view key);

  // These leave `target` alone when the key is absent or wrong.
  template <class T>
  void required(std::string_view key, T& target, Bounds bounds = {}) {
    if (const Node* node = required(key)) read(*node, target, bounds);
  }
  template <class T>
  void optional(std::string_view key, T& target, Bounds bounds = {}) {
    if (const Node* node = optional(key)) read(*node, target, bounds);
  }
  template <class T>
  void required(std::string_view key, T& target, ChoiceView<T> choices) {
    if (const Node* node = required(key)) read_choice(*node, target, choices);
  }
  template <class T>
  void optional(std::string_view key, T& target, ChoiceView<T> choices) {
    if (const Node* node = optional(key)) read_choice(*node, target, choices);
  }

  // Scalars and lists of scalars outside a key: elements of a list.
  template <class T>
  void read(const Node& node, T& target, Bounds bounds = {});
  template <class T>
  void read(const Node& node, std::vector<T>& target, Bounds bounds = {});
  template <class T>
  void read_choice(const Node& node, T& target, ChoiceView<T> choices);

  // The map under `key`.
  MapReader required_map(std::string_view key);
  MapReader optional_map(std::string_view key);

  void complain(const Node& at, const std::string& message) { problems_->add(at, message); }
  [[nodiscard]] bool is_present() const { return node_ != nullptr; }
  [[nodiscard]] const Node* node() const { return node_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path_to(std::string_view key) const;
  [[nodiscard]] ProblemList& problems() { return *problems_; }

  // Reports keys that were never asked for, and duplicate keys. `elsewhere` gives where keys of this name belong, for
  // ones that stand in the wrong map: "workload.batch".
  using Elsewhere = std::vector<std::string> (*)(std::string_view key);
  void finish();
  void finish(Elsewhere elsewhere);

 private:
  [[nodiscard]] bool check_range(const Node& node, double value, Bounds bounds,
                                 std::optional<Dimension> dimension = std::nullopt);
  [[nodiscard]] bool expect_list(const Node& node);
  void report(const Node& node, const std::string& message);
  void report_choice(const Node& node, const std::vector<std::string_view>& words);

  struct Asked {
    std::string_view key;
    const Node* found;  // or null
  };
  [[nodiscard]] bool is_asked(const Node& child) const;
  [[nodiscard]] std::vector<std::string_view> known_keys() const;

  const Node* node_;
  std::string path_;
  ProblemList* problems_;
  std::vector<Asked> asked_;  // in their order; of a map that is there
};

template <class T>
void MapReader::read(const Node& node, T& target, Bounds bounds) {
  T value{};
  try {
    read_scalar(node, value);
  } catch (const InputError& error) {
    return report(node, error.what());
  }
  if constexpr (std::is_arithmetic_v<T>) {
    if (!check_range(node, static_cast<double>(value), bounds)) return;
  } else if constexpr (requires { value.value(); }) {
    if (!check_range(node, value.value(), bounds, DimensionOf<T>::value)) return;
  }
  target = std::move(value);
}

template <class T>
void MapReader::read(const Node& node, std::vector<T>& target, Bounds bounds) {
  if (!expect_list(node)) return;
  target.assign(node.children.size(), T{});
  for (std::size_t index = 0; index < node.children.size(); ++index) read(node.children[index], target[index], bounds);
}

template <class T>
void MapReader::read_choice(const Node& node, T& target, ChoiceView<T> choices) {
  for (const auto& [word, value] : choices) {
    if (node.kind == NodeKind::scalar && node.text == word) {
      target = value;
      return;
    }
  }
  std::vector<std::string_view> words;
  for (const auto& [word, value] : choices) words.push_back(word);
  report_choice(node, words);
}

}  // namespace dculab::config
