// The teaching tables of a model, for people and for programs.
#pragma once

#include "present/output/report.hpp"
#include "study/evaluate/latent_forms.hpp"
#include "study/evaluate/layer_tables.hpp"

namespace dculab::present {

[[nodiscard]] Report intensity_report(const study::IntensityQuestion& question, const study::IntensityAnswer& answer);

[[nodiscard]] Report footprint_report(const study::FootprintQuestion& question, const study::FootprintAnswer& answer);

[[nodiscard]] Report latent_forms_report(const study::LatentFormsQuestion& question,
                                         const study::LatentFormsAnswer& answer);

}  // namespace dculab::present
