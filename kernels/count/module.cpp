// Exact counts of many queries over narrow columns. Sees rows; decides nothing about privacy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "common/arrays.h"
#include "common/build.h"
#include "common/threads.h"
#include "count/counting.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace hedgerow;
using namespace hedgerow::counting;

namespace {

using CodesArray = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MapArray = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SplitArray = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Table read_table(const std::vector<CodesArray>& arrays, size_t rows) {
    Table table{{}, rows};
    if (arrays.empty() && rows) throw std::invalid_argument("a table without columns has no rows");
    require_aligned(arrays);
    for (const CodesArray& array : arrays) {
        const bool narrow = array.dtype().code == static_cast<uint8_t>(nb::dlpack::dtype_code::UInt) &&
                            array.dtype().bits % 8 == 0 && array.dtype().bits <= 32 && array.dtype().lanes == 1;
        if (!narrow) throw std::invalid_argument("columns must be uint8, uint16 or uint32 arrays");
        if (array.size() != rows) throw std::invalid_argument("columns must be as long as the table");
        const auto width = static_cast<size_t>(array.dtype().bits / 8);
        table.columns.push_back({array.data(), width, 0});
    }
    return table;
}

// A plan, and the arrays that it borrows from.
struct Marginal {
    MarginalPlan plan;
    std::vector<std::optional<MapArray>> levels;
    std::optional<MapArray> blocks;

    Marginal(std::vector<size_t> attributes, std::vector<uint64_t> shape, std::vector<std::optional<MapArray>> levels,
             std::optional<MapArray> blocks)
        : plan{std::move(attributes), std::move(shape), {}, {}}, levels(std::move(levels)), blocks(std::move(blocks)) {
        if (plan.shape.size() != plan.attributes.size() || this->levels.size() != plan.attributes.size())
            throw std::invalid_argument("a marginal needs one size and one level map (or None) per attribute");
        for (size_t i = 0; i < plan.attributes.size(); ++i) {
            plan.levels.push_back(borrow(this->levels[i]));
            if (plan.levels[i]) check_level(*plan.levels[i], plan.shape[i]);
        }
        plan.blocks = borrow(this->blocks);
        const uint64_t cells = cells_of(plan.shape);
        if (plan.blocks && plan.blocks->size != cells)
            throw std::invalid_argument("a block map needs one entry per cell");
    }

    static void check_level(const Map& level, uint64_t size) {
        for (size_t code = 0; code < level.size; ++code)
            if (level.targets[code] < 0 || static_cast<uint64_t>(level.targets[code]) >= size)
                throw std::invalid_argument("a level map has a target outside its size");
    }

    static std::optional<Map> borrow(const std::optional<MapArray>& map) {
        if (!map) return std::nullopt;
        if (map->size() == 0) throw std::invalid_argument("a map needs at least one entry");
        require_aligned(*map);
        return Map{map->data(), map->size()};
    }
};

struct LabelledTree {
    TreePlan plan;

    LabelledTree(std::vector<size_t> attributes, const std::vector<uint64_t>& sizes, const SplitArray& split,
                 const MapArray& child, uint64_t leaves, std::optional<size_t> label, uint64_t label_size)
        : plan{std::move(attributes), sizes, read_tree(sizes, split, child), label, leaves, label_size} {
        if (plan.attributes.size() != sizes.size()) throw std::invalid_argument("a tree needs one size per attribute");
        if (leaves > MOST_VALUES) refuse_size("leaves of a tree", MOST_VALUES);
        for (size_t node = 0; node < split.size(); ++node)
            if (split.data()[node] < 0 && static_cast<uint64_t>(child.data()[node]) >= leaves)
                throw std::invalid_argument("a tree's leaves must be numbered below their count");
    }

    static Tree read_tree(const std::vector<uint64_t>& sizes, const SplitArray& split, const MapArray& child) {
        if (split.size() != child.size()) throw std::invalid_argument("a tree needs one child per node");
        require_aligned(split);
        require_aligned(child);
        return Tree(split.data(), child.data(), split.size(), sizes);
    }
};

using Query = std::variant<const Marginal*, const LabelledTree*>;
using AnyCount = std::variant<Count<MarginalCells>, Count<TreeCells>>;

AnyCount count_of(const Query& query, uint64_t dense_cells) {
    if (const auto* marginal = std::get_if<const Marginal*>(&query))
        return Count<MarginalCells>(MarginalCells((*marginal)->plan), dense_cells);
    return Count<TreeCells>(TreeCells(std::get<const LabelledTree*>(query)->plan), dense_cells);
}

// The queries `from`, `from + step`, … over the whole table, tile by tile.
void run_share(const Table& table, const std::vector<Query>& queries, uint64_t dense_cells, size_t from, size_t step,
               std::vector<Answer>& answers) {
    static thread_local Workspace space;  // stays warm from call to call
    Tile tile(table);
    std::vector<AnyCount> counts;
    for (size_t i = from; i < queries.size(); i += step) counts.push_back(count_of(queries[i], dense_cells));
    for (size_t first = 0; first < table.rows; first += TILE_ROWS) {
        tile.move_to(first, std::min(TILE_ROWS, table.rows - first));
        for (AnyCount& count : counts) std::visit([&](auto& one) { one.add(tile, space); }, count);
    }
    for (size_t i = from, own = 0; i < queries.size(); i += step, ++own)
        answers[i] = std::visit([](auto& one) { return one.finish(); }, counts[own]);
}

std::vector<Answer> run_all(const Table& table, const std::vector<Query>& queries, uint64_t dense_cells,
                            size_t threads) {
    std::vector<Answer> answers(queries.size());
    run_shares(threads, [&](size_t number) { run_share(table, queries, dense_cells, number, threads, answers); });
    return answers;
}

// The queries themselves; `held` keeps them alive, whatever becomes of the list that they came in.
std::vector<Query> read_queries(const std::vector<nb::object>& held) {
    std::vector<Query> queries(held.size());
    for (size_t i = 0; i < held.size(); ++i)
        if (held[i].is_none() || !nb::try_cast(held[i], queries[i]))
            throw nb::type_error("queries are marginals and trees");
    return queries;
}

nb::list count(const std::vector<CodesArray>& columns, size_t rows, const std::vector<nb::object>& held,
               uint64_t dense_cells, size_t threads) {
    const Table table = read_table(columns, rows);
    const std::vector<Query> queries = read_queries(held);
    std::vector<Answer> answers;
    {
        nb::gil_scoped_release unlocked;
        answers = run_all(table, queries, dense_cells, std::clamp<size_t>(threads, 1, 64));
    }
    nb::list handed;
    for (Answer& answer : answers) {
        if (auto* dense = std::get_if<Counts>(&answer)) handed.append(to_numpy(std::move(*dense)));
        else {
            auto& sparse = std::get<SparseCounts>(answer);
            handed.append(nb::make_tuple(to_numpy(std::move(sparse.cells)), to_numpy(std::move(sparse.counts))));
        }
    }
    return handed;
}

nb::object find_leaves(const std::vector<CodesArray>& columns, size_t rows, const LabelledTree& tree) {
    const Table table = read_table(columns, rows);
    std::vector<uint32_t> leaves(rows);
    {
        nb::gil_scoped_release unlocked;
        std::vector<Column> used(tree.plan.attributes.size());
        for (const size_t i : tree.plan.tree.used()) {
            used[i] = table.at(tree.plan.attributes[i]);
            used[i].reach = reach_of(used[i], rows);
            require_below(used[i], tree.plan.sizes[i]);
        }
        std::vector<uint32_t> space;
        tree.plan.tree.find_leaves(used, 0, rows, space, leaves.data());
    }
    return to_numpy(std::move(leaves));
}

}  // namespace

NB_MODULE(_count, module) {
    module.attr("compiler") = hedgerow::COMPILER;
    module.attr("commit") = HEDGEROW_COMMIT;
    module.doc() = "Exact counts of many queries over narrow columns of codes.";
    nb::class_<Marginal>(module, "Marginal")
        .def(nb::init<std::vector<size_t>, std::vector<uint64_t>, std::vector<std::optional<MapArray>>,
                      std::optional<MapArray>>(),
             "attributes"_a, "shape"_a, "levels"_a, "blocks"_a.none());
    nb::class_<LabelledTree>(module, "Tree")
        .def(nb::init<std::vector<size_t>, const std::vector<uint64_t>&, const SplitArray&, const MapArray&, uint64_t,
                      std::optional<size_t>, uint64_t>(),
             "attributes"_a, "sizes"_a, "split"_a, "child"_a, "leaves"_a, "label"_a.none(), "label_size"_a);
    module.def("count", &count, "columns"_a, "rows"_a, "queries"_a, "dense_cells"_a, "threads"_a);
    module.def("find_leaves", &find_leaves, "columns"_a, "rows"_a, "tree"_a);
}
