// A machine of hwmodels by its name.
#pragma once

#include <string>

#include "config/machine_file.hpp"

namespace dculab::config {

inline sim::Machine shipped(const std::string& name) {
  return read_machine_file(DCULAB_SOURCE_DIR "/hwmodels/" + name + ".yaml");
}

}  // namespace dculab::config
