// A graphical model laid out for elimination: leaves are potentials, each bucket sums one attribute out of a product
// of leaves, joins of leaves, and messages.
//
// `calibrate` runs the buckets forward (messages) and backward (beliefs). In linear space every message is rescaled
// to a largest cell of 1; the absolute error of a probability is then about 1e-308 / (Z / Π largest potentials), so
// linear space is kept unless that ratio is below e^-600, and everything is redone with logarithms otherwise.
#pragma once

#include <stdexcept>
#include <utility>

#include "contraction.h"

namespace hedgerow {

struct Bucket {
    std::vector<int> inputs;  // tensors: leaves first, then messages, then joins
    int output;
    Nest nest;
};

// A product of leaves that one bucket takes in place of them; `sums` take its belief back to each.
struct Join {
    std::vector<int> leaves;
    int output;
    Nest nest;
    std::vector<Nest> sums;
};

class Network {
   public:
    using Product = std::pair<std::vector<int>, Axes>;

    Network(std::vector<int64_t> sizes, std::vector<Axes> leaves, const std::vector<Product>& buckets,
            const std::vector<Product>& joins)
        : sizes(std::move(sizes)), axes(std::move(leaves)), leaf_count(static_cast<int>(axes.size())) {
        int output = leaf_count;
        for (const auto& [inputs, output_axes] : buckets) axes.push_back(output_axes);
        for (const auto& [inputs, output_axes] : joins) axes.push_back(output_axes);
        for (const auto& [inputs, output_axes] : buckets)
            this->buckets.push_back({inputs, output++, Nest(axes_of(inputs), output_axes, this->sizes)});
        for (const auto& [inputs, output_axes] : joins) {
            Join join{inputs, output++, Nest(axes_of(inputs), output_axes, this->sizes), {}};
            for (int leaf : inputs) join.sums.emplace_back(std::vector<Axes>{output_axes}, axes.at(leaf), this->sizes);
            joins_.push_back(std::move(join));
        }
        int64_t place = 0, inner = 0;
        for (size_t t = 0; t < axes.size(); ++t) {
            offset.push_back(place);
            length.push_back(cells(axes[t], this->sizes));
            place += length[t];
            if (static_cast<int>(t) >= leaf_count) inner += length[t];
        }
        leaf_cells = place - inner;
        values.assign(place, 0.0);
        ratios.assign(inner, 0.0);
    }

    double* value(int tensor) { return values.data() + offset[tensor]; }
    double* ratio(int message) { return ratios.data() + offset[message] - leaf_cells; }

    // Probabilities of every leaf's cells into `marginals`; returns log Z (−∞ when nothing has weight).
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

   private:
    std::vector<Join> joins_;
    double ceiling_ = 0;          // Σ largest potentials
    std::vector<double> factor_;  // what each bucket's message was multiplied by (in logarithms: what was added)

    std::vector<Axes> axes_of(const std::vector<int>& tensors) const {
        std::vector<Axes> found;
        for (int tensor : tensors) found.push_back(axes.at(tensor));
        return found;
    }

    double forward(const double* potentials) {
        ceiling_ = 0;
        for (int leaf = 0; leaf < leaf_count; ++leaf) {
            const double* in = potentials + offset[leaf];
            double largest = -std::numeric_limits<double>::infinity();
            for (int64_t c = 0; c < length[leaf]; ++c) largest = std::max(largest, in[c]);
            if (!std::isfinite(largest)) return -std::numeric_limits<double>::infinity();
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
                if (!std::isfinite(largest)) return -std::numeric_limits<double>::infinity();
                for (int64_t c = 0; c < count; ++c) out[c] -= largest;
                factor_.push_back(-largest);
                log_z += largest;
            } else {
                contract(bucket.nest, inputs.data(), out, count);
                largest = *std::max_element(out, out + count);
                if (!(largest > 0) || !std::isfinite(largest)) return -std::numeric_limits<double>::infinity();
                const double scale = 1 / largest;
                if (!std::isfinite(scale)) return -std::numeric_limits<double>::infinity();
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
            (logarithms ? spread_logarithms : spread)(bucket->nest, inputs.data(), ratio(bucket->output),
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
                belief[c] = belief[c] > 0 ? std::log(belief[c]) - sent[c] + factor : -std::numeric_limits<double>::infinity();
            } else {
                belief[c] = belief[c] > 0 ? belief[c] / sent[c] * factor : 0;
            }
        }
    }
};

}  // namespace hedgerow
