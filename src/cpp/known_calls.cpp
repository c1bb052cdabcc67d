#include "known_calls.hpp"

#include <algorithm>
#include <utility>

namespace pq {

namespace {

bool is_array(PyObject* object) {
    return PyObject_TypeCheck(object, py::detail::npy_api::get().PyArray_Type_);
}

const void* data_of(PyObject* array) {
    return py::detail::array_proxy(array)->data;
}

void mix(std::size_t& key, const void* pointer) {
    // Objects lie 16 bytes apart: the low bits say nothing.
    key = (key ^ (reinterpret_cast<std::size_t>(pointer) >> 4U)) * std::size_t{0x9E3779B97F4A7C15};
}

std::size_t key_of(PyObject* kind, const void* wei, const void* bias, const Options& options) {
    std::size_t key = 0;
    mix(key, kind);
    mix(key, wei);
    mix(key, bias);
    for (const auto& [name, value] : options) {
        mix(key, name);
        mix(key, value);
    }
    return key ^ (key >> 32U);
}

bool are_options(const std::vector<py::object>& objects, const Options& options) {
    if (objects.size() != 1 + 2 * options.size()) return false;
    std::size_t i = 1;
    for (const auto& [name, value] : options) {
        if (objects[i].ptr() != name || objects[i + 1].ptr() != value) return false;
        i += 2;
    }
    return true;
}

const void* place(const std::shared_ptr<Snapshot>& held) {
    return held ? held->data() : nullptr;
}

} // namespace

bool Options::add(PyObject* name, PyObject* value) {
    if (size_ == options_.size()) return false;
    options_[size_++] = {name, value};
    return true;
}

bool Options::add_all(PyObject* dict) {
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &value) != 0;)
        if (!add(name, value)) return false;
    return true;
}

KnownCalls::Calls::iterator KnownCalls::find_objects(std::size_t key, PyObject* kind,
                                                     const void* wei, const void* bias,
                                                     const Options& options) {
    const auto [first, last] = calls_.equal_range(key);
    for (auto at = first; at != last; ++at) {
        const Call& call = at->second;
        if (call.objects.front().ptr() == kind && place(call.held.first) == wei &&
            place(call.held.second) == bias && are_options(call.objects, options)) {
            return at;
        }
    }
    return calls_.end();
}

PyObject* KnownCalls::find(PyObject* kind, PyObject* wei, PyObject* bias, const Options& options) {
    const bool has_bias = bias != Py_None;
    if (!is_array(wei) || (has_bias && !is_array(bias))) return nullptr;
    const void* const wei_data = data_of(wei);
    const void* const bias_data = has_bias ? data_of(bias) : nullptr;
    const auto found = find_objects(key_of(kind, wei_data, bias_data, options), kind, wei_data,
                                    bias_data, options);
    if (found == calls_.end()) return nullptr;
    found->second.used = ++clock_;
    // Comparing may give up the GIL, and another thread may forget the call meanwhile.
    const Snapshots held = found->second.held;
    py::object op = found->second.op;
    if (!held.first->holds(wei, compared_)) return nullptr;
    if (has_bias && !held.second->holds(bias, compared_)) return nullptr;
    ++hits_;
    return op.release().ptr();
}

void KnownCalls::remember(const py::object& kind, const py::array& wei, const py::object& bias,
                          const py::dict& options, py::object op, const py::array& kept_wei,
                          const py::object& kept_bias) {
    Snapshots held{std::make_shared<Snapshot>(wei, kept_wei), nullptr};
    if (!bias.is_none()) {
        held.second =
                std::make_shared<Snapshot>(bias.cast<py::array>(), kept_bias.cast<py::array>());
    }
    insert(kind, options, std::move(held), std::move(op));
}

py::object KnownCalls::find_as(const py::object& kind, const py::object& wei,
                               const py::object& bias, const py::dict& known,
                               const py::dict& options) {
    Options names;
    if (!names.add_all(known.ptr())) return py::none();
    PyObject* const found = find(kind.ptr(), wei.ptr(), bias.ptr(), names);
    if (found == nullptr) return py::none();
    auto op = py::reinterpret_steal<py::object>(found);
    const void* const wei_data = data_of(wei.ptr());
    const void* const bias_data = bias.is_none() ? nullptr : data_of(bias.ptr());
    const auto call = find_objects(key_of(kind.ptr(), wei_data, bias_data, names), kind.ptr(),
                                   wei_data, bias_data, names);
    if (call != calls_.end()) insert(kind, options, call->second.held, op);
    return op;
}

void KnownCalls::insert(const py::object& kind, const py::dict& options, Snapshots held,
                        py::object op) {
    Options names;
    if (!names.add_all(options.ptr())) return;
    const void* const wei = place(held.first);
    const void* const bias = place(held.second);
    const std::size_t key = key_of(kind.ptr(), wei, bias, names);
    Call call{{kind}, std::move(held), std::move(op), ++clock_};
    for (const auto& [name, value] : names) {
        call.objects.push_back(py::reinterpret_borrow<py::object>(name));
        call.objects.push_back(py::reinterpret_borrow<py::object>(value));
    }
    const auto before = find_objects(key, kind.ptr(), wei, bias, names);
    if (before != calls_.end()) {
        // Destroyed last: what it held may run code of its own.
        const Call old = std::exchange(before->second, std::move(call));
    } else {
        calls_.emplace(key, std::move(call));
    }
}

void KnownCalls::clear() {
    hits_ = compared_ = 0;
    forget();
}

void KnownCalls::forget() {
    // What goes may run code of its own, which must find the table in order.
    const Calls gone = std::exchange(calls_, {});
}

py::list KnownCalls::by_age() const {
    std::vector<const Call*> calls;
    for (const auto& [key, call] : calls_)
        calls.push_back(&call);
    std::sort(calls.begin(), calls.end(),
              [](const Call* one, const Call* other) { return one->used < other->used; });
    py::list found;
    for (const Call* const call : calls)
        found.append(call->op);
    return found;
}

} // namespace pq
