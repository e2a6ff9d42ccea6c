// Blocks: marginals of a model's leaves, each with a precision, as least squares over noisy marginals needs them.
//
// Marginals that come from one distribution agree wherever they overlap; noisy ones do not. `project` takes a vector
// of weighted blocks to the nearest one whose blocks agree. Functions of the attributes S of one block split into
// orthogonal parts, one for each overlap S: what depends on S and on no smaller overlap. Agreement is the same
// condition on every part separately, so the projection is a weighted average per part, and exact.
#pragma once

#include <mutex>
#include <utility>

#include "contraction.h"

namespace hedgerow {

// large[...] += factor · small[...] for a nest whose input is the large table and whose output the small one.
inline void add_along(const Nest& nest, const double* small, double* large, double factor = 1) {
    Odometer odometer(nest);
    const int64_t extent = nest.inner.extent;
    do {
        for (int64_t t = 0; t < nest.step.extent; ++t) {
            const double* from = small + odometer.place[1] + t * nest.step.strides[1];
            double* to = large + odometer.place[0] + t * nest.step.strides[0];
            if (nest.sums_row) {
                for (int64_t j = 0; j < extent; ++j) to[j] += factor * from[0];
            } else {
                for (int64_t j = 0; j < extent; ++j) to[j] += factor * from[j];
            }
        }
    } while (odometer.advance());
}

class Blocks {
 public:
    // Each block is (leaf, axes). `precisions` are 1/σ; blocks with precision 0 take no part in `project`.
    // `overlaps` must be closed under intersection and sorted by number of axes.
    Blocks(const std::vector<int64_t>& sizes, const std::vector<Axes>& leaves,
           const std::vector<std::pair<int, Axes>>& blocks, std::vector<double> precisions,
           const std::vector<Axes>& overlaps)
        : precisions_(std::move(precisions)) {
        check_sizes(sizes);
        if (precisions_.size() != blocks.size()) throw std::invalid_argument("one precision per block is needed");
        std::vector<int64_t> leaf_place;
        for (const Axes& leaf : leaves) {
            check_axes(leaf, sizes);
            leaf_place.push_back(leaf_cells);
            leaf_cells = checked_sum(leaf_cells, cells(leaf, sizes), "cells of all leaves");
        }
        for (const Axes& overlap : overlaps) {
            check_axes(overlap, sizes);
            overlap_cells_.push_back(cells(overlap, sizes));
        }
        members_.resize(overlaps.size());
        for (size_t b = 0; b < blocks.size(); ++b) {
            const auto& [leaf, axes] = blocks[b];
            check_axes(axes, sizes);
            Block block;
            block.leaf_place = leaf_place[checked_index(leaf, leaves.size(), "a leaf")];
            if (!std::includes(leaves[leaf].begin(), leaves[leaf].end(), axes.begin(), axes.end()))
                throw std::invalid_argument("a block's axes must be among those of its leaf");
            block.place = block_cells;
            block.count = cells(axes, sizes);
            block.nest = Nest({leaves[leaf]}, axes, sizes);
            if (precisions_.at(b) > 0) find_parts(block, axes, overlaps, sizes, static_cast<int>(b));
            block_cells = checked_sum(block_cells, block.count, "cells of all blocks");
            blocks_.push_back(std::move(block));
        }
    }

    // The blocks' cells from the leaves' marginals.
    void gather(const double* marginals, double* out) const {
        for (const Block& block : blocks_) {
            const double* leaf = marginals + block.leaf_place;
            contract(block.nest, &leaf, out + block.place, block.count);
        }
    }

    // Adds every block's cells to the cells of its leaf.
    void scatter(const double* values, double* leaves) const {
        for (const Block& block : blocks_) add_along(block.nest, values + block.place, leaves + block.leaf_place);
    }

    void project(double* values) {
        for (Block& block : blocks_) split(block, values + block.place);
        for (size_t o = 0; o < members_.size(); ++o) agree(o);
        for (Block& block : blocks_) merge(block, values + block.place);
    }

    int64_t leaf_cells = 0, block_cells = 0;
    std::mutex busy;  // held while `project` uses the parts' tables

 private:
    struct Part {
        int overlap;
        int source;  // the part whose table holds this one's sums, −1 for the block itself
        Nest nest;   // from the source's table to this one's
        std::vector<std::pair<int, Nest>> smaller;  // parts inside this one
        std::vector<double> table;
    };
    struct Block {
        int64_t leaf_place, place, count;
        Nest nest;
        std::vector<Part> parts;  // by number of axes
    };
    std::vector<double> precisions_;
    std::vector<int64_t> overlap_cells_;
    std::vector<Block> blocks_;
    std::vector<std::vector<std::pair<int, int>>> members_;  // for each overlap: (block, part)

    void find_parts(Block& block, const Axes& axes, const std::vector<Axes>& overlaps,
                    const std::vector<int64_t>& sizes, int number) {
        auto within = [](const Axes& small, const Axes& large) {
            return std::includes(large.begin(), large.end(), small.begin(), small.end());
        };
        for (size_t o = 0; o < overlaps.size(); ++o) {
            if (!within(overlaps[o], axes)) continue;
            members_[o].emplace_back(number, static_cast<int>(block.parts.size()));
            block.parts.push_back({static_cast<int>(o), -1, {}, {}, std::vector<double>(overlap_cells_[o])});
        }
        for (size_t p = 0; p < block.parts.size(); ++p) {
            Part& part = block.parts[p];
            const Axes& own = overlaps[part.overlap];
            for (size_t q = 0; q < p; ++q) {
                const Axes& other = overlaps[block.parts[q].overlap];
                if (within(other, own)) part.smaller.emplace_back(static_cast<int>(q), Nest({own}, other, sizes));
            }
            const Axes* source = &axes;
            for (size_t q = p + 1; q < block.parts.size(); ++q) {
                const Axes& other = overlaps[block.parts[q].overlap];
                if (within(own, other) && cells(other, sizes) < cells(*source, sizes)) {
                    source = &other;
                    part.source = static_cast<int>(q);
                }
            }
            part.nest = Nest({*source}, own, sizes);
        }
    }

    // Every part's table becomes the mean of the block's values over the other axes, less the smaller parts.
    void split(Block& block, const double* values) {
        for (size_t p = block.parts.size(); p-- > 0;) {
            Part& part = block.parts[p];
            const double* source = part.source < 0 ? values : block.parts[part.source].table.data();
            contract(part.nest, &source, part.table.data(), static_cast<int64_t>(part.table.size()));
        }
        for (Part& part : block.parts) {
            const double share = static_cast<double>(part.table.size()) / static_cast<double>(block.count);
            for (double& cell : part.table) cell *= share;
            for (auto& [q, nest] : part.smaller) add_along(nest, block.parts[q].table.data(), part.table.data(), -1);
        }
    }

    // The part of one overlap in every block becomes the change that makes the blocks agree on it.
    void agree(size_t overlap) {
        const auto& members = members_[overlap];
        if (members.size() < 2) {
            for (const auto& [b, p] : members) {
                auto& table = blocks_[b].parts[p].table;
                std::fill(table.begin(), table.end(), 0.0);
            }
            return;
        }
        const int64_t count = overlap_cells_[overlap];
        std::vector<double> common(count, 0.0);
        double weight = 0;
        for (const auto& [b, p] : members) {
            const double precision = precisions_[b];
            const double* table = blocks_[b].parts[p].table.data();
            for (int64_t c = 0; c < count; ++c) common[c] += precision * table[c];
            weight += precision * precision * static_cast<double>(count) / static_cast<double>(blocks_[b].count);
        }
        for (const auto& [b, p] : members) {
            const double share = static_cast<double>(count) / static_cast<double>(blocks_[b].count);
            const double factor = precisions_[b] * share / weight;
            double* table = blocks_[b].parts[p].table.data();
            for (int64_t c = 0; c < count; ++c) table[c] = factor * common[c] - table[c];
        }
    }

    // Adds the changes of all parts: small parts into the larger ones that contain them, those into the block.
    void merge(Block& block, double* values) {
        for (size_t p = 0; p < block.parts.size(); ++p) {
            const Part& part = block.parts[p];
            double* target = part.source < 0 ? values : block.parts[part.source].table.data();
            add_along(part.nest, part.table.data(), target);
        }
    }
};

}  // namespace hedgerow
