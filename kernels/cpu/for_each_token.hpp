// Deals the tokens of a small kernel out to the threads, or does them all here when there is little to do.
#pragma once

#include <cstdint>

#include "kernels/cpu/thread_pool.hpp"

namespace dculab::kernels::cpu {

// body(token) for every token.
template <typename Body>
void for_each_token(ThreadPool& threads, int tokens, std::int64_t values_per_token, Body&& body) {
  constexpr std::int64_t kInlineValues = 16 * 1024;  // about 2 us of work: less than waking a thread pays back
  if (tokens * values_per_token < kInlineValues) {
    for (int token = 0; token < tokens; ++token) body(token);
  } else {
    threads.parallel_for(tokens, [&](int token, int) { body(token); });
  }
}

}  // namespace dculab::kernels::cpu
