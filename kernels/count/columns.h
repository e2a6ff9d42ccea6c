// Narrow columns of codes, and how they become cell numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace hedgerow::counting {

// Rows are taken in tiles (columns stay in cache while many queries read them) and, within a tile, in blocks
// (cell numbers stay in the first-level cache until they are tallied).
constexpr size_t TILE_ROWS = size_t{1} << 18;
constexpr size_t BLOCK_ROWS = size_t{1} << 12;

// Codes of `width` bytes each, all of them below `reach` where it is known.
struct Column {
    const void* codes;
    size_t width;
    uint64_t reach = 0;
};

// Bytes that hold every code below `size`.
inline size_t width_for(uint64_t size) { return size <= (uint64_t{1} << 8) ? 1 : size <= (uint64_t{1} << 16) ? 2 : 4; }

template <class Use> void with_codes(const Column& column, Use&& use) {
    switch (column.width) {
        case 1:
            use(static_cast<const uint8_t*>(column.codes));
            break;
        case 2:
            use(static_cast<const uint16_t*>(column.codes));
            break;
        default:
            use(static_cast<const uint32_t*>(column.codes));
            break;
    }
}

// One more than the largest code.
inline uint64_t reach_of(const Column& column, size_t rows) {
    uint64_t reach = 0;
    with_codes(column, [&](const auto* codes) {
        using Code = std::remove_cv_t<std::remove_pointer_t<decltype(codes)>>;
        Code most = 0;
        for (size_t row = 0; row < rows; ++row) most = std::max<Code>(most, codes[row]);
        reach = rows ? uint64_t{most} + 1 : 0;
    });
    return reach;
}

// A code that a query does not know would be counted outside its table.
inline const Column& require_below(const Column& column, uint64_t size) {
    if (column.reach > size) throw std::invalid_argument("a column has a code outside the size that a query declares");
    return column;
}

// The first column: cell ← code.
template <class Cell> void first_digit(const Column& column, size_t first, size_t rows, Cell* cells) {
    with_codes(column, [&](const auto* codes) {
        codes += first;
        for (size_t row = 0; row < rows; ++row) cells[row] = static_cast<Cell>(codes[row]);
    });
}

// One more column, which now runs fastest: cell ← prefix · size + code. The prefix may be narrower than the cell
// (16 · 16 → 32 bits is a cheap vector multiplication on every machine, 32 · 32 is not); it may also be `cells`.
template <class Prefix, class Cell>
void append_digit(const Prefix* prefix, const Column& column, uint64_t size, size_t first, size_t rows, Cell* cells) {
    const auto radix = static_cast<Prefix>(size);
    with_codes(column, [&](const auto* codes) {
        codes += first;
        for (size_t row = 0; row < rows; ++row)
            cells[row] = static_cast<Cell>(Cell{prefix[row]} * Cell{radix} + static_cast<Cell>(codes[row]));
    });
}

// Cell numbers over `shape`, in row-major order, for rows [first, first + rows), rows ≤ BLOCK_ROWS.
template <class Cell>
void number_cells(const std::vector<Column>& columns, const std::vector<uint64_t>& shape, size_t first, size_t rows,
                  Cell* cells) {
    constexpr uint64_t SHORT = uint64_t{1} << 16;
    if (columns.empty()) {
        std::fill_n(cells, rows, Cell{0});
        return;
    }
    size_t done = 1;
    if (sizeof(Cell) > 2 && columns.size() > 1 && shape[0] < SHORT && shape[1] < SHORT) {
        uint16_t prefix[BLOCK_ROWS];
        first_digit(columns[0], first, rows, prefix);
        uint64_t reach = shape[0];
        for (; done + 1 < columns.size() && reach * shape[done] < SHORT && shape[done + 1] < SHORT; ++done) {
            append_digit(prefix, columns[done], shape[done], first, rows, prefix);
            reach *= shape[done];
        }
        append_digit(prefix, columns[done], shape[done], first, rows, cells);
        ++done;
    } else first_digit(columns[0], first, rows, cells);
    for (; done < columns.size(); ++done) append_digit(cells, columns[done], shape[done], first, rows, cells);
}

}  // namespace hedgerow::counting
