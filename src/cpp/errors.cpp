#include "errors.hpp"

#include <utility>

namespace pq {

ArgumentFault::ArgumentFault(std::string kind_, std::string argument_, std::string got_,
                             std::string wanted_)
    : std::runtime_error(argument_ + ": got " + got_ + "; wanted " + wanted_),
      kind(std::move(kind_)), argument(std::move(argument_)), got(std::move(got_)),
      wanted(std::move(wanted_)) {}

DnnlFault::DnnlFault(dnnl_status_t status_, std::string call_)
    : std::runtime_error(call_ + ": " + status_name(status_)), status(status_),
      call(std::move(call_)) {}

ForkedFault::ForkedFault()
    : std::runtime_error("this process was forked after oneDNN had been used, and its worker "
                         "threads did not survive the fork; "
                         "start workers with the 'spawn' or 'forkserver' method, or fork before "
                         "the first call") {}

const char* status_name(dnnl_status_t status) {
    switch (status) {
    case dnnl_success:
        return "success";
    case dnnl_out_of_memory:
        return "out_of_memory";
    case dnnl_invalid_arguments:
        return "invalid_arguments";
    case dnnl_unimplemented:
        return "unimplemented";
    case dnnl_last_impl_reached:
        return "last_impl_reached";
    case dnnl_runtime_error:
        return "runtime_error";
    case dnnl_not_required:
        return "not_required";
    default:
        return "unknown_status";
    }
}

namespace {

template <typename... Args>
void raise_python(const char* name, Args&&... args) {
    const py::object type = py::module_::import("pyonednn_q.errors").attr(name);
    const py::object instance = type(std::forward<Args>(args)...);
    PyErr_SetObject(type.ptr(), instance.ptr());
}

const char* class_of(dnnl_status_t status) {
    switch (status) {
    case dnnl_unimplemented:
        return "UnsupportedError";
    case dnnl_out_of_memory:
        return "OutOfMemoryError";
    default:
        return "OneDNNError";
    }
}

void translate(std::exception_ptr thrown) {
    try {
        if (thrown) std::rethrow_exception(thrown);
    } catch (const ArgumentFault& fault) {
        raise_python(fault.kind.c_str(), fault.argument, fault.got, fault.wanted);
    } catch (const DnnlFault& fault) {
        raise_python(class_of(fault.status), status_name(fault.status), fault.call, "");
    } catch (const LibraryFault& fault) {
        raise_python("LibraryError", fault.what(), py::tuple());
    } catch (const ForkedFault& fault) {
        raise_python("ForkedError", fault.what());
    } catch (const std::bad_alloc&) {
        raise_python(class_of(dnnl_out_of_memory), status_name(dnnl_out_of_memory), "allocation",
                     "");
    }
}

} // namespace

void set_python_error(std::exception_ptr thrown) {
    try {
        translate(std::move(thrown));
    } catch (py::error_already_set& error) {
        error.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
}

void register_errors() {
    py::register_exception_translator(&translate);
}

} // namespace pq
