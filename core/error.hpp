// What went wrong with something the user gave us: a file, an option, a value.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace dculab {

// Bad input. what() reads "file:line: what is wrong (why); what to do"; the program ends with exit code 2.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& message) : std::runtime_error(message) {}
  InputError(const std::string& file, const std::string& message) : std::runtime_error(file + ": " + message) {}
  InputError(const std::string& file, int line, const std::string& message)
      : std::runtime_error(file + ":" + std::to_string(line) + ": " + message) {}
};

}  // namespace dculab
