// Noisy marginals of a model's leaves, each with a precision, as least squares needs them.
//
// Marginals that come from one distribution agree wherever they overlap; noisy ones do not. `project` takes a vector
// of weighted marginals to the nearest one whose marginals agree. Functions of the attributes of one marginal split
// into orthogonal parts, one for each overlap S: what depends on S and on no smaller overlap. Agreement is the same
// condition on every part separately, so the projection is a weighted average per part, and exact.
#pragma once

#include <mutex>
#include <utility>

#include "model/contract.h"

namespace hedgerow::model {

class Marginals {
 public:
    // Each marginal is (leaf, axes). `precisions` are 1/σ; marginals with precision 0 take no part in `project`.
    // `overlaps` must be closed under intersection and sorted by number of axes.
    Marginals(const std::vector<int64_t>& sizes, const std::vector<Axes>& leaves,
              const std::vector<std::pair<int, Axes>>& marginals, std::vector<double> precisions,
              const std::vector<Axes>& overlaps)
        : precisions_(std::move(precisions)) {
        check_sizes(sizes);
        if (precisions_.size() != marginals.size()) throw std::invalid_argument("one precision per marginal is needed");
        std::vector<int64_t> leaf_offset;
        for (const Axes& leaf : leaves) {
            check_axes(leaf, sizes);
            leaf_offset.push_back(leaf_cells);
            leaf_cells = checked_sum(leaf_cells, cells(leaf, sizes), "cells of all leaves");
        }
        for (const Axes& overlap : overlaps) {
            check_axes(overlap, sizes);
            overlap_cells_.push_back(cells(overlap, sizes));
        }
        members_.resize(overlaps.size());
        for (size_t b = 0; b < marginals.size(); ++b) {
            const auto& [leaf, axes] = marginals[b];
            check_axes(axes, sizes);
            Marginal marginal;
            marginal.leaf_offset = leaf_offset[checked_index(leaf, leaves.size(), "a leaf")];
            if (!std::includes(leaves[leaf].begin(), leaves[leaf].end(), axes.begin(), axes.end()))
                throw std::invalid_argument("a marginal's axes must be among those of its leaf");
            marginal.offset = marginal_cells;
            marginal.count = cells(axes, sizes);
            marginal.nest = LoopNest({leaves[leaf]}, axes, sizes);
            if (precisions_.at(b) > 0) find_parts(marginal, axes, overlaps, sizes, static_cast<int>(b));
            marginal_cells = checked_sum(marginal_cells, marginal.count, "cells of all marginals");
            marginals_.push_back(std::move(marginal));
        }
    }

    // The marginals' cells, summed from the cells of their leaves.
    void gather(const double* leaves, double* out) const {
        for (const Marginal& marginal : marginals_) {
            const double* leaf = leaves + marginal.leaf_offset;
            contract(marginal.nest, &leaf, out + marginal.offset, marginal.count);
        }
    }

    // Adds every marginal's cells to the cells of its leaf.
    void scatter(const double* values, double* leaves) const {
        for (const Marginal& marginal : marginals_)
            add_along(marginal.nest, values + marginal.offset, leaves + marginal.leaf_offset);
    }

    void project(double* values) {
        for (Marginal& marginal : marginals_) split(marginal, values + marginal.offset);
        for (size_t o = 0; o < members_.size(); ++o) agree(o);
        for (Marginal& marginal : marginals_) merge(marginal, values + marginal.offset);
    }

    int64_t leaf_cells = 0, marginal_cells = 0;
    std::mutex busy;  // held while `project` uses the parts' tables

 private:
    struct Part {
        int overlap;
        int source;     // the part whose table holds this one's sums, −1 for the marginal itself
        LoopNest nest;  // from the source's table to this one's
        std::vector<std::pair<int, LoopNest>> smaller;  // parts inside this one
        std::vector<double> table;
    };
    struct Marginal {
        int64_t leaf_offset, offset, count;
        LoopNest nest;
        std::vector<Part> parts;  // by number of axes
    };
    std::vector<double> precisions_;
    std::vector<int64_t> overlap_cells_;
    std::vector<Marginal> marginals_;
    std::vector<std::vector<std::pair<int, int>>> members_;  // for each overlap: (marginal, part)

    void find_parts(Marginal& marginal, const Axes& axes, const std::vector<Axes>& overlaps,
                    const std::vector<int64_t>& sizes, int number) {
        auto inside = [](const Axes& small, const Axes& large) {
            return std::includes(large.begin(), large.end(), small.begin(), small.end());
        };
        for (size_t o = 0; o < overlaps.size(); ++o) {
            if (!inside(overlaps[o], axes)) continue;
            members_[o].emplace_back(number, static_cast<int>(marginal.parts.size()));
            marginal.parts.push_back({static_cast<int>(o), -1, {}, {}, std::vector<double>(overlap_cells_[o])});
        }
        for (size_t p = 0; p < marginal.parts.size(); ++p) {
            Part& part = marginal.parts[p];
            const Axes& own = overlaps[part.overlap];
            for (size_t q = 0; q < p; ++q) {
                const Axes& other = overlaps[marginal.parts[q].overlap];
                if (inside(other, own)) part.smaller.emplace_back(static_cast<int>(q), LoopNest({own}, other, sizes));
            }
            const Axes* source = &axes;
            for (size_t q = p + 1; q < marginal.parts.size(); ++q) {
                const Axes& other = overlaps[marginal.parts[q].overlap];
                if (inside(own, other) && cells(other, sizes) < cells(*source, sizes)) {
                    source = &other;
                    part.source = static_cast<int>(q);
                }
            }
            part.nest = LoopNest({*source}, own, sizes);
        }
    }

    // Every part's table becomes the mean of the marginal's values over the other axes, less the smaller parts.
    void split(Marginal& marginal, const double* values) {
        for (size_t p = marginal.parts.size(); p-- > 0;) {
            Part& part = marginal.parts[p];
            const double* source = part.source < 0 ? values : marginal.parts[part.source].table.data();
            contract(part.nest, &source, part.table.data(), static_cast<int64_t>(part.table.size()));
        }
        for (Part& part : marginal.parts) {
            const double share = static_cast<double>(part.table.size()) / static_cast<double>(marginal.count);
            for (double& cell : part.table) cell *= share;
            for (auto& [q, nest] : part.smaller) add_along(nest, marginal.parts[q].table.data(), part.table.data(), -1);
        }
    }

    // The part of one overlap in every marginal becomes the change that makes the marginals agree on it.
    void agree(size_t overlap) {
        const auto& members = members_[overlap];
        if (members.size() < 2) {
            for (const auto& [b, p] : members) {
                auto& table = marginals_[b].parts[p].table;
                std::fill(table.begin(), table.end(), 0.0);
            }
            return;
        }
        const int64_t count = overlap_cells_[overlap];
        std::vector<double> common(count, 0.0);
        double weight = 0;
        for (const auto& [b, p] : members) {
            const double precision = precisions_[b];
            const double* table = marginals_[b].parts[p].table.data();
            for (int64_t c = 0; c < count; ++c) common[c] += precision * table[c];
            weight += precision * precision * static_cast<double>(count) / static_cast<double>(marginals_[b].count);
        }
        for (const auto& [b, p] : members) {
            const double share = static_cast<double>(count) / static_cast<double>(marginals_[b].count);
            const double factor = precisions_[b] * share / weight;
            double* table = marginals_[b].parts[p].table.data();
            for (int64_t c = 0; c < count; ++c) table[c] = factor * common[c] - table[c];
        }
    }

    // Adds the changes of all parts: small parts into the larger ones that contain them, those into the marginal.
    void merge(Marginal& marginal, double* values) {
        for (size_t p = 0; p < marginal.parts.size(); ++p) {
            const Part& part = marginal.parts[p];
            double* target = part.source < 0 ? values : marginal.parts[part.source].table.data();
            add_along(part.nest, part.table.data(), target);
        }
    }
};

}  // namespace hedgerow::model
