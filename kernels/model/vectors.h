// Inner products with, and combinations of, many long vectors in one pass over memory. The vectors are stored in
// single precision: they steer a search, they are not its result.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/rows.h"

namespace hedgerow::model {

constexpr int64_t STRETCH = 2048;  // entries of the shared vector that stay in the first cache

HEDGEROW_CLONES
inline void add_inner_products(const float* const* vectors, int vector_count, const double* with, int64_t count,
                               double* products) {
    for (int64_t start = 0; start < count; start += STRETCH) {
        const int64_t stop = std::min(count, start + STRETCH);
        for (int v = 0; v < vector_count; ++v) {
            const float* vector = vectors[v] + start;
            const double* other = with + start;
            products[v] += sum_of(stop - start, [=](int64_t j) { return static_cast<double>(vector[j]) * other[j]; });
        }
    }
}

HEDGEROW_CLONES
inline void add_multiples(const float* const* vectors, const double* factors, int vector_count, double* to,
                          int64_t count) {
    for (int64_t start = 0; start < count; start += STRETCH) {
        const int64_t stop = std::min(count, start + STRETCH);
        for (int v = 0; v < vector_count; ++v) {
            const float* vector = vectors[v];
            const double factor = factors[v];
            for (int64_t j = start; j < stop; ++j) to[j] += factor * static_cast<double>(vector[j]);
        }
    }
}

}  // namespace hedgerow::model
