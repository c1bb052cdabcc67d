// A source that a call makes codes of: float32 by one scale or by the range of its values; or s8
// codes, of which u8 ones are made.
#pragma once

#include "memory.hpp"
#include "pass.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace pq {

struct CodeSource {
    // What an input of the primitive is: codes, or what they are worth where each call finds it; or
    // none of these. A map is -zero_point[row] * unit[column], in float32.
    enum class Input { codes, scale, zero_point, map, operand };

    bool is_s8 = false;        // codes that are 128 less than those that the primitive takes
    bool is_dynamic = false;   // by the range of each row, as pyonednn_q.quantize.ranges says
    bool is_symmetric = false; // with that range: zero point 0, largest code 127
    bool is_signed = false;    // codes, as the primitive takes them
    std::int32_t offset = 0;   // what codes are more than those of the range: 128 for s8 as u8
    std::size_t rows = 1;
    float scale = 1;             // unless it is dynamic
    std::int32_t zero_point = 0; // the same
    std::vector<Input> inputs;   // of the primitive, in order
    std::vector<float> unit;

    // Bytes of an input that is not the codes, for a dst of those dims; 0 if it is not there.
    std::size_t nbytes(Input input, const Dims& dst) const;

    // Where it begins in what codes are worth, and bytes of all of that.
    std::size_t place(Input input) const;
    std::size_t worth_nbytes() const { return rows * (unit.size() + 4) * sizeof(float); }
};

// Codes of one call's values, and what they are worth: in memory of the pool, or of another.
class MadeCodes {
public:
    MadeCodes(const CodeSource& source, const void* values, std::size_t count);
    // Of `count` and `source.worth_nbytes()` bytes.
    MadeCodes(const CodeSource& source, const void* values, std::size_t count, void* codes,
              void* worth);
    ~MadeCodes();
    MadeCodes(const MadeCodes&) = delete;
    MadeCodes& operator=(const MadeCodes&) = delete;

    void* data(CodeSource::Input input) const;

    // Fills it. Needs no GIL. False where values are not numbers, or the range has no scale.
    bool make() const;

private:
    MadeCodes(const CodeSource& source, const void* values, std::size_t count, AlignedBuffer codes,
              AlignedBuffer worth);

    void shift() const;
    bool find_scales() const;
    void fill_map() const;

    const CodeSource& source_;
    const void* values_;
    std::size_t count_;
    std::optional<AlignedBuffer> kept_codes_, kept_worth_;
    void* codes_;
    float *map_, *scales_, *lo_, *hi_;
    std::int32_t* points_;
};

// A pass of values that writes codes, and behind them, from a cache line on, what they are worth,
// as the source says; and the byte at which each of the source's inputs begins (of an operand: 0),
// the last: how many there are. Its run throws ArgumentError where values are not finite, or their
// range has no scale.
std::pair<Pass, std::vector<std::size_t>> code_pass(CodeSource source, std::size_t count);

} // namespace pq
