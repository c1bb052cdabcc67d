#include "compare.hpp"

#include "errors.hpp"
#include "gil.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace pq {

namespace {

using ArrayProxy = py::detail::PyArray_Proxy;

// From here on comparing takes longer than giving up the GIL and getting it back.
constexpr std::size_t long_run = std::size_t{256} << 10U;
// Bytes of a piece for one thread.
constexpr std::size_t grain = std::size_t{32} << 10U;
constexpr std::size_t most_dims = 64; // NumPy's

// How to walk both arrays: axes one by one, the longest strides first, and bytes in a row below.
struct Walk {
    struct Axis {
        py::ssize_t dim, one, other; // strides in bytes
    };

    std::array<Axis, most_dims> axes{};
    std::size_t size = 0;
    std::size_t run;

    Walk(const ArrayProxy& one, const ArrayProxy& other, std::size_t itemsize) : run(itemsize) {
        for (int i = 0; i < one.nd; ++i)
            if (one.dimensions[i] != 1)
                axes[size++] = {one.dimensions[i], one.strides[i], other.strides[i]};
        std::stable_sort(axes.begin(), axes.begin() + size, [](const Axis& a, const Axis& b) {
            return std::abs(a.other) > std::abs(b.other);
        });
        for (; size > 0; --size) {
            const Axis& last = axes[size - 1];
            const auto step = static_cast<py::ssize_t>(run);
            if (last.one != step || last.other != step) break;
            run *= static_cast<std::size_t>(last.dim);
        }
    }

    bool same(const char* one, const char* other) const {
        return size > 0 ? same_from(0, one, other) : same_run(one, other);
    }

private:
    bool same_run(const char* one, const char* other) const {
        std::atomic<bool> all{true};
        in_parallel(run, grain, [&](std::size_t begin, std::size_t end) {
            if (!all.load(std::memory_order_relaxed)) return;
            if (std::memcmp(one + begin, other + begin, end - begin) != 0)
                all.store(false, std::memory_order_relaxed);
        });
        return all;
    }

    bool same_from(std::size_t axis, const char* one, const char* other) const {
        if (axis == size) return std::memcmp(one, other, run) == 0;
        const Axis& walked = axes[axis];
        for (py::ssize_t i = 0; i < walked.dim; ++i)
            if (!same_from(axis + 1, one + i * walked.one, other + i * walked.other)) return false;
        return true;
    }
};

bool same_bytes(const ArrayProxy& one, const ArrayProxy& other) {
    const auto itemsize =
            static_cast<std::size_t>(py::reinterpret_borrow<py::dtype>(one.descr).itemsize());
    const auto of_other =
            static_cast<std::size_t>(py::reinterpret_borrow<py::dtype>(other.descr).itemsize());
    if (itemsize != of_other || one.nd != other.nd ||
        !std::equal(one.dimensions, one.dimensions + one.nd, other.dimensions))
        return false;
    std::size_t nbytes = itemsize;
    for (int i = 0; i < one.nd; ++i)
        nbytes *= static_cast<std::size_t>(one.dimensions[i]);
    if (nbytes == 0) return true;
    const Walk walk(one, other, itemsize);
    if (nbytes < long_run) return walk.same(one.data, other.data);
    // The caller's references keep the memory; NumPy refuses to resize what is referred to.
    const GilReleased released;
    return walk.same(one.data, other.data);
}

PyObject* call(PyObject* /*module*/, PyObject* const* args, Py_ssize_t count) {
    try {
        const auto& numpy = py::detail::npy_api::get();
        const auto is_array = [&](PyObject* object) {
            return PyObject_TypeCheck(object, numpy.PyArray_Type_) != 0;
        };
        if (count != 2 || !is_array(args[0]) || !is_array(args[1])) {
            PyErr_SetString(PyExc_TypeError, "same_bytes takes two NumPy arrays");
            return nullptr;
        }
        return PyBool_FromLong(static_cast<long>(
                same_bytes(*py::detail::array_proxy(args[0]), *py::detail::array_proxy(args[1]))));
    }
    PQ_LET_THREADS_END
    catch (...) {
        set_python_error(std::current_exception());
        return nullptr;
    }
}

PyMethodDef functions[] = {
        {"same_bytes", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)),
         METH_FASTCALL, "f(one, other): whether two arrays hold the same bytes."},
        {}};

} // namespace

void register_compare(py::module_& m) {
    if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw py::error_already_set();
}

} // namespace pq
