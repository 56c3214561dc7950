#include "engine/probe/foreign_load.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace dculab::engine {
namespace {

Seconds to_seconds(const timeval& time) {
  return Seconds(static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec));
}

Seconds own_cpu_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return to_seconds(usage.ru_utime) + to_seconds(usage.ru_stime);
}

std::optional<CpuTimes> read_cpu_times() {
  std::ifstream in("/proc/stat");
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return parse_cpu_times(line, static_cast<double>(sysconf(_SC_CLK_TCK)));
}

}  // namespace

// "cpu user nice system idle iowait irq softirq steal guest guest_nice"; guest time is in user already.
std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat, double ticks_per_second) {
  std::istringstream in{std::string(proc_stat)};
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (!(in >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal)) return std::nullopt;
  if (name != "cpu") return std::nullopt;
  const double busy = user + nice + system + irq + softirq + steal;
  return CpuTimes{Seconds(busy / ticks_per_second), Seconds((busy + idle + iowait) / ticks_per_second)};
}

ForeignLoad::ForeignLoad() : start_(read_cpu_times()), own_start_(own_cpu_time()) {}

double ForeignLoad::share() const {
  const auto now = read_cpu_times();
  if (!start_ || !now || now->total <= start_->total) return 0;
  const Seconds others = now->busy - start_->busy - (own_cpu_time() - own_start_);
  return std::clamp(others / (now->total - start_->total), 0.0, 1.0);
}

}  // namespace dculab::engine
