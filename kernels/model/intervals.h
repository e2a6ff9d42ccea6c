// Partitions of a table's cells into intervals of like counts, coarsened one step at a time.
//
// A partition's reconstruction error is Σ |count − mean of its block| over the cells: what spreading every block's sum
// evenly would get wrong. A whole sequence of partitions is returned as the steps between them, so that a caller can
// stop anywhere without computing anything again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

namespace hedgerow::model {

// Step t removes the boundary between cells boundary[t] and boundary[t] + 1; errors[t] belongs to the partition before.
struct Merges {
    std::vector<int64_t> boundaries;
    std::vector<double> errors;
};

// Intervals of ascending counts, from single cells to one interval; the pair whose union adds least error goes first.
class IntervalMerger {
 public:
    IntervalMerger(const double* sorted, int64_t count)
        : sorted_(sorted), count_(count), sums_(count + 1, 0.0), start_(count), end_(count), error_(count, 0.0),
          gone_(count, false) {
        for (int64_t i = 0; i < count; ++i) {
            sums_[i + 1] = sums_[i] + sorted[i];
            start_[i] = i;
            end_[i] = i + 1;
        }
    }

    Merges run() {
        for (int64_t i = 0; i + 1 < count_; ++i) propose(i);
        Merges found;
        double error = 0;
        found.errors.push_back(error);
        while (!queue_.empty()) {
            const auto [increase, boundary, start, end] = queue_.top();
            queue_.pop();
            // a candidate for intervals that have changed since is void
            if (gone_[boundary] || start_[boundary] != start || end_[boundary + 1] != end) continue;
            merge(boundary, start, end);
            error += increase;
            found.boundaries.push_back(boundary);
            found.errors.push_back(error);
            if (start > 0) propose(start - 1);
            if (end < count_) propose(end - 1);
        }
        return found;
    }

 private:
    // increase of the error, boundary, and the interval that the union would be
    using Candidate = std::tuple<double, int64_t, int64_t, int64_t>;

    void merge(int64_t boundary, int64_t start, int64_t end) {
        gone_[boundary] = true;
        start_[end - 1] = start;
        end_[start] = end;
        error_[start] = error_of(start, end);
    }

    void propose(int64_t boundary) {
        const int64_t start = start_[boundary], end = end_[boundary + 1];
        const double increase = error_of(start, end) - error_[start] - error_[boundary + 1];
        queue_.emplace(increase, boundary, start, end);
    }

    double error_of(int64_t start, int64_t end) const {
        const double sum = sums_[end] - sums_[start], mean = sum / static_cast<double>(end - start);
        const int64_t above = std::lower_bound(sorted_ + start, sorted_ + end, mean) - sorted_;
        return std::max(0.0, 2 * (mean * static_cast<double>(above - start) - (sums_[above] - sums_[start])));
    }

    const double* sorted_;
    int64_t count_;
    std::vector<double> sums_;
    std::vector<int64_t> start_, end_;  // of the interval that ends, or starts, at a cell
    std::vector<double> error_;         // of the interval that starts at a cell
    std::vector<bool> gone_;            // whether the boundary after a cell is
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

}  // namespace hedgerow::model
