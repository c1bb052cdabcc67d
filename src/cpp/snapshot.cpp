#include "snapshot.hpp"

#include "array_flags.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

namespace pq {

namespace {

// Above it comparing takes longer than giving up the GIL and getting it back.
constexpr std::size_t long_run = std::size_t{256} << 10U;
// Of a piece for one thread.
constexpr std::size_t grain = std::size_t{32} << 10U;

} // namespace

bool is_constant(const py::detail::PyArray_Proxy& array) {
    const auto& numpy = py::detail::npy_api::get();
    const py::detail::PyArray_Proxy* at = &array;
    while (true) {
        if ((at->flags & array_flags::writeable) != 0) return false;
        PyObject* const base = at->base;
        if (base == nullptr) return (at->flags & array_flags::owns_data) != 0;
        if (PyBytes_CheckExact(base)) return true;
        if (!PyObject_TypeCheck(base, numpy.PyArray_Type_)) return false;
        at = py::detail::array_proxy(base);
    }
}

Snapshot::Snapshot(const py::array& given, py::array kept)
    : data_(static_cast<const char*>(given.data())), dtype_(given.dtype()),
      dims_(given.shape(), given.shape() + given.ndim()),
      strides_(given.strides(), given.strides() + given.ndim()), kept_(std::move(kept)),
      run_(static_cast<std::size_t>(given.itemsize())),
      nbytes_(static_cast<std::size_t>(given.nbytes())) {
    for (std::size_t i = 0; i < dims_.size(); ++i)
        if (dims_[i] != 1)
            outer_.push_back({dims_[i], strides_[i], kept_.strides(static_cast<py::ssize_t>(i))});
    std::stable_sort(outer_.begin(), outer_.end(), [](const Axis& one, const Axis& other) {
        return std::abs(one.kept) > std::abs(other.kept);
    });
    while (!outer_.empty()) {
        const Axis& last = outer_.back();
        const auto step = static_cast<py::ssize_t>(run_);
        if (last.given != step || last.kept != step) break;
        run_ *= static_cast<std::size_t>(last.dim);
        outer_.pop_back();
    }
    if (is_constant(*py::detail::array_proxy(given.ptr()))) constant_ = given;
}

bool Snapshot::holds(const py::handle& array, std::size_t& compared) {
    const py::detail::PyArray_Proxy& proxy = *py::detail::array_proxy(array.ptr());
    if (!has_form(proxy)) return false;
    const bool constant = is_constant(proxy);
    if (constant && constant_) return true;
    compared += nbytes_;
    bool same = false;
    if (nbytes_ < long_run) {
        same = same_content();
    } else {
        // The caller's reference keeps the memory; NumPy refuses to resize what is referred to.
        const py::gil_scoped_release release;
        same = same_content();
    }
    constant_ = same && constant ? py::reinterpret_borrow<py::object>(array) : py::object();
    return same;
}

bool Snapshot::has_form(const py::detail::PyArray_Proxy& array) const {
    return array.data == data_ && array.descr == dtype_.ptr() &&
           static_cast<std::size_t>(array.nd) == dims_.size() &&
           std::equal(dims_.begin(), dims_.end(), array.dimensions) &&
           std::equal(strides_.begin(), strides_.end(), array.strides);
}

bool Snapshot::same_content() const {
    const auto* const kept = static_cast<const char*>(kept_.data());
    if (!outer_.empty()) return same_from(0, data_, kept);
    std::atomic<bool> same{true};
    in_parallel(run_, grain, [&](std::size_t begin, std::size_t end) {
        if (!same.load(std::memory_order_relaxed)) return;
        if (std::memcmp(data_ + begin, kept + begin, end - begin) != 0)
            same.store(false, std::memory_order_relaxed);
    });
    return same;
}

bool Snapshot::same_from(std::size_t axis, const char* given, const char* kept) const {
    if (axis == outer_.size()) return std::memcmp(given, kept, run_) == 0;
    const Axis& walked = outer_[axis];
    for (py::ssize_t i = 0; i < walked.dim; ++i)
        if (!same_from(axis + 1, given + i * walked.given, kept + i * walked.kept)) return false;
    return true;
}

} // namespace pq
