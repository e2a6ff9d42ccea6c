// Tables over some of the attributes: their axes and their cells.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "common/sizes.h"

namespace hedgerow::model {

using Axes = std::vector<int>;

inline void check_sizes(const std::vector<int64_t>& sizes) {
    checked_size(static_cast<int64_t>(sizes.size()), "attributes", MOST_ATTRIBUTES);
    for (int64_t size : sizes)
        if (checked_size(size, "values of an attribute", MOST_VALUES) == 0)
            throw std::invalid_argument("every attribute needs at least one value");
}

// Axes are numbers of attributes, distinct and in order.
inline void check_axes(const Axes& axes, const std::vector<int64_t>& sizes) {
    for (size_t i = 0; i < axes.size(); ++i) {
        checked_index(axes[i], sizes.size(), "an axis");
        if (i && axes[i] <= axes[i - 1]) throw std::invalid_argument("axes must be distinct and in ascending order");
    }
}

// Cells of a table whose axes and sizes were checked.
inline int64_t cells(const Axes& axes, const std::vector<int64_t>& sizes) {
    int64_t count = 1;
    for (int axis : axes) count = checked_product(count, sizes[axis], "cells of a table");
    return count;
}

}  // namespace hedgerow::model
