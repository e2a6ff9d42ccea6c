// What rows are shaped to: the wanted distribution of a marginal.
#pragma once

#include <cstdint>
#include <vector>

namespace hedgerow::records {

using Codes = std::vector<uint32_t*>;

struct Target {
    std::vector<int> columns;  // in the order of the cells' digits
    std::vector<uint32_t> sizes;
    const double* shares;  // one per cell, non-negative, summing to 1
    int64_t cells;
};

}  // namespace hedgerow::records
