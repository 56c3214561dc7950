// What regrouping the heads of a model came to.
#pragma once

#include "present/output/report.hpp"
#include "study/measure/regrouped_folder.hpp"

namespace dculab::present {

[[nodiscard]] Report regroup_report(const study::RegroupQuestion& question, const study::RegroupedFolder& made);

}  // namespace dculab::present
