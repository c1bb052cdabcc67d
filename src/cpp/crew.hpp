// Threads of our own, for libraries whose runtime cannot be asked to run a function.
#pragma once

#include "spans.hpp"

namespace pq {

// Runs spans with `helpers` threads besides the caller's. They are started when they are first
// needed and sleep between jobs. One job at a time: while another thread has them, the caller works
// alone. Not to be used in a forked child, where they do not exist.
void join_with_crew(Spans& spans, std::size_t helpers);

} // namespace pq
