// Sizes that never wrap. Cells of a table, offsets into a flat vector, rows times columns: whatever is computed from an
// argument is computed here, before anything is allocated or addressed, and refused in one sentence where it is more
// than a table can have. Arguments may come from a file that a stranger wrote.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace hedgerow {

// Cells of all tables of one object together. What fits the machine is the allocator's answer; this keeps every
// product and sum of such numbers, times the bytes of a cell, far from 2^63.
constexpr int64_t MOST_CELLS = int64_t{1} << 40;
// A code has four bytes at most.
constexpr int64_t MOST_VALUES = int64_t{1} << 32;
// Neighbours are kept as a square of bits.
constexpr int64_t MOST_ATTRIBUTES = int64_t{1} << 17;

[[noreturn]] inline void refuse_size(const char* what, int64_t most) {
    throw std::length_error(std::string(what) + ": more than " + std::to_string(most) + ", or less than nothing");
}

inline int64_t checked_size(int64_t size, const char* what, int64_t most) {
    if (size < 0 || size > most) refuse_size(what, most);
    return size;
}

inline int64_t checked_product(int64_t left, int64_t right, const char* what, int64_t most = MOST_CELLS) {
    const bool wide = (left | right) >> 31;  // a division only where the product may not fit
    if (left < 0 || right < 0 || (wide && right && left > INT64_MAX / right)) refuse_size(what, most);
    return checked_size(left * right, what, most);
}

inline int64_t checked_sum(int64_t left, int64_t right, const char* what, int64_t most = MOST_CELLS) {
    if (left < 0 || right < 0 || left > INT64_MAX - right) refuse_size(what, most);
    return checked_size(left + right, what, most);
}

// Cells of a table of this shape; every side has at least one value.
template <class Size>
int64_t checked_cells(const std::vector<Size>& shape, const char* what, int64_t most = MOST_CELLS) {
    int64_t cells = 1;
    for (const Size size : shape) {
        if (size < 1) throw std::invalid_argument(std::string(what) + ": every attribute needs at least one value");
        if (static_cast<uint64_t>(size) > static_cast<uint64_t>(most)) refuse_size(what, most);
        cells = checked_product(cells, static_cast<int64_t>(size), what, most);
    }
    return cells;
}

// An index into `count` things, from a number that may be anything.
inline size_t checked_index(int64_t index, size_t count, const char* what) {
    if (index < 0 || static_cast<uint64_t>(index) >= count)
        throw std::out_of_range(std::string(what) + ": number " + std::to_string(index) + " of " +
                                std::to_string(count));
    return static_cast<size_t>(index);
}

}  // namespace hedgerow
