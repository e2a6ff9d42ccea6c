// Sizes never wrap; shares of work are all done, on whatever threads there are; random numbers stay in range.
#include <atomic>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "common/rng.h"
#include "common/sizes.h"
#include "common/threads.h"

using namespace hedgerow;

namespace {
constexpr int64_t MOST = std::numeric_limits<int64_t>::max();
}

TEST(products_and_sums_that_would_wrap_are_refused) {
    CHECK(checked_product(1 << 20, 1 << 20, "x") == int64_t{1} << 40);
    CHECK_THROWS(std::length_error, checked_product((1 << 20) + 1, 1 << 20, "x"));
    CHECK_THROWS(std::length_error, checked_product(MOST, MOST, "x", MOST));
    CHECK_THROWS(std::length_error, checked_product(int64_t{1} << 32, int64_t{1} << 32, "x", MOST));  // wraps to 0
    CHECK_THROWS(std::length_error, checked_product(-1, -1, "x"));
    CHECK(checked_product(0, MOST, "x") == 0);
    CHECK(checked_sum(MOST - 1, 1, "x", MOST) == MOST);
    CHECK_THROWS(std::length_error, checked_sum(MOST, 1, "x", MOST));
    CHECK_THROWS(std::length_error, checked_sum(-1, 1, "x"));
    CHECK_THROWS(std::length_error, checked_size(-1, "x", MOST));
}

TEST(cells_of_a_shape) {
    CHECK(checked_cells(std::vector<int64_t>{}, "x") == 1);
    CHECK(checked_cells(std::vector<uint32_t>{3, 5, 7}, "x") == 105);
    CHECK_THROWS(std::invalid_argument, checked_cells(std::vector<int64_t>{3, 0}, "x"));
    CHECK_THROWS(std::invalid_argument, checked_cells(std::vector<int64_t>{-2, -2}, "x"));
    CHECK_THROWS(std::length_error, checked_cells(std::vector<uint32_t>(64, 6), "x"));  // 6^64 wraps to 0
    CHECK_THROWS(std::length_error, checked_cells(std::vector<uint64_t>{uint64_t{1} << 63, 2}, "x", MOST));
}

TEST(indices) {
    CHECK(checked_index(2, 3, "x") == 2);
    for (int64_t index : {int64_t{-1}, int64_t{3}, std::numeric_limits<int64_t>::min(), MOST})
        CHECK_THROWS(std::out_of_range, checked_index(index, 3, "x"));
}

TEST(every_share_is_done_once_and_the_first_failure_is_thrown_at_the_end) {
    for (size_t count : {1, 2, 7}) {
        std::vector<std::atomic<int>> done(count);
        run_shares(count, [&](size_t number) { ++done[number]; });
        for (const auto& times : done) CHECK(times == 1);
        CHECK_THROWS(std::runtime_error, run_shares(count, [&](size_t number) {
                         ++done[number];
                         if (number == count - 1) throw std::runtime_error("no");
                     }));
        for (const auto& times : done) CHECK(times == 2);
    }
}

TEST(random_numbers_below_a_bound) {
    const uint64_t words[4] = {1, 2, 3, 4};
    Rng rng(words);
    for (uint32_t bound : {1u, 2u, 3u, 1u << 31, 4294967295u})
        for (int i = 0; i < 1000; ++i) CHECK(rng.below(bound) < bound);
    for (int i = 0; i < 1000; ++i) {
        const double uniform = rng.uniform();
        CHECK(uniform >= 0 && uniform < 1);
    }
}
