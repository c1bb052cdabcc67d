#include "slot.hpp"

#include "dtypes.hpp"
#include "errors.hpp"

#include <algorithm>

namespace pq {

namespace {

Layout outer_layout(const Layout& inner, const std::string& name, const Arrays& arrays) {
    const auto found = arrays.find(name);
    Layout layout = found == arrays.end() ? inner : Layout(found->second);
    if (!layout.plain()) {
        throw ArgumentFault("LayoutError", name, layout.text(),
                            "a plain layout for an argument of each call");
    }
    if (layout.dtype() != inner.dtype()) {
        throw ArgumentFault("DTypeError", name, dtype_name(layout.dtype()),
                            dtype_name(inner.dtype()));
    }
    return layout;
}

// The same places in memory: strides of dimensions of 1 may be anything. Or other dims over the
// same bytes; that elements lie in the same order there is the caller's to know.
bool is_view(const Layout& layout, const Layout& inner) {
    const Dims& dims = layout.dims();
    if (dims != inner.dims()) {
        return layout.nbytes() == inner.nbytes() && has_no_gaps(layout) && has_no_gaps(inner);
    }
    if (!inner.plain()) return false;
    for (std::size_t i = 0; i < dims.size(); ++i)
        if (dims[i] > 1 && layout.strides()[i] != inner.strides()[i]) return false;
    return true;
}

// The part of inner that holds the elements of layout.
Layout corner_of(const std::string& name, const Layout& layout, const Layout& inner) {
    const Dims& dims = layout.dims();
    if (dims == inner.dims()) return inner;
    const bool contained = inner.plain() && dims.size() == inner.dims().size() &&
                           std::equal(dims.begin(), dims.end(), inner.dims().begin(),
                                      [](dnnl_dim_t a, dnnl_dim_t b) { return a <= b; });
    if (!contained) {
        throw ArgumentFault("ShapeError", name, dims_text(dims),
                            dims_text(inner.dims()) + ", or no longer in any dimension");
    }
    return Layout(TensorSpec{dims, inner.dtype(), inner.strides()});
}

Layout as_bf16(const Layout& layout) {
    return Layout(TensorSpec{layout.dims(), dnnl_bf16, layout.strides()});
}

Layout as_bytes(const Layout& layout) {
    Dims dims = layout.dims(), strides = layout.strides();
    for (dnnl_dim_t& stride : strides)
        stride *= 2;
    dims.push_back(2);
    strides.push_back(1);
    return Layout(TensorSpec{dims, dnnl_s8, strides});
}

} // namespace

Slot::Slot(const Candidate& candidate, const std::string& slot_name, const Arrays& arrays,
           bool is_read)
    : ArrayLayout(slot_name, outer_layout(candidate.layout(slot_name), slot_name, arrays),
                  slot_name == "dst"),
      argument(pq::argument(slot_name, candidate.attr())), inner(candidate.layout(slot_name)),
      outside(layout), corner(inner) {
    if (is_view(layout, inner)) return;
    corner = corner_of(name, layout, inner);
    // Where the CPU has no instructions for a 16-bit type, the library computes its elements one by
    // one, a hundred times slower, and bf16's subnormals and f16's NaNs do not stay what they are.
    if (dtype_bits(layout.dtype()) == 16 && corner.plain()) {
        const bool moves = Reorder(as_bf16(layout), as_bf16(corner)).generated();
        outside = moves ? as_bf16(layout) : as_bytes(layout);
        corner = moves ? as_bf16(corner) : as_bytes(corner);
    }
    if (is_read) in = std::make_shared<Reorder>(outside, corner);
    if (output) out = std::make_shared<Reorder>(corner, outside);
}

} // namespace pq
