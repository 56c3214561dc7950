#include "present/output/table_text.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace dculab::present {
namespace {

constexpr std::size_t kGap = 2;           // blanks between columns
constexpr std::size_t kNarrowWords = 16;  // columns of words are not wrapped to less
constexpr std::size_t kLongWord = 32;     // words are broken where they are longer

enum class Align { left, right };

struct Column {
  std::size_t index = 0;  // in the table
  Align align = Align::left;
  std::size_t width = 0;
  std::size_t narrowest = 0;
};

// Columns on a terminal: code points, not bytes.
[[nodiscard]] std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// Behind the first `columns` code points.
[[nodiscard]] std::size_t end_of_columns(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U && columns-- == 0) break;
  return end;
}

// Lines of at most `columns` columns, broken at blanks where there are some.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  while (width_of(text) > columns) {
    const std::size_t end = end_of_columns(text, columns);
    const std::size_t blank = text.substr(0, end + 1).rfind(' ');
    const bool at_blank = blank != std::string_view::npos && blank > 0;
    lines.emplace_back(text.substr(0, at_blank ? blank : end));
    text.remove_prefix(at_blank ? blank + 1 : end);
  }
  lines.emplace_back(text);
  return lines;
}

[[nodiscard]] std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    longest = std::max(longest, width_of(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return longest;
}

[[nodiscard]] std::size_t total_width(const std::vector<Column>& columns) {
  std::size_t total = columns.empty() ? 0 : kGap * (columns.size() - 1);
  for (const Column& column : columns) total += column.width;
  return total;
}

// Numbers are most of its cells, and what else stands among them is a remark, not a text.
[[nodiscard]] Column column_of(const Table& table, std::size_t index) {
  constexpr std::size_t kRemark = 3;  // times as wide as the numbers, at most
  std::size_t numbers = 0, words = 0, widest_number = 0, widest_words = 0, longest = 0;
  for (const Row& row : table.rows) {
    if (index >= row.size() || row[index].empty()) continue;
    const bool counts = is_number(row[index]);
    std::size_t& widest = counts ? widest_number : widest_words;
    widest = std::max(widest, width_of(row[index]));
    if (row[index] == "-") continue;
    ++(counts ? numbers : words);
    if (!counts) longest = std::max(longest, longest_word(row[index]));
  }
  const bool is_right = numbers > words && widest_words <= kRemark * widest_number;
  const std::string& title = table.columns[index];
  Column column{index, is_right ? Align::right : Align::left, 0, 0};
  column.width = std::max({width_of(title), widest_number, widest_words});
  const std::size_t of_words = std::min(widest_words, std::clamp(longest, kNarrowWords, kLongWord));
  // Among words a longer one is a text that begins with a number.
  const std::size_t of_numbers = is_right ? widest_number : std::min(widest_number, kLongWord);
  column.narrowest = std::min(column.width, std::max({longest_word(title), of_numbers, of_words}));
  return column;
}

// How many of the first columns tell all rows apart; 1 where none do, or where they take most of the width.
[[nodiscard]] std::size_t key_columns(const Table& table, const std::vector<Column>& columns, std::size_t width) {
  for (std::size_t count = 1; count < columns.size(); ++count) {
    if (total_width({columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(count)}) > width / 2) return 1;
    std::set<Row> keys;
    for (const Row& row : table.rows)
      keys.emplace(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(std::min(count, row.size())));
    if (keys.size() == table.rows.size()) return count;
  }
  return 1;
}

// The widest that can be narrower become so, as far as must be and can be.
void narrow(std::vector<Column>& columns, std::size_t width) {
  while (total_width(columns) > width) {
    const auto slack = [](const Column& column) { return column.width - column.narrowest; };
    const auto widest = std::ranges::max_element(
        columns, {}, [&slack](const Column& column) { return std::pair(slack(column) > 0, column.width); });
    if (slack(*widest) == 0) return;
    --widest->width;
  }
}

// A pipe cuts nothing off: what still has no room stays where it is. The first column is left whole, to be searched
// for.
void narrow_to_usual(std::vector<Column>& columns, std::size_t width) {
  columns.front().narrowest = columns.front().width;
  narrow(columns, width);
}

// As many as there is room for side by side, then the others, each time after the first `keys` columns.
[[nodiscard]] std::vector<std::vector<Column>> blocks_of(const std::vector<Column>& columns, std::size_t keys,
                                                         std::size_t width) {
  const std::vector<Column> first(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(keys));
  std::vector<std::vector<Column>> blocks{first};
  for (std::size_t index = keys; index < columns.size(); ++index) {
    if (blocks.back().size() > keys && total_width(blocks.back()) + kGap + columns[index].width > width)
      blocks.push_back(first);
    blocks.back().push_back(columns[index]);
  }
  return blocks;
}

void add_padded(std::string& line, const std::string& text, const Column& column) {
  const std::string blanks(column.width - std::min(column.width, width_of(text)), ' ');
  line.append(column.align == Align::left ? text + blanks : blanks + text);
}

// A row, or the head: as many lines as its longest cell has.
void add_row(std::string& text, const Row& row, const std::vector<Column>& columns) {
  std::vector<std::vector<std::string>> cells;
  std::size_t lines = 1;
  for (const Column& column : columns) {
    cells.push_back(column.index < row.size() ? wrapped(row[column.index], column.width) : std::vector<std::string>{});
    lines = std::max(lines, cells.back().size());
  }
  for (std::size_t line = 0; line < lines; ++line) {
    std::string shown;
    for (std::size_t column = 0; column < columns.size(); ++column) {
      if (column > 0) shown.append(kGap, ' ');
      add_padded(shown, line < cells[column].size() ? cells[column][line] : "", columns[column]);
    }
    shown.erase(shown.find_last_not_of(' ') + 1);
    text.append(shown).append("\n");
  }
}

void add_block(std::string& text, const Table& table, const std::vector<Column>& columns) {
  add_row(text, table.columns, columns);
  for (std::size_t index = 0; index < total_width(columns); ++index) text += "─";
  text += '\n';
  for (const Row& row : table.rows) add_row(text, row, columns);
}

}  // namespace

bool is_number(const std::string& cell) {
  static constexpr std::array<std::string_view, 8> kSigns{"±", "+", "−", "-", "≥", "≤", "→", " "};
  std::string_view text = cell;
  for (bool has_sign = true; has_sign;) {
    const auto sign = std::ranges::find_if(kSigns, [text](std::string_view each) { return text.starts_with(each); });
    has_sign = sign != kSigns.end();
    if (has_sign) text.remove_prefix(sign->size());
  }
  const std::size_t end = std::min(text.find_first_not_of("0123456789.,e+"), text.size());
  const bool has_digit = !text.empty() && text.front() >= '0' && text.front() <= '9';
  return has_digit && (end == text.size() || text.substr(end) == "x" ||
                       std::string_view(" :/%").find(text[end]) != std::string_view::npos);
}

std::string table_text(const Table& table, std::optional<std::size_t> width) {
  std::string text;
  if (!table.title.empty()) text.append(table.title).append("\n");
  std::vector<Column> columns;
  for (std::size_t index = 0; index < table.columns.size(); ++index) columns.push_back(column_of(table, index));
  if (width && total_width(columns) > *width) {
    narrow(columns, *width);
    const std::vector<std::vector<Column>> blocks = blocks_of(columns, key_columns(table, columns, *width), *width);
    for (const std::vector<Column>& block : blocks) {
      if (&block != &blocks.front()) text += '\n';
      add_block(text, table, block);
    }
  } else {
    if (!width && table.usual_width) narrow_to_usual(columns, *table.usual_width);
    add_block(text, table, columns);
  }
  for (const std::string& note : table.notes) text.append(note).append("\n");
  return text;
}

}  // namespace dculab::present
