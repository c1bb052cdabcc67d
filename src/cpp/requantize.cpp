#include "requantize.hpp"

#include "errors.hpp"
#include "requantize_quick.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace pq {

namespace {

// Accumulators of one call of a loop; and what is done again when a tie is too close to call.
constexpr std::size_t block_size = 1024;

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
    loops_ = spec_.dtype == "s32" ? chosen<std::int32_t>() : chosen<std::uint8_t>();
}

void Requantizer::fill_tables() {
    const std::size_t count = channels();
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
Loops Requantizer::chosen() const {
    const std::string& kind = spec_.kind;
    const Rounding rounding = rounding_from_name(spec_.rounding);
    if (kind == "two_step") {
        if (all(left_, [](auto left) { return left == 0; }) &&
            all(multiplier_, [](auto m) { return m > INT32_MIN; })) {
            if (rounding == Rounding::half_up) return loops<TwoStepRight<Rounding::half_up>, Out>();
            if (rounding == Rounding::half_away_from_zero)
                return loops<TwoStepRight<Rounding::half_away_from_zero>, Out>();
        }
        return loops_rounding<TwoStep, Out>(rounding);
    }
    if (kind == "shift") {
        const bool high = all(right_, [](auto right) { return right >= 33; });
        if (high && rounding == Rounding::half_up) return loops<ShiftHigh, Out>();
        return loops_rounding<Shift, Out>(rounding);
    }
    if constexpr (narrow<Out>) {
        if (all(right_, [](auto right) { return right < 32; })) {
            if (kind == "two_round_single") return loops<TwoRoundNarrow<true>, Out>();
            if (kind == "two_round_double") return loops<TwoRoundNarrow<false>, Out>();
        }
    }
    if (kind == "float") return loops<Float, Out>();
    if (kind == "double") return loops<Double, Out>();
    if (kind == "two_round_single") return loops<TwoRound<true>, Out>();
    if (kind == "two_round_double") return loops<TwoRound<false>, Out>();
    if (kind == "onednn") return loops<OneDNN<false>, Out>();
    if (kind == "onednn_divide") return loops<OneDNN<true>, Out>();
    if (kind == "exact") return loops<Exact, Out>();
    throw ArgumentFault("ArgumentError", "kind", "'" + kind + "'", "a requantiser's kind");
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
    if (!(uniform ? loops_.same : loops_.each)(place, acc, dst, count)) return;
    if (spec_.kind != "exact") overflows(spec_.kind);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t c = uniform ? channel : (channel + i) % channels();
        dst[i] = static_cast<Out>(exactly(acc[i], c));
    }
}

template <typename Out>
void Requantizer::rows(const std::int32_t* acc, Out* dst, std::size_t outer,
                       std::size_t inner) const {
    // Neighbours of one channel are a row; where each has a channel of its own, all are one row.
    const bool uniform = inner > 1 || channels() == 1;
    const std::size_t count = inner > 1 ? outer * channels() : 1;
    const std::size_t length = inner > 1 ? inner : outer * channels();
    for (std::size_t row = 0; row < count; ++row) {
        for (std::size_t i = 0; i < length; i += block_size) {
            const std::size_t at = row * length + i;
            block(uniform, (uniform ? row : i) % channels(), acc + at, dst + at,
                  std::min(block_size, length - i));
        }
    }
}

void Requantizer::run(const std::int32_t* acc, void* dst, std::size_t outer,
                      std::size_t inner) const {
    // Codes of either sign are the lower 8 bits of their values.
    if (spec_.dtype == "s32") return rows(acc, static_cast<std::int32_t*>(dst), outer, inner);
    rows(acc, static_cast<std::uint8_t*>(dst), outer, inner);
}

} // namespace pq
