// Arithmetic along one row: products, sums and exponentials of `extent` neighbouring numbers.
#pragma once

#include <cstdint>
#include <cstring>

#include "model/floating.h"

namespace hedgerow::model {

// A sum is taken in eight lanes, number j in lane j mod 8, and the lanes are then folded in a fixed order.
constexpr int LANES = 8;

inline double folded(const double* lanes) {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Σ term(j); `term` may write along the way.
template <class Term> HEDGEROW_INLINE double sum_of(int64_t extent, Term term) {
    double lanes[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= extent; j += LANES)
        for (int l = 0; l < LANES; ++l) lanes[l] += term(j + l);
    for (int l = 0; j < extent; ++j, ++l) lanes[l] += term(j);
    return folded(lanes);
}

HEDGEROW_INLINE double sum_row(const double* row, int64_t extent) {
    return sum_of(extent, [row](int64_t j) { return row[j]; });
}

HEDGEROW_INLINE double dot_rows(const double* a, const double* b, int64_t extent) {
    return sum_of(extent, [a, b](int64_t j) { return a[j] * b[j]; });
}

// The product of one or more rows, scaled, into `product`.
HEDGEROW_INLINE void multiply_rows(const double* const* rows, int count, double scale, double* __restrict product,
                                   int64_t extent) {
    const double* first = rows[0];
    if (count == 1) {
        for (int64_t j = 0; j < extent; ++j) product[j] = scale * first[j];
        return;
    }
    const double* second = rows[1];
    for (int64_t j = 0; j < extent; ++j) product[j] = scale * first[j] * second[j];
    for (int r = 2; r < count; ++r) {
        const double* next = rows[r];
        for (int64_t j = 0; j < extent; ++j) product[j] *= next[j];
    }
}

// out[j] = e^(in[j] − shift), 0 below e^−708. Written out so that it is vectorised, and the same at every width.
HEDGEROW_INLINE void exponentials_of(const double* in, double shift, double* out, int64_t count) {
    constexpr double magic = 0x1.8p52;
    constexpr double log2e = 1.4426950408889634, ln2_high = 6.93147180369123816490e-01,
                     ln2_low = 1.90821492927058770002e-10;
    for (int64_t j = 0; j < count; ++j) {
        const double x = in[j] - shift;
        const double clamped = x < -708.0 ? -708.0 : x;
        const double shifted = clamped * log2e + magic;  // its low bits are the power of 2
        const double n = shifted - magic;
        const double r = (clamped - n * ln2_high) - n * ln2_low;
        double p = 1.0 / 6227020800.0;
        p = p * r + 1.0 / 479001600.0;
        p = p * r + 1.0 / 39916800.0;
        p = p * r + 1.0 / 3628800.0;
        p = p * r + 1.0 / 362880.0;
        p = p * r + 1.0 / 40320.0;
        p = p * r + 1.0 / 5040.0;
        p = p * r + 1.0 / 720.0;
        p = p * r + 1.0 / 120.0;
        p = p * r + 1.0 / 24.0;
        p = p * r + 1.0 / 6.0;
        p = p * r + 0.5;
        p = p * r + 1.0;
        p = p * r + 1.0;
        uint64_t bits, power;
        std::memcpy(&power, &shifted, 8);
        std::memcpy(&bits, &p, 8);
        bits += power << 52;
        double value;
        std::memcpy(&value, &bits, 8);
        out[j] = x < -708.0 ? 0.0 : value;
    }
}

HEDGEROW_CLONES
inline void exponentials(const double* in, double shift, double* out, int64_t count) {
    exponentials_of(in, shift, out, count);
}

}  // namespace hedgerow::model
