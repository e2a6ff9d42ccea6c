// Cells are numbered and tallied as a plain loop would.
#include <cstdint>
#include <map>
#include <vector>

#include "check.h"
#include "common/rng.h"
#include "count/counting.h"

using namespace hedgerow;
using namespace hedgerow::counting;

namespace {

struct Sample {
    std::vector<std::vector<uint32_t>> codes;
    Table table;

    Sample(const std::vector<uint64_t>& sizes, size_t rows) : codes(sizes.size()), table{{}, rows} {
        const uint64_t words[4] = {5, 6, 7, 8};
        Rng rng(words);
        for (size_t i = 0; i < sizes.size(); ++i) {
            for (size_t row = 0; row < rows; ++row) codes[i].push_back(rng.below(static_cast<uint32_t>(sizes[i])));
            table.columns.push_back({codes[i].data(), 4, 0});
        }
    }
};

std::map<int64_t, int64_t> counted(const MarginalPlan& plan, const Sample& sample, uint64_t dense_cells) {
    Workspace space;
    Tile tile(sample.table);
    Count<MarginalCells> count{MarginalCells(plan), dense_cells};
    for (size_t first = 0; first < sample.table.rows; first += TILE_ROWS) {
        tile.move_to(first, std::min(TILE_ROWS, sample.table.rows - first));
        count.add(tile, space);
    }
    std::map<int64_t, int64_t> found;
    const Answer answer = count.finish();
    if (const auto* dense = std::get_if<Counts>(&answer)) {
        for (size_t cell = 0; cell < dense->size(); ++cell)
            if ((*dense)[cell]) found[static_cast<int64_t>(cell)] = (*dense)[cell];
    } else {
        const auto& sparse = std::get<SparseCounts>(answer);
        for (size_t i = 0; i < sparse.cells.size(); ++i) found[sparse.cells[i]] = sparse.counts[i];
    }
    return found;
}

}  // namespace

TEST(dense_and_sparse_counts_are_those_of_a_plain_loop) {
    for (const auto& sizes : std::vector<std::vector<uint64_t>>{{3, 4}, {300, 300, 2}, {70000, 70000}}) {
        const Sample sample(sizes, 5000);
        MarginalPlan plan{{}, sizes, std::vector<std::optional<Map>>(sizes.size()), {}};
        std::map<int64_t, int64_t> expected;
        for (size_t i = 0; i < sizes.size(); ++i) plan.attributes.push_back(i);
        for (size_t row = 0; row < sample.table.rows; ++row) {
            int64_t cell = 0;
            for (size_t i = 0; i < sizes.size(); ++i)
                cell = cell * static_cast<int64_t>(sizes[i]) + sample.codes[i][row];
            ++expected[cell];
        }
        CHECK(counted(plan, sample, 1) == expected);
        CHECK(counted(plan, sample, 1 << 20) == expected);
    }
}

TEST(codes_beyond_a_query_s_size_are_refused) {
    const Sample sample({9}, 100);
    const MarginalPlan plan{{0}, {8}, {std::nullopt}, {}};
    CHECK_THROWS(std::invalid_argument, counted(plan, sample, 100));
    const MarginalPlan lacking{{1}, {8}, {std::nullopt}, {}};
    CHECK_THROWS(std::invalid_argument, counted(lacking, sample, 100));
}

TEST(the_narrow_path_of_cell_numbers_stays_in_range) {
    CHECK(width_for(256) == 1);
    CHECK(width_for(257) == 2);
    CHECK(width_for(65537) == 4);
    CHECK_THROWS(std::length_error, cells_of({uint64_t{1} << 31, uint64_t{1} << 31, 2}));
}

TEST(a_leaf_reached_on_ways_of_different_length) {
    const std::vector<int32_t> split{0, 1, 1, 1, 1, 1, -1, -1};
    const std::vector<int64_t> child{1, 3, 5, 4, 6, 6, 1, 0};
    const Tree tree(split.data(), child.data(), split.size(), {2, 1});
    const std::vector<uint8_t> first{0, 1, 1}, second{0, 0, 0};
    std::vector<uint32_t> space, leaves(3);
    tree.find_leaves({{first.data(), 1, 2}, {second.data(), 1, 1}}, 0, 3, space, leaves.data());
    CHECK((leaves == std::vector<uint32_t>{1, 1, 1}));
}
