#include "requantize.hpp"

#include "errors.hpp"
#include "parallel.hpp"
#include "requantize_quick.hpp"

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

constexpr std::array<const char*, 10> rounding_names{
        "half_away_from_zero", "half_up",      "half_down",      "half_to_even", "half_to_odd",
        "half_towards_zero",   "towards_zero", "away_from_zero", "up",           "down"};

Rounding rounding_from_name(const std::string& name) {
    const auto* const found = std::find(rounding_names.begin(), rounding_names.end(), name);
    if (found == rounding_names.end())
        throw ArgumentFault("ArgumentError", "rounding", "'" + name + "'", "a rounding's name");
    return static_cast<Rounding>(found - rounding_names.begin());
}

template <template <Rounding> class Rule, typename Out>
Loops loops_rounding(Rounding rounding) {
    switch (rounding) {
    case Rounding::half_away_from_zero:
        return loops<Rule<Rounding::half_away_from_zero>, Out>();
    case Rounding::half_up:
        return loops<Rule<Rounding::half_up>, Out>();
    case Rounding::half_down:
        return loops<Rule<Rounding::half_down>, Out>();
    case Rounding::half_to_even:
        return loops<Rule<Rounding::half_to_even>, Out>();
    case Rounding::half_to_odd:
        return loops<Rule<Rounding::half_to_odd>, Out>();
    case Rounding::half_towards_zero:
        return loops<Rule<Rounding::half_towards_zero>, Out>();
    case Rounding::towards_zero:
        return loops<Rule<Rounding::towards_zero>, Out>();
    case Rounding::away_from_zero:
        return loops<Rule<Rounding::away_from_zero>, Out>();
    case Rounding::up:
        return loops<Rule<Rounding::up>, Out>();
    case Rounding::down:
        break;
    }
    return loops<Rule<Rounding::down>, Out>();
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
    if (spec_.dtype == "s32") {
        choose<std::int32_t>();
    } else {
        choose<std::uint8_t>();
    }
}

void Requantizer::fill_tables() {
    const std::size_t count = channels();
    if (spec_.kind == "shift") {
        for (std::size_t c = 0; c < count; ++c)
            use_all_bits(spec_.multiplier[c], spec_.shift[c]);
    }
    for (std::size_t i = 0; i < count + chunk_size; ++i) {
        const std::size_t c = i % count;
        const std::int64_t zero_point = spec_.zero_point[c];
        multiplier_.push_back(static_cast<std::int32_t>(spec_.multiplier[c]));
        left_.push_back(std::max(spec_.shift[c], 0));
        right_.push_back(std::max(-spec_.shift[c], 0));
        bias_.push_back(spec_.bias[c]);
        zero_point_.push_back(static_cast<std::int32_t>(zero_point));
        lo_.push_back(static_cast<std::int32_t>(spec_.lo - zero_point));
        hi_.push_back(static_cast<std::int32_t>(spec_.hi - zero_point));
        factor_.push_back(static_cast<float>(spec_.factor[c]));
        then_.push_back(static_cast<float>(spec_.then[c]));
        last_.push_back(static_cast<float>(spec_.last[c]));
        real_bias_.push_back(static_cast<float>(spec_.real_bias[c]));
        real_factor_.push_back(spec_.factor[c]);
        power_.push_back(std::ldexp(1.0, spec_.shift[c]));
        divisor_.push_back(std::uint64_t{1} << std::min(right_.back(), 63));
    }
}

template <typename Out>
void Requantizer::choose() {
    const std::string& kind = spec_.kind;
    const Rounding rounding = rounding_from_name(spec_.rounding);
    if (kind == "two_step") {
        choose_two_step<Out>(rounding);
    } else if (kind == "shift") {
        choose_shift<Out>(rounding);
    } else if (kind == "exact") {
        choose_exact<Out>(rounding);
    } else if (kind == "two_round_single") {
        choose_two_round<true, Out>();
    } else if (kind == "two_round_double") {
        choose_two_round<false, Out>();
    } else if (kind == "float") {
        loops_ = loops<Float, Out>();
    } else if (kind == "double") {
        loops_ = loops<DoubleOnFloats, Out>();
    } else if (kind == "onednn") {
        loops_ = loops<OneDNN<false>, Out>();
    } else if (kind == "onednn_divide") {
        loops_ = loops<OneDNN<true>, Out>();
    } else {
        throw ArgumentFault("ArgumentError", "kind", "'" + kind + "'", "a requantizer's kind");
    }
}

template <typename Out>
void Requantizer::choose_two_step(Rounding rounding) {
    const bool quick = all(left_, [](auto left) { return left == 0; }) &&
                       all(multiplier_, [](auto m) { return m > INT32_MIN; });
    if (quick && rounding == Rounding::half_up) {
        choose_two_step_rest<Rounding::half_up, Out>();
    } else if (quick && rounding == Rounding::half_away_from_zero) {
        choose_two_step_rest<Rounding::half_away_from_zero, Out>();
    } else {
        loops_ = loops_rounding<TwoStep, Out>(rounding);
    }
}

template <Rounding mode, typename Out>
void Requantizer::choose_two_step_rest() {
    products_ = products(Upper::doubled);
    const bool shifts = all(right_, [](auto right) { return right > 0; });
    loops_ =
            shifts ? loops<TwoStepRest<mode, true>, Out>() : loops<TwoStepRest<mode, false>, Out>();
}

template <typename Out>
void Requantizer::choose_shift(Rounding rounding) {
    const bool needs_all = rounding != Rounding::half_up && rounding != Rounding::down;
    const int least = needs_all ? 34 : 33;
    if (all(right_, [least](auto right) { return least <= right && right <= 62; })) {
        products_ = products(needs_all ? Upper::sticky : Upper::cut);
        for (auto& right : right_)
            right -= 32;
        loops_ = loops_rounding<ShiftRest, Out>(rounding);
    } else {
        loops_ = loops_rounding<Shift, Out>(rounding);
    }
}

template <bool single, typename Out>
void Requantizer::choose_two_round() {
    if constexpr (narrow<Out>) {
        using Narrow = TwoRoundNarrow<single>;
        if (all(right_, [](auto right) { return right < 32; }) &&
            all(real_factor_, [](auto m) { return std::abs(m) <= Narrow::most; })) {
            loops_ = loops<Narrow, Out>();
            return;
        }
    }
    loops_ = loops<TwoRound<single>, Out>();
}

template <typename Out>
void Requantizer::choose_exact(Rounding rounding) {
    // With few bits ties are ties: nothing to look at again.
    if (!has_short_factors()) {
        loops_ = loops<Exact, Out>();
    } else if (rounding == Rounding::half_to_even) {
        loops_ = loops<Double, Out>();
    } else {
        loops_ = loops<ExactAway, Out>();
    }
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
    return {multiplier_.data(), left_.data(),   right_.data(),     bias_.data(),
            zero_point_.data(), lo_.data(),     hi_.data(),        factor_.data(),
            then_.data(),       last_.data(),   real_bias_.data(), real_factor_.data(),
            power_.data(),      divisor_.data()};
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
    const Columns all_columns = columns();
    const Place place{all_columns, channel, channels()};
    const Sweep sweep = uniform ? loops_.same : loops_.each;
    if (products_.each != nullptr) {
        std::array<std::int32_t, block_size> upper;
        const Products multiply = uniform ? products_.same : products_.each;
        if (multiply(place, acc, upper.data(), count)) overflows(spec_.kind);
        sweep(place, upper.data(), dst, count);
        return;
    }
    if (!sweep(place, acc, dst, count)) return;
    if (spec_.kind != "exact") overflows(spec_.kind);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t c = uniform ? channel : (channel + i) % channels();
        std::uint32_t doubt = 0;
        const auto likely = Exact::apply<Out>(acc[i], all_columns.at(c), doubt);
        dst[i] = static_cast<Out>(doubt == 0 ? likely : exactly(acc[i], c));
    }
}

template <typename Out>
void Requantizer::piece(const std::int32_t* acc, Out* dst, std::size_t begin, std::size_t end,
                        std::size_t inner) const {
    // Neighbours of one channel are a row; where each has a channel of its own, all are one row.
    const bool uniform = inner > 1 || channels() == 1;
    for (std::size_t i = begin; i < end;) {
        const std::size_t row = i / inner;
        const std::size_t row_end = inner > 1 ? (row + 1) * inner : end;
        const std::size_t count = std::min({block_size, row_end - i, end - i});
        block(uniform, row % channels(), acc + i, dst + i, count);
        i += count;
    }
}

template <typename Out>
void Requantizer::run_as(const std::int32_t* acc, Out* dst, std::size_t outer,
                         std::size_t inner) const {
    in_parallel(outer * channels() * inner, grain,
                [&](std::size_t begin, std::size_t end) { piece(acc, dst, begin, end, inner); });
}

void Requantizer::run(const std::int32_t* acc, void* dst, std::size_t outer,
                      std::size_t inner) const {
    // Codes of either sign are the lower 8 bits of their values.
    if (spec_.dtype == "s32") return run_as(acc, static_cast<std::int32_t*>(dst), outer, inner);
    run_as(acc, static_cast<std::uint8_t*>(dst), outer, inner);
}

} // namespace pq
