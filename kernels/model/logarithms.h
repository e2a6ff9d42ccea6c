// Both passes for tables of logarithms: slower, and right whatever the range of the values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/contract.h"

namespace hedgerow::model {

constexpr double NO_MASS = -std::numeric_limits<double>::infinity();  // the logarithm of 0

// The sum of the operands' logarithms along one row, into `row`; false where it is −∞ throughout.
HEDGEROW_INLINE bool add_rows(const Stop& stop, int64_t t, double* __restrict row) {
    const int64_t extent = stop.nest.inner.extent;
    double scalar = 0;
    for (int i : stop.nest.scalars) scalar += *stop.at(i, t);
    if (scalar == NO_MASS) return false;
    for (int64_t j = 0; j < extent; ++j) row[j] = scalar;
    for (int i : stop.nest.rows) {
        const double* from = stop.at(i, t);
        for (int64_t j = 0; j < extent; ++j) row[j] += from[j];
    }
    return true;
}

// The same as `contract`: a pass for the largest term of every output cell, and one for the sum of e^(term − largest).
HEDGEROW_CLONES
inline void contract_logarithms(const LoopNest& nest, const double* const* inputs, double* out, int64_t out_cells) {
    const int64_t extent = nest.inner.extent;
    std::vector<double> row(extent), sums(out_cells, 0.0);
    std::fill(out, out + out_cells, NO_MASS);
    Odometer largest(nest);
    do {
        const Stop stop{nest, inputs, largest.offset.data()};
        double* target = out + largest.offset[nest.inputs];
        for (int64_t t = 0; t < nest.step.extent; ++t) {
            if (!add_rows(stop, t, row.data())) continue;
            if (nest.sums_row) {
                double most = target[0];
                for (int64_t j = 0; j < extent; ++j) most = row[j] > most ? row[j] : most;
                target[0] = most;
            } else {
                for (int64_t j = 0; j < extent; ++j) target[j] = row[j] > target[j] ? row[j] : target[j];
            }
        }
    } while (largest.advance());
    for (int64_t c = 0; c < out_cells; ++c) out[c] = out[c] == NO_MASS ? 0.0 : out[c];
    Odometer summed(nest);
    do {
        const Stop stop{nest, inputs, summed.offset.data()};
        const int64_t cell = summed.offset[nest.inputs];
        for (int64_t t = 0; t < nest.step.extent; ++t) {
            if (!add_rows(stop, t, row.data())) continue;
            if (nest.sums_row) {
                exponentials_of(row.data(), out[cell], row.data(), extent);
                sums[cell] += sum_row(row.data(), extent);
            } else {
                for (int64_t j = 0; j < extent; ++j) row[j] -= out[cell + j];
                exponentials_of(row.data(), 0.0, row.data(), extent);
                for (int64_t j = 0; j < extent; ++j) sums[cell + j] += row[j];
            }
        }
    } while (summed.advance());
    for (int64_t c = 0; c < out_cells; ++c) out[c] = sums[c] > 0 ? out[c] + std::log(sums[c]) : NO_MASS;
}

// The same as `distribute`, with inputs and ratio as logarithms; beliefs are probabilities.
HEDGEROW_CLONES
inline void distribute_logarithms(const LoopNest& nest, const double* const* inputs, const double* ratio,
                                  double* const* beliefs) {
    const int64_t extent = nest.inner.extent;
    std::vector<double> row(extent);
    Odometer odometer(nest);
    do {
        const Stop stop{nest, inputs, odometer.offset.data()};
        const double* weight = ratio + odometer.offset[nest.inputs];
        for (int64_t t = 0; t < nest.step.extent; ++t) {
            if (nest.sums_row && weight[0] == NO_MASS) continue;
            if (!add_rows(stop, t, row.data())) continue;
            if (nest.sums_row) {
                exponentials_of(row.data(), -weight[0], row.data(), extent);
            } else {
                for (int64_t j = 0; j < extent; ++j) row[j] += weight[j];
                exponentials_of(row.data(), 0.0, row.data(), extent);
            }
            for (int i : nest.rows) {
                double* __restrict belief = beliefs[i] + stop.index(i, t);
                for (int64_t j = 0; j < extent; ++j) belief[j] += row[j];
            }
            if (!nest.scalars.empty()) {
                const double mass = sum_row(row.data(), extent);
                for (int i : nest.scalars) beliefs[i][stop.index(i, t)] += mass;
            }
        }
    } while (odometer.advance());
}

}  // namespace hedgerow::model
