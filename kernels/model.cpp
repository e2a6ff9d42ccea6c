// hedgerow._model: contraction, calibration and sampling of graphical models. Public side: it never sees data.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "blocks.h"
#include "draw.h"
#include "elimination.h"
#include "network.h"
#include "partitions.h"
#include "vectors.h"

namespace nb = nanobind;
using namespace hedgerow;

namespace {

using Input = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Array = nb::ndarray<nb::numpy, double, nb::ndim<1>, nb::c_contig>;

// A view of a network's table; it keeps the network alive and changes with the next calibration.
Array view(nb::handle network, double* values, int64_t count) {
    return Array(values, {static_cast<size_t>(count)}, network);
}

double calibrate(Network& network, const Input& potentials, Output& marginals) {
    if (static_cast<int64_t>(potentials.shape(0)) != network.leaf_cells ||
        static_cast<int64_t>(marginals.shape(0)) != network.leaf_cells)
        throw std::invalid_argument("potentials and marginals must have one number per cell of every leaf");
    nb::gil_scoped_release released;
    const NoDenormals flushed;
    return network.calibrate(potentials.data(), marginals.data());
}

void draw(Network& network, const std::vector<nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>>& columns,
          const std::vector<uint64_t>& words, bool systematic) {
    if (columns.size() != network.sizes.size() || words.size() != 4)
        throw std::invalid_argument("one column per attribute and four words are needed");
    std::vector<Column> targets;
    const int64_t rows = columns.empty() ? 0 : static_cast<int64_t>(columns[0].shape(0));
    for (const auto& column : columns) {
        const int width = static_cast<int>(column.itemsize());
        if (static_cast<int64_t>(column.shape(0)) != rows || (width != 1 && width != 2 && width != 4))
            throw std::invalid_argument("columns must have the same length and codes of 1, 2 or 4 bytes");
        targets.push_back({column.data(), width});
    }
    nb::gil_scoped_release released;
    const NoDenormals flushed;
    Sampler(network, targets, rows, Coins(words.data()), systematic).draw();
}

void contract_tensors(const std::vector<int64_t>& sizes, const std::vector<Input>& inputs,
                      const std::vector<Axes>& axes, const Axes& kept, Output& out, bool logarithms) {
    std::vector<const double*> values;
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (static_cast<int64_t>(inputs[i].shape(0)) != cells(axes.at(i), sizes))
            throw std::invalid_argument("a tensor's length does not match its axes");
        values.push_back(inputs[i].data());
    }
    const int64_t count = cells(kept, sizes);
    if (static_cast<int64_t>(out.shape(0)) != count) throw std::invalid_argument("the output does not match its axes");
    nb::gil_scoped_release released;
    const NoDenormals flushed;
    const Nest nest(axes, kept, sizes);
    (logarithms ? contract_logarithms : contract)(nest, values.data(), out.data(), count);
}

void gather(const Blocks& blocks, const Input& marginals, Output& out) {
    if (static_cast<int64_t>(marginals.shape(0)) != blocks.leaf_cells ||
        static_cast<int64_t>(out.shape(0)) != blocks.block_cells)
        throw std::invalid_argument("marginals and blocks must have one number per cell");
    nb::gil_scoped_release released;
    const NoDenormals flushed;
    blocks.gather(marginals.data(), out.data());
}

void scatter(const Blocks& blocks, const Input& values, Output& leaves) {
    if (static_cast<int64_t>(leaves.shape(0)) != blocks.leaf_cells ||
        static_cast<int64_t>(values.shape(0)) != blocks.block_cells)
        throw std::invalid_argument("leaves and blocks must have one number per cell");
    nb::gil_scoped_release released;
    blocks.scatter(values.data(), leaves.data());
}

void project(Blocks& blocks, Output& values) {
    if (static_cast<int64_t>(values.shape(0)) != blocks.block_cells)
        throw std::invalid_argument("blocks must have one number per cell");
    nb::gil_scoped_release released;
    blocks.project(values.data());
}

using Pairs = std::vector<nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

void check_lengths(const Pairs& vectors, int64_t count) {
    for (const auto& vector : vectors)
        if (static_cast<int64_t>(vector.shape(0)) != count) throw std::invalid_argument("vectors of different lengths");
}

std::vector<double> inner_products(const Pairs& vectors, const Input& with) {
    const int64_t count = static_cast<int64_t>(with.shape(0));
    check_lengths(vectors, count);
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
    std::vector<const float*> starts;
    for (const auto& vector : vectors) starts.push_back(vector.data());
    nb::gil_scoped_release released;
    add_multiples(starts.data(), factors.data(), static_cast<int>(starts.size()), to.data(), count);
}

// Which multiples of near-ties to try: a fixed sequence, so that a plan is the same each time.
std::vector<double> tilts(int count, int attempt) {
    const uint64_t words[4] = {0x9E3779B97F4A7C15ULL, 0xBF58476D1CE4E5B9ULL, 0x94D049BB133111EBULL,
                               static_cast<uint64_t>(attempt)};
    Coins coins(words);
    for (int i = 0; i < 16; ++i) coins.word();
    std::vector<double> result(count);
    for (double& tilt : result) tilt = 0.9 + 0.2 * coins.uniform();
    return result;
}

std::vector<double> logarithms_of(const std::vector<double>& sizes) {
    std::vector<double> result;
    for (double size : sizes) result.push_back(std::log(size));
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

Merges merge_sequence(const Input& sorted) {
    nb::gil_scoped_release released;
    return IntervalMerger(sorted.data(), static_cast<int64_t>(sorted.shape(0))).run();
}

Splits split_sequence(const Input& counts, const std::vector<int64_t>& shape, int64_t most, bool by_mass) {
    int64_t cells = shape.empty() ? 0 : 1;
    for (int64_t size : shape) cells *= size;
    if (cells < 1 || static_cast<int64_t>(counts.shape(0)) != cells)
        throw std::invalid_argument("a table needs one count per cell of its shape");
    nb::gil_scoped_release released;
    return BoxSplitter(counts.data(), shape, by_mass ? Worth::mass : Worth::error).run(most);
}

void label_cells(const Splits& splits, int64_t blocks,
                 nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& labels) {
    int64_t cells = 1;
    for (int64_t size : splits.shape) cells *= size;
    if (static_cast<int64_t>(labels.shape(0)) != cells || blocks < 1 ||
        blocks > static_cast<int64_t>(splits.blocks.size()) + 1)
        throw std::invalid_argument("labels need one entry per cell, and no more blocks than there are");
    nb::gil_scoped_release released;
    label(splits, blocks - 1, labels.data());
}

}  // namespace

NB_MODULE(_model, m) {
    nb::set_leak_warnings(false);  // a model that is still held when the interpreter ends is no leak
    nb::class_<Network>(m, "Network")
        .def(nb::init<std::vector<int64_t>, std::vector<Axes>, const std::vector<Network::Product>&,
                      const std::vector<Network::Product>&>(),
             nb::arg("sizes"), nb::arg("leaves"), nb::arg("buckets"), nb::arg("joins"))
        .def("calibrate", &calibrate, nb::arg("potentials"), nb::arg("marginals").noconvert())
        .def("draw", &draw, nb::arg("columns"), nb::arg("words"), nb::arg("systematic"))
        .def("value",
             [](nb::handle_t<Network> self, int tensor) {
                 Network& network = nb::cast<Network&>(self);
                 return view(self, network.value(tensor), network.length.at(tensor));
             })
        .def("ratio",
             [](nb::handle_t<Network> self, int message) {
                 Network& network = nb::cast<Network&>(self);
                 return view(self, network.ratio(message), network.length.at(message));
             })
        .def_ro("logarithms", &Network::logarithms);
    nb::class_<Blocks>(m, "Blocks")
        .def(nb::init<const std::vector<int64_t>&, const std::vector<Axes>&, const std::vector<std::pair<int, Axes>>&,
                      std::vector<double>, const std::vector<Axes>&>(),
             nb::arg("sizes"), nb::arg("leaves"), nb::arg("blocks"), nb::arg("precisions"), nb::arg("overlaps"))
        .def("gather", &gather, nb::arg("marginals"), nb::arg("out").noconvert())
        .def("scatter", &scatter, nb::arg("values"), nb::arg("leaves").noconvert())
        .def("project", &project, nb::arg("values").noconvert());
    nb::class_<Merges>(m, "Merges")
        .def_ro("boundaries", &Merges::boundaries)
        .def_ro("errors", &Merges::errors);
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
