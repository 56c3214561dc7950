// The points that validation goes by.
#pragma once

namespace dculab::study {

constexpr const char* kPoints = DCULAB_SOURCE_DIR "/tests/data/published_points.csv";

}  // namespace dculab::study
