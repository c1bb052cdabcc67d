// Requantizers that oneDNN has no attribute for: s32 accumulators to integers, at memory speed.
#pragma once

#include "common.hpp"

#include "requantize_loops.hpp"

namespace pq {

// What crosses the boundary: each vector has one value per channel.
struct RequantizerSpec {
    std::string kind, rounding, dtype;
    std::vector<std::int64_t> multiplier;
    std::vector<std::int32_t> shift, bias, zero_point;
    std::vector<double> factor, then, last, real_bias; // factor: the multiplier as a real number
    std::int32_t lo = 0, hi = 0;
};

class Requantizer {
public:
    explicit Requantizer(RequantizerSpec spec);

    // acc and dst: contiguous, `outer` rows of channels of `inner` values. Throws ArgumentFault
    // when an accumulator leaves 32 bits on the way; dst is unspecified then.
    void run(const std::int32_t* acc, void* dst, std::size_t outer, std::size_t inner) const;

    std::size_t channels() const { return spec_.zero_point.size(); }
    const std::string& dtype() const { return spec_.dtype; }

private:
    void fill_tables();
    template <typename Out>
    Loops choose() const;
    template <typename Out>
    Loops choose_exact() const;
    template <typename Out, bool single>
    Loops choose_two_round() const;
    bool needs_all_bits() const;
    bool has_short_factors() const;
    Columns columns() const;
    // `uniform`: all of the accumulators belong to `channel`; otherwise to it and those after.
    template <typename Out>
    void block(bool uniform, std::size_t channel, const std::int32_t* acc, Out* dst,
               std::size_t count) const;
    template <typename Out>
    void run_as(const std::int32_t* acc, Out* dst, std::size_t outer, std::size_t inner) const;
    std::int32_t exactly(std::int32_t acc, std::size_t channel) const;

    RequantizerSpec spec_;
    // One value per channel, and those of a chunk more.
    std::vector<std::int32_t> multiplier_, left_, right_, bias_, zero_point_, lo_, hi_;
    std::vector<std::int32_t> mask_, up_, less_, odd_;
    std::vector<float> factor_, then_, last_, real_bias_;
    std::vector<double> real_factor_, power_;
    std::vector<std::int64_t> wide_up_, wide_less_;
    bool upper_ = false; // the kind `shift` needs no more than the upper halves of products
    Loops loops_;
};

} // namespace pq
