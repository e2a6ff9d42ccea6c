// A graphical model laid out for elimination: leaves are potentials, each bucket sums one attribute out of a product
// of leaves, joins of leaves, and messages.
//
// `calibrate` runs the buckets forward (messages) and backward (beliefs). In linear space every message is rescaled
// to a largest cell of 1; the absolute error of a probability is then about 1e-308 / (Z / Π largest potentials), so
// linear space is kept unless that ratio is below e^-600, and everything is redone with logarithms otherwise.
#pragma once

#include <iterator>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "model/distribute.h"
#include "model/logarithms.h"

namespace hedgerow::model {

struct Bucket {
    std::vector<int> inputs;  // tensors: leaves first, then messages, then joins
    int output;
    int attribute;  // what is summed out
    LoopNest nest;
};

// A product of leaves that one bucket takes in place of them; `sums` take its belief back to each.
struct Join {
    std::vector<int> leaves;
    int output;
    LoopNest nest;
    std::vector<LoopNest> sums;
};

class Network {
 public:
    using Product = std::pair<std::vector<int>, Axes>;

    Network(std::vector<int64_t> sizes, std::vector<Axes> leaves, const std::vector<Product>& buckets,
            const std::vector<Product>& joins)
        : sizes(std::move(sizes)), axes(std::move(leaves)), leaf_count(static_cast<int>(axes.size())) {
        check_sizes(this->sizes);
        for (const auto& [inputs, output_axes] : buckets) axes.push_back(output_axes);
        for (const auto& [inputs, output_axes] : joins) axes.push_back(output_axes);
        for (const Axes& each : axes) check_axes(each, this->sizes);
        int64_t all_cells = 0, inner = 0;
        for (size_t t = 0; t < axes.size(); ++t) {
            offset.push_back(all_cells);
            length.push_back(cells(axes[t], this->sizes));
            all_cells = checked_sum(all_cells, length[t], "cells of a model's tables");
            if (static_cast<int>(t) >= leaf_count) inner += length[t];
        }
        leaf_cells = all_cells - inner;
        const std::vector<int> attributes = eliminated(buckets);
        check_joins(joins);
        int output = leaf_count;
        for (const auto& [inputs, output_axes] : buckets) {
            const int attribute = attributes[output - leaf_count];
            this->buckets.push_back({inputs, output++, attribute, LoopNest(axes_of(inputs), output_axes, this->sizes)});
        }
        for (const auto& [inputs, output_axes] : joins) {
            Join join{inputs, output++, LoopNest(axes_of(inputs), output_axes, this->sizes), {}};
            for (int leaf : inputs) join.sums.emplace_back(std::vector<Axes>{output_axes}, axes.at(leaf), this->sizes);
            joins_.push_back(std::move(join));
        }
        values.assign(all_cells, 0.0);
        ratios.assign(inner, 0.0);
    }

    double* value(int tensor) { return values.data() + offset[tensor]; }
    double* ratio(int message) { return ratios.data() + (offset[message] - leaf_cells); }

    // Probabilities of every leaf's cells into `marginals`; returns log Z (−∞ when nothing has weight, or when some
    // potential is not a number).
    double calibrate(const double* potentials, double* marginals) {
        logarithms = false;
        double log_z = forward(potentials);
        if (!(log_z - ceiling_ > -600)) {
            logarithms = true;
            log_z = forward(potentials);
        }
        if (std::isfinite(log_z)) backward(marginals);
        return log_z;
    }

    const std::vector<int64_t> sizes;
    std::vector<Axes> axes;
    const int leaf_count;
    int64_t leaf_cells = 0;
    std::vector<Bucket> buckets;
    std::vector<int64_t> offset, length;
    std::vector<double> values;  // leaves, messages, joins: e^potential / largest, or logarithms
    std::vector<double> ratios;  // for each message, belief / message: what the rest of the model says of its cells;
                                 // for each join, its belief
    bool logarithms = false;
    std::mutex busy;  // held by whoever computes: callers on several threads wait for each other

 private:
    std::vector<Join> joins_;
    double ceiling_ = 0;          // Σ largest potentials
    std::vector<double> factor_;  // what each bucket's message was multiplied by (in logarithms: what was added)

    std::vector<Axes> axes_of(const std::vector<int>& tensors) const {
        std::vector<Axes> found;
        for (int tensor : tensors) found.push_back(axes.at(tensor));
        return found;
    }

    // The axes of some tensors together; each comes once, and is one of the `first` first tensors or of the `last`
    // last.
    Axes union_of(const std::vector<int>& tensors, size_t first, size_t last) const {
        Axes found;
        for (size_t i = 0; i < tensors.size(); ++i) {
            const size_t tensor = checked_index(tensors[i], axes.size(), "an input");
            if ((tensor >= first && tensor < axes.size() - last) ||
                std::count(tensors.begin(), tensors.end(), tensors[i]) != 1)
                throw std::invalid_argument("an input comes twice, or is computed only later");
            found.insert(found.end(), axes[tensor].begin(), axes[tensor].end());
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    // The attribute that each bucket sums out. Every attribute goes once, and whatever mentions it goes with it: so
    // rows can be drawn the other way round, and a bucket's neighbours have all been drawn before it.
    std::vector<int> eliminated(const std::vector<Product>& products) const {
        const size_t joins = axes.size() - leaf_count - products.size();
        std::vector<char> gone(sizes.size(), 0);
        std::vector<int> attributes;
        for (const auto& [inputs, message] : products) {
            const Axes scope = union_of(inputs, leaf_count + attributes.size(), joins);
            Axes summed;
            std::set_difference(scope.begin(), scope.end(), message.begin(), message.end(), std::back_inserter(summed));
            const bool known = std::all_of(scope.begin(), scope.end(), [&](int axis) { return !gone[axis]; });
            if (summed.size() != 1 || scope.size() != message.size() + 1 || !known)
                throw std::invalid_argument("a bucket must sum one attribute out of its inputs, and each only once");
            gone[summed[0]] = 1;
            attributes.push_back(summed[0]);
        }
        if (attributes.size() != sizes.size()) throw std::invalid_argument("every attribute needs a bucket");
        return attributes;
    }

    void check_joins(const std::vector<Product>& products) const {
        for (const auto& [leaves, product] : products)
            if (union_of(leaves, leaf_count, 0) != product)
                throw std::invalid_argument("a join must have the axes of its leaves");
    }

    double forward(const double* potentials) {
        ceiling_ = 0;
        for (int leaf = 0; leaf < leaf_count; ++leaf) {
            const double* in = potentials + offset[leaf];
            double largest = NO_MASS;
            bool numbers = true;
            for (int64_t c = 0; c < length[leaf]; ++c) {
                largest = std::max(largest, in[c]);
                numbers &= in[c] == in[c];
            }
            if (!std::isfinite(largest) || !numbers) return NO_MASS;
            ceiling_ += largest;
            if (logarithms) {
                for (int64_t c = 0; c < length[leaf]; ++c) value(leaf)[c] = in[c] - largest;
            } else {
                exponentials(in, largest, value(leaf), length[leaf]);
            }
        }
        double log_z = ceiling_;
        factor_.clear();
        std::vector<const double*> inputs;
        for (const Join& join : joins_) {
            inputs.clear();
            for (int leaf : join.leaves) inputs.push_back(value(leaf));
            (logarithms ? contract_logarithms : contract)(join.nest, inputs.data(), value(join.output),
                                                          length[join.output]);
        }
        for (const Bucket& bucket : buckets) {
            inputs.clear();
            for (int i : bucket.inputs) inputs.push_back(value(i));
            double* out = value(bucket.output);
            const int64_t count = length[bucket.output];
            double largest;
            if (logarithms) {
                contract_logarithms(bucket.nest, inputs.data(), out, count);
                largest = *std::max_element(out, out + count);
                if (!std::isfinite(largest)) return NO_MASS;
                for (int64_t c = 0; c < count; ++c) out[c] -= largest;
                factor_.push_back(-largest);
                log_z += largest;
            } else {
                contract(bucket.nest, inputs.data(), out, count);
                largest = *std::max_element(out, out + count);
                if (!(largest > 0) || !std::isfinite(largest)) return NO_MASS;
                const double scale = 1 / largest;
                if (!std::isfinite(scale)) return NO_MASS;
                for (int64_t c = 0; c < count; ++c) out[c] *= scale;
                factor_.push_back(scale);
                log_z += std::log(largest);
            }
        }
        return log_z;
    }

    void backward(double* marginals) {
        std::fill(marginals, marginals + leaf_cells, 0.0);
        std::fill(ratios.begin(), ratios.end(), 0.0);
        std::vector<const double*> inputs;
        std::vector<double*> beliefs;
        for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
            inputs.clear();
            beliefs.clear();
            for (int i : bucket->inputs) {
                inputs.push_back(value(i));
                beliefs.push_back(i < leaf_count ? marginals + offset[i] : ratio(i));
            }
            divide(bucket->output);
            (logarithms ? distribute_logarithms : distribute)(bucket->nest, inputs.data(), ratio(bucket->output),
                                                              beliefs.data());
        }
        for (const Join& join : joins_) {
            const double* belief = ratio(join.output);
            for (size_t i = 0; i < join.leaves.size(); ++i) {
                const int leaf = join.leaves[i];
                contract(join.sums[i], &belief, marginals + offset[leaf], length[leaf]);
            }
        }
    }

    // Turns a message's belief into belief / message (before it was rescaled). A root's belief is 1.
    void divide(int message) {
        const double factor = factor_[message - leaf_count];
        double* belief = ratio(message);
        const double* sent = value(message);
        if (axes[message].empty()) belief[0] = 1;
        for (int64_t c = 0; c < length[message]; ++c) {
            if (logarithms) {
                belief[c] = belief[c] > 0 ? std::log(belief[c]) - sent[c] + factor : NO_MASS;
            } else {
                belief[c] = belief[c] > 0 ? belief[c] / sent[c] * factor : 0;
            }
        }
    }
};

}  // namespace hedgerow::model
