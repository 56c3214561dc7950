// A scenario's sweep as designs: for each of them which KV heads and block size to choose, and how fast that is.
#pragma once

#include <string>
#include <vector>

#include "present/output/report.hpp"
#include "study/decide/designs.hpp"

namespace dculab::present {

// A table for each machine, and JSON (predicted_fields.hpp). `model`: its name.
void add_designs(const std::string& model, const std::vector<study::DesignStudy>& studies, Report& report);

}  // namespace dculab::present
