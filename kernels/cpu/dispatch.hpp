// Which Highway targets the kernels are compiled for. Include before any Highway header.
#pragma once

// One target per generation of x86 vectors and the emulated baseline; scalable vectors cannot be held in arrays.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
