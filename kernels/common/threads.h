// Shares of some work, each on a thread of its own.
#pragma once

#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace hedgerow {

// Calls share(0) … share(count − 1), one of them on this thread. Shares for which the system has no thread to give are
// done here too, one after the other: the result is the same. The first failure is thrown once all have ended.
template <class Share> void run_shares(size_t count, const Share& share) {
    std::vector<std::exception_ptr> failures(count);
    const auto guarded = [&](size_t number) noexcept {
        try {
            share(number);
        } catch (...) {
            failures[number] = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    others.reserve(count);
    size_t started = 1;
    try {
        for (; started < count; ++started) others.emplace_back(guarded, started);
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
    guarded(0);
    for (size_t number = started; number < count; ++number) guarded(number);
    for (std::thread& other : others) other.join();
    for (const std::exception_ptr& failure : failures)
        if (failure) std::rethrow_exception(failure);
}

}  // namespace hedgerow
