// One query over the tiles of a table: number the cells of a block of rows, tally them, answer at the end.
#pragma once

#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "count/tally.h"
#include "count/tile.h"

namespace hedgerow::counting {

using Answer = std::variant<Counts, SparseCounts>;

// Working space of one thread, reused by all of its queries.
struct Workspace {
    Lanes lanes;
    std::tuple<std::vector<uint16_t>, std::vector<uint32_t>, std::vector<uint64_t>> block;
    std::tuple<Sorter<uint16_t>, Sorter<uint32_t>, Sorter<uint64_t>> sorter;
    std::vector<uint32_t> tree_codes;
};

// Counts through a map of cells (−1: dropped).
inline Answer fold(const Answer& base, const Map& blocks, uint64_t dense_cells) {
    std::vector<std::pair<int64_t, int64_t>> occupied;
    int64_t last = 0;
    for (size_t cell = 0; cell < blocks.size; ++cell) last = std::max(last, blocks.targets[cell]);
    const bool sparse = static_cast<uint64_t>(last) >= dense_cells;
    Counts dense(sparse ? 0 : checked_size(last, "blocks that are counted one by one", MOST_DENSE) + 1, 0);
    const auto add = [&](size_t cell, int64_t count) {
        const int64_t block = blocks.targets[cell];
        if (block < 0 || count == 0) return;
        if (sparse) occupied.emplace_back(block, count);
        else dense[block] += count;
    };
    if (const auto* counts = std::get_if<Counts>(&base)) {
        for (size_t cell = 0; cell < counts->size(); ++cell) add(cell, (*counts)[cell]);
    } else {
        const auto& held = std::get<SparseCounts>(base);
        for (size_t i = 0; i < held.cells.size(); ++i) add(held.cells[i], held.counts[i]);
    }
    if (!sparse) return dense;
    std::sort(occupied.begin(), occupied.end());
    SparseCounts folded;
    for (const auto& [block, count] : occupied) {
        if (folded.cells.empty() || folded.cells.back() != block) {
            folded.cells.push_back(block);
            folded.counts.push_back(0);
        }
        folded.counts.back() += count;
    }
    return folded;
}

// How rows become cells of a marginal.
class MarginalCells {
 public:
    explicit MarginalCells(const MarginalPlan& plan) : plan_(plan) {}

    uint64_t count() const { return cells_of(plan_.shape); }

    void begin(Tile& tile) {
        columns_.clear();
        for (size_t i = 0; i < plan_.attributes.size(); ++i)
            columns_.push_back(require_below(tile.column(plan_.attributes[i], plan_.levels[i]), plan_.shape[i]));
    }

    template <class Index> void number(size_t first, size_t rows, Index* cells, Workspace&) const {
        number_cells(columns_, plan_.shape, first, rows, cells);
    }

    Answer answer(Answer counts, uint64_t dense_cells) const {
        return plan_.blocks ? fold(counts, *plan_.blocks, dense_cells) : std::move(counts);
    }

 private:
    const MarginalPlan& plan_;
    std::vector<Column> columns_;
};

// How rows become leaves of a tree, or leaves and labels.
class TreeCells {
 public:
    explicit TreeCells(const TreePlan& plan) : plan_(plan) {}

    uint64_t count() const { return cells_of({plan_.leaves, plan_.label_size}); }

    void begin(Tile& tile) {
        columns_.clear();
        columns_.resize(plan_.attributes.size());
        for (const size_t i : plan_.tree.used())
            columns_[i] = require_below(tile.column(plan_.attributes[i], {}), plan_.sizes[i]);
        if (plan_.label) label_ = require_below(tile.column(*plan_.label, {}), plan_.label_size);
    }

    template <class Index> void number(size_t first, size_t rows, Index* cells, Workspace& space) const {
        plan_.tree.find_leaves(columns_, first, rows, space.tree_codes, cells);
        if (plan_.label) append_digit(cells, label_, plan_.label_size, first, rows, cells);
    }

    Answer answer(Answer counts, uint64_t) const { return counts; }

 private:
    const TreePlan& plan_;
    std::vector<Column> columns_;
    Column label_{};
};

// A query under way. Up to `dense_cells` cells are counted in place; beyond that only occupied cells are kept.
template <class Cells> class Count {
 public:
    Count(Cells numbered, uint64_t dense_cells)
        : numbered_(std::move(numbered)), cells_(numbered_.count()), dense_cells_(dense_cells) {
        if (sparse()) return;
        checked_size(static_cast<int64_t>(cells_), "cells that are counted one by one", MOST_DENSE);
        counts_.resize(cells_);
        std::memset(counts_.data(), 0, cells_ * sizeof(int64_t));
    }

    void add(Tile& tile, Workspace& space) {
        numbered_.begin(tile);
        if (cells_ <= (uint64_t{1} << 16)) add<uint16_t>(tile.rows(), space);
        else if (cells_ <= (uint64_t{1} << 32)) add<uint32_t>(tile.rows(), space);
        else add<uint64_t>(tile.rows(), space);
    }

    Answer finish() {
        Answer counts = sparse() ? Answer(occupied_.finish()) : Answer(std::move(counts_));
        return numbered_.answer(std::move(counts), dense_cells_);
    }

 private:
    bool sparse() const { return cells_ > dense_cells_; }

    template <class Index> void add(size_t rows, Workspace& space) {
        if (sparse()) add_sparse<Index>(rows, space);
        else if (const int lanes = Lanes::worthwhile(cells_, rows)) {
            space.lanes.begin(cells_, lanes);
            each_block<Index>(rows, space, [&](const Index* cells, size_t n) { space.lanes.add(cells, n); });
            space.lanes.finish(counts_.data());
        } else
            each_block<Index>(rows, space, [&](const Index* cells, size_t n) {
                for (size_t row = 0; row < n; ++row) ++counts_[cells[row]];
            });
    }

    template <class Index, class Use> void each_block(size_t rows, Workspace& space, Use&& use) {
        auto& cells = std::get<std::vector<Index>>(space.block);
        cells.resize(BLOCK_ROWS);
        for (size_t first = 0; first < rows; first += BLOCK_ROWS) {
            const size_t n = std::min(BLOCK_ROWS, rows - first);
            numbered_.number(first, n, cells.data(), space);
            use(cells.data(), n);
        }
    }

    template <class Index> void add_sparse(size_t rows, Workspace& space) {
        auto& sorter = std::get<Sorter<Index>>(space.sorter);
        Index* cells = sorter.keys(rows);
        for (size_t first = 0; first < rows; first += BLOCK_ROWS)
            numbered_.number(first, std::min(BLOCK_ROWS, rows - first), cells + first, space);
        int bits = 0;
        while ((cells_ - 1) >> bits) ++bits;
        occupied_.add(sorter.sort(bits));
    }

    Cells numbered_;
    uint64_t cells_, dense_cells_;
    Counts counts_;
    SparseTally occupied_;
};

}  // namespace hedgerow::counting
