// A table of narrow columns, and a tile of it: the rows that many queries read while they stay in cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "common/sizes.h"
#include "count/columns.h"
#include "count/query.h"

namespace hedgerow::counting {

struct Table {
    std::vector<Column> columns;
    size_t rows;

    const Column& at(size_t attribute) const {
        if (attribute >= columns.size()) throw std::invalid_argument("a query names a column that the table lacks");
        return columns[attribute];
    }
};

// One tile of the table, raw or recoded. Queries that share a level map share the recoded tile.
class Tile {
 public:
    explicit Tile(const Table& table) : table_(table), raw_(table.columns.size()) {}

    void move_to(size_t first, size_t rows) {
        first_ = first;
        rows_ = rows;
        std::fill(raw_.begin(), raw_.end(), Column{});
        for (auto& [key, recoded] : recoded_) recoded.ready = false;
    }

    size_t rows() const { return rows_; }

    // An attribute's column, seen through `level` if there is one; its row 0 is the tile's first row. Its codes are
    // looked at once a tile, so that no query has to trust them.
    Column column(size_t attribute, const std::optional<Map>& level) {
        const Column& here = raw(attribute);
        if (!level) return here;
        const Key key{attribute, level->targets, level->size};
        auto found = recoded_.find(key);
        if (found == recoded_.end()) found = recoded_.emplace(key, Recoded{Recoding(*level)}).first;
        Recoded& recoded = found->second;
        if (!recoded.ready)
            recoded.current = recoded.recoding.apply(require_below(here, level->size), rows_, recoded.buffer);
        recoded.ready = true;
        return recoded.current;
    }

 private:
    using Key = std::tuple<size_t, const int64_t*, size_t>;  // attribute, and the level map's extent

    const Column& raw(size_t attribute) {
        const Column& whole = table_.at(attribute);
        Column& here = raw_[attribute];
        if (!here.codes) {
            here = {static_cast<const uint8_t*>(whole.codes) + first_ * whole.width, whole.width};
            here.reach = reach_of(here, rows_);
        }
        return here;
    }

    // Codes are looked up in a table of the narrowest type.
    class Recoding {
     public:
        explicit Recoding(const Map& map) {
            for (size_t code = 0; code < map.size; ++code) {
                const size_t target = checked_index(map.targets[code], MOST_VALUES, "a target of a level map");
                targets_.push_back(static_cast<uint32_t>(target));
                reach_ = std::max<uint64_t>(reach_, target + 1);
            }
            width_ = width_for(reach_);
        }

        Column apply(const Column& source, size_t rows, std::vector<uint8_t>& buffer) const {
            buffer.resize(rows * width_);
            with_codes(source, [&](const auto* codes) {
                switch (width_) {
                    case 1:
                        look_up(codes, rows, buffer.data());
                        break;
                    case 2:
                        look_up(codes, rows, reinterpret_cast<uint16_t*>(buffer.data()));
                        break;
                    default:
                        look_up(codes, rows, reinterpret_cast<uint32_t*>(buffer.data()));
                        break;
                }
            });
            return {buffer.data(), width_, reach_};
        }

     private:
        template <class Code, class Target> void look_up(const Code* codes, size_t rows, Target* targets) const {
            for (size_t row = 0; row < rows; ++row) targets[row] = static_cast<Target>(targets_[codes[row]]);
        }

        std::vector<uint32_t> targets_;
        uint64_t reach_ = 0;
        size_t width_;
    };

    struct Recoded {
        Recoding recoding;
        std::vector<uint8_t> buffer = {};
        Column current = {};
        bool ready = false;
    };

    const Table& table_;
    size_t first_ = 0, rows_ = 0;
    std::vector<Column> raw_;  // those that were asked for in this tile
    std::map<Key, Recoded> recoded_;
};

}  // namespace hedgerow::counting
