// The backward pass: every input's belief gets its share of the joint belief ratio · Π inputs, where `ratio` has the
// output's axes.
//
// A cell of the joint belief is a mass: scale · weight · rows, where the scale is the product of the inputs that stay
// put along a row, the weight is the ratio where that runs along (otherwise it is in the scale), and the rows are the
// inputs that run along. A belief that runs along gets the masses one by one, a belief that stays put gets their sum.
// There are three kinds of row, each a function below that adds the masses and returns their sum: no input runs along,
// one does, several do. To speed one up, change it there; the others do not know of it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/contract.h"

namespace hedgerow::model {

// No input runs along: nothing gets masses one by one.
HEDGEROW_INLINE double mass_of_row(double scale, const double* weight, int64_t extent) {
    return weight ? scale * sum_row(weight, extent) : scale;
}

template <bool WEIGHTED> HEDGEROW_INLINE double mass(double scale, const double* weight, const double* row, int64_t j) {
    if constexpr (WEIGHTED) return scale * weight[j] * row[j];
    else return scale * row[j];
}

// One input runs along, the commonest case: the masses go straight into its belief.
template <bool WEIGHTED>
HEDGEROW_INLINE double add_to_one(double scale, const double* __restrict weight, const double* __restrict row,
                                  double* __restrict belief, int64_t extent) {
    double lanes[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= extent; j += LANES)
        for (int l = 0; l < LANES; ++l) {
            const double added = mass<WEIGHTED>(scale, weight, row, j + l);
            belief[j + l] += added;
            lanes[l] += added;
        }
    for (int l = 0; j < extent; ++j, ++l) {
        const double added = mass<WEIGHTED>(scale, weight, row, j);
        belief[j] += added;
        lanes[l] += added;
    }
    return folded(lanes);
}

// The same where nothing stays put, so that nobody needs the sum.
template <bool WEIGHTED>
HEDGEROW_INLINE void add_to_one_only(double scale, const double* __restrict weight, const double* __restrict row,
                                     double* __restrict belief, int64_t extent) {
    for (int64_t j = 0; j < extent; ++j) belief[j] += mass<WEIGHTED>(scale, weight, row, j);
}

// Several inputs run along: the masses are written down once and added to each belief.
HEDGEROW_INLINE double add_to_several(const Stop& stop, int64_t t, double scale, const double* weight,
                                      double* const* beliefs, const double** rows, double* __restrict masses) {
    const LoopNest& nest = stop.nest;
    const int64_t extent = nest.inner.extent;
    stop.rows_at(t, rows);
    multiply_rows(rows, static_cast<int>(nest.rows.size()), scale, masses, extent);
    if (weight)
        for (int64_t j = 0; j < extent; ++j) masses[j] *= weight[j];
    for (int i : nest.rows) {
        double* __restrict belief = beliefs[i] + stop.index(i, t);
        for (int64_t j = 0; j < extent; ++j) belief[j] += masses[j];
    }
    return nest.scalars.empty() ? 0 : sum_row(masses, extent);
}

HEDGEROW_CLONES
inline void distribute(const LoopNest& nest, const double* const* inputs, const double* ratio, double* const* beliefs) {
    const int64_t extent = nest.inner.extent;
    const bool needs_sum = !nest.scalars.empty();
    std::vector<const double*> rows(nest.rows.size());
    std::vector<double> masses(extent);
    Odometer odometer(nest);
    do {
        const Stop stop{nest, inputs, odometer.offset.data()};
        const double* cell = ratio + odometer.offset[nest.inputs];
        const double* weight = nest.sums_row ? nullptr : cell;
        for (int64_t t = 0; t < nest.step.extent; ++t) {
            double scale = nest.sums_row ? cell[0] : 1.0;
            for (int i : nest.scalars) scale *= *stop.at(i, t);
            if (scale == 0) continue;
            double sum = 0;
            if (nest.rows.empty()) {
                sum = mass_of_row(scale, weight, extent);
            } else if (nest.rows.size() == 1) {
                const int input = nest.rows[0];
                const double* row = stop.at(input, t);
                double* belief = beliefs[input] + stop.index(input, t);
                if (needs_sum && weight) sum = add_to_one<true>(scale, weight, row, belief, extent);
                else if (needs_sum) sum = add_to_one<false>(scale, weight, row, belief, extent);
                else if (weight) add_to_one_only<true>(scale, weight, row, belief, extent);
                else add_to_one_only<false>(scale, weight, row, belief, extent);
            } else {
                sum = add_to_several(stop, t, scale, weight, beliefs, rows.data(), masses.data());
            }
            for (int i : nest.scalars) beliefs[i][stop.index(i, t)] += sum;
        }
    } while (odometer.advance());
}

}  // namespace hedgerow::model
