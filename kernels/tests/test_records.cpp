// Rows come closer to their targets, and keep what each step promises to keep.
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "check.h"
#include "records/exchange.h"
#include "records/selection.h"
#include "records/update.h"

using namespace hedgerow;
using namespace hedgerow::records;

namespace {
const uint64_t WORDS[4] = {1, 2, 3, 4};
}

TEST(a_gradual_update_settles_one_marginal) {
    std::vector<uint32_t> column(100, 0);
    const std::vector<double> shares{0.3, 0.5, 0.2};
    Updater({column.data()}, 100, {Target{{0}, {3}, shares.data(), 3}}, Rng(WORDS)).run({40, 0.9, 10});
    std::vector<double> counts(3);
    for (uint32_t code : column) ++counts[code];
    for (int c = 0; c < 3; ++c) CHECK(std::abs(counts[c] - 100 * shares[c]) <= 1);
}

TEST(exchanges_keep_every_column) {
    std::vector<uint32_t> first(60), second(60);
    for (uint32_t row = 0; row < 60; ++row) first[row] = row % 2, second[row] = row / 30;
    const std::vector<double> shares{0.5, 0.0, 0.0, 0.5};
    const auto ones = [](const std::vector<uint32_t>& column) { return std::count(column.begin(), column.end(), 1u); };
    Exchange({first.data(), second.data()}, 60, {Target{{0, 1}, {2, 2}, shares.data(), 4}}, Rng(WORDS)).run(20);
    CHECK(ones(first) == 30 && ones(second) == 30);
    int apart = 0;
    for (size_t row = 0; row < 60; ++row) apart += first[row] != second[row];
    CHECK(apart <= 2);
}

TEST(a_selection_is_of_distinct_rows_near_the_target) {
    std::vector<uint32_t> cells(200);
    for (uint32_t row = 0; row < 200; ++row) cells[row] = row % 4;
    Selection selection(cells, 200, {0.7f, 0.1f, 0.1f, 0.1f}, std::vector<float>(4, 1.0f));
    std::vector<int64_t> chosen(40);
    selection.choose(40, 200, 150, 20, Rng(WORDS), chosen.data());
    CHECK(std::set<int64_t>(chosen.begin(), chosen.end()).size() == 40);
    int64_t zeros = 0;
    for (int64_t row : chosen) zeros += cells[row] == 0;
    CHECK(std::abs(zeros - 28) <= 2);
}
