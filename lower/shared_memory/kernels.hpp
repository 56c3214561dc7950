// What processes of one machine that share a model exchange, through memory that they share (engine/exchange).
//
//   all-reduce  every rank writes its values, all meet, and every rank reads the values of all, its own too:
//               `ranks` * bytes, and a meeting for every piece of 128 KiB
//   all-gather  each reads the values of all: the bytes of the result
//   dispatch    the ranks gather which experts the tokens have chosen; each token then goes once to every rank that has
//               an expert of it, F32 as it is
//   combine     what every expert gave of a token comes back in a row of its own
//
// A meeting is the machine's peer_latency, and peer_link the rate at which a rank gets through bytes of the slots, what
// it writes included. Rows of tokens are also copied side by side before they are sent.
#pragma once

#include "lower/kernel_library.hpp"

namespace dculab::lower::shared_memory {

extern const CollectiveKernel kSharedMemory;
extern const ExchangeKernel kTokens;

}  // namespace dculab::lower::shared_memory
