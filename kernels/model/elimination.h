// Elimination orders of a graph whose vertices have sizes, and what they cost.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/compilers.h"
#include "common/sizes.h"

namespace hedgerow::model {

// Neighbour sets as bits.
class Graph {
 public:
    Graph(int count, const std::vector<std::vector<int>>& cliques)
        : count(static_cast<int>(checked_size(count, "attributes", MOST_ATTRIBUTES))), words_((count + 63) / 64),
          bits_(static_cast<size_t>(count) * words_, 0) {
        for (const auto& clique : cliques) {
            for (int a : clique) checked_index(a, static_cast<size_t>(count), "an attribute of a clique");
            join(clique);
        }
    }

    void join(const std::vector<int>& clique) {
        for (int a : clique)
            for (int b : clique)
                if (a != b) connect(a, b);
    }

    bool connected(int a, int b) const { return row(a)[b >> 6] >> (b & 63) & 1; }

    std::vector<int> neighbours(int a) const {
        std::vector<int> found;
        for (int w = 0; w < words_; ++w)
            for (uint64_t rest = row(a)[w]; rest; rest &= rest - 1) found.push_back(w * 64 + lowest_bit(rest));
        return found;
    }

    int degree(int a) const {
        int sum = 0;
        for (int w = 0; w < words_; ++w) sum += count_bits(row(a)[w]);
        return sum;
    }

    // Pairs of neighbours that are not connected yet.
    int64_t fill(int a, const std::vector<int>& around) const {
        int64_t present = 0;
        for (int b : around)
            for (int w = 0; w < words_; ++w) present += count_bits(row(a)[w] & row(b)[w]);
        const auto degree = static_cast<int64_t>(around.size());
        return (degree * (degree - 1) - present) / 2;
    }

    // Connects all neighbours of `a` and takes `a` away.
    void eliminate(int a, const std::vector<int>& around) {
        for (int b : around) {
            for (int w = 0; w < words_; ++w) row(b)[w] |= row(a)[w];
            row(b)[b >> 6] &= ~(1ULL << (b & 63));
            row(b)[a >> 6] &= ~(1ULL << (a & 63));
        }
        for (int w = 0; w < words_; ++w) row(a)[w] = 0;
    }

    const int count;

 private:
    const int words_;
    std::vector<uint64_t> bits_;

    void connect(int a, int b) { row(a)[b >> 6] |= 1ULL << (b & 63); }
    uint64_t* row(int a) { return bits_.data() + static_cast<size_t>(a) * words_; }
    const uint64_t* row(int a) const { return bits_.data() + static_cast<size_t>(a) * words_; }
};

struct Elimination {
    std::vector<int> order;
    double work = 0;   // Σ cells of the cliques that the order makes, one per vertex, and of what they leave
    double cells = 0;  // the first sum without those that lie inside the clique of an earlier vertex: a junction tree's
};

// A product's cell that is summed away costs a multiplication; one that is left must also be stored and read again.
constexpr double STORING = 4;

enum class Rule { least_fill, least_size };

// Greedy: the vertex whose clique needs the fewest new edges, or has the fewest cells, goes next; vertices of `kept`
// never go. `tilt` (one factor per vertex, near 1) turns ties and near-ties, so that several orders can be tried.
inline Elimination eliminate(Graph graph, const std::vector<double>& log_sizes, Rule rule,
                             const std::vector<int>& kept = {}, const std::vector<double>& tilt = {}) {
    const int count = graph.count;
    std::vector<double> log_cells(count), cost(count);
    std::vector<char> gone(count, 0), stale(count, 1), inside(count, 0);
    for (int a : kept)
        if (std::exchange(gone[checked_index(a, gone.size(), "a kept attribute")], 1))
            throw std::invalid_argument("kept attributes must be distinct");
    Elimination result;
    for (size_t step = kept.size(); step < static_cast<size_t>(count); ++step) {
        int best = -1;
        for (int a = 0; a < count; ++a) {
            if (gone[a]) continue;
            if (stale[a]) {
                const std::vector<int> around = graph.neighbours(a);
                log_cells[a] = log_sizes[a];
                for (int b : around) log_cells[a] += log_sizes[b];
                const double log_work = log_cells[a] + std::log1p(STORING * std::exp(-log_sizes[a]));
                cost[a] =
                    rule == Rule::least_size ? log_work : static_cast<double>(graph.fill(a, around)) + 1e-3 * log_work;
                if (!tilt.empty()) cost[a] *= tilt[a];
                stale[a] = 0;
            }
            if (best < 0 || cost[a] < cost[best]) best = a;
        }
        const std::vector<int> around = graph.neighbours(best);
        const double size = std::exp(log_cells[best]);
        result.work += size * (1 + STORING * std::exp(-log_sizes[best]));
        if (!inside[best]) result.cells += size;
        result.order.push_back(best);
        gone[best] = 1;
        graph.eliminate(best, around);
        for (int b : around) {
            stale[b] = 1;
            // What is left of this clique is b's whole clique: b will make no new one if it goes in this state.
            inside[b] = graph.degree(b) + 1 == static_cast<int>(around.size());
            if (rule == Rule::least_fill)
                for (int c : graph.neighbours(b)) stale[c] = 1;
        }
    }
    return result;
}

// Cells of the junction trees that a graph and some further cliques make, each clique added by itself. Components of
// the graph do not touch each other's order, so only those that a clique reaches are eliminated anew.
class JunctionCells {
 public:
    JunctionCells(const std::vector<double>& log_sizes, const std::vector<std::vector<int>>& cliques)
        : log_sizes_(log_sizes), graph_(static_cast<int>(log_sizes.size()), cliques), component_(log_sizes.size(), -1) {
        for (int a = 0; a < graph_.count; ++a) {
            if (component_[a] >= 0) continue;
            members_.push_back(reached_from(a));
            std::sort(members_.back().begin(), members_.back().end());
            for (int b : members_.back()) component_[b] = static_cast<int>(members_.size()) - 1;
        }
        for (const std::vector<int>& members : members_) cells_.push_back(of(members, {}));
    }

    double with(const std::vector<int>& clique) const {
        std::vector<char> touched(members_.size(), 0);
        for (int a : clique) touched[component_.at(a)] = 1;
        std::vector<int> members;
        Cells cells{};
        for (size_t c = 0; c < members_.size(); ++c) {
            if (touched[c]) {
                members.insert(members.end(), members_[c].begin(), members_[c].end());
            } else {
                for (int rule = 0; rule < 2; ++rule) cells[rule] += cells_[c][rule];
            }
        }
        std::sort(members.begin(), members.end());  // ties are broken by the order of vertices
        const Cells anew = of(members, clique);
        return std::min(cells[0] + anew[0], cells[1] + anew[1]);
    }

 private:
    using Cells = std::array<double, 2>;  // one for each rule

    const std::vector<double> log_sizes_;
    const Graph graph_;
    std::vector<int> component_;
    std::vector<std::vector<int>> members_;
    std::vector<Cells> cells_;

    std::vector<int> reached_from(int start) const {
        std::vector<int> found{start};
        std::vector<char> seen(graph_.count, 0);
        seen[start] = 1;
        for (size_t next = 0; next < found.size(); ++next)
            for (int b : graph_.neighbours(found[next]))
                if (!seen[b]) seen[b] = 1, found.push_back(b);
        return found;
    }

    Cells of(const std::vector<int>& members, const std::vector<int>& clique) const {
        const auto index = [&members](int a) {
            return static_cast<int>(std::lower_bound(members.begin(), members.end(), a) - members.begin());
        };
        std::vector<double> log_sizes;
        Graph graph(static_cast<int>(members.size()), {});
        for (int a : members) {
            log_sizes.push_back(log_sizes_[a]);
            for (int b : graph_.neighbours(a)) graph.join({index(a), index(b)});
        }
        std::vector<int> joined;
        for (int a : clique) joined.push_back(index(a));
        graph.join(joined);
        return {eliminate(graph, log_sizes, Rule::least_size).cells,
                eliminate(graph, log_sizes, Rule::least_fill).cells};
    }
};

}  // namespace hedgerow::model
