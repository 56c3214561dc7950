#include "cli/output/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace dculab::cli {
namespace {

constexpr int kBarColumns = 30;
constexpr const char* kEmptyLine = "\r\033[K";
constexpr std::chrono::milliseconds kRedrawInterval{100};

}  // namespace

ProgressBar::ProgressBar() : is_terminal_(isatty(STDERR_FILENO) == 1), start_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::update(const std::string& label, double share) {
  const auto now = std::chrono::steady_clock::now();
  if (!is_terminal_ || (drawn_ && now - last_drawn_ < kRedrawInterval)) return;
  const auto lock = files::without_interruption();
  last_drawn_ = now;
  if (!drawn_) drawn_.emplace([] { std::fputs(kEmptyLine, stderr); });
  share = std::clamp(share, 0.0, 1.0);
  const int filled = static_cast<int>(share * kBarColumns);
  std::string bar;
  for (int column = 0; column < kBarColumns; ++column) bar += column < filled ? "█" : "·";
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double remaining = share > 0.02 ? elapsed / share - elapsed : 0;
  std::fprintf(stderr, "%s%s %3.0f %%  %s", kEmptyLine, bar.c_str(), 100 * share, label.c_str());
  if (remaining > 1) std::fprintf(stderr, "  (%.0f s left)", remaining);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  const auto lock = files::without_interruption();
  if (drawn_) std::fputs(kEmptyLine, stderr);
  drawn_.reset();
}

}  // namespace dculab::cli
