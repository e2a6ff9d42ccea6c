// Partitions of a table's cells into boxes of neighbours, refined one cut at a time.
//
// A partition's reconstruction error is Σ |count − mean of its block| over the cells: what spreading every block's sum
// evenly would get wrong. A whole sequence of partitions is returned as the steps between them, so that a caller can
// stop anywhere without computing anything again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace hedgerow::model {

// The codes from low to high along one axis of a box.
struct Side {
    int64_t low, high;
    int64_t length() const { return high - low; }
};
using Sides = std::vector<Side>;

inline Sides whole(const std::vector<int64_t>& shape) {
    Sides sides;
    for (int64_t size : shape) sides.push_back({0, size});
    return sides;
}

// Calls visit(index, length) for every row of a box, in order, along the last axis of a table of this shape.
template <class Visit> void for_each_row(const std::vector<int64_t>& shape, const Sides& box, Visit visit) {
    std::vector<int64_t> codes;
    for (const Side& side : box) codes.push_back(side.low);
    const size_t last = shape.size() - 1;
    for (bool more = true; more;) {
        int64_t index = 0;
        for (size_t axis = 0; axis <= last; ++axis) index = index * shape[axis] + codes[axis];
        visit(index, box[last].length());
        more = false;
        for (size_t axis = last; axis-- > 0 && !more;) {
            more = ++codes[axis] < box[axis].high;
            if (!more) codes[axis] = box[axis].low;
        }
    }
}

// What the best cut is best in: the reconstruction error that it takes away, or the mass of its lighter side.
enum class Criterion { error, mass };

// Step t cuts block blocks[t] along axes[t]: codes from cuts[t] on become block t + 1. errors[t] is from before it.
struct Splits {
    std::vector<int64_t> shape, blocks, axes, cuts;
    std::vector<double> errors;
};

// Boxes of a table, from the whole of it to single cells. The axes take turns; the best cut of any box along the axis
// whose turn it is goes next, the first of equals. An axis along which nothing can be cut loses its turn.
class BoxSplitter {
 public:
    BoxSplitter(const double* counts, std::vector<int64_t> shape, Criterion criterion)
        : counts_(counts), shape_(std::move(shape)), criterion_(criterion), queue_(shape_.size()) {}

    Splits run(int64_t most_blocks) {
        Splits found;
        found.shape = shape_;
        add({whole(shape_)});
        found.errors.push_back(error_);
        size_t turn = 0;
        while (static_cast<int64_t>(boxes_.size()) < most_blocks && take_turn(turn, found)) {
        }
        return found;
    }

 private:
    struct Box {
        Sides sides;
        double error = 0;
        int version = 0;
    };
    struct Cut {  // `at` 0: there is none
        double gain = -std::numeric_limits<double>::infinity();
        int64_t at = 0;
    };
    // gain, minus the box's number (the first of equals wins), its version, where to cut
    using Candidate = std::tuple<double, int64_t, int, int64_t>;

    bool take_turn(size_t& turn, Splits& found) {
        for (size_t tried = 0; tried < shape_.size(); ++tried) {
            const size_t axis = (turn + tried) % shape_.size();
            auto& candidates = queue_[axis];
            while (!candidates.empty() &&
                   std::get<2>(candidates.top()) != boxes_[-std::get<1>(candidates.top())].version)
                candidates.pop();
            if (candidates.empty()) continue;
            const auto [gain, negative, version, at] = candidates.top();
            candidates.pop();
            found.blocks.push_back(-negative);
            found.axes.push_back(static_cast<int64_t>(axis));
            found.cuts.push_back(at);
            cut(-negative, axis, at);
            found.errors.push_back(error_);
            turn = axis + 1;
            return true;
        }
        return false;
    }

    void cut(int64_t number, size_t axis, int64_t at) {
        Box upper = boxes_[number];
        error_ = std::max(0.0, error_ - upper.error);
        upper.sides[axis].low = at;
        boxes_[number].sides[axis].high = at;
        ++boxes_[number].version;
        examine(number);
        add(std::move(upper));
    }

    void add(Box box) {
        box.version = 0;
        boxes_.push_back(std::move(box));
        examine(static_cast<int64_t>(boxes_.size()) - 1);
    }

    // The box's error, and its best cut along every axis.
    void examine(int64_t number) {
        Box& box = boxes_[number];
        gather(box);
        double sum = 0;
        for (double cell : cells_) sum += cell;
        box.error =
            distance(cells_.data(), static_cast<int64_t>(cells_.size()), sum / static_cast<double>(cells_.size()));
        error_ += box.error;
        for (size_t axis = 0; axis < shape_.size(); ++axis) {
            const Cut cut = criterion_ == Criterion::mass ? best_by_mass(box, axis) : best_by_error(box, axis);
            if (cut.at > 0) queue_[axis].emplace(cut.gain, -number, box.version, box.sides[axis].low + cut.at);
        }
    }

    // The box's cells in order.
    void gather(const Box& box) {
        cells_.clear();
        for_each_row(shape_, box.sides, [&](int64_t index, int64_t length) {
            cells_.insert(cells_.end(), counts_ + index, counts_ + index + length);
        });
    }

    // How cells_ lie along an axis: outer repetitions of `length` slabs of `inner` cells.
    struct Along {
        int64_t outer = 1, length, inner = 1;
    };

    Along along(const Box& box, size_t axis) const {
        Along found;
        found.length = box.sides[axis].length();
        for (size_t other = 0; other < axis; ++other) found.outer *= box.sides[other].length();
        for (size_t other = axis + 1; other < shape_.size(); ++other) found.inner *= box.sides[other].length();
        return found;
    }

    void sum_slabs(const Along& of) {
        sums_.assign(of.length, 0.0);
        const double* cell = cells_.data();
        for (int64_t outer = 0; outer < of.outer; ++outer)
            for (int64_t code = 0; code < of.length; ++code)
                for (int64_t inner = 0; inner < of.inner; ++inner) sums_[code] += *cell++;
    }

    // cells_ slab after slab.
    void sort_by_slab(const Along& of) {
        slabs_.resize(cells_.size());
        for (int64_t outer = 0; outer < of.outer; ++outer)
            for (int64_t code = 0; code < of.length; ++code)
                std::copy_n(cells_.data() + (outer * of.length + code) * of.inner, of.inner,
                            slabs_.data() + (code * of.outer + outer) * of.inner);
    }

    Cut best_by_mass(const Box& box, size_t axis) {
        const Along of = along(box, axis);
        if (of.length < 2) return {};
        sum_slabs(of);
        double sum = 0, below = 0;
        for (double slab : sums_) sum += slab;
        Cut best;
        for (int64_t at = 1; at < of.length; ++at) {
            below += sums_[at - 1];
            const double lighter = std::min(below, sum - below);
            if (lighter > best.gain) best = {lighter, at};
        }
        return best;
    }

    Cut best_by_error(const Box& box, size_t axis) {
        const Along of = along(box, axis);
        if (of.length < 2) return {};
        if (box.error == 0) return {0.0, 1};  // every cut is as good as any other
        sum_slabs(of);
        sort_by_slab(of);
        double sum = 0, below = 0;
        for (double slab : sums_) sum += slab;
        Cut best;
        for (int64_t at = 1; at < of.length; ++at) {
            below += sums_[at - 1];
            const int64_t lower = at * of.outer * of.inner, upper = (of.length - at) * of.outer * of.inner;
            const double left = distance(slabs_.data(), lower, below / static_cast<double>(lower));
            const double right = distance(slabs_.data() + lower, upper, (sum - below) / static_cast<double>(upper));
            const double taken = box.error - left - right;  // may be below 0
            if (taken > best.gain) best = {taken, at};
        }
        return best;
    }

    // Σ |cell − mean|, in eight lanes so that it is as quick as memory.
    static double distance(const double* cells, int64_t count, double mean) {
        double lanes[8] = {};
        int64_t cell = 0;
        for (; cell + 8 <= count; cell += 8)
            for (int lane = 0; lane < 8; ++lane) lanes[lane] += std::abs(cells[cell + lane] - mean);
        double sum = 0;
        for (; cell < count; ++cell) sum += std::abs(cells[cell] - mean);
        for (double lane : lanes) sum += lane;
        return sum;
    }

    const double* counts_;
    std::vector<int64_t> shape_;
    Criterion criterion_;
    std::vector<Box> boxes_;
    std::vector<std::priority_queue<Candidate>> queue_;  // one for each axis
    double error_ = 0;
    std::vector<double> cells_, slabs_, sums_;
};

// Which block every cell lies in after the first so many splits.
inline void label(const Splits& splits, int64_t steps, int64_t* labels) {
    std::vector<Sides> boxes{whole(splits.shape)};
    for (int64_t step = 0; step < steps; ++step) {
        const int64_t block = splits.blocks[step], axis = splits.axes[step], cut = splits.cuts[step];
        boxes.push_back(boxes[block]);
        boxes.back()[axis].low = cut;
        boxes[block][axis].high = cut;
    }
    for (size_t block = 0; block < boxes.size(); ++block)
        for_each_row(splits.shape, boxes[block], [&](int64_t index, int64_t length) {
            std::fill_n(labels + index, length, static_cast<int64_t>(block));
        });
}

}  // namespace hedgerow::model
