// Rows from a calibrated network, attribute by attribute in reverse elimination order.
//
// Rows that agree on an attribute's neighbours form a group; the group's rows get the conditional distribution by
// systematic rounding (each value's count is its expectation rounded up or down, by one uniform number per group) or
// by independent draws. Rounded values are laid evenly over the rows of the group, which are sorted by the attributes
// that were drawn before, the latest first: so columns that are independent given their neighbours are so in counts,
// and not only up to chance. Which rows come first is random, and so every row is as likely as any other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/compilers.h"
#include "common/rng.h"
#include "model/network.h"

namespace hedgerow::model {

// A column to be filled with codes of 1, 2 or 4 bytes.
struct CodeColumn {
    void* codes;
    int width;
};

// Calls visit(codes) with the column's own type, from row `first` on.
template <class Visit> void with_codes(const CodeColumn& column, int64_t first, Visit visit) {
    if (column.width == 1) visit(static_cast<uint8_t*>(column.codes) + first);
    else if (column.width == 2) visit(static_cast<uint16_t*>(column.codes) + first);
    else visit(static_cast<uint32_t*>(column.codes) + first);
}

// 0 … count−1 in an order in which every stretch visits all parts of the range evenly: the bits of a counter, reversed
// (van der Corput 1935), begun at `first` and taken round.
class EvenOrder {
 public:
    EvenOrder(int64_t count, int64_t first) : count_(count), first_(first) {
        while ((int64_t{1} << bits_) < count) ++bits_;
    }

    int64_t next() {
        int64_t index;
        do index = bits_reversed(counter_++, bits_);
        while (index >= count_);
        index += first_;
        return index < count_ ? index : index - count_;
    }

 private:
    const int64_t count_, first_;
    int bits_ = 0;
    uint32_t counter_ = 0;

    static int64_t bits_reversed(uint32_t number, int bits) {
        uint64_t flipped = number;
        flipped = ((flipped >> 1) & 0x55555555) | ((flipped & 0x55555555) << 1);
        flipped = ((flipped >> 2) & 0x33333333) | ((flipped & 0x33333333) << 2);
        flipped = ((flipped >> 4) & 0x0F0F0F0F) | ((flipped & 0x0F0F0F0F) << 4);
        flipped = swapped_bytes(static_cast<uint32_t>(flipped));
        return static_cast<int64_t>(flipped >> (32 - bits));
    }
};

class Sampler {
 public:
    Sampler(Network& network, std::vector<CodeColumn> columns, int64_t rows, Rng rng, bool systematic)
        : network_(network), columns_(std::move(columns)), rows_(rows), rng_(rng), systematic_(systematic) {}

    // In slices that stay in the processor's caches, unless the groups of some attribute are about as many.
    void draw() {
        int64_t groups = 0;
        for (const Bucket& bucket : network_.buckets)
            groups = std::max(groups, cells(network_.axes[bucket.output], network_.sizes));
        const int64_t slice = std::clamp<int64_t>(ROWS_A_GROUP * groups, LEAST_SLICE, MOST_SLICE);
        for (const int64_t rows = rows_; first_ < rows; first_ += rows_) {
            rows_ = std::min(slice, rows - first_);
            draw_slice();
        }
    }

 private:
    static constexpr int64_t ROWS_A_GROUP = 8, LEAST_SLICE = 1 << 16, MOST_SLICE = 1 << 22;

    Network& network_;
    std::vector<CodeColumn> columns_;
    int64_t rows_, first_ = 0;  // how many are being drawn, and the first of them
    Rng rng_;
    const bool systematic_;
    std::vector<uint32_t> order_;     // the rows, sorted by what was drawn, the latest attribute first
    std::vector<uint32_t> grouped_;   // the same, sorted by group before all else
    std::vector<uint32_t> group_;     // the group of each row
    std::vector<uint64_t> cell_;      // the neighbours' cell of each group
    std::vector<int64_t> start_;      // where each group's rows begin; one more at the end
    std::vector<double> cumulative_;  // the conditional distribution function of the group at hand

    void draw_slice() {
        order_.resize(rows_);
        std::iota(order_.begin(), order_.end(), 0);
        for (int64_t i = rows_ - 1; i > 0; --i) std::swap(order_[i], order_[rng_.below(static_cast<uint32_t>(i + 1))]);
        for (auto bucket = network_.buckets.rbegin(); bucket != network_.buckets.rend(); ++bucket)
            with_codes(columns_[bucket->attribute], first_, [&](auto* codes) { draw_attribute(*bucket, codes); });
    }

    // Codes of the attribute that a bucket eliminates, for every row of the slice; the rows are then sorted by them.
    template <class Code> void draw_attribute(const Bucket& bucket, Code* column) {
        const Axes& neighbours = network_.axes[bucket.output];
        const int64_t size = network_.sizes[bucket.attribute];
        const std::vector<Factor> factors = factors_of(bucket);
        form_groups(neighbours);
        std::vector<int64_t> codes(neighbours.size());
        for (size_t g = 0; g + 1 < start_.size(); ++g) {
            const int64_t count = start_[g + 1] - start_[g];
            if (count == 0) continue;
            uint64_t cell = cell_[g];
            for (size_t n = neighbours.size(); n-- > 0;) {
                const uint64_t neighbour_size = static_cast<uint64_t>(network_.sizes[neighbours[n]]);
                codes[n] = static_cast<int64_t>(cell % neighbour_size);
                cell /= neighbour_size;
            }
            condition(factors, codes, size);
            const uint32_t* rows = grouped_.data() + start_[g];
            if (systematic_) draw_evenly(column, rows, count);
            else draw_independently(column, rows, count);
        }
        start_.assign(size + 1, 0);
        for (int64_t r = 0; r < rows_; ++r) ++start_[column[r] + 1];
        for (int64_t v = 0; v < size; ++v) start_[v + 1] += start_[v];
        sort_stably(start_, [column](uint32_t row) { return column[row]; });
        order_.swap(grouped_);
    }

    // Numbers the groups of rows that agree on the neighbours, and sorts the rows by group.
    void form_groups(const Axes& neighbours) {
        const int64_t count = cells(neighbours, network_.sizes);
        group_.assign(rows_, 0);
        cell_.clear();
        if (count <= std::max<int64_t>(1 << 16, 2 * rows_)) {
            for (int axis : neighbours) {
                const uint32_t size = static_cast<uint32_t>(network_.sizes[axis]);
                with_codes(columns_[axis], first_, [&](const auto* codes) {
                    for (int64_t r = 0; r < rows_; ++r) group_[r] = group_[r] * size + codes[r];
                });
            }
            for (int64_t c = 0; c < count; ++c) cell_.push_back(c);
        } else {
            number_occupied_groups(neighbours);
        }
        start_.assign(cell_.size() + 1, 0);
        for (int64_t r = 0; r < rows_; ++r) ++start_[group_[r] + 1];
        for (size_t g = 0; g < cell_.size(); ++g) start_[g + 1] += start_[g];
        sort_stably(start_, [this](uint32_t row) { return group_[row]; });
    }

    // Far more cells than rows: only the occupied ones get a number, in the order of their cells.
    void number_occupied_groups(const Axes& neighbours) {
        std::vector<std::pair<uint64_t, uint32_t>> order(rows_);
        for (int64_t r = 0; r < rows_; ++r) order[r] = {0, static_cast<uint32_t>(r)};
        for (int axis : neighbours) {
            const uint64_t size = static_cast<uint64_t>(network_.sizes[axis]);
            with_codes(columns_[axis], first_, [&](const auto* codes) {
                for (int64_t r = 0; r < rows_; ++r) order[r].first = order[r].first * size + codes[r];
            });
        }
        std::sort(order.begin(), order.end());
        for (const auto& [cell, row] : order) {
            if (cell_.empty() || cell_.back() != cell) cell_.push_back(cell);
            group_[row] = static_cast<uint32_t>(cell_.size() - 1);
        }
    }

    // The rows in their order, but those with a lower key first: `starts` says where each key's begin.
    template <class Key> void sort_stably(const std::vector<int64_t>& starts, Key key) {
        std::vector<int64_t> next(starts);
        grouped_.resize(rows_);
        for (const uint32_t row : order_) grouped_[next[key(row)]++] = row;
    }

    // One input of a bucket as a function of the attribute: given the neighbours' codes, where its values begin.
    struct Factor {
        const double* values;
        int64_t stride = 0;                            // from one code of the attribute to the next
        std::vector<std::pair<int, int64_t>> strides;  // (which neighbour, from one of its codes to the next)
    };

    std::vector<Factor> factors_of(const Bucket& bucket) {
        const Axes& neighbours = network_.axes[bucket.output];
        std::vector<Factor> found;
        for (int input : bucket.inputs) {
            Factor factor{network_.value(input), 0, {}};
            int64_t stride = 1;
            const Axes& own = network_.axes[input];
            for (auto axis = own.rbegin(); axis != own.rend(); ++axis) {
                if (*axis == bucket.attribute) {
                    factor.stride = stride;
                } else {
                    const auto which = std::lower_bound(neighbours.begin(), neighbours.end(), *axis);
                    factor.strides.emplace_back(static_cast<int>(which - neighbours.begin()), stride);
                }
                stride *= network_.sizes[*axis];
            }
            found.push_back(std::move(factor));
        }
        return found;
    }

    // The conditional distribution function (unnormalised) of the attribute given the neighbours' codes.
    void condition(const std::vector<Factor>& factors, const std::vector<int64_t>& codes, int64_t size) {
        cumulative_.assign(size, network_.logarithms ? 0.0 : 1.0);
        for (const Factor& factor : factors) {
            const double* row = factor.values;
            for (const auto& [neighbour, stride] : factor.strides) row += codes[neighbour] * stride;
            if (network_.logarithms) {
                for (int64_t v = 0; v < size; ++v) cumulative_[v] += row[v * factor.stride];
            } else {
                for (int64_t v = 0; v < size; ++v) cumulative_[v] *= row[v * factor.stride];
            }
        }
        if (network_.logarithms) {
            const double largest = *std::max_element(cumulative_.begin(), cumulative_.end());
            for (double& weight : cumulative_) weight = std::exp(weight - largest);
        }
        double sum = 0;
        for (double& weight : cumulative_) weight = sum += weight;
        if (!(sum > 0) || !std::isfinite(sum)) throw std::logic_error("a drawn cell has no weight");
    }

    // Gives each value its rounded count of the group's rows, laid evenly over them.
    template <class Code> void draw_evenly(Code* column, const uint32_t* rows, int64_t count) {
        const int64_t size = static_cast<int64_t>(cumulative_.size());
        const double scale = static_cast<double>(count) / cumulative_[size - 1];
        const double shift = rng_.uniform();
        EvenOrder order(count, rng_.below(static_cast<uint32_t>(count)));
        int64_t placed = 0, last = 0;
        for (int64_t v = 0; v < size && placed < count; ++v) {
            if (cumulative_[v] > (v ? cumulative_[v - 1] : 0.0)) last = v;
            const int64_t reach = std::min(count, static_cast<int64_t>(cumulative_[v] * scale + shift));
            for (; placed < reach; ++placed) column[rows[order.next()]] = static_cast<Code>(v);
        }
        for (; placed < count; ++placed) column[rows[order.next()]] = static_cast<Code>(last);
    }

    template <class Code> void draw_independently(Code* column, const uint32_t* rows, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
            const double target = rng_.uniform() * cumulative_.back();
            const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, target);
            column[rows[i]] = static_cast<Code>(found - cumulative_.begin());
        }
    }
};

}  // namespace hedgerow::model
