#include "config/profile/profile_database.hpp"

#include <sqlite3.h>

#include <memory>

#include "core/error.hpp"

namespace dculab::config {
namespace {

// Steps of SQLite's machine that a database may take: a view may be made to run for ever.
constexpr int kStepsBetweenLooks = 1 << 20, kMostLooks = 4096;

constexpr const char* kRocpdKernels =
    "SELECT s.display_name, k.start, k.end, k.agent_id FROM rocpd_kernel_dispatch k "
    "JOIN rocpd_info_kernel_symbol s ON s.id = k.kernel_id AND s.guid = k.guid";
// From schema 4.1 on a dispatch names its agent through a track: the view knows.
constexpr const char* kRocpdView = "SELECT name, start, end, agent_abs_index FROM kernels";
constexpr const char* kNsysKernels =
    "SELECT s.value, k.start, k.end, k.deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL k "
    "JOIN StringIds s ON s.id = k.demangledName";

class Database {
 public:
  Database(const std::string& file, const std::string& text) : file_(file), journalled_(without_wal(text)) {
    const std::string& whole = journalled_.empty() ? text : journalled_;
    sqlite3* opened = nullptr;
    const int status = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, nullptr);
    database_.reset(opened);
    if (status != SQLITE_OK) fail();
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(whole.data()));  // which SQLite does not write
    const auto size = static_cast<sqlite3_int64>(whole.size());
    if (sqlite3_deserialize(opened, "main", bytes, size, size, SQLITE_DESERIALIZE_READONLY) != SQLITE_OK) fail();
    sqlite3_progress_handler(opened, kStepsBetweenLooks, &Database::look, &looks_);
  }

  [[nodiscard]] bool has(const std::string& table) {
    bool found = false;
    each("SELECT name FROM sqlite_master WHERE name = '" + table + "'", [&](sqlite3_stmt*) { found = true; });
    return found;
  }

  [[nodiscard]] bool has_rows(const std::string& table) {
    bool found = false;
    if (has(table)) each("SELECT 1 FROM " + table + " LIMIT 1", [&](sqlite3_stmt*) { found = true; });
    return found;
  }

  [[nodiscard]] bool has_column(const std::string& table, const std::string& column) {
    bool found = false;
    each("SELECT name FROM pragma_table_info('" + table + "') WHERE name = '" + column + "'",
         [&](sqlite3_stmt*) { found = true; });
    return found;
  }

  template <class Visit>
  void each(const std::string& query, Visit visit) {
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &prepared, nullptr) != SQLITE_OK) fail();
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(prepared, &sqlite3_finalize);
    int status = SQLITE_ROW;
    while ((status = sqlite3_step(prepared)) == SQLITE_ROW) visit(prepared);
    if (status != SQLITE_DONE) fail();
  }

 private:
  // A copy that is not in WAL mode (versions 2 in its header, sqlite.org/fileformat2.html), which no database in memory
  // can be; empty where the text is not.
  [[nodiscard]] static std::string without_wal(const std::string& text) {
    constexpr std::size_t kWriteVersion = 18, kReadVersion = 19;
    if (text.size() <= kReadVersion || text[kReadVersion] != 2) return {};
    std::string copy = text;
    copy[kWriteVersion] = copy[kReadVersion] = 1;
    return copy;
  }

  static int look(void* looks) { return ++*static_cast<int*>(looks) > kMostLooks ? 1 : 0; }

  [[noreturn]] void fail() const {
    const char* reason = database_ ? sqlite3_errmsg(database_.get()) : "out of memory";
    throw InputError(file_, "is an SQLite database that cannot be read (" + std::string(reason) + "); record again");
  }

  const std::string& file_;
  std::string journalled_;  // lives as long as the database
  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database_{nullptr, &sqlite3_close};
  int looks_ = 0;
};

[[nodiscard]] std::string text_at(sqlite3_stmt* row, int column) {
  const unsigned char* text = sqlite3_column_text(row, column);
  return text == nullptr ? "" : reinterpret_cast<const char*>(text);
}

[[nodiscard]] std::vector<KernelRecord> kernels_of(const std::string& file, Database& database,
                                                   const std::string& query) {
  std::vector<KernelRecord> kernels;
  database.each(query, [&](sqlite3_stmt* row) {
    KernelRecord& kernel = kernels.emplace_back();
    kernel.name = text_at(row, 0);
    kernel.begin_ns = sqlite3_column_int64(row, 1);
    kernel.end_ns = sqlite3_column_int64(row, 2);
    kernel.device = text_at(row, 3);
    if (kernel.begin_ns < 0 || kernel.end_ns < kernel.begin_ns)
      throw InputError(file, "kernel " + std::to_string(kernels.size()) +
                                 " ends before it begins; the profiler lost its clock, record again");
    if (kernel.name.empty())
      throw InputError(file, "kernel " + std::to_string(kernels.size()) + " has no name; record again");
  });
  return kernels;
}

}  // namespace

bool is_database(std::string_view text) { return text.starts_with(std::string_view("SQLite format 3\0", 16)); }

DatabaseKernels read_profile_database(const std::string& file, const std::string& text) {
  Database database(file, text);
  if (database.has("rocpd_kernel_dispatch")) {
    const bool has_agent = database.has_column("rocpd_kernel_dispatch", "agent_id");
    return {Profiler::rocprofv3, kernels_of(file, database, has_agent ? kRocpdKernels : kRocpdView)};
  }
  if (database.has_rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"))
    throw InputError(file,
                     "kernels of CUDA graphs were recorded as a whole; record with nsys profile "
                     "--cuda-graph-trace=node");
  if (database.has("CUPTI_ACTIVITY_KIND_KERNEL")) return {Profiler::nsys, kernels_of(file, database, kNsysKernels)};
  throw InputError(file,
                   "is an SQLite database without kernels of rocprofv3 (rocpd_kernel_dispatch) or nsys "
                   "(CUPTI_ACTIVITY_KIND_KERNEL)");
}

}  // namespace dculab::config
