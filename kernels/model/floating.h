// How floating point is used here: the same bits at every vector width, and no time lost on vanishing numbers.
#pragma once

#include <cstdint>

#include "common/compilers.h"

#if defined(__x86_64__) || defined(_M_X64)
#define HEDGEROW_SSE
#include <xmmintrin.h>
#endif

// A function with this mark is compiled for several widths of vectors, and the widest that the processor has is taken.
// What it calls must be inlined into it (HEDGEROW_INLINE) to be compiled along. Products are never fused into sums
// (-ffp-contract=off) and sums are taken in an order that is written out, so the width changes no bit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEDGEROW_CLONES  // which copy is taken is decided before a sanitizer's runtime is ready
#elif defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define HEDGEROW_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define HEDGEROW_CLONES
#endif

namespace hedgerow::model {

// While it lives, numbers below 2e-308 are 0: they carry no mass, and arithmetic on them is a hundred times slower.
class NoDenormals {
 public:
#if defined(HEDGEROW_SSE)
    NoDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }
    ~NoDenormals() { _mm_setcsr(saved_); }

 private:
    unsigned saved_;
#elif defined(__aarch64__)
    NoDenormals() {
        __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
        __asm__ volatile("msr fpcr, %0" ::"r"(saved_ | (1UL << 24)));
    }
    ~NoDenormals() { __asm__ volatile("msr fpcr, %0" ::"r"(saved_)); }

 private:
    unsigned long saved_;
#endif
};

}  // namespace hedgerow::model
