// Rows from a calibrated network, attribute by attribute in reverse elimination order.
//
// Rows that agree on an attribute's neighbours form a group; the group's rows get the conditional distribution by
// systematic rounding (each value's count is its expectation rounded up or down, by one uniform coin per group) or
// by independent draws. Rounded values are spread evenly over the rows of the group, which are sorted by the attributes
// that were drawn before, the latest first: so columns that are independent given their neighbours are so in counts,
// and not only up to chance. Which rows come first is a coin's matter, and so every row is as likely as any other.
#pragma once

#include <numeric>

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
    std::vector<Column> columns_;
    int64_t rows_, first_ = 0;  // how many are being drawn, and the first of them
    Coins coins_;
    const bool systematic_;
    std::vector<uint32_t> order_;     // the rows, sorted by what was drawn, the latest attribute first
    std::vector<uint32_t> grouped_;   // the same, sorted by group before all else
    std::vector<uint32_t> group_;     // the group of each row
    std::vector<uint64_t> cell_;      // the neighbours' cell of each group
    std::vector<int64_t> start_;      // where each group's values begin; one more at the end
    std::vector<double> cumulative_;  // the conditional distribution function of the group at hand

    void draw_slice() {
        order_.resize(rows_);
        std::iota(order_.begin(), order_.end(), 0);
        for (int64_t i = rows_ - 1; i > 0; --i)
            std::swap(order_[i], order_[coins_.below(static_cast<uint32_t>(i + 1))]);
        for (auto bucket = network_.buckets.rbegin(); bucket != network_.buckets.rend(); ++bucket) {
            const int attribute = bucket->attribute;
            if (columns_[attribute].width == 1) {
                fill<uint8_t>(*bucket, attribute);
            } else if (columns_[attribute].width == 2) {
                fill<uint16_t>(*bucket, attribute);
            } else {
                fill<uint32_t>(*bucket, attribute);
            }
        }
    }

    template <typename Visit> void with_codes(const Column& column, Visit visit) {
        if (column.width == 1) {
            visit(static_cast<const uint8_t*>(column.codes) + first_);
        } else if (column.width == 2) {
            visit(static_cast<const uint16_t*>(column.codes) + first_);
        } else {
            visit(static_cast<const uint32_t*>(column.codes) + first_);
        }
    }

    // Numbers the groups of rows that agree on the neighbours, and counts them.
    void form_groups(const Axes& neighbours) {
        const int64_t count = cells(neighbours, network_.sizes);
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
        sort_stably(start_, [this](uint32_t row) { return group_[row]; });
    }

    // The rows in their order, but those with a lower key first: `starts` says where each key's begin.
    template <typename Key> void sort_stably(const std::vector<int64_t>& starts, Key key) {
        std::vector<int64_t> next(starts);
        grouped_.resize(rows_);
        for (const uint32_t row : order_) grouped_[next[key(row)]++] = row;
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
        if (!(sum > 0) || !std::isfinite(sum)) throw std::logic_error("a drawn cell has no weight");
    }

    // Gives each value its rounded count of rows, in steps that come back to every part of the group again and again:
    // the bits of a counter, reversed (van der Corput 1935), from a place that is drawn.
    template <typename Code> void spread(Code* column, const uint32_t* rows, int64_t count) {
        const int64_t size = static_cast<int64_t>(cumulative_.size());
        const double scale = static_cast<double>(count) / cumulative_[size - 1];
        const double coin = coins_.uniform();
        const int64_t begin = coins_.below(static_cast<uint32_t>(count));
        int bits = 0;
        while ((int64_t{1} << bits) < count) ++bits;
        uint32_t counter = 0;
        const auto next = [&] {
            int64_t place;
            do place = reversed(counter++, bits);
            while (place >= count);
            place += begin;
            return rows[place < count ? place : place - count];
        };
        int64_t placed = 0, last = 0;
        for (int64_t v = 0; v < size && placed < count; ++v) {
            if (cumulative_[v] > (v ? cumulative_[v - 1] : 0.0)) last = v;
            const int64_t reach = std::min(count, static_cast<int64_t>(cumulative_[v] * scale + coin));
            for (; placed < reach; ++placed) column[next()] = static_cast<Code>(v);
        }
        for (; placed < count; ++placed) column[next()] = static_cast<Code>(last);
    }

    static int64_t reversed(uint32_t number, int bits) {
        uint64_t flipped = number;
        flipped = ((flipped >> 1) & 0x55555555) | ((flipped & 0x55555555) << 1);
        flipped = ((flipped >> 2) & 0x33333333) | ((flipped & 0x33333333) << 2);
        flipped = ((flipped >> 4) & 0x0F0F0F0F) | ((flipped & 0x0F0F0F0F) << 4);
        flipped = __builtin_bswap32(static_cast<uint32_t>(flipped));
        return static_cast<int64_t>(flipped >> (32 - bits));
    }

    template <typename Code> void draw_independently(Code* column, const uint32_t* rows, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
            const double target = coins_.uniform() * cumulative_.back();
            const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, target);
            column[rows[i]] = static_cast<Code>(found - cumulative_.begin());
        }
    }

    template <typename Code> void fill(const Bucket& bucket, int attribute) {
        const Axes& neighbours = network_.axes[bucket.output];
        const std::vector<Slice> inputs = slices(bucket, attribute);
        form_groups(neighbours);
        Code* column = static_cast<Code*>(columns_[attribute].codes) + first_;
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
                spread(column, grouped_.data() + start_[g], count);
            } else {
                draw_independently(column, grouped_.data() + start_[g], count);
            }
        }
        start_.assign(network_.sizes[attribute] + 1, 0);
        for (int64_t r = 0; r < rows_; ++r) ++start_[column[r] + 1];
        for (int64_t v = 0; v < network_.sizes[attribute]; ++v) start_[v + 1] += start_[v];
        sort_stably(start_, [column](uint32_t row) { return column[row]; });
        order_.swap(grouped_);
    }
};

}  // namespace hedgerow
