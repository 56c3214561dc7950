// The teaching tables as questions.
#pragma once

#include "bindings/python/questions.hpp"

namespace dculab::python {

[[nodiscard]] Work read_intensity(nanobind::dict given);
[[nodiscard]] Work read_footprint(nanobind::dict given);

}  // namespace dculab::python
