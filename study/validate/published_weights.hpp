// What published names of weight and KV formats are priced as.
#pragma once

#include <string>
#include <string_view>

#include "core/dtype.hpp"

namespace dculab::study {

// How weights of a published name are priced.
struct PublishedWeights {
  std::string_view published;  // lower case; "" for every other
  WeightFormat format;         // of the layers: what is computed with
  Dtype head = Dtype::f16;     // of embedding and output head
  double bits = 0;             // a weight of the layers takes; 0 = the format's own
  std::string_view note;
};

// Throws InputError where there is nothing to price the name as.
[[nodiscard]] PublishedWeights published_weights(const std::string& text);

// Bytes of the layers' weights over those of the format that they are computed in.
[[nodiscard]] double weight_scale(const PublishedWeights& weights);

// Of a KV cache; `otherwise` for "". Throws as above.
[[nodiscard]] Dtype published_dtype(const std::string& text, Dtype otherwise);

}  // namespace dculab::study
