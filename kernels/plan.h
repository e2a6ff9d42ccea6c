// Queries as the kernel sees them: which columns, and how a row's codes become a cell number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "columns.h"
#include "tree.h"

namespace hedgerow {

constexpr std::uint64_t MOST_CELLS = std::uint64_t{1} << 62;

inline std::uint64_t cells_of(const std::vector<std::uint64_t> &shape) {
    std::uint64_t cells = 1;
    for (const std::uint64_t size : shape) {
        if (size == 0) throw std::invalid_argument("every attribute of a query needs at least one value");
        if (size > MOST_CELLS / cells) throw std::invalid_argument("a query has more than 2^62 cells");
        cells *= size;
    }
    return cells;
}

// A public map of codes or cells, borrowed from its owner.
struct Map {
    const std::int64_t *targets;
    std::size_t size;
};

// Row-major over `shape`, codes seen through `levels`, cells folded through `blocks` (−1: counted nowhere).
struct MarginalPlan {
    std::vector<std::size_t> places;
    std::vector<std::uint64_t> shape;
    std::vector<std::optional<Map>> levels;
    std::optional<Map> blocks;
};

// A tree over the columns at `places`; the cell is leaf · label size + label.
struct TreePlan {
    std::vector<std::size_t> places;
    Tree tree;
    std::optional<std::size_t> label;
    std::uint64_t leaves, label_size;
};

struct Table {
    std::vector<Column> columns;
    std::size_t rows;

    const Column &at(std::size_t place) const {
        if (place >= columns.size()) throw std::invalid_argument("a query names a column that the table lacks");
        return columns[place];
    }
};

// One tile of the table, raw or recoded. Queries that share a level map share the recoded tile.
class Tile {
  public:
    explicit Tile(const Table &table) : table_(table) {}

    void move_to(std::size_t first, std::size_t rows) {
        first_ = first;
        rows_ = rows;
        for (auto &[key, recoded] : recoded_) recoded.ready = false;
    }

    std::size_t rows() const { return rows_; }

    // The column at `place`, seen through `level` if there is one; its row 0 is the tile's first row.
    Column column(std::size_t place, const std::optional<Map> &level) {
        const Column &raw = table_.at(place);
        const Column here{static_cast<const std::uint8_t *>(raw.codes) + first_ * raw.width, raw.width};
        if (!level) return here;
        auto found = recoded_.find({place, level->targets});
        if (found == recoded_.end())
            found = recoded_.emplace(std::make_pair(place, level->targets), Recoded{Recoding(*level)}).first;
        Recoded &recoded = found->second;
        if (!recoded.ready) recoded.current = recoded.recoding.apply(here, rows_, recoded.buffer);
        recoded.ready = true;
        return recoded.current;
    }

  private:
    // Codes are looked up in a table of the narrowest type.
    class Recoding {
      public:
        explicit Recoding(const Map &map) : targets_(map.targets, map.targets + map.size) {
            width_ = width_for(std::uint64_t{*std::max_element(targets_.begin(), targets_.end())} + 1);
        }

        Column apply(const Column &source, std::size_t rows, std::vector<std::uint8_t> &buffer) const {
            buffer.resize(rows * width_);
            with_codes(source, [&](const auto *codes) {
                switch (width_) {
                case 1: look_up(codes, rows, buffer.data()); break;
                case 2: look_up(codes, rows, reinterpret_cast<std::uint16_t *>(buffer.data())); break;
                default: look_up(codes, rows, reinterpret_cast<std::uint32_t *>(buffer.data())); break;
                }
            });
            return {buffer.data(), width_};
        }

      private:
        template <class Code, class Target> void look_up(const Code *codes, std::size_t rows, Target *targets) const {
            for (std::size_t row = 0; row < rows; ++row) targets[row] = static_cast<Target>(targets_[codes[row]]);
        }

        std::vector<std::uint32_t> targets_;
        std::size_t width_;
    };

    struct Recoded {
        Recoding recoding;
        std::vector<std::uint8_t> buffer = {};
        Column current = {};
        bool ready = false;
    };

    const Table &table_;
    std::size_t first_ = 0, rows_ = 0;
    std::map<std::pair<std::size_t, const std::int64_t *>, Recoded> recoded_;
};

}  // namespace hedgerow
