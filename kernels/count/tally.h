// Tallies of cell numbers: dense, one counter per cell, or sparse, the occupied cells alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "count/buffers.h"
#include "count/columns.h"

namespace hedgerow::counting {

// Occupied cells in ascending order, and how many rows reach each.
struct SparseCounts {
    Counts cells;
    Counts counts;
};

// Counters for one tile. Consecutive rows go to different lanes, because a counter that was just written cannot
// be read again for several cycles, and real tables repeat their favourite cell. Left at zero between uses.
class Lanes {
 public:
    // Four lanes while they fit a small cache and repay adding them up, two for larger tables, else none (0).
    static int worthwhile(uint64_t cells, size_t rows) {
        if (cells <= (1 << 14) && 4 * cells <= rows) return 4;
        return cells <= (1 << 16) && cells <= 2 * uint64_t{rows} ? 2 : 0;
    }

    void begin(size_t cells, int lanes) {
        if (lanes_ != 0) std::fill(counters_.begin(), counters_.end(), 0);  // an earlier use was broken off
        cells_ = cells;
        lanes_ = lanes;
        counters_.resize(std::max(counters_.size(), lanes * cells), 0);
    }

    template <class Index> void add(const Index* cells, size_t rows) {
        if (lanes_ == 4) add_over<4>(cells, rows);
        else add_over<2>(cells, rows);
    }

    void finish(int64_t* counts) {
        if (lanes_ == 4) add_up<4>(counts);
        else add_up<2>(counts);
        std::memset(counters_.data(), 0, lanes_ * cells_ * sizeof(uint32_t));
        lanes_ = 0;
    }

 private:
    template <int LANES, class Index> void add_over(const Index* cells, size_t rows) {
        uint32_t* lane[LANES];
        for (int i = 0; i < LANES; ++i) lane[i] = counters_.data() + i * cells_;
        size_t row = 0;
        for (; row + LANES <= rows; row += LANES)
            for (int i = 0; i < LANES; ++i) ++lane[i][cells[row + i]];
        for (; row < rows; ++row) ++lane[0][cells[row]];
    }

    template <int LANES> void add_up(int64_t* __restrict counts) const {
        const size_t cells = cells_;
        const uint32_t* __restrict lane = counters_.data();
        for (size_t cell = 0; cell < cells; ++cell) {
            uint32_t sum = 0;  // a tile has fewer than 2^32 rows
            for (int i = 0; i < LANES; ++i) sum += lane[cell + i * cells];
            counts[cell] += sum;
        }
    }

    std::vector<uint32_t> counters_;
    size_t cells_ = 0;
    int lanes_ = 0;
};

// Sorts keys below 2^bits by their digits, least significant first, and counts equal neighbours. Its buffers are
// reused from tile to tile.
template <class Key> class Sorter {
 public:
    // Room for `rows` keys, to be written before `sort`.
    Key* keys(size_t rows) {
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
        std::array<uint32_t, size_t{1} << WIDEST_DIGIT> start{};
        for (const Key key : keys_) ++start[(key >> shift) & mask];
        uint32_t before = 0;
        for (uint32_t& bucket : start) before += std::exchange(bucket, before);
        for (const Key key : keys_) spare_[start[(key >> shift) & mask]++] = key;
        keys_.swap(spare_);
    }

    // Every key overwrites the entry of its run, so that the last one stands: no branch to mispredict.
    SparseCounts run_lengths() {
        const size_t rows = keys_.size();
        if (rows == 0) return {};
        size_t runs = 0;
        for (size_t row = 0; row + 1 < rows; ++row) {
            spare_[runs] = keys_[row];
            ends_[runs] = static_cast<uint32_t>(row + 1);
            runs += keys_[row] != keys_[row + 1];
        }
        spare_[runs] = keys_[rows - 1];
        ends_[runs] = static_cast<uint32_t>(rows);
        ++runs;
        SparseCounts counts{{spare_.begin(), spare_.begin() + runs}, Counts(runs)};
        for (size_t run = 0; run < runs; ++run) counts.counts[run] = int64_t{ends_[run]} - (run ? ends_[run - 1] : 0);
        return counts;
    }

    std::vector<Key> keys_, spare_;
    std::vector<uint32_t> ends_;
};

inline SparseCounts merge(const SparseCounts& left, const SparseCounts& right) {
    SparseCounts both;
    both.cells.reserve(left.cells.size() + right.cells.size());
    both.counts.reserve(left.cells.size() + right.cells.size());
    size_t l = 0, r = 0;
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

}  // namespace hedgerow::counting
