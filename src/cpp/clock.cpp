#include "clock.hpp"

#include <algorithm>
#include <chrono>

namespace pq {

double clock_hz() {
#if defined(__x86_64__)
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    // A 64-bit multiplication takes three cycles on every core since Nehalem and Zen, whatever else
    // the core does beside it; each waits for the one before.
    constexpr int rounds = 2048;
    constexpr double cycles = rounds * 16.0 * 3.0;
    const auto end = Clock::now() + std::chrono::milliseconds(20);
    double best = 0.0;
    long long value = 3;
    do {
        const auto begin = Clock::now();
        for (int i = 0; i < rounds; ++i) {
            asm volatile(".rept 16\n\timul %0, %0\n\t.endr" : "+r"(value));
        }
        best = std::max(best, cycles / Seconds(Clock::now() - begin).count());
    } while (Clock::now() < end);
    return best;
#else
    return 0.0;
#endif
}

} // namespace pq
