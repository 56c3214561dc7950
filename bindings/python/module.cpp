// The extension module: questions in, documents out. What Python sees of it is in dculab/, beside this file.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/long_call.hpp"
#include "bindings/python/questions.hpp"
#include "core/cancellation.hpp"
#include "core/error.hpp"
#include "present/output/html_page.hpp"
#include "present/output/show.hpp"
#include "study/answer/batch_pricer.hpp"
#include "study/measure/conversation_lengths.hpp"
#include "study/scenario/locate.hpp"
#include "study/scenario/step_question.hpp"

namespace nb = nanobind;

namespace dculab::python {
namespace {

// Names come from files, whose bytes need not be UTF-8.
[[nodiscard]] nb::str text_of(const std::string& bytes) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

template <class Items, class Make>
[[nodiscard]] nb::list list_of(const Items& items, Make make) {
  nb::list list;
  for (const auto& item : items) list.append(make(item));
  return list;
}

// (title, columns, rows of texts, notes)
[[nodiscard]] nb::tuple table_of(const present::Table& table) {
  const auto row_of = [](const present::Row& row) { return list_of(row, text_of); };
  return nb::make_tuple(text_of(table.title), list_of(table.columns, text_of), list_of(table.rows, row_of),
                        list_of(table.notes, text_of));
}

[[nodiscard]] present::Report answer(const std::string& command, nb::dict keywords, const nb::object& on_progress) {
  const Work work = find_question(command).read(std::move(keywords));
  return call_interruptibly(work, on_progress);
}

void bind_report(nb::module_& m) {
  using present::Report;
  nb::class_<Report>(m, "Report", "An answer, as the program writes it.")
      .def_prop_ro(
          "json", [](const Report& report) { return text_of(present::text_of(report, present::Format::json)); },
          "As with --format json.")
      .def_prop_ro(
          "text", [](const Report& report) { return text_of(present::text_of(report, present::Format::table)); },
          "As on the terminal.")
      .def_prop_ro(
          "csv", [](const Report& report) { return text_of(present::text_of(report, present::Format::csv)); },
          "As with --format csv: the first table.")
      .def_prop_ro(
          "page", [](const Report& report) { return text_of(present::html_page(report)); },
          "As with --report: a page of HTML with charts.")
      .def_prop_ro(
          "heading", [](const Report& report) { return list_of(report.heading, text_of); }, "Lines above the tables.")
      .def_prop_ro(
          "tables", [](const Report& report) { return list_of(report.tables, table_of); },
          "Of each title, columns, rows of texts, and notes.");
}

// study::BatchPricer of a question about a step, by the keywords of `predict`.
class StepTimes {
 public:
  StepTimes(const std::string& model, const std::string& machine, const std::string& stack,
            const std::vector<std::string>& set)
      : pricer_(study::step_scenario(
            {.model = model, .machine = machine, .stack = stack, .kv_cache_dtype = {}, .weights = {}, .set = set})) {}

  [[nodiscard]] double seconds(const std::vector<std::pair<int, int>>& sequences) {
    std::vector<study::SequenceTokens> tokens;
    for (const auto& [new_tokens, cached_tokens] : sequences) tokens.push_back({new_tokens, cached_tokens});
    return pricer_.time(tokens).value();
  }

 private:
  study::BatchPricer pricer_;
};

}  // namespace
}  // namespace dculab::python

NB_MODULE(_dculab, m) {
  using namespace dculab;
  m.doc() = "The simulator of dculab.";
  nb::exception<InputError>(m, "InputError", PyExc_ValueError).doc() =
      "Something that was given is wrong: what, why, and what to do.";
  study::count_conversations_with(study::conversation_lengths);
  m.def("set_shipped_data", &study::set_shipped_data, nb::arg("folder"),
        "The folder with hwmodels/, stacks/ and scenarios/ that belong to the package.");
  m.def("machine_names", &study::machine_names, "Names under hwmodels.");
  m.def("model_names", &study::model_names, "Names under scenarios/models.");
  m.def("scenario_names", &study::scenario_names, "Names under scenarios.");
  m.def("stack_names", &study::stack_names, "Names under stacks.");
  python::bind_report(m);
  m.def("answer", &python::answer, nb::arg("command"), nb::arg("keywords"), nb::arg("on_progress").none(),
        "What the program's command answers.");
  nb::class_<python::StepTimes>(m, "StepTimes", "Times of steps whose sequences somebody else schedules.")
      .def(nb::init<const std::string&, const std::string&, const std::string&, const std::vector<std::string>&>(),
           nb::arg("model"), nb::arg("machine"), nb::arg("stack"), nb::arg("set"))
      .def("seconds", &python::StepTimes::seconds, nb::arg("sequences"),
           "Of a step whose sequences have (new tokens, tokens in the KV cache).");
}
