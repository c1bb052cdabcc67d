#include "primitive.hpp"

#include "array_flags.hpp"
#include "buffer_pool.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "parallel.hpp"
#include "runtime.hpp"
#include "threads.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

namespace pq {

namespace {

bool has_sum(const AttrSpec& attr) {
    return std::any_of(attr.post_ops.begin(), attr.post_ops.end(),
                       [](const PostOp& op) { return op.kind == PostOp::Kind::sum; });
}

std::unique_ptr<Inside> make_inside(const Slot& slot) {
    if (!slot.copied()) return nullptr;
    Memory memory(slot.inner);
    MemoryObject corner = make_memory(slot.corner, memory.data());
    // Both ways share one, that of the larger: they never run at the same time.
    const Reorder* larger = (slot.in ? slot.in : slot.out).get();
    if (slot.out && slot.out->scratchpad().nbytes() > larger->scratchpad().nbytes())
        larger = slot.out.get();
    AlignedBuffer scratchpad(larger->scratchpad().nbytes());
    MemoryObject scratchpad_memory = make_memory(larger->scratchpad(), scratchpad.data());
    return std::make_unique<Inside>(Inside{std::move(memory), std::move(corner),
                                           std::move(scratchpad), std::move(scratchpad_memory)});
}

py::object refused() {
    return py::reinterpret_borrow<py::object>(Py_NotImplemented);
}

// More than any primitive has: sources, operands of 32 post-ops, dst.
constexpr std::size_t most_slots = 64;
} // namespace

Prepared::Prepared(const Candidate& candidate, const std::vector<std::string>& per_call,
                   Bound bound, const Arrays& arrays)
    : threads_(candidate.threads()), bound_(std::move(bound)),
      reads_dst_(has_sum(candidate.attr())) {
    const Threads held(threads_);
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
        slots_.emplace_back(candidate, name, arrays, name != "dst" || reads_dst_);
    copies_ = std::any_of(slots_.begin(), slots_.end(), std::mem_fn(&Slot::copied));
    for (const auto& [name, memory] : bound_)
        bound_arguments_.push_back({argument(name, candidate.attr()), memory->object()});

    primitive_ = make_primitive(candidate.desc(), threads_);
    scratchpad_ = scratchpad_of(primitive_);
}

std::unique_ptr<Frame> Prepared::make_frame() const {
    AlignedBuffer scratchpad(scratchpad_->nbytes());
    void* const at = scratchpad.data();
    return frame_over(std::move(scratchpad), at);
}

std::unique_ptr<Frame> Prepared::frame_in(void* scratchpad) const {
    return frame_over(AlignedBuffer(0), scratchpad);
}

std::unique_ptr<Frame> Prepared::frame_over(AlignedBuffer scratchpad, void* at) const {
    MemoryObject scratchpad_memory = make_memory(*scratchpad_, at);
    auto frame = std::make_unique<Frame>(Frame{{},
                                               std::vector<void*>(slots_.size()),
                                               std::move(scratchpad),
                                               std::move(scratchpad_memory),
                                               bound_arguments_,
                                               {}});
    for (const Slot& slot : slots_) {
        // The scratchpad pointer stands in until the call sets its own; it is never executed with.
        const Layout& seen = slot.copied() ? slot.outside : slot.inner;
        frame->slots.push_back(make_memory(seen, at));
        frame->inside.push_back(make_inside(slot));
        const Inside* const inside = frame->inside.back().get();
        const dnnl_memory_t memory = inside ? inside->memory.object() : frame->slots.back().get();
        frame->arguments.push_back({slot.argument, memory});
    }
    frame->arguments.push_back({DNNL_ARG_SCRATCHPAD, frame->scratchpad_memory.get()});
    return frame;
}

std::map<std::string, Layout> Prepared::copied() const {
    std::map<std::string, Layout> found;
    for (const Slot& slot : slots_)
        if (slot.copied()) found.emplace(slot.name, slot.inner);
    return found;
}

const Slot* Prepared::overlapping(void* const* data, bool may_be_in_place) const {
    const Slot& dst = slots_.back();
    const char* dst_begin = static_cast<const char*>(data[slots_.size() - 1]);
    for (std::size_t i = 0; i + 1 < slots_.size(); ++i) {
        const char* begin = static_cast<const char*>(data[i]);
        if (begin >= dst_begin + dst.extent || dst_begin >= begin + slots_[i].extent) continue;
        // In place is safe where each element is read before it is written: the same elements in
        // the same places, read by a post-op. Elements of 4 bytes may hold sums before that.
        const bool in_place = may_be_in_place && begin == dst_begin && dst.dtype.itemsize() < 4 &&
                              slots_[i].extent == dst.extent &&
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
        data[i] =
                slots_[i].checked_data(PyTuple_GET_ITEM(arrays.ptr(), static_cast<py::ssize_t>(i)));
    if (const Slot* const slot = overlapping(data.data())) {
        throw ArgumentFault("AliasError", slot->name, "memory that overlaps dst",
                            "memory apart from dst");
    }
    return data;
}

void Prepared::execute(const Frame& frame) const {
    reserve_team(threads_);
    const Threads held(threads_);
    if (copies_) copy(frame, &Slot::in);
    PQ_CALL(primitive_execute, primitive_.get(), stream(), static_cast<int>(frame.arguments.size()),
            frame.arguments.data());
    // Always: SYCL executes later, and a queue that is never waited for is a thousand times slower.
    PQ_CALL(stream_wait, stream());
    if (copies_) copy(frame, &Slot::out);
}

void Prepared::copy(const Frame& frame, std::shared_ptr<const Reorder> Slot::* way) const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Reorder* const reorder = (slots_[i].*way).get();
        if (reorder == nullptr) continue;
        dnnl_memory_t from = frame.slots[i].get();
        dnnl_memory_t to = frame.inside[i]->corner.get();
        if (way == &Slot::out) std::swap(from, to);
        reorder->execute(from, to, frame.inside[i]->scratchpad_memory.get());
    }
}

std::unique_ptr<Frame> Prepared::frame_for(void* const* data) {
    std::unique_ptr<Frame> frame = pool_.take();
    if (!frame) frame = make_frame();
    for (std::size_t i = 0; i < slots_.size(); ++i)
        set_data(*frame, i, data[i]);
    return frame;
}

void Prepared::set_data(Frame& frame, std::size_t slot, void* data) const {
    if (frame.data[slot] == data) return;
    frame.data[slot] = nullptr; // unknown, should the library refuse
    PQ_CALL(memory_set_data_handle, frame.slots[slot].get(), data);
    frame.data[slot] = data;
}

bool Prepared::execute_once(void* const* data, const void* residual, const MadeCodes* codes) {
    // Whoever calls keeps the arrays alive; nothing of Python is touched until the GIL is back.
    const GilReleased released;
    if (codes != nullptr && !codes->make()) return false;
    if (residual != nullptr) copy_bytes(residual, data[inputs()], slots_.back().extent);
    std::unique_ptr<Frame> frame = frame_for(data);
    execute(*frame);
    pool_.give_back(std::move(frame));
    return true;
}

void Prepared::run(const py::args& arrays) {
    check_not_forked();
    execute_once(checked(arrays).data());
}

py::object Prepared::run_if_fitting(PyObject* const* arrays, PyObject* residual, PyObject* out) {
    const std::size_t last = inputs();
    if (last >= most_slots) return refused();
    check_not_forked();
    void* data[most_slots];
    for (std::size_t i = 0; i < last; ++i) {
        if (!slots_[i].fits(arrays[i], false)) return refused();
        data[i] = py::detail::array_proxy(arrays[i])->data;
    }
    return run_into(data, residual, out);
}

py::object Prepared::run_into(void** data, PyObject* residual, PyObject* out,
                              const MadeCodes* codes) {
    const std::size_t last = inputs();
    const Slot& slot = slots_[last];
    const bool has_residual = residual != Py_None;
    if (has_residual && !(reads_dst_ && !slot.has_gaps && slot.fits(residual, false)))
        return refused();
    const bool is_new = out == Py_None;
    if (is_new ? reads_dst_ && !has_residual : !slot.fits(out, true)) return refused();

    auto dst = is_new ? slot.empty() : py::reinterpret_borrow<py::object>(out);
    data[last] = py::detail::array_proxy(dst.ptr())->data;
    const char* before = has_residual ? py::detail::array_proxy(residual)->data : nullptr;
    const char* const begin = static_cast<const char*>(data[last]);
    if (before == begin) before = nullptr; // it is dst
    if (!is_new && overlapping(data, before == nullptr) != nullptr) return refused();
    if (before != nullptr && before < begin + slot.extent && begin < before + slot.extent)
        return refused();
    return execute_once(data, before, codes) ? dst : refused();
}

bool Prepared::reads_only(const CodeSource& source, bool and_operands) const {
    using Input = CodeSource::Input;
    const Slot& codes = slots_[0];
    bool all = source.inputs.size() == inputs() && inputs() > 0 && inputs() < most_slots &&
               source.inputs[0] == Input::codes && codes.dtype.itemsize() == 1 &&
               codes.extent % source.rows == 0 && (source.rows == 1 || codes.is_row_major());
    for (std::size_t i = 1; all && i < inputs(); ++i) {
        const Slot& slot = slots_[i];
        const Input input = source.inputs[i];
        if (input == Input::operand && and_operands) continue;
        all = input != Input::codes && !slot.copied() && slot.is_row_major() &&
              slot.extent == source.nbytes(input, slots_.back().layout.dims());
    }
    return all;
}

py::object Prepared::run_if_source_fits(const CodeSource& source, PyObject* src, PyObject* residual,
                                        PyObject* out) {
    check_not_forked();
    const Slot& slot = slots_[0];
    if (!slot.fits_codes_of(src, source.is_s8)) return refused();
    const MadeCodes codes(source, py::detail::array_proxy(src)->data, slot.extent);
    void* data[most_slots];
    for (std::size_t i = 0; i < inputs(); ++i)
        data[i] = codes.data(source.inputs[i]);
    return run_into(data, residual, out, &codes);
}

std::map<std::string, double> Prepared::time_copies(int calls) {
    check_not_forked();
    if (calls < 1) {
        throw ArgumentFault("ArgumentError", "calls", std::to_string(calls), "at least 1");
    }
    const GilReleased released;
    std::map<std::string, double> seconds;
    for (const Slot& slot : slots_) {
        if (!slot.copied()) continue;
        const AlignedBuffer array(slot.extent);
        std::memset(array.data(), 0, array.nbytes());
        const MemoryObject outside = make_memory(slot.outside, array.data());
        const std::unique_ptr<Inside> inside = make_inside(slot);
        dnnl_memory_t from = outside.get();
        dnnl_memory_t to = inside->corner.get();
        if (slot.output) std::swap(from, to);
        const Reorder& way = slot.output ? *slot.out : *slot.in;
        way.execute(from, to, inside->scratchpad_memory.get()); // the first touches new memory
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i)
            way.execute(from, to, inside->scratchpad_memory.get());
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        seconds.emplace(slot.name, elapsed.count() / calls);
    }
    return seconds;
}

double Prepared::time_calls(const py::tuple& arrays, int calls) {
    check_not_forked();
    if (calls < 1) {
        throw ArgumentFault("ArgumentError", "calls", std::to_string(calls), "at least 1");
    }
    const std::vector<void*> data = checked(arrays);
    const GilReleased released;
    std::unique_ptr<Frame> frame = frame_for(data.data());
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i)
        execute(*frame);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    pool_.give_back(std::move(frame));
    return elapsed.count();
}

} // namespace pq
