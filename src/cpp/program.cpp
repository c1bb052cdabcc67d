#include "program.hpp"

#include "dtypes.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "parallel.hpp"
#include "runtime.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <unistd.h>
#include <utility>

namespace pq {

namespace {

using Clock = std::chrono::steady_clock;

std::size_t extent_of(const Layout& layout) {
    if (!layout.plain())
        throw ArgumentFault("LayoutError", "specs", layout.text(), "one with plain strides");
    return reach_of(layout.dims(), layout.strides(), dtype_bits(layout.dtype()));
}

// An array over memory that `owner` keeps alive.
py::array view_of(const TensorSpec& spec, char* data, const py::object& owner) {
    const py::dtype dtype = numpy_dtype(spec.dtype);
    const Layout layout(spec);
    std::vector<py::ssize_t> strides;
    for (const dnnl_dim_t stride : layout.strides())
        strides.push_back(stride * dtype.itemsize());
    return py::array(dtype, spec.dims, strides, data, owner);
}

} // namespace

Program::Program(std::vector<Step> steps, std::size_t arena_bytes, std::vector<TensorSpec> arrays,
                 std::size_t inputs)
    : steps_(std::move(steps)), arena_bytes_(arena_bytes), inputs_(inputs), process_(getpid()) {
    if (inputs > arrays.size()) {
        throw ArgumentFault("ArgumentError", "inputs", std::to_string(inputs),
                            "0 to " + std::to_string(arrays.size()));
    }
    for (const TensorSpec& spec : arrays) {
        const Layout layout(spec);
        extent_of(layout); // which says what is wrong with it
        const std::size_t at = arrays_.size();
        arrays_.emplace_back("arrays[" + std::to_string(at) + "]", layout, at >= inputs_);
    }
    for (const Step& step : steps_) {
        if (step.primitive == nullptr) continue;
        scratchpad_bytes_ = std::max(scratchpad_bytes_, step.primitive->scratchpad_bytes());
    }
    check_places();
    for (const Step& step : steps_) {
        if (step.pass == nullptr) continue;
        for (const std::size_t at : step.pass->grows)
            if (const std::size_t buffer = step.places[at].buffer; buffer > 0)
                arrays_[buffer - 1].output = true; // it has to be writeable, too
    }
}

std::size_t Program::bytes_of(std::size_t buffer) const {
    if (buffer == 0) return arena_bytes_;
    return buffer <= arrays_.size() ? extent_of(arrays_[buffer - 1].layout) : 0;
}

void Program::check_places() const {
    const auto check = [this](const Place& place, std::size_t extent, std::size_t item,
                              bool is_written) {
        const std::size_t room = bytes_of(place.buffer);
        if (place.offset > room || extent > room - place.offset)
            throw ArgumentFault("ArgumentError", "places", "one beyond its buffer", "one within");
        if (place.offset % item != 0) {
            throw ArgumentFault("ArgumentError", "places", "byte " + std::to_string(place.offset),
                                "a multiple of " + std::to_string(item));
        }
        if (is_written && place.buffer > 0 && place.buffer <= inputs_)
            throw ArgumentFault("ArgumentError", "places", "dst in an input", "one elsewhere");
    };
    for (const Step& step : steps_) {
        const std::size_t count = step.primitive != nullptr ? step.primitive->slots().size()
                                  : step.pass != nullptr    ? step.pass->tensors.size()
                                                            : step.specs.size();
        const bool is_long = step.pass != nullptr && count > Pass::most_tensors;
        if (step.places.size() != count || count == 0 || is_long) {
            throw ArgumentFault("ArgumentError", "places", std::to_string(step.places.size()),
                                std::to_string(count));
        }
        if (step.residual && step.primitive == nullptr) {
            throw ArgumentFault("ArgumentError", "residual", "one of a step that is no primitive",
                                "none: only primitives add to what is there");
        }
        for (std::size_t i = 0; i < count; ++i) {
            const Pass::Tensor tensor =
                    step.primitive != nullptr ? Pass::Tensor{step.primitive->slots()[i].extent, 1}
                    : step.pass != nullptr    ? step.pass->tensors[i]
                                              : Pass::Tensor{extent_of(Layout(step.specs[i])), 1};
            check(step.places[i], tensor.extent, tensor.item, i + 1 == count);
        }
        if (step.residual) check(*step.residual, step.primitive->slots().back().extent, 1, false);
    }
}

bool Program::fits(const py::args& inputs) const {
    if (inputs.size() != inputs_) return false;
    for (std::size_t i = 0; i < inputs_; ++i)
        if (!arrays_[i].fits(PyTuple_GET_ITEM(inputs.ptr(), static_cast<py::ssize_t>(i)),
                             arrays_[i].output))
            return false;
    return true;
}

void Program::check_inputs(const py::args& inputs) const {
    if (inputs.size() != inputs_) {
        throw ArgumentFault("ArgumentError", "arrays", std::to_string(inputs.size()),
                            std::to_string(inputs_));
    }
    for (std::size_t i = 0; i < inputs_; ++i)
        arrays_[i].checked_data(inputs[i]);
}

std::vector<py::object> Program::arrays_for(const py::args& inputs) const {
    if (getpid() != process_) throw ForkedFault();
    std::vector<py::object> arrays;
    for (const py::handle input : inputs)
        arrays.push_back(py::reinterpret_borrow<py::object>(input));
    for (std::size_t i = inputs_; i < arrays_.size(); ++i)
        arrays.push_back(arrays_[i].empty());
    return arrays;
}

Program::Loan::Loan(Program& program) : program_(program) {
    {
        const std::lock_guard<std::mutex> hold(program_.guard_);
        if (!program_.rooms_.empty()) {
            room_ = std::move(program_.rooms_.back());
            program_.rooms_.pop_back();
            return;
        }
        program_.rooms_.reserve(++program_.made_); // giving back must not fail
    }
    room_ = std::make_shared<Room>(Room{
            AlignedBuffer(program_.arena_bytes_), AlignedBuffer(program_.scratchpad_bytes_), {}});
    for (const Step& step : program_.steps_)
        room_->frames.push_back(step.primitive == nullptr
                                        ? nullptr
                                        : step.primitive->frame_in(room_->scratchpad.data()));
}

Program::Loan::~Loan() {
    if (room_ == nullptr) return;
    const std::lock_guard<std::mutex> hold(program_.guard_);
    program_.rooms_.push_back(std::move(room_));
}

py::object Program::Loan::owner() const {
    return py::capsule(new std::shared_ptr<Room>(room_),
                       [](void* kept) { delete static_cast<std::shared_ptr<Room>*>(kept); });
}

void Program::run_primitive(const Step& step, const std::vector<char*>& buffers,
                            Frame& frame) const {
    for (std::size_t i = 0; i < step.places.size(); ++i) {
        const Place& place = step.places[i];
        step.primitive->set_data(frame, i, buffers[place.buffer] + place.offset);
    }
    if (step.residual) {
        const Place& dst = step.places.back();
        copy_bytes(buffers[step.residual->buffer] + step.residual->offset,
                   buffers[dst.buffer] + dst.offset, step.primitive->slots().back().extent);
    }
    step.primitive->execute(frame);
}

void Program::run_pass(const Step& step, const std::vector<char*>& buffers) const {
    std::array<char*, Pass::most_tensors> tensors{};
    for (std::size_t i = 0; i < step.places.size(); ++i)
        tensors[i] = buffers[step.places[i].buffer] + step.places[i].offset;
    step.pass->run(tensors.data());
}

void Program::run_function(const Step& step, const std::vector<char*>& buffers,
                           const std::vector<py::object>& given, const Loan& loan) const {
    py::tuple arrays(step.places.size());
    const py::object arena = loan.owner();
    for (std::size_t i = 0; i < step.places.size(); ++i) {
        const Place& place = step.places[i];
        const py::object owner = place.buffer == 0 ? arena : given[place.buffer - 1];
        arrays[i] = view_of(step.specs[i], buffers[place.buffer] + place.offset, owner);
    }
    step.runs(*arrays);
}

void Program::run_steps(const std::vector<py::object>& arrays, double* seconds) {
    std::vector<char*> buffers(1, nullptr);
    for (const py::object& array : arrays)
        buffers.push_back(static_cast<char*>(py::detail::array_proxy(array.ptr())->data));
    const Loan loan(*this);
    buffers[0] = loan.arena();
    const auto timed = [&](std::size_t at, const auto& work) {
        if (seconds == nullptr) return work();
        const auto start = Clock::now();
        work();
        seconds[at] = std::chrono::duration<double>(Clock::now() - start).count();
    };
    std::size_t at = 0;
    while (at < steps_.size()) {
        if (steps_[at].is_function()) {
            timed(at, [&] { run_function(steps_[at], buffers, arrays, loan); });
            ++at;
            continue;
        }
        const GilReleased released;
        for (; at < steps_.size() && !steps_[at].is_function(); ++at) {
            const Step& step = steps_[at];
            if (step.pass != nullptr)
                timed(at, [&] { run_pass(step, buffers); });
            else
                timed(at, [&] { run_primitive(step, buffers, loan.frame(at)); });
        }
    }
}

py::tuple Program::outputs_of(const py::args& inputs) {
    const std::vector<py::object> arrays = arrays_for(inputs);
    run_steps(arrays, nullptr);
    py::tuple outputs(arrays.size() - inputs_);
    for (std::size_t i = inputs_; i < arrays.size(); ++i)
        outputs[i - inputs_] = arrays[i];
    return outputs;
}

py::object Program::run(const py::args& inputs) {
    if (!fits(inputs)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
    return outputs_of(inputs);
}

py::tuple Program::run_checked(const py::args& inputs) {
    check_inputs(inputs);
    return outputs_of(inputs);
}

std::vector<double> Program::run_timed(const py::args& inputs) {
    check_inputs(inputs);
    std::vector<double> seconds(steps_.size());
    run_steps(arrays_for(inputs), seconds.data());
    return seconds;
}

} // namespace pq
