// The teaching tables of a model, for people and for programs.
#pragma once

#include <string>

#include "present/output/report.hpp"
#include "study/evaluate/latent_forms.hpp"
#include "study/evaluate/layer_tables.hpp"

namespace dculab::present {

[[nodiscard]] Report intensity_report(const study::IntensityQuestion& question, const study::IntensityAnswer& answer);

// `weights`, `kv_cache`: the formats as they were asked for.
[[nodiscard]] Report footprint_report(const study::FootprintQuestion& question, const std::string& weights,
                                      const std::string& kv_cache, const study::FootprintAnswer& answer);

[[nodiscard]] Report latent_forms_report(const study::LatentFormsQuestion& question,
                                         const study::LatentFormsAnswer& answer);

}  // namespace dculab::present
