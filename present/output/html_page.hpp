// A report as one HTML page that needs nothing else: charts, tables and the data they show.
#pragma once

#include <string>

#include "present/output/report.hpp"

namespace dculab::present {

// Whether this build has the page: it takes Node.js and npm packages (cmake/DculabReport.cmake).
[[nodiscard]] bool has_html_page();

// The page is report/page.html with its data; report/charts says what of the JSON is drawn. Precondition:
// has_html_page().
[[nodiscard]] std::string html_page(const Report& report);

}  // namespace dculab::present
