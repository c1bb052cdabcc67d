#include "requantize.hpp"

#include "errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace pq {

namespace {

// Accumulators that are worked on at a time; their results stay in the first cache.
constexpr std::size_t block_size = 1024;

template <typename Rule, bool uniform>
PQ_INLINE bool sweep(const Columns& given, const std::int32_t* __restrict acc,
                     std::int32_t* __restrict out, std::size_t count) {
    const Columns columns = given;
    const Constants first = columns.at(0);
    std::uint32_t fault = 0;
    for (std::size_t i = 0; i < count; ++i)
        out[i] = Rule::apply(acc[i], uniform ? first : columns.at(i), fault);
    return fault != 0;
}

template <typename Out>
PQ_INLINE void narrow(const std::int32_t* __restrict from, Out* __restrict to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        to[i] = static_cast<Out>(from[i]);
}

// Asks for the accumulators and results of the block behind this one while this one is computed:
// the hardware's own prefetching ends with each page, which is a block.
template <typename Out>
PQ_INLINE void prefetch(const std::int32_t* acc, Out* dst, std::size_t count) {
    constexpr std::size_t line = 64;
    for (std::size_t i = 0; i < count; i += line / sizeof(std::int32_t))
        __builtin_prefetch(acc + i, 0);
    for (std::size_t i = 0; i < count; i += line / sizeof(Out))
        __builtin_prefetch(dst + i, 1);
}

#define PQ_LOOPS(LEVEL, TARGET)                                                                    \
    template <typename Rule, bool uniform>                                                         \
    TARGET bool sweep_##LEVEL(const Columns& columns, const std::int32_t* acc, std::int32_t* out,  \
                              std::size_t count) {                                                 \
        return sweep<Rule, uniform>(columns, acc, out, count);                                     \
    }                                                                                              \
    template <typename Out>                                                                        \
    TARGET void narrow_##LEVEL(const std::int32_t* from, Out* to, std::size_t count) {             \
        narrow<Out>(from, to, count);                                                              \
    }

PQ_LOOPS(512, PQ_TARGET_512)
PQ_LOOPS(256, PQ_TARGET_256)
PQ_LOOPS(any, )

#undef PQ_LOOPS

using Sweep = bool (*)(const Columns&, const std::int32_t*, std::int32_t*, std::size_t);
using Loops = std::pair<Sweep, Sweep>; // each accumulator of its own channel; all of the same

template <typename Rule>
Loops loops() {
    switch (vector_bits()) {
    case 512:
        return {&sweep_512<Rule, false>, &sweep_512<Rule, true>};
    case 256:
        return {&sweep_256<Rule, false>, &sweep_256<Rule, true>};
    default:
        return {&sweep_any<Rule, false>, &sweep_any<Rule, true>};
    }
}

template <typename Out>
void narrow_here(const std::int32_t* from, Out* to, std::size_t count) {
    switch (vector_bits()) {
    case 512:
        return narrow_512(from, to, count);
    case 256:
        return narrow_256(from, to, count);
    default:
        return narrow_any(from, to, count);
    }
}

constexpr std::array<const char*, 10> rounding_names{
        "half_away_from_zero", "half_up",      "half_down",      "half_to_even", "half_to_odd",
        "half_towards_zero",   "towards_zero", "away_from_zero", "up",           "down"};

Rounding rounding_from_name(const std::string& name) {
    const auto* const found = std::find(rounding_names.begin(), rounding_names.end(), name);
    if (found == rounding_names.end())
        throw ArgumentFault("ArgumentError", "rounding", "'" + name + "'", "a rounding's name");
    return static_cast<Rounding>(found - rounding_names.begin());
}

template <template <Rounding> class Rule>
Loops loops_rounding(const std::string& name) {
    switch (rounding_from_name(name)) {
    case Rounding::half_away_from_zero:
        return loops<Rule<Rounding::half_away_from_zero>>();
    case Rounding::half_up:
        return loops<Rule<Rounding::half_up>>();
    case Rounding::half_down:
        return loops<Rule<Rounding::half_down>>();
    case Rounding::half_to_even:
        return loops<Rule<Rounding::half_to_even>>();
    case Rounding::half_to_odd:
        return loops<Rule<Rounding::half_to_odd>>();
    case Rounding::half_towards_zero:
        return loops<Rule<Rounding::half_towards_zero>>();
    case Rounding::towards_zero:
        return loops<Rule<Rounding::towards_zero>>();
    case Rounding::away_from_zero:
        return loops<Rule<Rounding::away_from_zero>>();
    case Rounding::up:
        return loops<Rule<Rounding::up>>();
    case Rounding::down:
        break;
    }
    return loops<Rule<Rounding::down>>();
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
    choose_loops();
}

void Requantizer::fill_tables() {
    const std::size_t count = channels();
    period_ = count * ((block_size + count - 1) / count);
    for (std::size_t i = 0; i < period_; ++i) {
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

void Requantizer::choose_loops() {
    const auto chosen = [this]() -> Loops {
        const std::string& kind = spec_.kind;
        if (kind == "two_step") return loops_rounding<TwoStep>(spec_.rounding);
        if (kind == "shift") return loops_rounding<Shift>(spec_.rounding);
        if (kind == "float") return loops<Float>();
        if (kind == "double") return loops<Double>();
        if (kind == "two_round_single") return loops<TwoRound<true>>();
        if (kind == "two_round_double") return loops<TwoRound<false>>();
        if (kind == "onednn") return loops<OneDNN<false>>();
        if (kind == "onednn_divide") return loops<OneDNN<true>>();
        if (kind == "exact") return loops<Exact>();
        throw ArgumentFault("ArgumentError", "kind", "'" + kind + "'", "a requantiser's kind");
    };
    std::tie(each_, same_) = chosen();
}

Columns Requantizer::columns(std::size_t first) const {
    return {multiplier_.data() + first, left_.data() + first,       right_.data() + first,
            bias_.data() + first,       zero_point_.data() + first, lo_.data() + first,
            hi_.data() + first,         factor_.data() + first,     then_.data() + first,
            last_.data() + first,       real_bias_.data() + first,  real_factor_.data() + first,
            power_.data() + first,      divisor_.data() + first};
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

void Requantizer::block(bool uniform, std::size_t column, const std::int32_t* acc,
                        std::int32_t* out, std::size_t count) const {
    const Columns here = columns(column);
    if (!(uniform ? same_ : each_)(here, acc, out, count)) return;
    if (spec_.kind != "exact") overflows(spec_.kind);
    for (std::size_t i = 0; i < count; ++i)
        out[i] = exactly(acc[i], (uniform ? column : column + i) % channels());
}

template <typename Out>
void Requantizer::rows(const std::int32_t* acc, Out* dst, std::size_t outer,
                       std::size_t inner) const {
    std::array<std::int32_t, block_size> results;
    const std::size_t total = outer * channels() * inner;
    const auto run_block = [&](bool uniform, std::size_t column, std::size_t at,
                               std::size_t count) {
        const std::size_t next = at + count;
        prefetch(acc + next, dst + next, std::min(block_size, total - next));
        block(uniform, column, acc + at, results.data(), count);
        narrow_here(results.data(), dst + at, count);
    };
    if (inner == 1) {
        for (std::size_t at = 0; at < total;) {
            const std::size_t column = at % period_;
            const std::size_t count = std::min({block_size, period_ - column, total - at});
            run_block(false, column, at, count);
            at += count;
        }
        return;
    }
    for (std::size_t row = 0; row < outer * channels(); ++row) {
        for (std::size_t i = 0; i < inner; i += block_size)
            run_block(true, row % channels(), row * inner + i, std::min(block_size, inner - i));
    }
}

void Requantizer::run(const std::int32_t* acc, void* dst, std::size_t outer,
                      std::size_t inner) const {
    if (spec_.dtype == "u8") return rows(acc, static_cast<std::uint8_t*>(dst), outer, inner);
    if (spec_.dtype == "s8") return rows(acc, static_cast<std::int8_t*>(dst), outer, inner);
    rows(acc, static_cast<std::int32_t*>(dst), outer, inner);
}

} // namespace pq
