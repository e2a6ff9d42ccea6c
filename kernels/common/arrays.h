// Arrays from Python. The caster has checked type, dimension and layout; this checks what it does not look at.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/rng.h"

namespace hedgerow {

// Numbers at odd addresses cannot be read as they are.
template <class Array> void require_aligned(const Array& array) {
    if (array.size() && reinterpret_cast<uintptr_t>(array.data()) % array.itemsize())
        throw std::invalid_argument("an array does not lie at an address that suits its type; copy it first");
}

template <class Array> void require_aligned(const std::vector<Array>& arrays) {
    for (const Array& array : arrays) require_aligned(array);
}

// The bytes of some arrays. Those that are written to may share none with any other.
class Extents {
 public:
    template <class Array> Extents& written(const Array& array) { return add(array, true); }
    template <class Array> Extents& read(const Array& array) { return add(array, false); }

    void require_disjoint() {
        std::sort(extents_.begin(), extents_.end(), [](const Extent& a, const Extent& b) { return a.first < b.first; });
        uintptr_t end = 0, end_written = 0;  // of all before, and of those that are written to
        for (const Extent& extent : extents_) {
            if (extent.first < (extent.written ? end : end_written))
                throw std::invalid_argument("an array that is written to shares memory with another");
            end = std::max(end, extent.last);
            if (extent.written) end_written = std::max(end_written, extent.last);
        }
    }

 private:
    struct Extent {
        uintptr_t first, last;
        bool written;
    };
    std::vector<Extent> extents_;

    template <class Array> Extents& add(const Array& array, bool written) {
        const auto first = reinterpret_cast<uintptr_t>(array.data());
        if (array.size()) extents_.push_back({first, first + array.nbytes(), written});
        return *this;
    }
};

// Hands a vector to numpy without copying it.
template <class Vector> nanobind::object to_numpy(Vector values) {
    namespace nb = nanobind;
    auto owned = std::make_unique<Vector>(std::move(values));
    auto* held = owned.get();
    nb::capsule owner(held, [](void* vector) noexcept { delete static_cast<Vector*>(vector); });
    owned.release();
    return nb::cast(
        nb::ndarray<nb::numpy, typename Vector::value_type, nb::ndim<1>>(held->data(), {held->size()}, owner));
}

inline Rng read_rng(const std::vector<uint64_t>& words) {
    if (words.size() != 4 || std::all_of(words.begin(), words.end(), [](uint64_t word) { return word == 0; }))
        throw std::invalid_argument("random numbers need four words to start from that are not all 0");
    return Rng(words.data());
}

}  // namespace hedgerow
