// Names the rooms of the extension. No logic here, ever.
#include "compare.hpp"
#include "gil.hpp"
#include "rooms.hpp"
#include "runtime.hpp"
#include "sampled_sums.hpp"

PYBIND11_MODULE(_core, m) {
    m.doc() =
            "oneDNN primitives and their attributes, as thin as they come. Use pyonednn_q.native.";
    m.attr("__version__") = PYONEDNN_Q_VERSION;

    pq::watch_for_forks();
    pq::watch_for_the_end();
    pq::register_errors();
    pq::register_runtime(m);
    pq::register_memory(m);
    pq::register_compare(m);
    pq::register_sampled_sums(m);
    pq::register_pass(m); // before what returns passes
    pq::register_primitive(m);
    pq::register_program(m);
    pq::register_requantize(m);
    pq::register_quantize(m);
    pq::register_cast(m);
    pq::register_groups(m);
    pq::register_attention(m);
}
