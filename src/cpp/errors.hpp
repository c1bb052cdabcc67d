// Faults thrown inside the extension and their translation to pyonednn_q.errors.
#pragma once

#include "common.hpp"

#include <exception>
#include <stdexcept>

namespace pq {

// A bad argument: `kind` is the Python class (ShapeError, DTypeError, LayoutError, AliasError,
// ArgumentError).
class ArgumentFault : public std::runtime_error {
public:
    ArgumentFault(std::string kind_, std::string argument_, std::string got_, std::string wanted_);

    std::string kind, argument, got, wanted;
};

// A call of the library that did not return success.
class DnnlFault : public std::runtime_error {
public:
    DnnlFault(dnnl_status_t status_, std::string call_);

    dnnl_status_t status;
    std::string call;
};

// The library is missing, broken or too old.
class LibraryFault : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// The process forked after the library was used; its thread pool did not survive.
class ForkedFault : public std::runtime_error {
public:
    ForkedFault();
};

const char* status_name(dnnl_status_t status);

inline void check(dnnl_status_t status, const char* call) {
    if (status != dnnl_success) throw DnnlFault(status, call);
}

// Calls a function of the table and throws DnnlFault, naming it, unless it succeeds.
#define PQ_CALL(name, ...) ::pq::check(::pq::lib().name(__VA_ARGS__), "dnnl_" #name)

// Sets the Python error that stands for a thrown fault; for code that pybind11 does not call.
void set_python_error(std::exception_ptr thrown);

void register_errors();

} // namespace pq
