#include "primitive.hpp"

#include "dtypes.hpp"
#include "errors.hpp"
#include "runtime.hpp"
#include "threads.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace pq {

namespace {

Slot make_slot(const Candidate& candidate, const std::string& name) {
    Slot slot{name,
              argument(name, candidate.attr()),
              candidate.layout(name),
              name == "dst",
              py::dtype("u1"),
              {},
              0};
    if (!slot.layout.plain()) {
        throw ArgumentFault("LayoutError", name, slot.layout.text(),
                            "a plain layout for an argument of each call");
    }
    slot.dtype = numpy_dtype(slot.layout.dtype());
    const auto itemsize = slot.dtype.itemsize();
    slot.extent = static_cast<std::size_t>(itemsize);
    for (std::size_t i = 0; i < slot.layout.dims().size(); ++i) {
        const py::ssize_t bytes = slot.layout.strides()[i] * itemsize;
        slot.strides_bytes.push_back(bytes);
        slot.extent += static_cast<std::size_t>((slot.layout.dims()[i] - 1) * bytes);
    }
    return slot;
}

Layout scratchpad_layout(const Candidate& candidate) {
    const const_dnnl_memory_desc_t found =
            lib().primitive_desc_query_md(candidate.desc(), dnnl_query_scratchpad_md, 0);
    return Layout(found);
}

} // namespace

Prepared::Prepared(const Candidate& candidate, const std::vector<std::string>& per_call,
                   Bound bound)
    : bound_(std::move(bound)), scratchpad_(scratchpad_layout(candidate)) {
    apply_num_threads();
    std::vector<std::string> needed = attribute_arguments(candidate.attr());
    for (const auto& [name, layout] : candidate.problem().tensors)
        needed.push_back(name);
    for (const std::string& name : needed) {
        const bool given = bound_.count(name) != 0 ||
                           std::find(per_call.begin(), per_call.end(), name) != per_call.end();
        if (!given)
            throw ArgumentFault("ArgumentError", name, "nothing",
                                "a value: the primitive reads it");
    }
    for (const std::string& name : per_call)
        slots_.push_back(make_slot(candidate, name));
    for (const auto& [name, memory] : bound_)
        bound_arguments_.push_back({argument(name, candidate.attr()), memory->object()});

    dnnl_primitive_t created = nullptr;
    PQ_CALL(primitive_create, &created, candidate.desc());
    primitive_.reset(created);
}

std::unique_ptr<Frame> Prepared::make_frame() {
    AlignedBuffer scratchpad(scratchpad_.nbytes());
    MemoryObject scratchpad_memory = make_memory(scratchpad_, scratchpad.data());
    auto frame = std::make_unique<Frame>(
            Frame{{}, std::move(scratchpad), std::move(scratchpad_memory), bound_arguments_});
    for (const Slot& slot : slots_) {
        // The scratchpad pointer stands in until the call sets its own; it is never executed with.
        frame->slots.push_back(make_memory(slot.layout, frame->scratchpad.data()));
        frame->arguments.push_back({slot.argument, frame->slots.back().get()});
    }
    frame->arguments.push_back({DNNL_ARG_SCRATCHPAD, frame->scratchpad_memory.get()});
    return frame;
}

void* Prepared::checked_data(const Slot& slot, const py::handle& object) const {
    if (!py::isinstance<py::array>(object)) {
        throw ArgumentFault("ArgumentError", slot.name, py::str(py::type::of(object)),
                            "a NumPy array");
    }
    const auto array = py::reinterpret_borrow<py::array>(object);
    const py::dtype dtype = array.dtype();
    if (!dtype.is(slot.dtype) && !dtype.equal(slot.dtype)) {
        throw ArgumentFault("DTypeError", slot.name, py::str(dtype),
                            std::string(py::str(slot.dtype)));
    }
    const Dims& dims = slot.layout.dims();
    const auto ndims = static_cast<std::size_t>(array.ndim());
    if (ndims != dims.size() || !std::equal(dims.begin(), dims.end(), array.shape())) {
        throw ArgumentFault("ShapeError", slot.name,
                            dims_text(Dims(array.shape(), array.shape() + ndims)), dims_text(dims));
    }
    for (std::size_t i = 0; i < ndims; ++i) {
        if (dims[i] > 1 && array.strides(static_cast<py::ssize_t>(i)) != slot.strides_bytes[i]) {
            throw ArgumentFault(
                    "LayoutError", slot.name,
                    "strides of " + dims_text(Dims(array.strides(), array.strides() + ndims)) +
                            " bytes",
                    dims_text(Dims(slot.strides_bytes.begin(), slot.strides_bytes.end())) +
                            " bytes");
        }
    }
    if (slot.output && !array.writeable()) {
        throw ArgumentFault("ArgumentError", slot.name, "a read-only array", "a writeable one");
    }
    void* data = const_cast<void*>(array.data());
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const auto itemsize = static_cast<std::uintptr_t>(slot.dtype.itemsize());
    if (address % itemsize != 0) {
        throw ArgumentFault("LayoutError", slot.name,
                            "an address that is no multiple of the item size",
                            "one that is a multiple of " + std::to_string(itemsize));
    }
    return data;
}

void Prepared::check_overlap(const std::vector<void*>& data) const {
    const Slot& dst = slots_.back();
    const char* dst_begin = static_cast<const char*>(data.back());
    for (std::size_t i = 0; i + 1 < slots_.size(); ++i) {
        const char* begin = static_cast<const char*>(data[i]);
        if (begin >= dst_begin + dst.extent || dst_begin >= begin + slots_[i].extent) continue;
        // In place is safe where each element is read before it is written: the same elements in
        // the same places, read by a post-op.
        const bool in_place = begin == dst_begin && slots_[i].extent == dst.extent &&
                              slots_[i].strides_bytes == dst.strides_bytes &&
                              slots_[i].name.compare(0, 8, "post_op_") == 0;
        if (in_place) continue;
        throw ArgumentFault("AliasError", slots_[i].name, "memory that overlaps dst",
                            "memory apart from dst");
    }
}

std::vector<void*> Prepared::checked(const py::handle& arrays) const {
    const auto given = static_cast<std::size_t>(PyTuple_GET_SIZE(arrays.ptr()));
    if (given != slots_.size()) {
        std::string wanted;
        for (const Slot& slot : slots_)
            wanted += (wanted.empty() ? "" : ", ") + slot.name;
        throw ArgumentFault("ArgumentError", "arrays", std::to_string(given), wanted);
    }
    std::vector<void*> data(given);
    for (std::size_t i = 0; i < given; ++i)
        data[i] = checked_data(slots_[i],
                               PyTuple_GET_ITEM(arrays.ptr(), static_cast<py::ssize_t>(i)));
    check_overlap(data);
    return data;
}

void Prepared::execute(const Frame& frame) const {
    PQ_CALL(primitive_execute, primitive_.get(), stream(), static_cast<int>(frame.arguments.size()),
            frame.arguments.data());
    // Always: SYCL executes later, and a queue that is never waited for is a thousand times slower.
    PQ_CALL(stream_wait, stream());
}

std::unique_ptr<Frame> Prepared::frame_for(const std::vector<void*>& data) {
    apply_num_threads();
    std::unique_ptr<Frame> frame = pool_.take();
    if (!frame) frame = make_frame();
    for (std::size_t i = 0; i < data.size(); ++i)
        PQ_CALL(memory_set_data_handle, frame->slots[i].get(), data[i]);
    return frame;
}

void Prepared::run(const py::args& arrays) {
    check_not_forked();
    const std::vector<void*> data = checked(arrays);
    // The caller's tuple keeps the arrays alive; nothing of Python is touched until the GIL is
    // back.
    const py::gil_scoped_release release;
    std::unique_ptr<Frame> frame = frame_for(data);
    execute(*frame);
    pool_.give_back(std::move(frame));
}

double Prepared::time_calls(const py::tuple& arrays, int calls) {
    check_not_forked();
    if (calls < 1) {
        throw ArgumentFault("ArgumentError", "calls", std::to_string(calls), "at least 1");
    }
    const std::vector<void*> data = checked(arrays);
    const py::gil_scoped_release release;
    std::unique_ptr<Frame> frame = frame_for(data);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i)
        execute(*frame);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    pool_.give_back(std::move(frame));
    return elapsed.count();
}

} // namespace pq
