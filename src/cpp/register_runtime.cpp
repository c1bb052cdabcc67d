#include "clock.hpp"
#include "dtypes.hpp"
#include "library.hpp"
#include "rooms.hpp"
#include "runtime.hpp"
#include "threads.hpp"
#include "wide.hpp"

namespace pq {

void register_runtime(py::module_& m) {
    m.def("load", &load_library, py::arg("path"), "Opens the oneDNN library at path, once.");
    m.def("version", &version, "Version, commit and runtimes of the loaded library.");
    m.def("effective_isa", &effective_isa,
          "The highest instruction set the library may use; asking fixes it.");
    m.def("cpu_flags", &cpu_flags,
          "What kernels ask the processor for themselves, by the names of Linux.");
    m.def("limit_isa", &limit_isa, py::arg("isa"),
          "Lowers the highest instruction set, before first use only.");
    m.def("get_num_threads", &get_num_threads, "Threads of primitives made from now on.");
    m.def("set_num_threads", &set_num_threads, py::arg("n"),
          "Sets the threads of primitives made from now on.");
    m.def("vector_bits", &vector_bits, "Width of the vectors of our own loops; 0: none.");
    m.def("clock_hz", &clock_hz, py::call_guard<py::gil_scoped_release>(),
          "The clock of this core in Hz, measured; 0: unknown.");
    m.def("register_dtype", &register_dtype, py::arg("name"), py::arg("dtype"),
          "Names the NumPy dtype of a type that NumPy lacks.");
}

} // namespace pq
