// Large buffers, kept for the next answer: asking the system for fresh pages costs more than counting into them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace hedgerow::counting {

class BufferPool {
 public:
    static BufferPool& shared() {
        static BufferPool* pool = new BufferPool;  // never destroyed: answers may outlive the module
        return *pool;
    }

    void* take(size_t bytes) {
        const int order = order_of(bytes);
        if (order < 0) return ::operator new(bytes);
        {
            const std::lock_guard<std::mutex> guard(lock_);
            auto& waiting = free_[order];
            if (!waiting.empty()) {
                void* buffer = waiting.back();
                waiting.pop_back();
                held_ -= SMALLEST << order;
                return buffer;
            }
        }
        return ::operator new(SMALLEST << order);
    }

    void give_back(void* buffer, size_t bytes) noexcept {
        const int order = order_of(bytes);
        if (order >= 0) {
            const std::lock_guard<std::mutex> guard(lock_);
            if (held_ + (SMALLEST << order) <= MOST_HELD && free_[order].size() < free_[order].capacity()) {
                free_[order].push_back(buffer);
                held_ += SMALLEST << order;
                return;
            }
        }
        ::operator delete(buffer);
    }

 private:
    static constexpr size_t SMALLEST = size_t{1} << 16;
    static constexpr size_t MOST_HELD = size_t{1} << 26;
    static constexpr int ORDERS = 11;

    BufferPool() {
        for (auto& waiting : free_) waiting.reserve(MOST_HELD / SMALLEST);
    }

    // Buffers come in sizes 64 KB · 2^order; smaller and larger ones are the system's business.
    static int order_of(size_t bytes) {
        if (bytes < SMALLEST / 2) return -1;
        int order = 0;
        while (order < ORDERS && (SMALLEST << order) < bytes) ++order;
        return order < ORDERS ? order : -1;
    }

    std::mutex lock_;
    std::array<std::vector<void*>, ORDERS> free_;
    size_t held_ = 0;
};

// Leaves numbers as they are when a vector grows: whoever needs zeros asks for them.
template <class Value> struct Pooled {
    using value_type = Value;
    Pooled() = default;
    template <class Other> Pooled(const Pooled<Other>&) noexcept {}
    Value* allocate(size_t count) { return static_cast<Value*>(BufferPool::shared().take(count * sizeof(Value))); }
    void deallocate(Value* values, size_t count) noexcept {
        BufferPool::shared().give_back(values, count * sizeof(Value));
    }
    template <class Other> void construct(Other* at) noexcept { ::new (static_cast<void*>(at)) Other; }
    template <class Other, class... Given> void construct(Other* at, Given&&... given) {
        ::new (static_cast<void*>(at)) Other(std::forward<Given>(given)...);
    }
    template <class Other> bool operator==(const Pooled<Other>&) const noexcept { return true; }
    template <class Other> bool operator!=(const Pooled<Other>&) const noexcept { return false; }
};

using Counts = std::vector<int64_t, Pooled<int64_t>>;

}  // namespace hedgerow::counting
