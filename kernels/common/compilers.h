// What compilers call by different names. GCC and Clang are tested; Microsoft's is not.
#pragma once

#include <cstdint>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#include <stdlib.h>

#define HEDGEROW_INLINE __forceinline
#else
#define HEDGEROW_INLINE __attribute__((always_inline)) inline
#endif

namespace hedgerow {

#if defined(_MSC_VER) && !defined(__clang__)
// `bits` is not 0.
inline int lowest_bit(uint64_t bits) {
    unsigned long found;
    _BitScanForward64(&found, bits);
    return static_cast<int>(found);
}
inline int count_bits(uint64_t bits) {
    bits -= (bits >> 1) & 0x5555555555555555ULL;
    bits = (bits & 0x3333333333333333ULL) + ((bits >> 2) & 0x3333333333333333ULL);
    return static_cast<int>((((bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0FULL) * 0x0101010101010101ULL) >> 56);
}
inline uint32_t swapped_bytes(uint32_t bits) { return _byteswap_ulong(bits); }
#else
inline int lowest_bit(uint64_t bits) { return __builtin_ctzll(bits); }
inline int count_bits(uint64_t bits) { return __builtin_popcountll(bits); }
inline uint32_t swapped_bytes(uint32_t bits) { return __builtin_bswap32(bits); }
#endif

}  // namespace hedgerow
