// CSV as RFC 4180 has it: quoted cells may hold commas, line breaks and "" for a quote; lines end in LF or CRLF.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dculab::config {

struct CsvRecord {
  int line = 0;  // where it begins, from 1
  std::vector<std::string> cells;
};

class CsvReader {
 public:
  // A UTF-8 byte order mark is skipped. `text` must outlive the reader.
  explicit CsvReader(std::string_view text);

  // The next line that is not blank; false at the end. Throws InputError without a place, after which `record.line`
  // says where it was and reading can go on.
  bool next(CsvRecord& record);

 private:
  void read_quoted(std::string& cell);
  void read_plain(std::string& cell);
  void skip_line();
  // Whether a line ends here; steps over its end.
  bool step_over_line_end();

  std::string_view rest_;
  int line_ = 1;
};

}  // namespace dculab::config
