// A report as one HTML page that needs nothing else: charts, tables and the data they show.
#pragma once

#include <string>

#include "cli/output/output.hpp"

namespace dculab::cli {

// The page is report/page.html with its data; report/charts says what of the JSON is drawn.
[[nodiscard]] std::string html_page(const Report& report);

}  // namespace dculab::cli
