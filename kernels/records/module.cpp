// hedgerow._records: rows shaped to target marginals. Public side: it never sees data.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "common/arrays.h"
#include "common/build.h"
#include "records/exchange.h"
#include "records/selection.h"
#include "records/update.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace hedgerow;
using namespace hedgerow::records;

namespace {

using CodesArray = nb::ndarray<uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstCodes = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Shares = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Rows and the cells of all targets together are numbered in 32 bits.
constexpr int64_t MOST = int64_t{1} << 31;

void check_shares(const Shares& shares) {
    require_aligned(shares);
    for (size_t cell = 0; cell < shares.size(); ++cell)
        if (!(shares.data()[cell] >= 0 && shares.data()[cell] < 2))  // a sum of shares is 1 up to rounding
            throw std::invalid_argument("a share must be a number between 0 and 1");
}

std::vector<Target> read_targets(const std::vector<uint32_t>& sizes, const std::vector<std::vector<int>>& marginals,
                                 const std::vector<Shares>& shares) {
    if (marginals.size() != shares.size()) throw std::invalid_argument("one array of shares per marginal is needed");
    std::vector<Target> targets;
    int64_t all_cells = 0;
    for (size_t i = 0; i < marginals.size(); ++i) {
        Target target{marginals[i], {}, shares[i].data(), 1};
        for (int column : target.columns) {
            target.sizes.push_back(sizes[checked_index(column, sizes.size(), "an attribute of a marginal")]);
            if (std::count(target.columns.begin(), target.columns.end(), column) != 1)
                throw std::invalid_argument("the attributes of a marginal must be distinct");
        }
        target.cells = checked_cells(target.sizes, "cells of a marginal", MOST);
        if (static_cast<int64_t>(shares[i].shape(0)) != target.cells)
            throw std::invalid_argument("a marginal needs one share per cell");
        all_cells = checked_sum(all_cells, target.cells, "cells of all marginals", MOST);
        check_shares(shares[i]);
        targets.push_back(std::move(target));
    }
    return targets;
}

template <class Array> int64_t common_length(const std::vector<Array>& columns, const std::vector<uint32_t>& sizes) {
    if (columns.size() != sizes.size()) throw std::invalid_argument("one column per attribute is needed");
    require_aligned(columns);
    const size_t rows = columns.empty() ? 0 : columns[0].shape(0);
    for (size_t i = 0; i < columns.size(); ++i) {
        if (columns[i].shape(0) != rows) throw std::invalid_argument("columns of different lengths");
        for (size_t row = 0; row < rows; ++row)
            if (columns[i].data()[row] >= sizes[i]) throw std::invalid_argument("a code outside its attribute");
    }
    return checked_size(static_cast<int64_t>(rows), "rows", MOST - 1);
}

void update(const std::vector<CodesArray>& columns, const std::vector<uint32_t>& sizes,
            const std::vector<std::vector<int>>& marginals, const std::vector<Shares>& shares, int iterations,
            double decay, int stride, int exchanges, const std::vector<uint64_t>& words) {
    std::vector<Target> targets = read_targets(sizes, marginals, shares);
    const int64_t rows = common_length(columns, sizes);
    if (stride < 1) throw std::invalid_argument("the stride must be at least 1");
    if (!(decay > 0 && decay <= 1)) throw std::invalid_argument("the decay must be above 0 and at most 1");
    Codes codes;
    Extents extents;
    for (const auto& column : columns) {
        codes.push_back(column.data());
        extents.written(column);
    }
    for (const auto& each : shares) extents.read(each);
    extents.require_disjoint();
    const Rng rng = read_rng(words);
    nb::gil_scoped_release released;
    if (rows == 0) return;
    Updater updater(codes, rows, targets, rng);
    updater.run({iterations, decay, stride});
    Exchange(codes, rows, targets, updater.rng()).run(exchanges);
}

// Fills `self` with a selection from a pool; a free function, because it reads numpy arrays.
void make_selection(Selection* self, const std::vector<ConstCodes>& columns, const std::vector<uint32_t>& sizes,
                    const std::vector<std::vector<int>>& marginals, const std::vector<Shares>& shares,
                    const std::vector<double>& weights) {
    const std::vector<Target> targets = read_targets(sizes, marginals, shares);
    const int64_t rows = common_length(columns, sizes);
    if (weights.size() != targets.size()) throw std::invalid_argument("one weight per marginal is needed");
    for (double weight : weights)
        if (!(std::abs(weight) <= 1e30)) throw std::invalid_argument("a weight must be a number within ±1e30");
    std::vector<uint32_t> cells(checked_product(rows, static_cast<int64_t>(targets.size()), "cells of a pool's rows"));
    std::vector<float> all_shares, all_weights;
    for (size_t m = 0; m < targets.size(); ++m) {
        const auto first = static_cast<uint32_t>(all_shares.size());
        for (int64_t row = 0; row < rows; ++row) {
            uint32_t cell = 0;
            for (size_t i = 0; i < targets[m].columns.size(); ++i)
                cell = cell * targets[m].sizes[i] + columns[targets[m].columns[i]].data()[row];
            cells[row * targets.size() + m] = first + cell;
        }
        all_shares.insert(all_shares.end(), targets[m].shares, targets[m].shares + targets[m].cells);
        all_weights.resize(all_shares.size(), static_cast<float>(weights[m]));
    }
    new (self) Selection(std::move(cells), rows, std::move(all_shares), std::move(all_weights));
}

void choose(Selection& selection, const Rows& chosen, int64_t first, int64_t candidates, int sweeps,
            const std::vector<uint64_t>& words) {
    if (candidates < 0 || static_cast<int64_t>(chosen.shape(0)) > first || first > selection.pool())
        throw std::invalid_argument("more rows are asked than the pool holds");
    require_aligned(chosen);
    const Rng rng = read_rng(words);
    nb::gil_scoped_release released;
    const std::lock_guard<std::mutex> alone(selection.busy);
    selection.choose(static_cast<int64_t>(chosen.shape(0)), first, candidates, sweeps, rng, chosen.data());
}

}  // namespace

NB_MODULE(_records, m) {
    m.attr("compiler") = hedgerow::COMPILER;
    m.attr("commit") = HEDGEROW_COMMIT;
    m.def("update", &update, "columns"_a.noconvert(), "sizes"_a, "marginals"_a, "shares"_a, "iterations"_a, "decay"_a,
          "stride"_a, "exchanges"_a, "words"_a);
    nb::class_<Selection>(m, "Selection")
        .def("__init__", &make_selection, "columns"_a, "sizes"_a, "marginals"_a, "shares"_a, "weights"_a)
        .def("choose", &choose, "chosen"_a.noconvert(), "first"_a, "candidates"_a, "sweeps"_a, "words"_a);
}
