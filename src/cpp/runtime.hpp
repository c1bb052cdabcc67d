// Engine, stream, instruction set: what every primitive of the process shares.
#pragma once

#include "handle.hpp"

namespace pq {

// The one CPU engine, created at first use.
dnnl_engine_t engine();

// This thread's stream, created at first use and destroyed with the thread.
dnnl_stream_t stream();

// A new primitive, made in a thread of its own: where the library fails to generate code, it keeps
// the error for as long as the thread lives, and what it makes there afterwards may lack kernels
// without a word (uxlfoundation/oneDNN#5907, open in all releases up to 3.13).
Primitive make_primitive(const_dnnl_primitive_desc_t desc, int threads);

// To be called once, when the extension is loaded.
void watch_for_forks();

// Whether this is a child of a process that had already used the engine, or begun to make it.
bool is_forked();

// Throws ForkedFault in a child of a process that had already used the engine.
void check_not_forked();

// From here on a forked child is refused: what comes takes locks that such a child never gets.
void begin_use();

py::dict version();
std::string effective_isa();
// What kernels ask the processor for themselves, whatever the library's answer is.
std::vector<std::string> cpu_flags();
// Only before the first descriptor; later the library refuses (DnnlFault).
void limit_isa(const std::string& name);

} // namespace pq
