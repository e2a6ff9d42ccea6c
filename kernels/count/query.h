// Queries as the kernel sees them: which columns, and how a row's codes become a cell number.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/sizes.h"
#include "count/tree.h"

namespace hedgerow::counting {

// Cells that can be numbered, where the occupied ones alone are held; and cells that are held one by one.
constexpr int64_t MOST_NUMBERED = int64_t{1} << 62, MOST_DENSE = int64_t{1} << 27;

inline uint64_t cells_of(const std::vector<uint64_t>& shape) {
    return static_cast<uint64_t>(checked_cells(shape, "a query's cells (2^62 can be numbered)", MOST_NUMBERED));
}

// A public map of codes or cells, borrowed from its owner.
struct Map {
    const int64_t* targets;
    size_t size;
};

// Row-major over `shape`, codes seen through `levels`, cells folded through `blocks` (−1: counted nowhere).
struct MarginalPlan {
    std::vector<size_t> attributes;
    std::vector<uint64_t> shape;
    std::vector<std::optional<Map>> levels;
    std::optional<Map> blocks;
};

// A tree over some attributes, with their sizes; the cell is leaf · label size + label.
struct TreePlan {
    std::vector<size_t> attributes;
    std::vector<uint64_t> sizes;
    Tree tree;
    std::optional<size_t> label;
    uint64_t leaves, label_size;
};

}  // namespace hedgerow::counting
