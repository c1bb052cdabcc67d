#include "requantize.hpp"

#include "errors.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace pq {

namespace {

// Accumulators of one call of a loop; and what is done again when a tie is too close to call.
constexpr std::size_t block_size = 1024;
static_assert(block_size % chunk_size == 0);
// Of a piece for one thread.
constexpr std::size_t grain = std::size_t{16} << 10U;

// What is added to a number before bits are cut off: a part of the greatest number that they hold,
// 2^right - 1 or `mask`, rounded up, and `plus`.
enum class Part { none, half, whole };

struct Addend {
    Part part;
    int plus;

    std::int64_t of(std::int64_t mask) const {
        if (mask == 0) return 0; // no bits
        return (part == Part::none ? 0 : part == Part::half ? mask / 2 + 1 : mask) + plus;
    }
};

// `odd`: what comes to it where the quotient rounded down is odd.
struct Rounding {
    const char* name;
    Addend positive, negative;
    int odd;
};

constexpr Addend never{Part::none, 0}, always{Part::whole, 0};
constexpr Addend from_half{Part::half, 0}, above_half{Part::half, -1};
constexpr std::array<Rounding, 10> roundings{{{"half_away_from_zero", from_half, above_half, 0},
                                              {"half_up", from_half, from_half, 0},
                                              {"half_down", above_half, above_half, 0},
                                              {"half_to_even", above_half, above_half, 1},
                                              {"half_to_odd", from_half, from_half, -1},
                                              {"half_towards_zero", above_half, from_half, 0},
                                              {"towards_zero", never, always, 0},
                                              {"away_from_zero", always, never, 0},
                                              {"up", always, always, 0},
                                              {"down", never, never, 0}}};

const Rounding& rounding_from_name(const std::string& name) {
    for (const Rounding& rounding : roundings)
        if (name == rounding.name) return rounding;
    throw ArgumentFault("ArgumentError", "rounding", "'" + name + "'", "a rounding's name");
}

template <typename T, typename Condition>
bool all(const std::vector<T>& values, Condition holds) {
    return std::all_of(values.begin(), values.end(), holds);
}

// The same number with a multiplier as large as 32 bits allow, for the product's upper half to tell
// as much as it can; 62: the largest shift.
void use_all_bits(std::int64_t& multiplier, std::int32_t& shift) {
    if (shift >= 0) return;
    while (shift > -62 && std::abs(multiplier) < std::int64_t{1} << 30) {
        multiplier *= 2;
        --shift;
    }
}

[[noreturn]] void overflows(const std::string& kind) {
    throw ArgumentFault("ArgumentError", "acc", "a value that leaves 32 bits on the way",
                        "accumulators for which acc + bias, and its left shift, fit in 32 bits "
                        "(kind " +
                                kind + ")");
}

} // namespace

Requantizer::Requantizer(RequantizerSpec spec) : spec_(std::move(spec)) {
    const std::size_t count = channels();
    const bool whole = count > 0 && spec_.multiplier.size() == count &&
                       spec_.shift.size() == count && spec_.bias.size() == count &&
                       spec_.factor.size() == count && spec_.then.size() == count &&
                       spec_.last.size() == count && spec_.real_bias.size() == count;
    if (!whole) {
        throw ArgumentFault("ShapeError", "requantizer", "vectors of several lengths",
                            "one value per channel in each");
    }
    fill_tables();
    loops_ = spec_.dtype == "s32" ? choose<std::int32_t>() : choose<std::uint8_t>();
}

void Requantizer::fill_tables() {
    const std::size_t count = channels();
    const Rounding& rounding = rounding_from_name(spec_.rounding);
    if (spec_.kind == "shift") {
        for (std::size_t c = 0; c < count; ++c)
            use_all_bits(spec_.multiplier[c], spec_.shift[c]);
        const int most = needs_all_bits() ? -34 : -33;
        upper_ = all(spec_.shift, [most](auto shift) { return -62 <= shift && shift <= most; });
    }
    for (std::size_t i = 0; i < count + chunk_size; ++i) {
        const std::size_t c = i % count;
        const std::int64_t zero_point = spec_.zero_point[c];
        const std::int32_t right = std::max(-spec_.shift[c], 0);
        multiplier_.push_back(static_cast<std::int32_t>(spec_.multiplier[c]));
        left_.push_back(std::max(spec_.shift[c], 0));
        right_.push_back(upper_ ? right - 32 : right);
        bias_.push_back(spec_.bias[c]);
        zero_point_.push_back(static_cast<std::int32_t>(zero_point));
        lo_.push_back(static_cast<std::int32_t>(spec_.lo - zero_point));
        hi_.push_back(static_cast<std::int32_t>(spec_.hi - zero_point));
        const std::int64_t mask = (std::int64_t{1} << std::min(right_.back(), 62)) - 1;
        wide_up_.push_back(rounding.positive.of(mask));
        wide_less_.push_back(wide_up_.back() - rounding.negative.of(mask));
        // Read by rules for which they fit.
        mask_.push_back(static_cast<std::int32_t>(mask));
        up_.push_back(static_cast<std::int32_t>(wide_up_.back()));
        less_.push_back(static_cast<std::int32_t>(wide_less_.back()));
        odd_.push_back(mask == 0 ? 0 : rounding.odd);
        factor_.push_back(static_cast<float>(spec_.factor[c]));
        then_.push_back(static_cast<float>(spec_.then[c]));
        last_.push_back(static_cast<float>(spec_.last[c]));
        real_bias_.push_back(static_cast<float>(spec_.real_bias[c]));
        real_factor_.push_back(spec_.factor[c]);
        power_.push_back(std::ldexp(1.0, spec_.shift[c]));
    }
}

// Whether a rounding asks for more than the upper bits of what is cut off.
bool Requantizer::needs_all_bits() const {
    return spec_.rounding != "half_up" && spec_.rounding != "down";
}

template <typename Out>
Loops Requantizer::choose() const {
    const std::string& kind = spec_.kind;
    if (kind == "two_step") {
        const bool quick = all(odd_, [](auto odd) { return odd == 0; }) &&
                           all(left_, [](auto left) { return left == 0; }) &&
                           all(multiplier_, [](auto m) { return m > INT32_MIN; });
        return quick ? loops<TwoStep<true>, Out>() : loops<TwoStep<false>, Out>();
    }
    if (kind == "shift") {
        if (!upper_) return loops<Shift, Out>();
        return needs_all_bits() ? loops<ShiftUpper<true>, Out>() : loops<ShiftUpper<false>, Out>();
    }
    if (kind == "exact") return choose_exact<Out>();
    if (kind == "two_round_single") return choose_two_round<Out, true>();
    if (kind == "two_round_double") return choose_two_round<Out, false>();
    if (kind == "float") return loops<Float, Out>();
    if (kind == "double") return loops<DoubleOnFloats, Out>();
    if (kind == "onednn") return loops<OneDNN<false>, Out>();
    if (kind == "onednn_divide") return loops<OneDNN<true>, Out>();
    throw ArgumentFault("ArgumentError", "kind", "'" + kind + "'", "a requantizer's kind");
}

template <typename Out>
Loops Requantizer::choose_exact() const {
    // With few bits ties are ties: nothing to look at again.
    if (!has_short_factors()) return loops<Exact<false, false>, Out>();
    return spec_.rounding == "half_to_even" ? loops<Exact<false, true>, Out>()
                                            : loops<Exact<true, true>, Out>();
}

template <typename Out, bool single>
Loops Requantizer::choose_two_round() const {
    if constexpr (narrow<Out>) {
        using Narrow = TwoRoundNarrow<single>;
        if (all(right_, [](auto right) { return right < 32; }) &&
            all(real_factor_, [](auto m) { return std::abs(m) <= Narrow::most; }))
            return loops<Narrow, Out>();
    }
    return loops<TwoRound<single>, Out>();
}

// Whether doubles hold all real factors exactly, and with so few bits that they hold all products.
bool Requantizer::has_short_factors() const {
    for (std::size_t c = 0; c < channels(); ++c) {
        const auto m = static_cast<double>(spec_.multiplier[c]);
        const double quotient = m / spec_.last[c];
        int exponent = 0;
        const double mantissa = std::frexp(quotient, &exponent) * 0x1p21;
        if (std::fma(quotient, spec_.last[c], -m) != 0.0 || mantissa != std::trunc(mantissa))
            return false;
    }
    return true;
}

Columns Requantizer::columns() const {
    return {multiplier_.data(), left_.data(),    right_.data(),     bias_.data(),
            zero_point_.data(), lo_.data(),      hi_.data(),        mask_.data(),
            up_.data(),         less_.data(),    odd_.data(),       factor_.data(),
            then_.data(),       last_.data(),    real_bias_.data(), real_factor_.data(),
            power_.data(),      wide_up_.data(), wide_less_.data(), channels()};
}

// x · m · 2^s / last in whole numbers: nothing here rounds but the result.
std::int32_t Requantizer::exactly(std::int32_t acc, std::size_t channel) const {
    __extension__ using Wide = unsigned __int128;
    const std::int64_t x = std::int64_t{acc} + spec_.bias[channel];
    if (x != static_cast<std::int32_t>(x)) overflows(spec_.kind);
    const std::int64_t m = spec_.multiplier[channel];
    const double size = std::abs(static_cast<double>(x) * spec_.factor[channel]);
    const bool negative = (x < 0) != (m < 0);
    const std::int64_t lo = lo_[channel], hi = hi_[channel];
    if (size > 0x1p33) {
        return static_cast<std::int32_t>(negative ? lo : hi) + zero_point_[channel];
    }
    const int shift = spec_.shift[channel];
    std::int64_t whole = 0;
    if (size > 0.25) {
        const auto below = static_cast<std::uint64_t>(nearest_even(size - 0.5));
        // Twice the value against twice the point half way, both times last and a power of two.
        Wide twice = Wide(static_cast<std::uint64_t>(std::abs(x))) *
                     static_cast<std::uint64_t>(std::abs(m)) * 2;
        Wide half_way = Wide(2 * below + 1) * static_cast<std::uint64_t>(spec_.last[channel]);
        (shift > 0 ? twice : half_way) <<= std::abs(shift);
        const bool tie_goes_up = spec_.rounding != "half_to_even" || below % 2 == 1;
        const bool up = twice > half_way || (twice == half_way && tie_goes_up);
        whole = static_cast<std::int64_t>(below + (up ? 1 : 0));
    }
    return static_cast<std::int32_t>(clamped(negative ? -whole : whole, lo, hi)) +
           zero_point_[channel];
}

template <typename Out>
void Requantizer::block(bool uniform, std::size_t channel, const std::int32_t* acc, Out* dst,
                        std::size_t count) const {
    const Columns constants = columns();
    const Sweep sweep = uniform ? loops_.same : loops_.each;
    if (!sweep(constants, channel, acc, dst, count)) return;
    if (spec_.kind != "exact") overflows(spec_.kind);
    for (std::size_t i = 0; i < count; ++i)
        dst[i] = static_cast<Out>(exactly(acc[i], uniform ? channel : (channel + i) % channels()));
}

template <typename Out>
void Requantizer::run_as(const std::int32_t* acc, Out* dst, std::size_t outer,
                         std::size_t inner) const {
    // Neighbours of one channel are a row; where each has a channel of its own, all are one row.
    const bool uniform = inner > 1 || channels() == 1;
    in_parallel(outer * channels() * inner, grain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end;) {
            const std::size_t row = i / inner;
            const std::size_t row_end = inner > 1 ? (row + 1) * inner : end;
            const std::size_t count = std::min({block_size, row_end - i, end - i});
            block(uniform, row % channels(), acc + i, dst + i, count);
            i += count;
        }
    });
}

void Requantizer::run(const std::int32_t* acc, void* dst, std::size_t outer,
                      std::size_t inner) const {
    // Codes of either sign are the lower 8 bits of their values.
    if (spec_.dtype == "s32") return run_as(acc, static_cast<std::int32_t*>(dst), outer, inner);
    run_as(acc, static_cast<std::uint8_t*>(dst), outer, inner);
}

} // namespace pq
