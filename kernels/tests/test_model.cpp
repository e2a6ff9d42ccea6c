// Both passes against sums over the whole joint table, in both spaces; orders, rounding and partitions by their laws.
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "check.h"
#include "common/rng.h"
#include "model/boxes.h"
#include "model/elimination.h"
#include "model/intervals.h"
#include "model/marginals.h"
#include "model/sampler.h"

using namespace hedgerow;
using namespace hedgerow::model;

namespace {

const std::vector<int64_t> SIZES{2, 3, 4, 11};
const uint64_t WORDS[4] = {1, 2, 3, 4};

int64_t index(const Axes& axes, const std::vector<int64_t>& codes) {
    int64_t found = 0;
    for (int axis : axes) found = found * SIZES[axis] + codes[axis];
    return found;
}

// Calls visit(codes) for every cell of the joint table.
template <class Visit> void each_cell(Visit visit) {
    std::vector<int64_t> codes(SIZES.size(), 0);
    for (bool more = true; more;) {
        visit(codes);
        more = false;
        for (size_t axis = SIZES.size(); axis-- > 0 && !more;) {
            more = ++codes[axis] < SIZES[axis];
            if (!more) codes[axis] = 0;
        }
    }
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max({1.0, std::abs(a), std::abs(b)}); }

std::vector<double> random_table(const Axes& axes, Rng& rng) {
    std::vector<double> values(cells(axes, SIZES));
    for (double& value : values) value = rng.uniform();
    return values;
}

// Every set of the four axes.
std::vector<Axes> subsets() {
    std::vector<Axes> found;
    for (int mask = 0; mask < 16; ++mask) {
        Axes axes;
        for (int axis = 0; axis < 4; ++axis)
            if (mask >> axis & 1) axes.push_back(axis);
        found.push_back(axes);
    }
    return found;
}

}  // namespace

TEST(forward_and_backward_are_sums_over_the_joint_table) {
    Rng rng(WORDS);
    const std::vector<Axes> sets = subsets();
    for (int trial = 0; trial < 300; ++trial) {
        std::vector<Axes> inputs(rng.below(4));
        for (Axes& axes : inputs) axes = sets[rng.below(16)];
        Axes kept, scope;
        std::set<int> all;
        for (const Axes& axes : inputs) all.insert(axes.begin(), axes.end());
        for (int axis : all) {
            scope.push_back(axis);
            if (rng.below(2)) kept.push_back(axis);
        }
        std::vector<std::vector<double>> values, beliefs, expected_beliefs;
        std::vector<const double*> starts;
        std::vector<double*> belief_starts;
        for (const Axes& axes : inputs) {
            values.push_back(random_table(axes, rng));
            beliefs.emplace_back(values.back().size(), 0.0);
        }
        expected_beliefs = beliefs;
        for (size_t i = 0; i < inputs.size(); ++i) {
            starts.push_back(values[i].data());
            belief_starts.push_back(beliefs[i].data());
        }
        const std::vector<double> ratio = random_table(kept, rng);
        std::vector<double> expected(ratio.size(), 0.0), out(ratio.size());
        std::set<int64_t> seen;
        each_cell([&](const std::vector<int64_t>& codes) {
            if (!seen.insert(index(scope, codes)).second) return;  // axes outside of the product are no part of it
            double product = 1;
            for (size_t i = 0; i < inputs.size(); ++i) product *= values[i][index(inputs[i], codes)];
            expected[index(kept, codes)] += product;
            for (size_t i = 0; i < inputs.size(); ++i)
                expected_beliefs[i][index(inputs[i], codes)] += product * ratio[index(kept, codes)];
        });
        const LoopNest nest(inputs, kept, SIZES);
        contract(nest, starts.data(), out.data(), static_cast<int64_t>(out.size()));
        distribute(nest, starts.data(), ratio.data(), belief_starts.data());
        for (size_t c = 0; c < out.size(); ++c) CHECK(near(out[c], expected[c]));
        for (size_t i = 0; i < inputs.size(); ++i)
            for (size_t c = 0; c < beliefs[i].size(); ++c) CHECK(near(beliefs[i][c], expected_beliefs[i][c]));

        std::vector<double> log_ratio = ratio;
        for (auto& table : values)
            for (double& value : table) value = std::log(value);
        for (double& value : log_ratio) value = std::log(value);
        for (auto& belief : beliefs) std::fill(belief.begin(), belief.end(), 0.0);
        contract_logarithms(nest, starts.data(), out.data(), static_cast<int64_t>(out.size()));
        distribute_logarithms(nest, starts.data(), log_ratio.data(), belief_starts.data());
        for (size_t c = 0; c < out.size(); ++c) CHECK(near(std::exp(out[c]), expected[c]));
        for (size_t i = 0; i < inputs.size(); ++i)
            for (size_t c = 0; c < beliefs[i].size(); ++c) CHECK(near(beliefs[i][c], expected_beliefs[i][c]));
    }
}

TEST(exponentials_are_those_of_the_library) {
    for (double x : {0.0, -1e-300, -0.3, -1.0, -17.25, -600.0, -707.9}) {
        double found;
        exponentials(&x, 0.0, &found, 1);
        CHECK(std::abs(found / std::exp(x) - 1) < 1e-15);
    }
    const double extremes[] = {-709.0, -1e308, -std::numeric_limits<double>::infinity()};
    double found[3];
    exponentials(extremes, 0.0, found, 3);
    for (double value : found) CHECK(value == 0);
}

TEST(an_even_order_visits_everything_once_and_halves_evenly) {
    for (int64_t count : {1, 2, 3, 7, 8, 100, 1000}) {
        EvenOrder order(count, count / 3);
        std::set<int64_t> seen;
        int64_t low = 0;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t next = order.next();
            CHECK(next >= 0 && next < count);
            seen.insert(next);
            if (i < count / 2) low += (next - count / 3 + count) % count < count / 2;
        }
        CHECK(static_cast<int64_t>(seen.size()) == count);
        CHECK(std::abs(2 * low - count / 2) <= 4);
    }
}

TEST(drawn_counts_are_expectations_rounded) {
    Network network({3, 2}, {{0, 1}}, {{{0}, {1}}, {{1}, {}}}, {});
    const double potentials[] = {0.0, 0.3, -0.2, 1.0, -3.0, 0.5};
    double marginals[6];
    const double log_z = network.calibrate(potentials, marginals);
    CHECK(std::isfinite(log_z));
    const int64_t rows = 1000;
    std::vector<uint8_t> first(rows), second(rows);
    Sampler(network, {{first.data(), 1}, {second.data(), 1}}, rows, Rng(WORDS), true).draw();
    std::vector<double> counts(6);
    for (int64_t row = 0; row < rows; ++row) ++counts[first[row] * 2 + second[row]];
    for (int cell = 0; cell < 6; ++cell) CHECK(std::abs(counts[cell] - rows * marginals[cell]) < 2.0);
}

TEST(networks_that_are_no_elimination_are_refused) {
    CHECK_THROWS(std::invalid_argument, Network({2, 2}, {{0, 1}}, {{{0}, {1}}, {{0}, {0}}}, {}));
    CHECK_THROWS(std::invalid_argument, Network({2, 2}, {{0, 1}}, {{{0}, {1}}}, {}));
    CHECK_THROWS(std::invalid_argument, Network({2, 2}, {{1, 0}}, {{{0}, {1}}, {{1}, {}}}, {}));
    CHECK_THROWS(std::out_of_range, Network({2, 2}, {{0, 7}}, {{{0}, {1}}, {{1}, {}}}, {}));
    const std::vector<int64_t> wraps{1, (1 << 22) - 1, 1 << 21, 1 << 21};
    CHECK_THROWS(std::length_error, Network(wraps, {{0, 1}, {0, 2}, {0, 3}},
                                            {{{0, 1, 2}, {1, 2, 3}}, {{3}, {2, 3}}, {{4}, {3}}, {{5}, {}}}, {}));
}

TEST(projected_marginals_agree) {
    const std::vector<int64_t> sizes{2, 3, 4};
    Marginals marginals(sizes, {{0, 1, 2}}, {{0, {0, 1}}, {0, {1, 2}}}, {1.0, 1.0}, {{1}});
    Rng rng(WORDS);
    std::vector<double> values(6 + 12);
    for (double& value : values) value = rng.uniform();
    marginals.project(values.data());
    for (int b = 0; b < 3; ++b) {
        double left = 0, right = 0;
        for (int a = 0; a < 2; ++a) left += values[a * 3 + b];
        for (int c = 0; c < 4; ++c) right += values[6 + b * 4 + c];
        CHECK(near(left, right));
    }
}

TEST(elimination_orders_hold_every_attribute_once) {
    const Graph graph(5, {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {4}});
    const std::vector<double> log_sizes(5, std::log(3.0));
    for (Rule rule : {Rule::least_fill, Rule::least_size}) {
        const Elimination found = eliminate(graph, log_sizes, rule, {2});
        CHECK(std::set<int>(found.order.begin(), found.order.end()) == (std::set<int>{0, 1, 3, 4}));
    }
    CHECK_THROWS(std::out_of_range, Graph(3, {{0, 3}}));
    CHECK_THROWS(std::invalid_argument, eliminate(graph, log_sizes, Rule::least_fill, {1, 1}));
    const JunctionCells cells(log_sizes, {{0, 1}, {1, 2}});
    CHECK(near(cells.with({}), 9 + 9 + 3 + 3));
}

TEST(partitions_end_without_error) {
    const std::vector<double> counts{0, 1, 1, 4, 9, 9};
    const Merges merges = IntervalMerger(counts.data(), 6).run();
    CHECK(merges.boundaries.size() == 5 && merges.errors.front() == 0);
    const Splits splits = BoxSplitter(counts.data(), {2, 3}, Criterion::error).run(6);
    CHECK(splits.errors.size() == 6 && near(splits.errors.back(), 0));
    std::vector<int64_t> labels(6);
    label(splits, 5, labels.data());
    CHECK(std::set<int64_t>(labels.begin(), labels.end()).size() == 6);
}
