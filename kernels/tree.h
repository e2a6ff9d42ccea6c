// Public trees over the attributes: which leaf a row reaches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "columns.h"

namespace hedgerow {

// Node i splits on attribute split[i] and sends code c to node child[i] + c; a leaf has split −1 and child[i] is
// its number. Every row takes as many steps as the deepest leaf is deep, and a leaf steps to itself over a column
// of zeros: rows walk side by side, without a branch.
class Tree {
  public:
    Tree(const std::int32_t *split, const std::int64_t *child, std::size_t nodes,
         const std::vector<std::uint64_t> &sizes) {
        if (nodes == 0 || nodes >= (std::size_t{1} << 31)) throw std::invalid_argument("a tree needs 1 to 2^31 nodes");
        std::vector<std::uint32_t> slot(sizes.size(), 0);
        std::vector<std::size_t> depth(nodes, 0);
        for (std::size_t node = 0; node < nodes; ++node) {
            depth_ = std::max(depth_, depth[node]);
            if (split[node] < 0) {
                nodes_.push_back({static_cast<std::uint32_t>(node), 0, static_cast<std::uint32_t>(child[node])});
                continue;
            }
            const auto attribute = static_cast<std::size_t>(split[node]);
            const auto first = static_cast<std::uint64_t>(child[node]);
            if (attribute >= sizes.size() || first <= node || first >= nodes || sizes[attribute] > nodes - first)
                throw std::invalid_argument("a tree's children must come after their parent and inside the tree");
            if (slot[attribute] == 0) {
                used_.push_back(attribute);
                slot[attribute] = static_cast<std::uint32_t>(used_.size());
            }
            for (std::uint64_t code = 0; code < sizes[attribute]; ++code)
                depth[first + code] = std::max(depth[first + code], depth[node] + 1);  // parents may share children
            nodes_.push_back({static_cast<std::uint32_t>(first), slot[attribute], 0});
        }
    }

    // The attributes that some node splits on.
    const std::vector<std::size_t> &used() const { return used_; }

    // Leaf numbers of rows [first, first + rows), whose codes are below their sizes; `codes` is working space.
    template <class Index>
    void find_leaves(const std::vector<Column> &columns, std::size_t first, std::size_t rows,
                     std::vector<std::uint32_t> &codes, Index *leaves) const {
        codes.assign((used_.size() + 1) * WALKERS, 0);
        for (std::size_t done = 0; done < rows; done += WALKERS)
            walk(columns, first + done, std::min(WALKERS, rows - done), codes.data(), leaves + done);
    }

  private:
    static constexpr std::size_t WALKERS = 512;
    struct Node {
        std::uint32_t child, slot, leaf;
    };

    template <class Index>
    void walk(const std::vector<Column> &columns, std::size_t first, std::size_t rows, std::uint32_t *codes,
              Index *leaves) const {
        for (std::size_t slot = 1; slot <= used_.size(); ++slot)
            with_codes(columns[used_[slot - 1]],
                       [&](const auto *source) { std::copy_n(source + first, rows, codes + slot * WALKERS); });
        std::uint32_t at[WALKERS] = {};
        for (std::size_t step = 0; step < depth_; ++step)
            for (std::size_t row = 0; row < rows; ++row) {
                const Node &node = nodes_[at[row]];
                at[row] = node.child + codes[node.slot * WALKERS + row];
            }
        for (std::size_t row = 0; row < rows; ++row) leaves[row] = static_cast<Index>(nodes_[at[row]].leaf);
    }

    std::vector<Node> nodes_;
    std::vector<std::size_t> used_;
    std::size_t depth_ = 0;
};

}  // namespace hedgerow
