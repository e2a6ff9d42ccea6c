// Values exchanged between rows where that brings the rows' marginals closer to their targets.
//
// Two rows that swap their codes of one attribute keep every one-way marginal and change, in each target that holds the
// attribute, four cells by one. An exchange is made if the loss Σ |count − expected count| falls.
// The gradual update settles one marginal at a time and disturbs the others; this looks at all of them at once.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "common/rng.h"
#include "common/sizes.h"
#include "records/target.h"

namespace hedgerow::records {

class Exchange {
 public:
    Exchange(Codes columns, int64_t rows, const std::vector<Target>& targets, Rng rng)
        : columns_(std::move(columns)), rows_(rows), width_(static_cast<int64_t>(targets.size())), rng_(rng),
          held_(columns_.size()), cell_(checked_product(rows, width_, "cells of all rows")) {
        for (size_t t = 0; t < targets.size(); ++t) lay_out(targets[t], t);
        leave_.resize(count_.size());
        join_.resize(count_.size());
        for (size_t c = 0; c < count_.size(); ++c) rescore(c);
    }

    // `proposals` random partners for every row and attribute.
    void run(int proposals) {
        std::vector<uint32_t> attributes(columns_.size());
        std::iota(attributes.begin(), attributes.end(), 0);
        for (int sweep = 0; sweep < proposals; ++sweep) {
            for (size_t i = attributes.size(); i > 1; --i)
                std::swap(attributes[i - 1], attributes[rng_.below(static_cast<uint32_t>(i))]);
            for (uint32_t attribute : attributes)
                for (int64_t row = 0; row < rows_; ++row)
                    propose(attribute, row, rng_.below(static_cast<uint32_t>(rows_)));
        }
    }

 private:
    struct Held {
        uint32_t target;
        int64_t step;  // how far the cell number moves when the code grows by one
    };

    Codes columns_;
    const int64_t rows_, width_;
    Rng rng_;
    std::vector<std::vector<Held>> held_;  // per attribute: the targets that hold it
    std::vector<uint32_t> cell_;           // row by row, the cell in every target
    std::vector<float> count_, goal_, leave_, join_;

    void lay_out(const Target& target, size_t number) {
        const int64_t first = static_cast<int64_t>(count_.size());
        count_.resize(first + target.cells);
        for (int64_t c = 0; c < target.cells; ++c)
            goal_.push_back(static_cast<float>(target.shares[c] * static_cast<double>(rows_)));
        int64_t step = 1;
        for (size_t i = target.columns.size(); i-- > 0;) {
            held_[target.columns[i]].push_back({static_cast<uint32_t>(number), step});
            step *= target.sizes[i];
        }
        for (int64_t row = 0; row < rows_; ++row) {
            int64_t cell = 0;
            for (size_t i = 0; i < target.columns.size(); ++i)
                cell = cell * target.sizes[i] + columns_[target.columns[i]][row];
            cell_[row * width_ + number] = static_cast<uint32_t>(first + cell);
            count_[first + cell] += 1;
        }
    }

    void rescore(size_t c) {
        const float off = count_[c] - goal_[c];
        leave_[c] = std::abs(off) - std::abs(off - 1);
        join_[c] = std::abs(off) - std::abs(off + 1);
    }

    void propose(uint32_t attribute, int64_t first, int64_t second) {
        const int64_t apart = static_cast<int64_t>(columns_[attribute][second]) - columns_[attribute][first];
        if (apart == 0) return;
        uint32_t *here = cell_.data() + first * width_, *there = cell_.data() + second * width_;
        float gain = 0;
        for (const Held& held : held_[attribute]) {
            const uint32_t a = here[held.target], b = there[held.target];
            const int64_t by = apart * held.step;
            if (a + by == b) continue;  // the rows differ in nothing else that this target holds
            gain += leave_[a] + leave_[b] + join_[a + by] + join_[b - by];
        }
        if (gain <= 1e-3f) return;
        std::swap(columns_[attribute][first], columns_[attribute][second]);
        for (const Held& held : held_[attribute]) {
            uint32_t &a = here[held.target], &b = there[held.target];
            const int64_t by = apart * held.step;
            move(a, -1), move(b, -1);
            a = static_cast<uint32_t>(a + by), b = static_cast<uint32_t>(b - by);
            move(a, 1), move(b, 1);
        }
    }

    void move(uint32_t cell, float by) {
        count_[cell] += by;
        rescore(cell);
    }
};

}  // namespace hedgerow::records
