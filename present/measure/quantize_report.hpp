// What `dculab quantize` did: of each matrix and of the KV cache, and how far outputs move.
#pragma once

#include "present/output/report.hpp"
#include "study/measure/quantized_folder.hpp"

namespace dculab::present {

// The question's folder is written.
[[nodiscard]] Report quantize_report(const study::QuantizeQuestion& question, const study::QuantizedAnswer& answer);

}  // namespace dculab::present
