// The gradual update of records (GUM, Zhang et al. 2021, PrivSyn): rows are changed, marginal by marginal, until their
// marginals are near the targets.
//
// A step looks at one marginal. Cells with too many rows give some up, chosen at random; cells with too few get them,
// either by overwriting the marginal's attributes in such a row (replace) or by making the row a copy of one that is in
// the cell already (duplicate), which keeps the other attributes in keeping with the new ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "common/rng.h"
#include "records/target.h"

namespace hedgerow::records {

struct Schedule {
    int iterations;
    double decay;  // the step size is decay^⌊iteration / stride⌋
    int stride;
};

class Updater {
 public:
    Updater(Codes columns, int64_t rows, std::vector<Target> targets, Rng rng)
        : columns_(std::move(columns)), rows_(rows), targets_(std::move(targets)), rng_(rng), cell_(rows),
          by_cell_(rows) {}

    const Rng& rng() const { return rng_; }

    void run(const Schedule& schedule) {
        std::vector<double> error(targets_.size());
        std::vector<size_t> order(targets_.size());
        double step = 1;
        for (int iteration = 0; iteration < schedule.iterations; ++iteration) {
            for (size_t i = 0; i < targets_.size(); ++i) error[i] = distance(targets_[i]);
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return error[a] > error[b]; });
            if (iteration && iteration % schedule.stride == 0)
                step *= schedule.decay;  // pow has other last bits elsewhere
            const double duplicated = iteration % 2 ? 1.0 : 0.5;
            for (size_t i : order) update(targets_[i], step, duplicated);
        }
    }

 private:
    Codes columns_;
    const int64_t rows_;
    std::vector<Target> targets_;
    Rng rng_;
    std::vector<uint32_t> cell_;     // of each row
    std::vector<uint32_t> by_cell_;  // rows, those of one cell together
    std::vector<int64_t> count_, start_;
    std::vector<int64_t> wanted_;  // per cell: rows to gain (positive) or to give up (negative)
    std::vector<uint32_t> free_;   // rows that were given up

    void count(const Target& target) {
        count_.assign(target.cells, 0);
        if (target.columns.size() == 2) {
            const uint32_t *a = columns_[target.columns[0]], *b = columns_[target.columns[1]];
            const uint32_t size = target.sizes[1];
            for (int64_t row = 0; row < rows_; ++row) ++count_[cell_[row] = a[row] * size + b[row]];
            return;
        }
        std::fill(cell_.begin(), cell_.end(), 0);
        for (size_t i = 0; i < target.columns.size(); ++i) {
            const uint32_t* codes = columns_[target.columns[i]];
            const uint32_t size = target.sizes[i];
            for (int64_t row = 0; row < rows_; ++row) cell_[row] = cell_[row] * size + codes[row];
        }
        for (int64_t row = 0; row < rows_; ++row) ++count_[cell_[row]];
    }

    double distance(const Target& target) {
        count(target);
        double sum = 0;
        for (int64_t c = 0; c < target.cells; ++c)
            sum += std::abs(static_cast<double>(count_[c]) - target.shares[c] * static_cast<double>(rows_));
        return sum;
    }

    void update(const Target& target, double step, double duplicated) {
        count(target);
        if (plan(target, step) == 0) return;
        group_rows(target);
        free_.clear();
        for (int64_t c = 0; c < target.cells; ++c)
            for (int64_t taken = 0; taken < -wanted_[c]; ++taken) free_.push_back(pick(c, taken));
        for (size_t i = free_.size(); i > 1; --i) std::swap(free_[i - 1], free_[rng_.below(static_cast<uint32_t>(i))]);
        for (int64_t c = 0; c < target.cells; ++c)  // empty cells first: only replacing can fill them
            if (count_[c] == 0)
                for (int64_t i = 0; i < wanted_[c] && !free_.empty(); ++i) replace(target, c);
        for (int64_t c = 0; c < target.cells; ++c) {
            if (count_[c] == 0 || wanted_[c] <= 0) continue;
            const auto copies = static_cast<int64_t>(std::nearbyint(duplicated * static_cast<double>(wanted_[c])));
            for (int64_t i = 0; i < wanted_[c] && !free_.empty(); ++i)
                i < copies ? duplicate(pick(c, i)) : replace(target, c);
        }
    }

    // How many rows each cell gains or gives up; returns how many change hands.
    int64_t plan(const Target& target, double step) {
        wanted_.assign(target.cells, 0);
        int64_t demand = 0;
        double most = 0;
        for (int64_t c = 0; c < target.cells; ++c) {
            const double goal = target.shares[c] * static_cast<double>(rows_), has = static_cast<double>(count_[c]);
            if (has < goal) {
                const double gain = count_[c] == 0 ? step * goal : std::min(goal - has, step * has);
                demand += wanted_[c] = static_cast<int64_t>(std::nearbyint(gain));
            } else {
                most = std::max(most, has > 0 ? (has - goal) / has : 0.0);
            }
        }
        if (demand == 0) return 0;
        const double part = giving(target, static_cast<double>(demand), most);
        for (int64_t c = 0; c < target.cells; ++c) {
            const double goal = target.shares[c] * static_cast<double>(rows_), has = static_cast<double>(count_[c]);
            if (has > goal) wanted_[c] = -static_cast<int64_t>(std::nearbyint(std::min(has - goal, part * has)));
        }
        return demand;
    }

    // The largest part of a cell that is given up, so that what is given up meets the demand (within one row).
    double giving(const Target& target, double demand, double most) {
        double low = 0, high = most;
        for (int i = 0; i < 51; ++i) {
            const double part = i == 0 ? high : (low + high) / 2;
            double given = 0;
            for (int64_t c = 0; c < target.cells; ++c) {
                const double goal = target.shares[c] * static_cast<double>(rows_), has = static_cast<double>(count_[c]);
                if (has > goal) given += std::min(has - goal, part * has);
            }
            if (std::abs(given - demand) <= 1 || (i == 0 && given < demand)) return part;
            (given < demand ? low : high) = part;
        }
        return high;
    }

    void group_rows(const Target& target) {
        start_.assign(target.cells + 1, 0);
        for (int64_t c = 0; c < target.cells; ++c) start_[c + 1] = start_[c] + count_[c];
        for (int64_t row = rows_ - 1; row >= 0; --row)
            by_cell_[start_[cell_[row]] + --count_[cell_[row]]] = static_cast<uint32_t>(row);
        for (int64_t c = 0; c < target.cells; ++c) count_[c] = start_[c + 1] - start_[c];
    }

    // A row of the cell that was not picked yet, when `taken` were.
    uint32_t pick(int64_t c, int64_t taken) {
        uint32_t* rows = by_cell_.data() + start_[c];
        std::swap(rows[taken], rows[taken + rng_.below(static_cast<uint32_t>(count_[c] - taken))]);
        return rows[taken];
    }

    void replace(const Target& target, int64_t cell) {
        const uint32_t row = free_.back();
        free_.pop_back();
        for (size_t i = target.columns.size(); i-- > 0;) {
            columns_[target.columns[i]][row] = static_cast<uint32_t>(cell % target.sizes[i]);
            cell /= target.sizes[i];
        }
    }

    void duplicate(uint32_t source) {
        const uint32_t row = free_.back();
        free_.pop_back();
        for (uint32_t* column : columns_) column[row] = column[source];
    }
};

}  // namespace hedgerow::records
