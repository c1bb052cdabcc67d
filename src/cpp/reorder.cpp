#include "reorder.hpp"

#include "errors.hpp"
#include "reserve.hpp"
#include "runtime.hpp"
#include "threads.hpp"

#include <cstring>

namespace pq {

namespace {

PrimitiveDesc make_desc(const Layout& from, const Layout& to, int threads) {
    reserve(for_making);
    const Threads held(threads);
    dnnl_primitive_attr_t attr_created = nullptr;
    PQ_CALL(primitive_attr_create, &attr_created);
    const Attribute attr(attr_created);
    PQ_CALL(primitive_attr_set_scratchpad_mode, attr.get(), dnnl_scratchpad_mode_user);
    dnnl_primitive_desc_t created = nullptr;
    PQ_CALL(reorder_primitive_desc_create, &created, from.desc(), engine(), to.desc(), engine(),
            attr.get());
    return PrimitiveDesc(created);
}

} // namespace

Reorder::Reorder(const Layout& from, const Layout& to)
    : threads_(get_num_threads()), desc_(make_desc(from, to, threads_)),
      primitive_(make_primitive(desc_.get(), threads_)), scratchpad_(scratchpad_of(primitive_)) {}

bool Reorder::generated() const {
    const char* name = nullptr;
    PQ_CALL(primitive_desc_query, desc_.get(), dnnl_query_impl_info_str, 0,
            static_cast<void*>(&name));
    return name != nullptr && std::strstr(name, "simple") == nullptr &&
           std::strstr(name, "ref") == nullptr;
}

void Reorder::execute(dnnl_memory_t from, dnnl_memory_t to, dnnl_memory_t scratchpad) const {
    reserve_team(threads_);
    const Threads held(threads_);
    const dnnl_exec_arg_t arguments[] = {
            {DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, scratchpad}};
    PQ_CALL(primitive_execute, primitive_.get(), stream(), 3, arguments);
    PQ_CALL(stream_wait, stream());
}

void reorder(const Layout& src_layout, void* src, const Memory& dst) {
    const Reorder copy(src_layout, dst.layout());
    const AlignedBuffer scratchpad(copy.scratchpad().nbytes());
    const MemoryObject scratchpad_memory = make_memory(copy.scratchpad(), scratchpad.data());
    const MemoryObject from = make_memory(src_layout, src);
    copy.execute(from.get(), dst.object(), scratchpad_memory.get());
}

} // namespace pq
