// Public trees over the attributes: which leaf a row reaches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "count/columns.h"

namespace hedgerow::counting {

// Node i splits on attribute split[i] and sends code c to node child[i] + c; a leaf has split −1 and child[i] is
// its number. Every row takes as many steps as the deepest leaf is deep, and a leaf steps to itself over a column
// of zeros: rows walk side by side, without a branch.
class Tree {
 public:
    Tree(const int32_t* split, const int64_t* child, size_t nodes, const std::vector<uint64_t>& sizes) {
        if (nodes == 0 || nodes >= (size_t{1} << 31)) throw std::invalid_argument("a tree needs 1 to 2^31 nodes");
        std::vector<uint32_t> slot(sizes.size(), 0);
        std::vector<size_t> depth(nodes, 0);
        for (size_t node = 0; node < nodes; ++node) {
            depth_ = std::max(depth_, depth[node]);
            if (split[node] < 0) {
                nodes_.push_back({static_cast<uint32_t>(node), 0, static_cast<uint32_t>(child[node])});
                continue;
            }
            const auto attribute = static_cast<size_t>(split[node]);
            const auto first = static_cast<uint64_t>(child[node]);
            if (attribute >= sizes.size() || first <= node || first >= nodes || sizes[attribute] > nodes - first)
                throw std::invalid_argument("a tree's children must come after their parent and inside the tree");
            if (slot[attribute] == 0) {
                used_.push_back(attribute);
                slot[attribute] = static_cast<uint32_t>(used_.size());
            }
            for (uint64_t code = 0; code < sizes[attribute]; ++code)
                depth[first + code] = std::max(depth[first + code], depth[node] + 1);  // parents may share children
            nodes_.push_back({static_cast<uint32_t>(first), slot[attribute], 0});
        }
    }

    // The attributes that some node splits on.
    const std::vector<size_t>& used() const { return used_; }

    // Leaf numbers of rows [first, first + rows), whose codes are below their sizes; `codes` is working space.
    template <class Index>
    void find_leaves(const std::vector<Column>& columns, size_t first, size_t rows, std::vector<uint32_t>& codes,
                     Index* leaves) const {
        codes.assign((used_.size() + 1) * WALKERS, 0);
        for (size_t done = 0; done < rows; done += WALKERS)
            walk(columns, first + done, std::min(WALKERS, rows - done), codes.data(), leaves + done);
    }

 private:
    static constexpr size_t WALKERS = 512;
    struct Node {
        uint32_t child, slot, leaf;
    };

    template <class Index>
    void walk(const std::vector<Column>& columns, size_t first, size_t rows, uint32_t* codes, Index* leaves) const {
        for (size_t slot = 1; slot <= used_.size(); ++slot)
            with_codes(columns[used_[slot - 1]],
                       [&](const auto* source) { std::copy_n(source + first, rows, codes + slot * WALKERS); });
        uint32_t at[WALKERS] = {};
        for (size_t step = 0; step < depth_; ++step)
            for (size_t row = 0; row < rows; ++row) {
                const Node& node = nodes_[at[row]];
                at[row] = node.child + codes[node.slot * WALKERS + row];
            }
        for (size_t row = 0; row < rows; ++row) leaves[row] = static_cast<Index>(nodes_[at[row]].leaf);
    }

    std::vector<Node> nodes_;
    std::vector<size_t> used_;
    size_t depth_ = 0;
};

}  // namespace hedgerow::counting
