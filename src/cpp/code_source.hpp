// A source that a call makes codes of: float32 by one scale or by the range of its values; or s8
// codes, of which u8 ones are made.
#pragma once

#include "memory.hpp"

#include <vector>

namespace pq {

struct CodeSource {
    // What an input of the primitive is: codes, or what they are worth where each call finds it.
    // A map is -zero_point[row] * unit[column], in float32.
    enum class Input { codes, scale, zero_point, map };

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

    // Bytes of an input that is not the codes, for a dst of those dims; 0 if there is none.
    std::size_t nbytes(Input input, const Dims& dst) const;
};

// Codes of one call's values, in memory of the pool, and what they are worth.
class MadeCodes {
public:
    MadeCodes(const CodeSource& source, const void* values, std::size_t count);
    ~MadeCodes();
    MadeCodes(const MadeCodes&) = delete;
    MadeCodes& operator=(const MadeCodes&) = delete;

    void* data(CodeSource::Input input) const;

    // Fills it. Needs no GIL. False where values are not numbers, or the range has no scale.
    bool make() const;

private:
    void shift() const;
    bool find_scales() const;
    void fill_map() const;

    const CodeSource& source_;
    const void* values_;
    std::size_t count_;
    AlignedBuffer codes_, worth_; // worth: the map, if any; scale, zero point, lo, hi of each row
    float *map_, *scales_, *lo_, *hi_;
    std::int32_t* points_;
};

} // namespace pq
