// Queries as the kernel sees them: which columns, and how a row's codes become a cell number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "columns.h"
#include "sizes.h"
#include "tree.h"

namespace hedgerow {

// Cells that can be numbered, where the occupied ones alone are held; and cells that are held one by one.
constexpr std::int64_t MOST_NUMBERED = std::int64_t{1} << 62, MOST_DENSE = std::int64_t{1} << 27;

inline std::uint64_t cells_of(const std::vector<std::uint64_t> &shape) {
    return static_cast<std::uint64_t>(checked_cells(shape, "a query's cells (2^62 can be numbered)", MOST_NUMBERED));
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
    std::vector<std::uint64_t> sizes;
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
    explicit Tile(const Table &table) : table_(table), raw_(table.columns.size()) {}

    void move_to(std::size_t first, std::size_t rows) {
        first_ = first;
        rows_ = rows;
        std::fill(raw_.begin(), raw_.end(), Column{});
        for (auto &[key, recoded] : recoded_) recoded.ready = false;
    }

    std::size_t rows() const { return rows_; }

    // The column at `place`, seen through `level` if there is one; its row 0 is the tile's first row. Its codes are
    // looked at once a tile, so that no query has to trust them.
    Column column(std::size_t place, const std::optional<Map> &level) {
        const Column &here = raw(place);
        if (!level) return here;
        const Key key{place, level->targets, level->size};
        auto found = recoded_.find(key);
        if (found == recoded_.end())
            found = recoded_.emplace(key, Recoded{Recoding(*level)}).first;
        Recoded &recoded = found->second;
        if (!recoded.ready) recoded.current = recoded.recoding.apply(require_below(here, level->size), rows_, recoded.buffer);
        recoded.ready = true;
        return recoded.current;
    }

  private:
    using Key = std::tuple<std::size_t, const std::int64_t *, std::size_t>;  // place, and the level map's extent

    const Column &raw(std::size_t place) {
        const Column &whole = table_.at(place);
        Column &here = raw_[place];
        if (!here.codes) {
            here = {static_cast<const std::uint8_t *>(whole.codes) + first_ * whole.width, whole.width};
            here.reach = reach_of(here, rows_);
        }
        return here;
    }

    // Codes are looked up in a table of the narrowest type.
    class Recoding {
      public:
        explicit Recoding(const Map &map) {
            for (std::size_t code = 0; code < map.size; ++code) {
                const std::size_t target = checked_index(map.targets[code], MOST_VALUES, "a target of a level map");
                targets_.push_back(static_cast<std::uint32_t>(target));
                reach_ = std::max<std::uint64_t>(reach_, target + 1);
            }
            width_ = width_for(reach_);
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
            return {buffer.data(), width_, reach_};
        }

      private:
        template <class Code, class Target> void look_up(const Code *codes, std::size_t rows, Target *targets) const {
            for (std::size_t row = 0; row < rows; ++row) targets[row] = static_cast<Target>(targets_[codes[row]]);
        }

        std::vector<std::uint32_t> targets_;
        std::uint64_t reach_ = 0;
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
    std::vector<Column> raw_;  // those that were asked for in this tile
    std::map<Key, Recoded> recoded_;
};

}  // namespace hedgerow
