// The keyword arguments of a question, taken one by one into the members of a struct.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dculab::python {

// Each take() leaves its target alone where the key is missing or None, and throws InputError that names the key where
// the value is of another type. To be used while the interpreter's lock is held.
class Keywords {
 public:
  explicit Keywords(nanobind::dict given) : given_(std::move(given)) {}

  void take(const char* key, std::string& value);
  void take(const char* key, std::vector<std::string>& value);  // a text is a list of one
  void take(const char* key, bool& value);
  void take(const char* key, int& value);
  void take(const char* key, std::uint64_t& value);
  void take(const char* key, double& value);
  void take(const char* key, std::optional<int>& value);
  void take_count(const char* key, int& value);  // at least 1

  // Throws InputError for a key that was not taken.
  void refuse_others() const;

 private:
  [[nodiscard]] std::optional<nanobind::object> find(const char* key);

  nanobind::dict given_;
  std::vector<std::string> known_;
};

}  // namespace dculab::python
