#include "buffer_pool.hpp"
#include "dtypes.hpp"
#include "memory.hpp"
#include "rooms.hpp"

namespace pq {

void register_memory(py::module_& m) {
    py::class_<Layout>(m, "Layout", "Layout of one argument; compares by descriptor, not by size.")
            .def_property_readonly(
                    "dims", [](const Layout& self) { return py::tuple(py::cast(self.dims())); })
            .def_property_readonly("dtype",
                                   [](const Layout& self) { return dtype_name(self.dtype()); })
            .def_property_readonly("strides",
                                   [](const Layout& self) -> py::object {
                                       if (!self.plain()) return py::none();
                                       return py::tuple(py::cast(self.strides()));
                                   })
            .def_property_readonly("nbytes", &Layout::nbytes)
            .def("__eq__",
                 [](const Layout& self, const py::object& other) {
                     return py::isinstance<Layout>(other) && self == other.cast<const Layout&>();
                 })
            .def("__str__", &Layout::text)
            .def("__repr__", [](const Layout& self) { return "Layout(" + self.text() + ")"; });

    py::class_<Memory, std::shared_ptr<Memory>>(m, "Memory",
                                                "Aligned memory that the extension owns.")
            .def_property_readonly("layout", [](const Memory& self) { return self.layout(); })
            .def_property_readonly("nbytes",
                                   [](const Memory& self) { return self.layout().nbytes(); })
            .def("to_numpy", &Memory::to_numpy, "A copy in logical dims; LayoutError when opaque.");

    using Statistics = BufferPool::Statistics;
    py::class_<Statistics>(m, "BufferStatistics", "What the pool of result buffers holds and did.")
            .def_readonly("taken", &Statistics::taken)
            .def_readonly("reused", &Statistics::reused)
            .def_readonly("held", &Statistics::held)
            .def_readonly("held_bytes", &Statistics::held_bytes)
            .def_readonly("limit", &Statistics::limit);
    m.def("buffer_statistics", [] { return buffer_pool().statistics(); });
    m.def(
            "limit_buffers", [](std::size_t nbytes) { buffer_pool().set_limit(nbytes); },
            py::arg("nbytes"), "How many bytes may wait in the pool.");
    m.def("clear_buffers", [] { buffer_pool().clear(); }, "Frees what waits in the pool.");
}

} // namespace pq
