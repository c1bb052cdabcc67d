#include "primitive.hpp"

#include "array_flags.hpp"
#include "buffer_pool.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "runtime.hpp"
#include "threads.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
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

bool has_sum(const AttrSpec& attr) {
    return std::any_of(attr.post_ops.begin(), attr.post_ops.end(),
                       [](const PostOp& op) { return op.kind == PostOp::Kind::sum; });
}

// More than any primitive has: sources, operands of 32 post-ops, dst.
constexpr std::size_t most_slots = 64;

// Whether an object is an array exactly as the slot wants it. Reads NumPy's struct and calls
// nothing; what it turns down may still be usable.
bool fits(const Slot& slot, PyObject* object) {
    const auto& numpy = py::detail::npy_api::get();
    if (Py_TYPE(object) != numpy.PyArray_Type_) return false;
    const py::detail::PyArray_Proxy* const array = py::detail::array_proxy(object);
    const Dims& dims = slot.layout.dims();
    const int wanted = array_flags::aligned | (slot.output ? array_flags::writeable : 0);
    if (array->descr != slot.dtype.ptr() || static_cast<std::size_t>(array->nd) != dims.size() ||
        (array->flags & wanted) != wanted) {
        return false;
    }
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (array->dimensions[i] != dims[i]) return false;
        if (dims[i] > 1 && array->strides[i] != slot.strides_bytes[i]) return false;
    }
    return true;
}

} // namespace

Prepared::Prepared(const Candidate& candidate, const std::vector<std::string>& per_call,
                   Bound bound)
    : bound_(std::move(bound)), scratchpad_(scratchpad_layout(candidate)),
      reads_dst_(has_sum(candidate.attr())) {
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

const Slot* Prepared::overlapping(void* const* data) const {
    const Slot& dst = slots_.back();
    const char* dst_begin = static_cast<const char*>(data[slots_.size() - 1]);
    for (std::size_t i = 0; i + 1 < slots_.size(); ++i) {
        const char* begin = static_cast<const char*>(data[i]);
        if (begin >= dst_begin + dst.extent || dst_begin >= begin + slots_[i].extent) continue;
        // In place is safe where each element is read before it is written: the same elements in
        // the same places, read by a post-op.
        const bool in_place = begin == dst_begin && slots_[i].extent == dst.extent &&
                              slots_[i].strides_bytes == dst.strides_bytes &&
                              slots_[i].name.compare(0, 8, "post_op_") == 0;
        if (!in_place) return &slots_[i];
    }
    return nullptr;
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
    if (const Slot* const slot = overlapping(data.data())) {
        throw ArgumentFault("AliasError", slot->name, "memory that overlaps dst",
                            "memory apart from dst");
    }
    return data;
}

py::object Prepared::new_dst() const {
    const Slot& dst = slots_.back();
    AlignedBuffer buffer = buffer_pool().take(dst.extent);
    void* const data = buffer.data();
    const py::capsule owner = owner_of(std::move(buffer));
    const auto& numpy = py::detail::npy_api::get();
    static_assert(sizeof(Py_intptr_t) == sizeof(dnnl_dim_t));
    const Dims& dims = dst.layout.dims();
    PyObject* const made = numpy.PyArray_NewFromDescr_(
            numpy.PyArray_Type_, py::object(dst.dtype).release().ptr(),
            static_cast<int>(dims.size()), reinterpret_cast<const Py_intptr_t*>(dims.data()),
            reinterpret_cast<const Py_intptr_t*>(dst.strides_bytes.data()), data,
            array_flags::aligned | array_flags::writeable, nullptr);
    if (made == nullptr) throw py::error_already_set();
    auto array = py::reinterpret_steal<py::object>(made);
    if (numpy.PyArray_SetBaseObject_(made, py::object(owner).release().ptr()) != 0)
        throw py::error_already_set();
    return array;
}

void Prepared::execute(const Frame& frame) const {
    PQ_CALL(primitive_execute, primitive_.get(), stream(), static_cast<int>(frame.arguments.size()),
            frame.arguments.data());
    // Always: SYCL executes later, and a queue that is never waited for is a thousand times slower.
    PQ_CALL(stream_wait, stream());
}

std::unique_ptr<Frame> Prepared::frame_for(void* const* data) {
    apply_num_threads();
    std::unique_ptr<Frame> frame = pool_.take();
    if (!frame) frame = make_frame();
    for (std::size_t i = 0; i < slots_.size(); ++i)
        PQ_CALL(memory_set_data_handle, frame->slots[i].get(), data[i]);
    return frame;
}

void Prepared::execute_once(void* const* data) {
    // Whoever calls keeps the arrays alive; nothing of Python is touched until the GIL is back.
    const py::gil_scoped_release release;
    std::unique_ptr<Frame> frame = frame_for(data);
    execute(*frame);
    pool_.give_back(std::move(frame));
}

void Prepared::run(const py::args& arrays) {
    check_not_forked();
    execute_once(checked(arrays).data());
}

py::object Prepared::run_if_fitting(PyObject* const* objects, std::size_t count) {
    const auto refused = py::reinterpret_borrow<py::object>(Py_NotImplemented);
    if (count != slots_.size() || count > most_slots) return refused;
    check_not_forked();
    const std::size_t last = count - 1;
    for (std::size_t i = 0; i < last; ++i)
        if (!fits(slots_[i], objects[i])) return refused;
    const bool is_new = objects[last] == Py_None;
    if (is_new ? reads_dst_ : !fits(slots_[last], objects[last])) return refused;

    auto dst = is_new ? new_dst() : py::reinterpret_borrow<py::object>(objects[last]);
    void* data[most_slots];
    for (std::size_t i = 0; i < last; ++i)
        data[i] = py::detail::array_proxy(objects[i])->data;
    data[last] = py::detail::array_proxy(dst.ptr())->data;
    if (!is_new && overlapping(data) != nullptr) return refused;
    execute_once(data);
    return dst;
}

double Prepared::time_calls(const py::tuple& arrays, int calls) {
    check_not_forked();
    if (calls < 1) {
        throw ArgumentFault("ArgumentError", "calls", std::to_string(calls), "at least 1");
    }
    const std::vector<void*> data = checked(arrays);
    const py::gil_scoped_release release;
    std::unique_ptr<Frame> frame = frame_for(data.data());
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i)
        execute(*frame);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    pool_.give_back(std::move(frame));
    return elapsed.count();
}

} // namespace pq
