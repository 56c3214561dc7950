// Results of benchmark tools, of whatever tool: what is read makes figures that can be held against predictions.
#include <cmath>
#include <string>

#include "config/benchmarks/benchmark_file.hpp"
#include "config/known_format.hpp"
#include "tests/fuzz/targets.hpp"

namespace dculab::fuzz {

void read_benchmark_results(std::string_view input) {
  if (const auto format = config::recognize(input))
    require(!config::description(*format).empty(), "a format has a name");
  const auto results = config::read_benchmarks("fuzz", std::string(input));
  require(!results.empty(), "there are results");
  for (const config::BenchmarkResult& result : results) {
    require(result.requests >= 1, "requests were answered");
    require(!result.requests_per_second || *result.requests_per_second > 0, "requests come");
    require(!result.max_concurrency || *result.max_concurrency >= 1, "one request at least is open");
    for (const config::BenchmarkFigure& figure : result.figures) {
      require(std::isfinite(figure.value) && figure.value > 0, "a figure can be compared");
      require(!config::title(figure).empty(), "a figure has a name");
    }
    for (const RecordedRequest& request : result.recorded)
      require(request.prompt_tokens >= 1 && request.output_tokens >= 1, "a recorded request has tokens");
  }
}

}  // namespace dculab::fuzz
