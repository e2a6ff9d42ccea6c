// The forward pass: out[kept axes] = Σ over the other axes of Π inputs.
//
// At each stop of the odometer, a step loop of rows is summed. The inputs that stay put along a row multiply to one
// scale per step; what is left is one of four sums over the rows that run along, each a function below.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/loops.h"
#include "model/rows.h"

namespace hedgerow::model {

// Where the inputs stand at one stop of the odometer.
struct Stop {
    const LoopNest& nest;
    const double* const* inputs;
    const int64_t* offset;

    int64_t index(int input, int64_t t) const { return offset[input] + t * nest.step.strides[input]; }
    const double* at(int input, int64_t t) const { return inputs[input] + index(input, t); }
    // The rows that run along, at step t.
    void rows_at(int64_t t, const double** rows) const {
        for (size_t r = 0; r < nest.rows.size(); ++r) rows[r] = at(nest.rows[r], t);
    }
};

// The product of the inputs that stay put, step by step; left as it is (at 1) where there are none.
HEDGEROW_INLINE void scales_of(const Stop& stop, double* scales) {
    const int64_t steps = stop.nest.step.extent;
    bool first = true;
    for (int i : stop.nest.scalars) {
        const double* value = stop.at(i, 0);
        const int64_t hop = stop.nest.step.strides[i];
        if (first) {
            for (int64_t t = 0; t < steps; ++t) scales[t] = value[t * hop];
        } else {
            for (int64_t t = 0; t < steps; ++t) scales[t] *= value[t * hop];
        }
        first = false;
    }
}

// No input runs along: the same number for the whole row.
HEDGEROW_INLINE void add_constant(const Stop& stop, const double* scales, double* target) {
    const int64_t extent = stop.nest.inner.extent;
    double sum = 0;
    for (int64_t t = 0; t < stop.nest.step.extent; ++t) sum += scales[t];
    target[0] += sum * (stop.nest.sums_row ? static_cast<double>(extent) : 1.0);
    if (!stop.nest.sums_row)
        for (int64_t j = 1; j < extent; ++j) target[j] += sum;
}

// The row is summed: one number from products of one, two or more rows.
HEDGEROW_INLINE void add_sums(const Stop& stop, const double* scales, const double** rows, double* product,
                              double* target) {
    const int64_t extent = stop.nest.inner.extent;
    const int count = static_cast<int>(stop.nest.rows.size());
    double sum = 0;
    for (int64_t t = 0; t < stop.nest.step.extent; ++t) {
        if (scales[t] == 0) continue;
        stop.rows_at(t, rows);
        if (count == 1) {
            sum += scales[t] * sum_row(rows[0], extent);
        } else if (count == 2) {
            sum += scales[t] * dot_rows(rows[0], rows[1], extent);
        } else {
            multiply_rows(rows, count - 1, scales[t], product, extent);
            sum += dot_rows(product, rows[count - 1], extent);
        }
    }
    target[0] += sum;
}

// The row is kept and one input runs along: a matrix times the vector of scales, four steps at a time.
HEDGEROW_INLINE void add_scaled_rows(const Stop& stop, const double* scales, double* target) {
    const int64_t extent = stop.nest.inner.extent, steps = stop.nest.step.extent;
    const int input = stop.nest.rows[0];
    const double* row = stop.at(input, 0);
    const int64_t hop = stop.nest.step.strides[input];
    double* __restrict sums = target;
    int64_t t = 0;
    for (; t + 4 <= steps; t += 4) {
        const double s0 = scales[t], s1 = scales[t + 1], s2 = scales[t + 2], s3 = scales[t + 3];
        const double *r0 = row + t * hop, *r1 = r0 + hop, *r2 = r1 + hop, *r3 = r2 + hop;
        for (int64_t j = 0; j < extent; ++j) sums[j] += (s0 * r0[j] + s1 * r1[j]) + (s2 * r2[j] + s3 * r3[j]);
    }
    for (; t < steps; ++t) {
        const double s0 = scales[t];
        const double* r0 = row + t * hop;
        for (int64_t j = 0; j < extent; ++j) sums[j] += s0 * r0[j];
    }
}

// The row is kept and several inputs run along.
HEDGEROW_INLINE void add_products(const Stop& stop, const double* scales, const double** rows, double* product,
                                  double* target) {
    const int64_t extent = stop.nest.inner.extent;
    const int count = static_cast<int>(stop.nest.rows.size());
    double* __restrict sums = target;
    for (int64_t t = 0; t < stop.nest.step.extent; ++t) {
        const double s = scales[t];
        if (s == 0) continue;
        stop.rows_at(t, rows);
        if (count == 2) {
            const double *a = rows[0], *b = rows[1];
            for (int64_t j = 0; j < extent; ++j) sums[j] += s * a[j] * b[j];
        } else {
            multiply_rows(rows, count - 1, s, product, extent);
            const double* last = rows[count - 1];
            for (int64_t j = 0; j < extent; ++j) sums[j] += product[j] * last[j];
        }
    }
}

HEDGEROW_CLONES
inline void contract(const LoopNest& nest, const double* const* inputs, double* out, int64_t out_cells) {
    std::fill(out, out + out_cells, 0.0);
    std::vector<const double*> rows(std::max<size_t>(nest.rows.size(), 1));
    std::vector<double> product(nest.inner.extent);
    std::vector<double> scales(nest.step.extent, 1.0);
    Odometer odometer(nest);
    do {
        const Stop stop{nest, inputs, odometer.offset.data()};
        double* target = out + odometer.offset[nest.inputs];
        scales_of(stop, scales.data());
        if (nest.rows.empty()) add_constant(stop, scales.data(), target);
        else if (nest.sums_row) add_sums(stop, scales.data(), rows.data(), product.data(), target);
        else if (nest.rows.size() == 1) add_scaled_rows(stop, scales.data(), target);
        else add_products(stop, scales.data(), rows.data(), product.data(), target);
    } while (odometer.advance());
}

}  // namespace hedgerow::model
