// How a product of tables is walked through: a plan of loops, made once and used for every pass.
//
// Every table is stored row-major with its axes in one global order (small attributes first), so the last axis of a
// product is the longest, and each table either runs along it with stride 1 or stays put. No transposition, no
// intermediate of the size of the product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/axes.h"

namespace hedgerow::model {

// One loop: how far each operand moves per step. The output is the last operand.
struct Loop {
    int64_t extent = 1;
    std::vector<int64_t> strides;
};

// The loops over the union of all axes: `outer` ones, one summed `step` loop, and the `inner` loop along rows.
struct LoopNest {
    int inputs = 0;
    std::vector<Loop> outer;
    Loop step, inner;
    std::vector<int> rows;     // inputs that run along the inner loop
    std::vector<int> scalars;  // inputs that do not
    bool sums_row = false;     // the inner loop is summed: the output does not run along it

    LoopNest() = default;

    LoopNest(const std::vector<Axes>& input_axes, const Axes& output_axes, const std::vector<int64_t>& sizes) {
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
            if (!loops.empty() && member == previous) loops.back().extent *= loop.extent;
            else loops.push_back(loop);
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

// Walks the outer loops, keeping the offset of every operand.
class Odometer {
 public:
    explicit Odometer(const LoopNest& nest)
        : loops_(nest.outer), count_(nest.outer.size(), 0), offset(nest.inputs + 1, 0) {}

    bool advance() {
        for (size_t d = loops_.size(); d-- > 0;) {
            const Loop& loop = loops_[d];
            if (++count_[d] < loop.extent) {
                for (size_t o = 0; o < offset.size(); ++o) offset[o] += loop.strides[o];
                return true;
            }
            for (size_t o = 0; o < offset.size(); ++o) offset[o] -= loop.strides[o] * (loop.extent - 1);
            count_[d] = 0;
        }
        return false;
    }

 private:
    const std::vector<Loop>& loops_;
    std::vector<int64_t> count_;

 public:
    std::vector<int64_t> offset;
};

// large[...] += factor · small[...], for a nest whose only input is the large table and whose output is the small one.
inline void add_along(const LoopNest& nest, const double* small, double* large, double factor = 1) {
    Odometer odometer(nest);
    const int64_t extent = nest.inner.extent;
    do {
        for (int64_t t = 0; t < nest.step.extent; ++t) {
            const double* from = small + odometer.offset[1] + t * nest.step.strides[1];
            double* to = large + odometer.offset[0] + t * nest.step.strides[0];
            if (nest.sums_row) {
                for (int64_t j = 0; j < extent; ++j) to[j] += factor * from[0];
            } else {
                for (int64_t j = 0; j < extent; ++j) to[j] += factor * from[j];
            }
        }
    } while (odometer.advance());
}

}  // namespace hedgerow::model
