// Random numbers for post-processing; privacy noise never comes from here.
#pragma once

#include <cstdint>

namespace hedgerow {

// xoshiro256++ (Blackman and Vigna 2019).
class Rng {
 public:
    explicit Rng(const uint64_t* words) {
        for (int i = 0; i < 4; ++i) state_[i] = words[i];
    }
    uint64_t word() {
        const uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
        const uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = rotate(state_[3], 45);
        return result;
    }
    double uniform() { return static_cast<double>(word() >> 11) * 0x1p-53; }
    // Uniform on 0 … bound−1 without bias (Lemire 2019).
    uint32_t below(uint32_t bound) {
        uint64_t wide = (word() >> 32) * bound;
        uint32_t low = static_cast<uint32_t>(wide);
        if (low < bound) {
            const uint32_t threshold = -bound % bound;
            while (low < threshold) {
                wide = (word() >> 32) * bound;
                low = static_cast<uint32_t>(wide);
            }
        }
        return static_cast<uint32_t>(wide >> 32);
    }

 private:
    static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    uint64_t state_[4];
};

}  // namespace hedgerow
