// hedgerow._model: contraction, calibration and sampling of graphical models. Public side: it never sees data.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "common/arrays.h"
#include "common/build.h"
#include "model/boxes.h"
#include "model/elimination.h"
#include "model/intervals.h"
#include "model/marginals.h"
#include "model/sampler.h"
#include "model/vectors.h"

namespace nb = nanobind;
using namespace hedgerow;
using namespace hedgerow::model;

namespace {

using Input = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using View = nb::ndarray<nb::numpy, const double, nb::ndim<1>, nb::c_contig>;
using Busy = std::lock_guard<std::mutex>;

// A view of a network's table; it keeps the network alive and changes with the next calibration.
View value(nb::handle_t<Network> self, int tensor) {
    Network& network = nb::cast<Network&>(self);
    const size_t number = checked_index(tensor, network.length.size(), "a tensor");
    return View(network.value(tensor), {static_cast<size_t>(network.length[number])}, self);
}

View ratio(nb::handle_t<Network> self, int message) {
    Network& network = nb::cast<Network&>(self);
    const size_t number = checked_index(message, network.length.size(), "a message");
    if (message < network.leaf_count) throw std::out_of_range("a leaf is no message: it has no ratio");
    return View(network.ratio(message), {static_cast<size_t>(network.length[number])}, self);
}

double calibrate(Network& network, const Input& potentials, Output& marginals) {
    if (static_cast<int64_t>(potentials.shape(0)) != network.leaf_cells ||
        static_cast<int64_t>(marginals.shape(0)) != network.leaf_cells)
        throw std::invalid_argument("potentials and marginals must have one number per cell of every leaf");
    require_aligned(potentials);
    require_aligned(marginals);
    Extents().written(marginals).read(potentials).require_disjoint();
    nb::gil_scoped_release released;
    const Busy alone(network.busy);
    const NoDenormals flushed;
    return network.calibrate(potentials.data(), marginals.data());
}

void draw(Network& network, const std::vector<nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>>& columns,
          const std::vector<uint64_t>& words, bool systematic) {
    if (columns.size() != network.sizes.size()) throw std::invalid_argument("one column per attribute is needed");
    require_aligned(columns);
    std::vector<CodeColumn> targets;
    Extents extents;
    const int64_t rows = columns.empty() ? 0 : static_cast<int64_t>(columns[0].shape(0));
    for (size_t attribute = 0; attribute < columns.size(); ++attribute) {
        const auto& column = columns[attribute];
        const int width = static_cast<int>(column.itemsize());
        const bool codes = column.dtype().code == static_cast<uint8_t>(nb::dlpack::dtype_code::UInt) &&
                           column.dtype().lanes == 1 && (width == 1 || width == 2 || width == 4);
        if (static_cast<int64_t>(column.shape(0)) != rows || !codes)
            throw std::invalid_argument("columns must be uint8, uint16 or uint32 arrays of the same length");
        if ((network.sizes[attribute] - 1) >> (8 * width))
            throw std::invalid_argument("a column is too narrow for the codes of its attribute");
        extents.written(column);
        targets.push_back({column.data(), width});
    }
    extents.require_disjoint();
    const Rng rng = read_rng(words);
    nb::gil_scoped_release released;
    const Busy alone(network.busy);
    const NoDenormals flushed;
    Sampler(network, targets, rows, rng, systematic).draw();
}

void contract_tensors(const std::vector<int64_t>& sizes, const std::vector<Input>& inputs,
                      const std::vector<Axes>& axes, const Axes& kept, Output& out, bool logarithms) {
    check_sizes(sizes);
    check_axes(kept, sizes);
    require_aligned(inputs);
    require_aligned(out);
    if (inputs.size() != axes.size()) throw std::invalid_argument("every tensor needs its axes");
    Extents extents;
    std::vector<const double*> values;
    for (size_t i = 0; i < inputs.size(); ++i) {
        check_axes(axes[i], sizes);
        if (static_cast<int64_t>(inputs[i].shape(0)) != cells(axes[i], sizes))
            throw std::invalid_argument("a tensor's length does not match its axes");
        values.push_back(inputs[i].data());
        extents.read(inputs[i]);
    }
    const int64_t count = cells(kept, sizes);
    if (static_cast<int64_t>(out.shape(0)) != count) throw std::invalid_argument("the output does not match its axes");
    extents.written(out).require_disjoint();
    nb::gil_scoped_release released;
    const NoDenormals flushed;
    const LoopNest nest(axes, kept, sizes);
    (logarithms ? contract_logarithms : contract)(nest, values.data(), out.data(), count);
}

void gather(const Marginals& marginals, const Input& leaves, Output& out) {
    if (static_cast<int64_t>(leaves.shape(0)) != marginals.leaf_cells ||
        static_cast<int64_t>(out.shape(0)) != marginals.marginal_cells)
        throw std::invalid_argument("leaves and marginals must have one number per cell");
    require_aligned(leaves);
    require_aligned(out);
    Extents().written(out).read(leaves).require_disjoint();
    nb::gil_scoped_release released;
    const NoDenormals flushed;
    marginals.gather(leaves.data(), out.data());
}

void scatter(const Marginals& marginals, const Input& values, Output& leaves) {
    if (static_cast<int64_t>(leaves.shape(0)) != marginals.leaf_cells ||
        static_cast<int64_t>(values.shape(0)) != marginals.marginal_cells)
        throw std::invalid_argument("leaves and marginals must have one number per cell");
    require_aligned(values);
    require_aligned(leaves);
    Extents().written(leaves).read(values).require_disjoint();
    nb::gil_scoped_release released;
    marginals.scatter(values.data(), leaves.data());
}

void project(Marginals& marginals, Output& values) {
    if (static_cast<int64_t>(values.shape(0)) != marginals.marginal_cells)
        throw std::invalid_argument("marginals must have one number per cell");
    require_aligned(values);
    nb::gil_scoped_release released;
    const Busy alone(marginals.busy);
    marginals.project(values.data());
}

using Pairs = std::vector<nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

void check_lengths(const Pairs& vectors, int64_t count) {
    require_aligned(vectors);
    for (const auto& vector : vectors)
        if (static_cast<int64_t>(vector.shape(0)) != count) throw std::invalid_argument("vectors of different lengths");
}

std::vector<double> inner_products(const Pairs& vectors, const Input& with) {
    const int64_t count = static_cast<int64_t>(with.shape(0));
    check_lengths(vectors, count);
    require_aligned(with);
    std::vector<const float*> starts;
    for (const auto& vector : vectors) starts.push_back(vector.data());
    std::vector<double> products(vectors.size(), 0.0);
    nb::gil_scoped_release released;
    add_inner_products(starts.data(), static_cast<int>(starts.size()), with.data(), count, products.data());
    return products;
}

void add_combination(const std::vector<double>& factors, const Pairs& vectors, Output& to) {
    const int64_t count = static_cast<int64_t>(to.shape(0));
    check_lengths(vectors, count);
    if (factors.size() != vectors.size()) throw std::invalid_argument("one factor per vector is needed");
    require_aligned(to);
    Extents extents;
    std::vector<const float*> starts;
    for (const auto& vector : vectors) {
        starts.push_back(vector.data());
        extents.read(vector);
    }
    extents.written(to).require_disjoint();
    nb::gil_scoped_release released;
    add_multiples(starts.data(), factors.data(), static_cast<int>(starts.size()), to.data(), count);
}

// Which multiples of near-ties to try: a fixed sequence, so that a plan is the same each time.
std::vector<double> tilts(int count, int attempt) {
    const uint64_t words[4] = {0x9E3779B97F4A7C15ULL, 0xBF58476D1CE4E5B9ULL, 0x94D049BB133111EBULL,
                               static_cast<uint64_t>(attempt)};
    Rng rng(words);
    for (int i = 0; i < 16; ++i) rng.word();
    std::vector<double> result(count);
    for (double& tilt : result) tilt = 0.9 + 0.2 * rng.uniform();
    return result;
}

std::vector<double> logarithms_of(const std::vector<double>& sizes) {
    std::vector<double> result;
    for (double size : sizes) {
        if (!(size >= 1) || !std::isfinite(size))
            throw std::invalid_argument("every attribute needs at least one value");
        result.push_back(std::log(size));
    }
    return result;
}

std::vector<int> elimination_order(const std::vector<double>& sizes, const std::vector<std::vector<int>>& cliques,
                                   const std::vector<int>& kept, int attempts) {
    const Graph graph(static_cast<int>(sizes.size()), cliques);
    const std::vector<double> log_sizes = logarithms_of(sizes);
    Elimination best = eliminate(graph, log_sizes, Rule::least_size, kept);
    for (int attempt = 1; attempt < attempts; ++attempt) {
        const Rule rule = attempt % 2 ? Rule::least_fill : Rule::least_size;
        const auto tilt = attempt == 1 ? std::vector<double>() : tilts(graph.count, attempt);
        Elimination next = eliminate(graph, log_sizes, rule, kept, tilt);
        if (next.work < best.work) best = next;
    }
    return best.order;
}

std::vector<double> junction_cells(const std::vector<double>& sizes, const std::vector<std::vector<int>>& cliques,
                                   const std::vector<std::vector<int>>& candidates) {
    nb::gil_scoped_release released;
    const JunctionCells cells(logarithms_of(sizes), cliques);
    std::vector<double> result;
    for (const auto& candidate : candidates) result.push_back(cells.with(candidate));
    return result;
}

void check_counts(const Input& counts) {
    require_aligned(counts);
    for (size_t i = 0; i < counts.size(); ++i)
        if (!std::isfinite(counts.data()[i])) throw std::invalid_argument("counts must be finite numbers");
}

Merges merge_sequence(const Input& sorted) {
    check_counts(sorted);
    if (!std::is_sorted(sorted.data(), sorted.data() + sorted.size()))
        throw std::invalid_argument("counts must be in ascending order");
    nb::gil_scoped_release released;
    return IntervalMerger(sorted.data(), static_cast<int64_t>(sorted.shape(0))).run();
}

Splits split_sequence(const Input& counts, const std::vector<int64_t>& shape, int64_t most, bool by_mass) {
    if (shape.empty() || static_cast<int64_t>(counts.shape(0)) != checked_cells(shape, "cells of a table"))
        throw std::invalid_argument("a table needs one count per cell of its shape");
    check_counts(counts);
    nb::gil_scoped_release released;
    return BoxSplitter(counts.data(), shape, by_mass ? Criterion::mass : Criterion::error).run(most);
}

void label_cells(const Splits& splits, int64_t blocks,
                 nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& labels) {
    require_aligned(labels);
    if (static_cast<int64_t>(labels.shape(0)) != checked_cells(splits.shape, "cells of a table") || blocks < 1 ||
        blocks > static_cast<int64_t>(splits.blocks.size()) + 1)
        throw std::invalid_argument("labels need one entry per cell, and no more blocks than there are");
    nb::gil_scoped_release released;
    label(splits, blocks - 1, labels.data());
}

}  // namespace

NB_MODULE(_model, m) {
    m.attr("compiler") = hedgerow::COMPILER;
    m.attr("commit") = HEDGEROW_COMMIT;
    nb::set_leak_warnings(false);  // a model that is still held when the interpreter ends is no leak
    nb::class_<Network>(m, "Network")
        .def(nb::init<std::vector<int64_t>, std::vector<Axes>, const std::vector<Network::Product>&,
                      const std::vector<Network::Product>&>(),
             nb::arg("sizes"), nb::arg("leaves"), nb::arg("buckets"), nb::arg("joins"))
        .def("calibrate", &calibrate, nb::arg("potentials"), nb::arg("marginals").noconvert())
        .def("draw", &draw, nb::arg("columns").noconvert(), nb::arg("words"), nb::arg("systematic"))
        .def("value", &value)
        .def("ratio", &ratio)
        .def_ro("logarithms", &Network::logarithms);
    nb::class_<Marginals>(m, "Marginals")
        .def(nb::init<const std::vector<int64_t>&, const std::vector<Axes>&, const std::vector<std::pair<int, Axes>>&,
                      std::vector<double>, const std::vector<Axes>&>(),
             nb::arg("sizes"), nb::arg("leaves"), nb::arg("marginals"), nb::arg("precisions"), nb::arg("overlaps"))
        .def("gather", &gather, nb::arg("leaves"), nb::arg("out").noconvert())
        .def("scatter", &scatter, nb::arg("values"), nb::arg("leaves").noconvert())
        .def("project", &project, nb::arg("values").noconvert());
    nb::class_<Merges>(m, "Merges").def_ro("boundaries", &Merges::boundaries).def_ro("errors", &Merges::errors);
    nb::class_<Splits>(m, "Splits")
        .def_ro("errors", &Splits::errors)
        .def("label", &label_cells, nb::arg("blocks"), nb::arg("labels").noconvert());
    m.def("merge_sequence", &merge_sequence, nb::arg("sorted"));
    m.def("split_sequence", &split_sequence, nb::arg("counts"), nb::arg("shape"), nb::arg("most"), nb::arg("by_mass"));
    m.def("inner_products", &inner_products, nb::arg("vectors"), nb::arg("with_"));
    m.def("add_combination", &add_combination, nb::arg("factors"), nb::arg("vectors"), nb::arg("to").noconvert());
    m.def("contract", &contract_tensors, nb::arg("sizes"), nb::arg("inputs"), nb::arg("axes"), nb::arg("kept"),
          nb::arg("out").noconvert(), nb::arg("logarithms"));
    m.def("elimination_order", &elimination_order, nb::arg("sizes"), nb::arg("cliques"), nb::arg("kept"),
          nb::arg("attempts"));
    m.def("junction_cells", &junction_cells, nb::arg("sizes"), nb::arg("cliques"), nb::arg("candidates"));
}
