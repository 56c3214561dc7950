#include "bindings/python/keywords.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>

#include "core/error.hpp"

namespace nb = nanobind;

namespace dculab::python {
namespace {

[[noreturn]] void refuse(const char* key, const char* wanted, nb::handle value) {
  throw InputError(key, std::string("must be ") + wanted + ", not " + nb::cast<std::string>(nb::repr(value)));
}

template <class T>
void read(const char* key, const char* wanted, nb::handle value, T& target) {
  // Numbers as they are: True is no 1, and 1.5 is no 1.
  if ((!std::is_same_v<T, bool> && nb::isinstance<nb::bool_>(value)) || !nb::try_cast<T>(value, target, false))
    refuse(key, wanted, value);
}

}  // namespace

std::optional<nb::object> Keywords::find(const char* key) {
  known_.emplace_back(key);
  if (!given_.contains(key)) return std::nullopt;
  nb::object value = given_[key];
  if (value.is_none()) return std::nullopt;
  return value;
}

void Keywords::take(const char* key, std::string& value) {
  if (const auto found = find(key)) read(key, "a text", *found, value);
}

void Keywords::take(const char* key, std::vector<std::string>& value) {
  const auto found = find(key);
  if (!found) return;
  value.clear();
  if (nb::isinstance<nb::str>(*found)) {
    value.push_back(nb::cast<std::string>(*found));
    return;
  }
  for (const nb::handle each : nb::iter(*found)) read(key, "a text, or a list of texts", each, value.emplace_back());
}

void Keywords::take(const char* key, bool& value) {
  if (const auto found = find(key)) read(key, "True or False", *found, value);
}

void Keywords::take(const char* key, int& value) {
  if (const auto found = find(key)) read(key, "a whole number", *found, value);
}

void Keywords::take(const char* key, std::uint64_t& value) {
  if (const auto found = find(key)) read(key, "a whole number that is not negative", *found, value);
}

void Keywords::take(const char* key, double& value) {
  const auto found = find(key);
  if (!found) return;
  if (nb::isinstance<nb::int_>(*found) && !nb::isinstance<nb::bool_>(*found))
    value = nb::cast<double>(*found);
  else
    read(key, "a number", *found, value);
}

void Keywords::take(const char* key, std::optional<int>& value) {
  if (const auto found = find(key)) read(key, "a whole number", *found, value.emplace());
}

void Keywords::take_count(const char* key, int& value) {
  const auto found = find(key);
  if (!found) return;
  read(key, "a whole number", *found, value);
  if (value < 1) refuse(key, "at least 1", *found);
}

void Keywords::refuse_others() const {
  for (const auto& [key, value] : given_) {
    const auto name = nb::cast<std::string>(key);
    if (std::ranges::find(known_, name) == known_.end()) throw InputError(name, "is no part of this question");
  }
}

}  // namespace dculab::python
