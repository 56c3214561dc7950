#include "config/map_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <set>
#include <sstream>

#include "core/allowed_numbers.hpp"
#include "fields/near_words.hpp"
#include "fields/printable_text.hpp"

namespace dculab::config {
namespace {

// YAML's scalars are words, which may be anything; those of JSON have a type.
const std::string& scalar_text(const Node& node, const char* wanted, std::initializer_list<ScalarType> types) {
  const auto refuse = [wanted](const std::string& what) { throw InputError(what + "; write " + wanted); };
  if (node.kind == NodeKind::null) refuse("has no value");
  if (node.kind == NodeKind::list) refuse("is a list");
  if (node.kind == NodeKind::map) refuse("is a map");
  if (node.type != ScalarType::word && std::ranges::find(types, node.type) == types.end())
    refuse(node.is(ScalarType::text) ? in_quotes(node.text) + " is a text" : "is " + shortened(node.text));
  return node.text;
}

// Plain decimal digits: yaml-cpp would read 010 as eight, and accept 0x10.
template <class T>
void read_integer(const Node& node, T& value) {
  const std::string& text = scalar_text(node, "a whole number", {ScalarType::integer, ScalarType::real});
  const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
  const bool plain = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!plain) {
    const std::string meant = whole_number_meant(text);
    throw InputError(in_quotes(text) + " is not a whole number" + (meant.empty() ? "" : "; write " + meant));
  }
  if (digits.size() > 1 && digits.front() == '0') throw InputError(in_quotes(text) + " begins with a zero; remove it");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw InputError(in_quotes(text) + " is too large");
}

// A bound as it is written in a file.
std::string bound_text(double bound, std::optional<Dimension> dimension) {
  if (dimension) return short_text(*dimension, bound);
  constexpr int kDigits = 12;
  std::ostringstream text;
  text.precision(kDigits);
  text << bound;
  return text.str();
}

template <class Words>
std::string listed(const Words& words) {
  std::string text;
  for (const std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

}  // namespace

std::string describe(Bounds bounds, std::optional<Dimension> dimension) {
  std::string text;
  const bool has_low = std::isfinite(bounds.low);
  const bool has_high = std::isfinite(bounds.high);
  if (has_low)
    text += (bounds.low_end == LowEnd::included ? "at least " : "more than ") + bound_text(bounds.low, dimension);
  if (has_low && has_high) text += " and ";
  if (has_high) text += "at most " + bound_text(bounds.high, dimension);
  return text;
}

void ProblemList::add(Place place, const std::string& origin, const std::string& message) {
  std::string text = origin.empty() ? file_ : origin;
  if (origin.empty() && place.line > 0) text.append(":").append(std::to_string(place.line));
  if (origin.empty() && place.column > 0) text.append(":").append(std::to_string(place.column));
  keep({place, text + ": " + message});
}

void ProblemList::add(const ProblemList& more) {
  for (const Problem& problem : more.problems_) keep(problem);
  num_hidden_ += more.num_hidden_;
}

void ProblemList::keep(Problem problem) {
  const auto before = [](const Problem& a, const Problem& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  };
  const auto [same, behind] = std::equal_range(problems_.begin(), problems_.end(), problem, before);
  // Every value of an axis may find the same fault.
  if (std::any_of(same, behind, [&](const Problem& other) { return other.text == problem.text; })) return;
  problems_.insert(behind, std::move(problem));
  if (problems_.size() <= kMostShown) return;
  problems_.pop_back();
  if (++num_hidden_ == kMostCounted) throw_if_any();  // whatever this file is, its author meant something else
}

void ProblemList::throw_if_any() const {
  if (problems_.empty()) return;
  std::string text;
  for (const Problem& problem : problems_) text += (text.empty() ? "" : "\n") + problem.text;
  if (num_hidden_ > 0)
    text += "\nand " + grouped_digits(num_hidden_) + (num_hidden_ >= kMostCounted ? " or more" : " more") +
            (num_hidden_ == 1 ? " problem" : " problems");
  throw InputError(text);
}

void read_scalar(const Node& node, std::string& value) {
  value = scalar_text(node, "a text", {ScalarType::text});
  if (value.empty()) throw InputError("is empty; write a text");
}

void read_scalar(const Node& node, bool& value) {
  const std::string& text = scalar_text(node, "true or false", {ScalarType::flag});
  if (text != "true" && text != "false") throw InputError(in_quotes(text) + " is neither true nor false");
  value = text == "true";
}

void read_scalar(const Node& node, int& value) { read_integer(node, value); }
void read_scalar(const Node& node, std::int64_t& value) { read_integer(node, value); }

void read_scalar(const Node& node, double& value) {
  const std::string& text = scalar_text(node, "a number", {ScalarType::integer, ScalarType::real});
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && std::isfinite(value)) return;
  const std::string meant = rate_meant(text);
  throw InputError(in_quotes(text) + " is not a number" + (meant.empty() ? "" : "; write " + meant));
}

void read_scalar(const Node& node, Dtype& value) {
  const std::string& text = scalar_text(node, "a dtype such as f16", {ScalarType::text});
  const std::optional<Dtype> dtype = parse_dtype(text);
  if (!dtype)
    throw InputError(in_quotes(text) + " is not a dtype; use one of f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, int4");
  value = *dtype;
}

MapReader::MapReader(const Node* node, std::string path, ProblemList& problems)
    : node_(node), path_(std::move(path)), problems_(&problems) {
  constexpr std::size_t kUsualKeys = 16;
  if (node_ != nullptr && node_->kind == NodeKind::map) asked_.reserve(kUsualKeys);
  if (node_ == nullptr || node_->kind == NodeKind::map) return;
  report(*node_,
         node_->kind == NodeKind::null ? "is empty; write keys and values" : "must be a map of keys and values");
  node_ = nullptr;
}

std::string MapReader::path_to(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

const Node* MapReader::optional(std::string_view key) {
  if (node_ == nullptr) return nullptr;
  asked_.push_back({key, node_->find(key)});
  return asked_.back().found;
}

const Node* MapReader::required(std::string_view key) {
  const Node* found = optional(key);
  if (found == nullptr && node_ != nullptr) problems_->add(*node_, path_to(key) + ": missing; add it");
  return found;
}

MapReader MapReader::required_map(std::string_view key) { return {required(key), path_to(key), *problems_}; }
MapReader MapReader::optional_map(std::string_view key) { return {optional(key), path_to(key), *problems_}; }

bool MapReader::is_asked(const Node& child) const {
  return std::ranges::find(asked_, &child, &Asked::found) != asked_.end();
}

std::vector<std::string_view> MapReader::known_keys() const {
  std::set<std::string_view> keys;
  for (const Asked& each : asked_) keys.insert(each.key);
  return {keys.begin(), keys.end()};
}

void MapReader::finish() { finish(nullptr); }

void MapReader::finish(Elsewhere elsewhere) {
  if (node_ == nullptr) return;
  const auto is_asked_child = [this](const Node& child) { return is_asked(child); };
  if (std::ranges::all_of(node_->children, is_asked_child)) return;  // of two with one key, only the first is found
  const std::vector<std::string_view> candidates = known_keys();
  std::set<std::string_view> seen;
  for (const Node& child : node_->children) {
    const std::string path = path_to(shortened(child.key));
    if (!seen.insert(child.key).second) {
      problems_->add(child.key_place, child.origin, path + ": stands twice; keep one");
    } else if (!is_asked(child)) {
      const std::vector<std::string> places = elsewhere == nullptr ? std::vector<std::string>{} : elsewhere(child.key);
      const std::string guess = places.empty() ? suggestion(child.key, candidates) : "write it as " + listed(places);
      const std::string known = std::string("known are ").append(listed(candidates));
      problems_->add(child.key_place, child.origin, path + ": unknown key; " + (guess.empty() ? known : guess));
    }
  }
}

bool MapReader::check_range(const Node& node, double value, Bounds bounds, std::optional<Dimension> dimension) {
  if (contains(bounds, value)) return true;
  report(node, in_quotes(node.text) + " is out of range; it must be " + describe(bounds, dimension));
  return false;
}

bool MapReader::expect_list(const Node& node) {
  if (node.kind == NodeKind::list && !node.children.empty()) return true;
  report(node, "must be a list such as [1, 2]");
  return false;
}

// Names the node by its key in this map; an element of a list has none, and the list is named.
void MapReader::report(const Node& node, const std::string& message) {
  const std::string name = &node == node_ ? path_ : node.key.empty() ? path_ : path_to(node.key);
  problems_->add(node, (name.empty() ? "" : name + ": ") + message);
}

void MapReader::report_choice(const Node& node, const std::vector<std::string_view>& words) {
  const std::string guess = node.kind == NodeKind::scalar ? suggestion(node.text, words) : "";
  const std::string given = node.kind == NodeKind::scalar ? in_quotes(node.text) + " is not known" : "must be a word";
  const std::string known = std::string("use one of ").append(listed(words));
  report(node, given + "; " + (guess.empty() ? known : guess));
}

}  // namespace dculab::config
