// Tallies of cell numbers: dense, one counter per cell, or sparse, the occupied cells alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "columns.h"
#include "pool.h"

namespace hedgerow {

// Occupied cells in ascending order, and how many rows reach each.
struct SparseCounts {
    Counts cells;
    Counts counts;
};

// Counters for one tile. Consecutive rows go to different lanes, because a counter that was just written cannot
// be read again for several cycles, and real tables repeat their favourite cell. Small enough to stay in cache;
// left at zero between uses.
class Lanes {
  public:
    static constexpr std::size_t LANES = 4;

    // Lanes must fit the cache beside the columns, and be filled often enough to repay adding them up.
    static bool worthwhile(std::uint64_t cells, std::size_t rows) { return cells <= (1 << 14) && LANES * cells <= rows; }

    void begin(std::size_t cells) {
        cells_ = cells;
        if (counters_.size() < LANES * cells) counters_.resize(LANES * cells, 0);
    }

    template <class Index> void add(const Index *cells, std::size_t rows) {
        std::uint32_t *lane0 = counters_.data();
        std::uint32_t *lane1 = lane0 + cells_, *lane2 = lane1 + cells_, *lane3 = lane2 + cells_;
        std::size_t row = 0;
        for (; row + LANES <= rows; row += LANES) {
            ++lane0[cells[row]];
            ++lane1[cells[row + 1]];
            ++lane2[cells[row + 2]];
            ++lane3[cells[row + 3]];
        }
        for (; row < rows; ++row) ++lane0[cells[row]];
    }

    void finish(std::int64_t *counts) {
        std::uint32_t *lane0 = counters_.data();
        const std::uint32_t *lane1 = lane0 + cells_, *lane2 = lane1 + cells_, *lane3 = lane2 + cells_;
        for (std::size_t cell = 0; cell < cells_; ++cell)
            counts[cell] += std::int64_t{lane0[cell]} + lane1[cell] + lane2[cell] + lane3[cell];
        std::memset(lane0, 0, LANES * cells_ * sizeof(std::uint32_t));
    }

  private:
    std::vector<std::uint32_t> counters_;
    std::size_t cells_ = 0;
};

// Sorts keys below 2^bits by their digits, least significant first, and counts equal neighbours. Its buffers are
// reused from tile to tile.
template <class Key> class Sorter {
  public:
    // Room for `rows` keys, to be written before `sort`.
    Key *keys(std::size_t rows) {
        keys_.resize(rows);
        spare_.resize(rows);
        ends_.resize(rows);
        return keys_.data();
    }

    SparseCounts sort(int bits) {
        const int passes = (bits + WIDEST_DIGIT - 1) / WIDEST_DIGIT;
        for (int pass = 0; pass < passes; ++pass) {
            const int from = bits * pass / passes;
            sort_digit(from, bits * (pass + 1) / passes - from);
        }
        return run_lengths();
    }

  private:
    static constexpr int WIDEST_DIGIT = 11;

    void sort_digit(int shift, int width) {
        const Key mask = static_cast<Key>((1 << width) - 1);
        std::array<std::uint32_t, std::size_t{1} << WIDEST_DIGIT> start{};
        for (const Key key : keys_) ++start[(key >> shift) & mask];
        std::uint32_t before = 0;
        for (std::uint32_t &bucket : start) before += std::exchange(bucket, before);
        for (const Key key : keys_) spare_[start[(key >> shift) & mask]++] = key;
        keys_.swap(spare_);
    }

    // Every key overwrites the entry of its run, so that the last one stands: no branch to mispredict.
    SparseCounts run_lengths() {
        const std::size_t rows = keys_.size();
        if (rows == 0) return {};
        std::size_t runs = 0;
        for (std::size_t row = 0; row + 1 < rows; ++row) {
            spare_[runs] = keys_[row];
            ends_[runs] = static_cast<std::uint32_t>(row + 1);
            runs += keys_[row] != keys_[row + 1];
        }
        spare_[runs] = keys_[rows - 1];
        ends_[runs] = static_cast<std::uint32_t>(rows);
        ++runs;
        SparseCounts counts{{spare_.begin(), spare_.begin() + runs}, Counts(runs)};
        for (std::size_t run = 0; run < runs; ++run)
            counts.counts[run] = std::int64_t{ends_[run]} - (run ? ends_[run - 1] : 0);
        return counts;
    }

    std::vector<Key> keys_, spare_;
    std::vector<std::uint32_t> ends_;
};

inline SparseCounts merge(const SparseCounts &left, const SparseCounts &right) {
    SparseCounts both;
    both.cells.reserve(left.cells.size() + right.cells.size());
    both.counts.reserve(left.cells.size() + right.cells.size());
    std::size_t l = 0, r = 0;
    while (l < left.cells.size() || r < right.cells.size()) {
        const bool from_left = r == right.cells.size() || (l < left.cells.size() && left.cells[l] <= right.cells[r]);
        const bool from_right = l == left.cells.size() || (r < right.cells.size() && right.cells[r] <= left.cells[l]);
        both.cells.push_back(from_left ? left.cells[l] : right.cells[r]);
        both.counts.push_back((from_left ? left.counts[l] : 0) + (from_right ? right.counts[r] : 0));
        l += from_left;
        r += from_right;
    }
    return both;
}

// Sparse counts of a growing table: one sorted run per tile, merged when two neighbours are of similar length,
// so that memory follows the occupied cells and not the rows.
class SparseTally {
  public:
    void add(SparseCounts run) {
        runs_.push_back(std::move(run));
        while (runs_.size() > 1 && runs_[runs_.size() - 2].cells.size() <= 2 * runs_.back().cells.size()) fold();
    }

    SparseCounts finish() {
        while (runs_.size() > 1) fold();
        return runs_.empty() ? SparseCounts{} : std::move(runs_.front());
    }

  private:
    void fold() {
        SparseCounts last = std::move(runs_.back());
        runs_.pop_back();
        runs_.back() = merge(runs_.back(), last);
    }

    std::vector<SparseCounts> runs_;
};

}  // namespace hedgerow
