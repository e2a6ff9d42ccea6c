// Rows chosen from a pool so that together they come close to target marginals: a search by swaps.
//
// The loss is Σ weight · |count − expected count| over all cells of all marginals. A sweep scores every chosen row by
// what leaving would save and every candidate by what joining would save, and tries the best of both against each
// other, keeping a swap where the loss falls (the idea of DPSyn's record search in NIST's 2020 challenge).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <vector>

#include "common/rng.h"

namespace hedgerow::records {

class Selection {
 public:
    // `cells` holds, row by row, one cell number per marginal; `shares` and `weights` are per cell.
    Selection(std::vector<uint32_t> cells, int64_t pool, std::vector<float> shares, std::vector<float> weights)
        : cells_(std::move(cells)), pool_(pool), marginals_(pool ? static_cast<int64_t>(cells_.size()) / pool : 0),
          shares_(std::move(shares)), weights_(std::move(weights)), count_(shares_.size()), goal_(shares_.size()),
          leave_(shares_.size()), join_(shares_.size()), order_(pool) {
        std::iota(order_.begin(), order_.end(), 0);
    }

    int64_t pool() const { return pool_; }

    std::mutex busy;  // held while rows are chosen

    // `count` distinct rows of the pool. The search begins with some of the `first` first rows; candidates are
    // `candidates` more of all the others, drawn afresh for every call.
    void choose(int64_t count, int64_t first, int64_t candidates, int sweeps, Rng rng, int64_t* chosen) {
        const int64_t drawn = count + std::min(pool_ - count, candidates);
        std::iota(order_.begin(), order_.end(), 0);
        for (int64_t i = 0; i < drawn; ++i)
            std::swap(order_[i], order_[i + rng.below(static_cast<uint32_t>((i < count ? first : pool_) - i))]);
        begin(count);
        for (int sweep = 0; sweep < sweeps; ++sweep)
            if (!improve(count, drawn)) break;
        std::copy(order_.begin(), order_.begin() + count, chosen);
    }

 private:
    std::vector<uint32_t> cells_;
    const int64_t pool_, marginals_;
    std::vector<float> shares_, weights_, count_, goal_, leave_, join_;
    std::vector<int64_t> order_;  // chosen rows, then candidates
    std::vector<float> score_;
    std::vector<int64_t> leaving_, joining_;

    const uint32_t* row(int64_t index) const { return cells_.data() + order_[index] * marginals_; }

    void begin(int64_t count) {
        std::fill(count_.begin(), count_.end(), 0.0f);
        for (int64_t i = 0; i < count; ++i)
            for (int64_t m = 0; m < marginals_; ++m) count_[row(i)[m]] += 1;
        for (size_t c = 0; c < shares_.size(); ++c) {
            goal_[c] = shares_[c] * static_cast<float>(count);
            rescore(c);
        }
    }

    void rescore(size_t c) {
        const float off = count_[c] - goal_[c];
        leave_[c] = weights_[c] * (std::abs(off) - std::abs(off - 1));
        join_[c] = weights_[c] * (std::abs(off) - std::abs(off + 1));
    }

    float sum(const std::vector<float>& gains, int64_t index) const {
        const uint32_t* cells = row(index);
        float total = 0;
        for (int64_t m = 0; m < marginals_; ++m) total += gains[cells[m]];
        return total;
    }

    void move(int64_t index, float by) {
        const uint32_t* cells = row(index);
        for (int64_t m = 0; m < marginals_; ++m) {
            count_[cells[m]] += by;
            rescore(cells[m]);
        }
    }

    // One sweep; whether anything was swapped.
    bool improve(int64_t count, int64_t drawn) {
        score_.resize(drawn);
        for (int64_t i = 0; i < drawn; ++i) score_[i] = sum(i < count ? leave_ : join_, i);
        best(leaving_, 0, count);
        best(joining_, count, drawn);
        const size_t tries = std::min(leaving_.size(), joining_.size());
        bool any = false;
        int in_vain = 0;
        for (size_t i = 0; i < tries && in_vain < 16; ++i) {
            const float saved = sum(leave_, leaving_[i]);
            move(leaving_[i], -1);
            if (saved + sum(join_, joining_[i]) > 1e-3f) {
                move(joining_[i], 1);
                std::swap(order_[leaving_[i]], order_[joining_[i]]);
                any = true;
                in_vain = 0;
            } else {
                move(leaving_[i], 1);
                ++in_vain;
            }
        }
        return any;
    }

    // The eighth of the indices with the largest scores, the largest first.
    void best(std::vector<int64_t>& indices, int64_t first, int64_t last) {
        indices.resize(last - first);
        std::iota(indices.begin(), indices.end(), first);
        const auto better = [&](int64_t a, int64_t b) {
            return score_[a] != score_[b] ? score_[a] > score_[b] : order_[a] < order_[b];
        };
        const auto kept = std::min<int64_t>(last - first, 1 + (last - first) / 8);
        std::partial_sort(indices.begin(), indices.begin() + kept, indices.end(), better);
        indices.resize(kept);
    }
};

}  // namespace hedgerow::records
