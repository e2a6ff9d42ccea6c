// Rows from a calibrated network, attribute by attribute in reverse elimination order.
//
// Rows that agree on an attribute's neighbours form a group; the group's rows get the conditional distribution by
// systematic rounding (each value's count is its expectation rounded up or down, by one uniform coin per group) or
// by independent draws. The values are shuffled within the group, so that columns which are independent given their
// neighbours stay independent, and so that the rows come out in random order.
#pragma once

#include "coins.h"
#include "network.h"

namespace hedgerow {

// A column of codes of 1, 2 or 4 bytes.
struct Column {
    void* codes;
    int width;
};

class Sampler {
   public:
    Sampler(Network& network, std::vector<Column> columns, int64_t rows, Coins coins, bool systematic)
        : network_(network), columns_(std::move(columns)), rows_(rows), coins_(coins), systematic_(systematic) {}

    void draw() {
        for (auto bucket = network_.buckets.rbegin(); bucket != network_.buckets.rend(); ++bucket) {
            const int attribute = eliminated(*bucket);
            if (columns_[attribute].width == 1) {
                fill<uint8_t>(*bucket, attribute);
            } else if (columns_[attribute].width == 2) {
                fill<uint16_t>(*bucket, attribute);
            } else {
                fill<uint32_t>(*bucket, attribute);
            }
        }
    }

   private:
    Network& network_;
    std::vector<Column> columns_;
    const int64_t rows_;
    Coins coins_;
    const bool systematic_;
    std::vector<uint32_t> group_;     // the group of each row
    std::vector<uint64_t> cell_;      // the neighbours' cell of each group
    std::vector<int64_t> start_;      // where each group's values begin; one more at the end
    std::vector<double> cumulative_;  // the conditional distribution function of the group at hand

    int eliminated(const Bucket& bucket) const {
        const Axes& kept = network_.axes[bucket.output];
        for (int axis : network_.axes[bucket.inputs[0]])
            if (!std::binary_search(kept.begin(), kept.end(), axis)) return axis;
        throw std::logic_error("a bucket that eliminates nothing");
    }

    template <typename Visit>
    void with_codes(const Column& column, Visit visit) {
        if (column.width == 1) {
            visit(static_cast<const uint8_t*>(column.codes));
        } else if (column.width == 2) {
            visit(static_cast<const uint16_t*>(column.codes));
        } else {
            visit(static_cast<const uint32_t*>(column.codes));
        }
    }

    // Numbers the groups of rows that agree on the neighbours, and counts them.
    void form_groups(const Axes& neighbours) {
        int64_t count = 1;
        bool fits = true;
        for (int axis : neighbours) fits = fits && !__builtin_mul_overflow(count, network_.sizes[axis], &count);
        if (!fits) throw std::length_error("the neighbours of one attribute have more cells than a number can hold");
        group_.assign(rows_, 0);
        cell_.clear();
        if (count <= std::max<int64_t>(1 << 16, 2 * rows_)) {
            for (int axis : neighbours) {
                const uint32_t size = static_cast<uint32_t>(network_.sizes[axis]);
                with_codes(columns_[axis], [&](const auto* codes) {
                    for (int64_t r = 0; r < rows_; ++r) group_[r] = group_[r] * size + codes[r];
                });
            }
            for (int64_t c = 0; c < count; ++c) cell_.push_back(c);
        } else {
            number_sparse_groups(neighbours);
        }
        start_.assign(cell_.size() + 1, 0);
        for (int64_t r = 0; r < rows_; ++r) ++start_[group_[r] + 1];
        for (size_t g = 0; g < cell_.size(); ++g) start_[g + 1] += start_[g];
    }

    // Far more cells than rows: only the occupied ones get a number, in the order of their cells.
    void number_sparse_groups(const Axes& neighbours) {
        std::vector<std::pair<uint64_t, uint32_t>> order(rows_);
        for (int64_t r = 0; r < rows_; ++r) order[r] = {0, static_cast<uint32_t>(r)};
        for (int axis : neighbours) {
            const uint64_t size = static_cast<uint64_t>(network_.sizes[axis]);
            with_codes(columns_[axis], [&](const auto* codes) {
                for (int64_t r = 0; r < rows_; ++r) order[r].first = order[r].first * size + codes[r];
            });
        }
        std::sort(order.begin(), order.end());
        for (const auto& [cell, row] : order) {
            if (cell_.empty() || cell_.back() != cell) cell_.push_back(cell);
            group_[row] = static_cast<uint32_t>(cell_.size() - 1);
        }
    }

    // Where an input's row for this attribute begins, given the neighbours' cell; and its stride.
    struct Slice {
        const double* values;
        int64_t stride = 0;
        std::vector<std::pair<int, int64_t>> hops;  // (place among the neighbours, stride)
    };

    std::vector<Slice> slices(const Bucket& bucket, int attribute) {
        const Axes& neighbours = network_.axes[bucket.output];
        std::vector<Slice> found;
        for (int input : bucket.inputs) {
            Slice slice{network_.value(input), 0, {}};
            int64_t stride = 1;
            const Axes& own = network_.axes[input];
            for (auto axis = own.rbegin(); axis != own.rend(); ++axis) {
                if (*axis == attribute) {
                    slice.stride = stride;
                } else {
                    const auto place = std::lower_bound(neighbours.begin(), neighbours.end(), *axis);
                    slice.hops.emplace_back(static_cast<int>(place - neighbours.begin()), stride);
                }
                stride *= network_.sizes[*axis];
            }
            found.push_back(std::move(slice));
        }
        return found;
    }

    // The conditional distribution function (unnormalised) of the attribute given the neighbours' codes.
    void condition(const std::vector<Slice>& inputs, const std::vector<int64_t>& codes, int64_t size) {
        cumulative_.assign(size, network_.logarithms ? 0.0 : 1.0);
        for (const Slice& input : inputs) {
            const double* row = input.values;
            for (const auto& [place, stride] : input.hops) row += codes[place] * stride;
            if (network_.logarithms) {
                for (int64_t v = 0; v < size; ++v) cumulative_[v] += row[v * input.stride];
            } else {
                for (int64_t v = 0; v < size; ++v) cumulative_[v] *= row[v * input.stride];
            }
        }
        if (network_.logarithms) {
            const double largest = *std::max_element(cumulative_.begin(), cumulative_.end());
            for (double& weight : cumulative_) weight = std::exp(weight - largest);
        }
        double sum = 0;
        for (double& weight : cumulative_) weight = sum += weight;
        if (!(sum > 0)) throw std::logic_error("a drawn cell has no weight");
    }

    template <typename Code>
    void round_systematically(Code* values, int64_t count) {
        const int64_t size = static_cast<int64_t>(cumulative_.size());
        const double scale = static_cast<double>(count) / cumulative_[size - 1];
        const double coin = coins_.uniform();
        int64_t placed = 0, last = 0;
        for (int64_t v = 0; v < size && placed < count; ++v) {
            if (cumulative_[v] > (v ? cumulative_[v - 1] : 0.0)) last = v;
            const int64_t reach = std::min(count, static_cast<int64_t>(cumulative_[v] * scale + coin));
            for (; placed < reach; ++placed) values[placed] = static_cast<Code>(v);
        }
        for (; placed < count; ++placed) values[placed] = static_cast<Code>(last);
        for (int64_t i = count - 1; i > 0; --i) std::swap(values[i], values[coins_.below(static_cast<uint32_t>(i + 1))]);
    }

    template <typename Code>
    void draw_independently(Code* values, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
            const double target = coins_.uniform() * cumulative_.back();
            const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, target);
            values[i] = static_cast<Code>(found - cumulative_.begin());
        }
    }

    template <typename Code>
    void fill(const Bucket& bucket, int attribute) {
        const Axes& neighbours = network_.axes[bucket.output];
        const std::vector<Slice> inputs = slices(bucket, attribute);
        form_groups(neighbours);
        std::vector<Code> values(rows_);
        std::vector<int64_t> codes(neighbours.size());
        for (size_t g = 0; g + 1 < start_.size(); ++g) {
            const int64_t count = start_[g + 1] - start_[g];
            if (count == 0) continue;
            uint64_t cell = cell_[g];
            for (size_t place = neighbours.size(); place-- > 0;) {
                const uint64_t size = static_cast<uint64_t>(network_.sizes[neighbours[place]]);
                codes[place] = static_cast<int64_t>(cell % size);
                cell /= size;
            }
            condition(inputs, codes, network_.sizes[attribute]);
            if (systematic_) {
                round_systematically(values.data() + start_[g], count);
            } else {
                draw_independently(values.data() + start_[g], count);
            }
        }
        Code* column = static_cast<Code*>(columns_[attribute].codes);
        for (int64_t r = 0; r < rows_; ++r) column[r] = values[start_[group_[r]]++];
    }
};

}  // namespace hedgerow
