// What `validate` and `calibrate` were given: traces or results of benchmark tools, told apart by their content.
#pragma once

#include <string>
#include <vector>

namespace dculab::study {

enum class MeasuredFiles { traces, benchmarks };

// Of what `validate` and `calibrate` were given, by content; folders hold results. Throws InputError where both kinds
// are given, and for a file of another program, which it names. What is not known is taken for a trace, whose reader
// says what is wrong.
[[nodiscard]] MeasuredFiles kind_of_files(const std::vector<std::string>& files);

// The files, and of each folder the results of benchmark tools in it, in order: of `vllm bench sweep` its runs. Throws
// InputError for a folder that has none.
[[nodiscard]] std::vector<std::string> files_below(const std::vector<std::string>& paths);

}  // namespace dculab::study
