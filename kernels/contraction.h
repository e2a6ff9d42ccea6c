// Sums of products of tensors: out[kept axes] = Σ over the other axes of Π inputs.
//
// Every tensor is stored row-major with its axes in one global order (small attributes first), so the last axis of
// a product is the longest and each operand either runs along it with stride 1 or stays put. No transposition, no
// intermediate of the size of the product. Sums are taken in an order that does not depend on the vector width,
// and products are never fused into sums, so it changes no bit. Logarithms come from the C library, which may.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "sizes.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEDGEROW_CLONES  // which copy is taken is decided before a sanitizer's runtime is ready
#elif defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define HEDGEROW_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define HEDGEROW_CLONES
#endif

namespace hedgerow {

using Axes = std::vector<int>;

// While it lives, numbers below 2e-308 are 0: they carry no mass, and arithmetic on them is a hundred times slower.
class NoDenormals {
 public:
#if defined(__x86_64__)
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

inline void check_sizes(const std::vector<int64_t>& sizes) {
    checked_size(static_cast<int64_t>(sizes.size()), "attributes", MOST_ATTRIBUTES);
    for (int64_t size : sizes)
        if (checked_size(size, "values of an attribute", MOST_VALUES) == 0)
            throw std::invalid_argument("every attribute needs at least one value");
}

// Axes are numbers of attributes, distinct and in order.
inline void check_axes(const Axes& axes, const std::vector<int64_t>& sizes) {
    for (size_t i = 0; i < axes.size(); ++i) {
        checked_index(axes[i], sizes.size(), "an axis");
        if (i && axes[i] <= axes[i - 1]) throw std::invalid_argument("axes must be distinct and in ascending order");
    }
}

// Cells of a table whose axes and sizes were checked.
inline int64_t cells(const Axes& axes, const std::vector<int64_t>& sizes) {
    int64_t count = 1;
    for (int axis : axes) count = checked_product(count, sizes[axis], "cells of a table");
    return count;
}

// One loop of a contraction: how far each operand moves per step. The output is the last operand.
struct Loop {
    int64_t extent = 1;
    std::vector<int64_t> strides;
};

// A contraction as loops: `outer` ones, one summed `step` loop, and the `inner` loop along rows.
struct Nest {
    int inputs = 0;
    std::vector<Loop> outer;
    Loop step, inner;
    std::vector<int> rows;     // inputs that run along the inner loop
    std::vector<int> scalars;  // inputs that do not
    bool sums_row = false;     // the inner loop is summed

    Nest() = default;

    Nest(const std::vector<Axes>& input_axes, const Axes& output_axes, const std::vector<int64_t>& sizes) {
        inputs = static_cast<int>(input_axes.size());
        std::vector<const Axes*> operands;
        for (const Axes& axes : input_axes) operands.push_back(&axes);
        operands.push_back(&output_axes);
        std::vector<Loop> kept, summed;
        collect(operands, sizes, kept, summed);
        arrange(kept, summed);
        for (int i = 0; i < inputs; ++i) (inner.strides[i] ? rows : scalars).push_back(i);
        sums_row = inner.strides[inputs] == 0;
    }

 private:
    // The loops of the union of all axes, slowest first; neighbours that move every operand alike become one loop.
    void collect(const std::vector<const Axes*>& operands, const std::vector<int64_t>& sizes, std::vector<Loop>& kept,
                 std::vector<Loop>& summed) const {
        Axes every;
        for (const Axes* axes : operands) every.insert(every.end(), axes->begin(), axes->end());
        std::sort(every.begin(), every.end());
        every.erase(std::unique(every.begin(), every.end()), every.end());
        std::vector<int64_t> stride(operands.size(), 1);
        std::vector<Loop> loops;  // fastest first
        std::vector<char> previous;
        for (auto axis = every.rbegin(); axis != every.rend(); ++axis) {
            Loop loop{sizes[*axis], std::vector<int64_t>(operands.size(), 0)};
            std::vector<char> member(operands.size(), 0);
            for (size_t o = 0; o < operands.size(); ++o) {
                if (std::binary_search(operands[o]->begin(), operands[o]->end(), *axis)) {
                    member[o] = 1;
                    loop.strides[o] = stride[o];
                    stride[o] *= sizes[*axis];
                }
            }
            if (!loops.empty() && member == previous) {
                loops.back().extent *= loop.extent;
            } else {
                loops.push_back(loop);
            }
            previous = member;
        }
        for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
            (loop->strides.back() || loop->extent == 1 ? kept : summed).push_back(*loop);
        }
    }

    // Rows run along the fastest loop; summed loops come next so that an output row stays in the cache.
    void arrange(std::vector<Loop>& kept, std::vector<Loop>& summed) {
        Loop nothing{1, std::vector<int64_t>(inputs + 1, 0)};
        auto fastest = [&](const std::vector<Loop>& loops) {
            if (loops.empty()) return false;
            const auto& strides = loops.back().strides;
            return std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s <= 1; });
        };
        if (fastest(kept)) {
            inner = kept.back();
            kept.pop_back();
        } else if (fastest(summed)) {
            inner = summed.back();
            summed.pop_back();
        } else {
            inner = nothing;
        }
        step = nothing;
        if (!summed.empty()) {
            step = summed.back();
            summed.pop_back();
        }
        outer = kept;
        outer.insert(outer.end(), summed.begin(), summed.end());
    }
};

// Walks the outer loops, keeping the place of every operand.
class Odometer {
 public:
    explicit Odometer(const Nest& nest) : loops_(nest.outer), count_(nest.outer.size(), 0), place(nest.inputs + 1, 0) {}

    bool advance() {
        for (size_t d = loops_.size(); d-- > 0;) {
            const Loop& loop = loops_[d];
            if (++count_[d] < loop.extent) {
                for (size_t o = 0; o < place.size(); ++o) place[o] += loop.strides[o];
                return true;
            }
            for (size_t o = 0; o < place.size(); ++o) place[o] -= loop.strides[o] * (loop.extent - 1);
            count_[d] = 0;
        }
        return false;
    }

 private:
    const std::vector<Loop>& loops_;
    std::vector<int64_t> count_;

 public:
    std::vector<int64_t> place;
};

constexpr int LANES = 8;

inline double folded(const double* lanes) {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// The product of the row operands, scaled, into `product`.
__attribute__((always_inline)) inline void multiply_rows(const double* const* rows, int count, double scale,
                                                         double* __restrict product, int64_t extent) {
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

__attribute__((always_inline)) inline double sum_row(const double* row, int64_t extent) {
    double lanes[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= extent; j += LANES)
        for (int l = 0; l < LANES; ++l) lanes[l] += row[j + l];
    for (int l = 0; j < extent; ++j, ++l) lanes[l] += row[j];
    return folded(lanes);
}

__attribute__((always_inline)) inline double dot_rows(const double* a, const double* b, int64_t extent) {
    double lanes[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= extent; j += LANES)
        for (int l = 0; l < LANES; ++l) lanes[l] += a[j + l] * b[j + l];
    for (int l = 0; j < extent; ++j, ++l) lanes[l] += a[j] * b[j];
    return folded(lanes);
}

// out = Σ Π inputs, in linear space.
HEDGEROW_CLONES
inline void contract(const Nest& nest, const double* const* inputs, double* out, int64_t out_cells) {
    std::fill(out, out + out_cells, 0.0);
    const int row_count = static_cast<int>(nest.rows.size());
    const int64_t extent = nest.inner.extent, steps = nest.step.extent;
    std::vector<const double*> rows(std::max(row_count, 1));
    std::vector<double> product(extent);
    std::vector<double> scales(steps, 1.0);
    const std::vector<int64_t>& stride = nest.step.strides;
    Odometer odometer(nest);
    do {
        const int64_t* place = odometer.place.data();
        double* target = out + place[nest.inputs];
        bool first_scalar = true;
        for (int i : nest.scalars) {
            const double* value = inputs[i] + place[i];
            const int64_t hop = stride[i];
            if (first_scalar) {
                for (int64_t t = 0; t < steps; ++t) scales[t] = value[t * hop];
            } else {
                for (int64_t t = 0; t < steps; ++t) scales[t] *= value[t * hop];
            }
            first_scalar = false;
        }
        if (row_count == 0) {
            double sum = 0;
            for (int64_t t = 0; t < steps; ++t) sum += scales[t];
            target[0] += sum * (nest.sums_row ? static_cast<double>(extent) : 1.0);
            if (!nest.sums_row)
                for (int64_t j = 1; j < extent; ++j) target[j] += sum;
        } else if (nest.sums_row) {
            double sum = 0;
            for (int64_t t = 0; t < steps; ++t) {
                if (scales[t] == 0) continue;
                for (int r = 0; r < row_count; ++r) {
                    const int i = nest.rows[r];
                    rows[r] = inputs[i] + place[i] + t * stride[i];
                }
                if (row_count == 1) {
                    sum += scales[t] * sum_row(rows[0], extent);
                } else if (row_count == 2) {
                    sum += scales[t] * dot_rows(rows[0], rows[1], extent);
                } else {
                    multiply_rows(rows.data(), row_count - 1, scales[t], product.data(), extent);
                    sum += dot_rows(product.data(), rows[row_count - 1], extent);
                }
            }
            target[0] += sum;
        } else if (row_count == 1) {
            const int i = nest.rows[0];
            const double* row = inputs[i] + place[i];
            const int64_t hop = stride[i];
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
        } else {
            double* __restrict sums = target;
            for (int64_t t = 0; t < steps; ++t) {
                const double s = scales[t];
                if (s == 0) continue;
                for (int r = 0; r < row_count; ++r) {
                    const int i = nest.rows[r];
                    rows[r] = inputs[i] + place[i] + t * stride[i];
                }
                if (row_count == 2) {
                    const double *a = rows[0], *b = rows[1];
                    for (int64_t j = 0; j < extent; ++j) sums[j] += s * a[j] * b[j];
                } else {
                    multiply_rows(rows.data(), row_count - 1, s, product.data(), extent);
                    const double* last = rows[row_count - 1];
                    for (int64_t j = 0; j < extent; ++j) sums[j] += product[j] * last[j];
                }
            }
        }
    } while (odometer.advance());
}

// Adds to every input's belief its share of the joint belief ratio · Π inputs, where ratio has the output's axes.
HEDGEROW_CLONES
inline void spread(const Nest& nest, const double* const* inputs, const double* ratio, double* const* beliefs) {
    const int row_count = static_cast<int>(nest.rows.size());
    const int64_t extent = nest.inner.extent, steps = nest.step.extent;
    std::vector<const double*> rows(std::max(row_count, 1));
    std::vector<double> product(extent);
    const std::vector<int64_t>& stride = nest.step.strides;
    const bool ratio_runs = !nest.sums_row;
    const bool needs_sum = !nest.scalars.empty();
    Odometer odometer(nest);
    do {
        const int64_t* place = odometer.place.data();
        const double* weight = ratio + place[nest.inputs];
        for (int64_t t = 0; t < steps; ++t) {
            double scale = ratio_runs ? 1.0 : weight[0];
            for (int i : nest.scalars) scale *= inputs[i][place[i] + t * stride[i]];
            if (scale == 0) continue;
            double sum = 0;
            double* __restrict joint = product.data();
            if (row_count == 1) {
                const int i = nest.rows[0];
                const double* __restrict row = inputs[i] + place[i] + t * stride[i];
                double* __restrict belief = beliefs[i] + place[i] + t * stride[i];
                if (!needs_sum) {
                    if (ratio_runs) {
                        for (int64_t j = 0; j < extent; ++j) belief[j] += scale * weight[j] * row[j];
                    } else {
                        for (int64_t j = 0; j < extent; ++j) belief[j] += scale * row[j];
                    }
                    continue;
                }
                double lanes[LANES] = {0};
                int64_t j = 0;
                if (ratio_runs) {
                    for (; j + LANES <= extent; j += LANES)
                        for (int l = 0; l < LANES; ++l) {
                            const double mass = scale * weight[j + l] * row[j + l];
                            belief[j + l] += mass;
                            lanes[l] += mass;
                        }
                    for (int l = 0; j < extent; ++j, ++l) {
                        const double mass = scale * weight[j] * row[j];
                        belief[j] += mass;
                        lanes[l] += mass;
                    }
                } else {
                    for (; j + LANES <= extent; j += LANES)
                        for (int l = 0; l < LANES; ++l) {
                            const double mass = scale * row[j + l];
                            belief[j + l] += mass;
                            lanes[l] += mass;
                        }
                    for (int l = 0; j < extent; ++j, ++l) {
                        const double mass = scale * row[j];
                        belief[j] += mass;
                        lanes[l] += mass;
                    }
                }
                sum = folded(lanes);
            } else if (row_count == 0) {
                if (ratio_runs) scale *= sum_row(weight, extent);
                sum = scale;
            } else {
                for (int r = 0; r < row_count; ++r) {
                    const int i = nest.rows[r];
                    rows[r] = inputs[i] + place[i] + t * stride[i];
                }
                multiply_rows(rows.data(), row_count, scale, joint, extent);
                if (ratio_runs)
                    for (int64_t j = 0; j < extent; ++j) joint[j] *= weight[j];
                for (int r = 0; r < row_count; ++r) {
                    const int i = nest.rows[r];
                    double* __restrict belief = beliefs[i] + place[i] + t * stride[i];
                    for (int64_t j = 0; j < extent; ++j) belief[j] += joint[j];
                }
                if (needs_sum) sum = sum_row(joint, extent);
            }
            for (int i : nest.scalars) beliefs[i][place[i] + t * stride[i]] += sum;
        }
    } while (odometer.advance());
}

// out[j] = e^(in[j] − shift), 0 below e^−708. Written out so that it is vectorised, and the same at every width.
__attribute__((always_inline)) inline void exponentials_of(const double* in, double shift, double* out, int64_t count) {
    constexpr double magic = 0x1.8p52;
    constexpr double log2e = 1.4426950408889634, ln2_high = 6.93147180369123816490e-01,
                     ln2_low = 1.90821492927058770002e-10;
    for (int64_t j = 0; j < count; ++j) {
        const double x = in[j] - shift;
        const double clamped = x < -708.0 ? -708.0 : x;
        const double shifted = clamped * log2e + magic;
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
        __builtin_memcpy(&power, &shifted, 8);
        __builtin_memcpy(&bits, &p, 8);
        bits += power << 52;
        double value;
        __builtin_memcpy(&value, &bits, 8);
        out[j] = x < -708.0 ? 0.0 : value;
    }
}

HEDGEROW_CLONES
inline void exponentials(const double* in, double shift, double* out, int64_t count) {
    exponentials_of(in, shift, out, count);
}

// The sum of the operands' logarithms along one row, into `row`; false where it is −∞ throughout.
__attribute__((always_inline)) inline bool add_rows(const Nest& nest, const double* const* inputs, const int64_t* place,
                                                    int64_t t, double* __restrict row) {
    const std::vector<int64_t>& stride = nest.step.strides;
    double scalar = 0;
    for (int i : nest.scalars) scalar += inputs[i][place[i] + t * stride[i]];
    if (scalar == -std::numeric_limits<double>::infinity()) return false;
    for (int64_t j = 0; j < nest.inner.extent; ++j) row[j] = scalar;
    for (int i : nest.rows) {
        const double* from = inputs[i] + place[i] + t * stride[i];
        for (int64_t j = 0; j < nest.inner.extent; ++j) row[j] += from[j];
    }
    return true;
}

// The same as `contract` for tensors of logarithms: a pass for the largest term of every output cell and one for the
// sum. Slower, and right whatever the range of the values.
HEDGEROW_CLONES
inline void contract_logarithms(const Nest& nest, const double* const* inputs, double* out, int64_t out_cells) {
    const double nothing = -std::numeric_limits<double>::infinity();
    const int64_t extent = nest.inner.extent;
    std::vector<double> row(extent), sums(out_cells, 0.0);
    std::fill(out, out + out_cells, nothing);
    Odometer largest(nest);
    do {
        double* target = out + largest.place[nest.inputs];
        for (int64_t t = 0; t < nest.step.extent; ++t) {
            if (!add_rows(nest, inputs, largest.place.data(), t, row.data())) continue;
            if (nest.sums_row) {
                double most = target[0];
                for (int64_t j = 0; j < extent; ++j) most = row[j] > most ? row[j] : most;
                target[0] = most;
            } else {
                for (int64_t j = 0; j < extent; ++j) target[j] = row[j] > target[j] ? row[j] : target[j];
            }
        }
    } while (largest.advance());
    for (int64_t c = 0; c < out_cells; ++c) out[c] = out[c] == nothing ? 0.0 : out[c];
    Odometer summed(nest);
    do {
        const int64_t place = summed.place[nest.inputs];
        for (int64_t t = 0; t < nest.step.extent; ++t) {
            if (!add_rows(nest, inputs, summed.place.data(), t, row.data())) continue;
            if (nest.sums_row) {
                exponentials_of(row.data(), out[place], row.data(), extent);
                sums[place] += sum_row(row.data(), extent);
            } else {
                for (int64_t j = 0; j < extent; ++j) row[j] -= out[place + j];
                exponentials_of(row.data(), 0.0, row.data(), extent);
                for (int64_t j = 0; j < extent; ++j) sums[place + j] += row[j];
            }
        }
    } while (summed.advance());
    for (int64_t c = 0; c < out_cells; ++c) out[c] = sums[c] > 0 ? out[c] + std::log(sums[c]) : nothing;
}

// The same as `spread` for tensors of logarithms; beliefs are probabilities.
HEDGEROW_CLONES
inline void spread_logarithms(const Nest& nest, const double* const* inputs, const double* ratio,
                              double* const* beliefs) {
    const double nothing = -std::numeric_limits<double>::infinity();
    const int64_t extent = nest.inner.extent;
    std::vector<double> row(extent);
    Odometer odometer(nest);
    do {
        const int64_t* place = odometer.place.data();
        const double* weight = ratio + place[nest.inputs];
        for (int64_t t = 0; t < nest.step.extent; ++t) {
            if (nest.sums_row && weight[0] == nothing) continue;
            if (!add_rows(nest, inputs, place, t, row.data())) continue;
            if (nest.sums_row) {
                exponentials_of(row.data(), -weight[0], row.data(), extent);
            } else {
                for (int64_t j = 0; j < extent; ++j) row[j] += weight[j];
                exponentials_of(row.data(), 0.0, row.data(), extent);
            }
            for (int i : nest.rows) {
                double* __restrict belief = beliefs[i] + place[i] + t * nest.step.strides[i];
                for (int64_t j = 0; j < extent; ++j) belief[j] += row[j];
            }
            if (!nest.scalars.empty()) {
                const double mass = sum_row(row.data(), extent);
                for (int i : nest.scalars) beliefs[i][place[i] + t * nest.step.strides[i]] += mass;
            }
        }
    } while (odometer.advance());
}

}  // namespace hedgerow
