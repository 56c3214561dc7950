// The questions that the module answers: keyword arguments become a question of study/, its answer a report.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "bindings/python/long_call.hpp"

namespace dculab::python {

// Read while the interpreter's lock is held; what it returns is called without.
using Work = std::function<present::Report(const Progress&)>;

struct Question {
  const char* command;  // that answers the same: "predict"
  Work (*read)(nanobind::dict keywords);
};

// Throws InputError where there is none.
[[nodiscard]] const Question& find_question(std::string_view command);

// Those of the teaching tables.
[[nodiscard]] Work read_intensity(nanobind::dict given);
[[nodiscard]] Work read_footprint(nanobind::dict given);

}  // namespace dculab::python
