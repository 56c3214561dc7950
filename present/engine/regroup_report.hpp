// What regrouping the heads of a model came to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/regroup/regroup.hpp"
#include "model/model_shape.hpp"
#include "present/output/show.hpp"

namespace dculab::present {

struct RegroupChoices {
  std::string model;
  std::string method;
  std::string similarity = "cosine";
  std::string compared = "kv";
  std::string error;  // empty: what the merge loses, where it is one of them, else that of weights
  std::string merge = "mean";
  int kv_heads = 0;
  std::uint64_t seed = 1;
  std::string calibration;  // a text file
  int calibration_tokens = 8192;
  int num_threads = 0;
  std::string folder;
  OutputOptions output;
};

// `before`: the model's shape; `tokens`: of the calibration text, 0 without.
[[nodiscard]] Report regroup_report(const RegroupChoices& choices, const ModelShape& before,
                                    const engine::Regrouping& result, std::size_t tokens);

}  // namespace dculab::present
