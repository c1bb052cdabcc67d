#include "library.hpp"

#include "errors.hpp"

#include <dlfcn.h>

namespace pq {

namespace detail {
Library library;
}

namespace {

constexpr int floor_major = 3;
constexpr int floor_minor = 7;

template <typename Function>
void resolve(void* handle, const char* name, Function& slot) {
    slot = reinterpret_cast<Function>(dlsym(handle, name));
    if (slot == nullptr) throw LibraryFault(std::string("has no function ") + name);
}

Library open_library(const std::string& path) {
    // RTLD_LOCAL: other copies of oneDNN in the process must neither see nor serve these symbols.
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* reason = dlerror();
        throw LibraryFault(reason != nullptr ? reason : "dlopen failed");
    }
    Library table;
    table.handle = handle;
    table.path = path;
    try {
        // The version first: a library that is too old should be told so, not that a function is
        // missing.
        resolve(handle, "dnnl_version", table.version);
        const dnnl_version_t* found = table.version();
        if (found->major != floor_major || found->minor < floor_minor) {
            throw LibraryFault("is oneDNN " + std::to_string(found->major) + "." +
                               std::to_string(found->minor) + "." + std::to_string(found->patch) +
                               ", but 3.7 or a later 3.x is needed");
        }
#define PQ_RESOLVE(name) resolve(handle, "dnnl_" #name, table.name);
        PQ_DNNL_FUNCTIONS(PQ_RESOLVE)
#undef PQ_RESOLVE
    } catch (...) {
        dlclose(handle);
        throw;
    }
    return table;
}

} // namespace

void load_library(const std::string& path) {
    if (detail::library.handle != nullptr) {
        if (detail::library.path == path) return;
        throw LibraryFault("cannot replace " + detail::library.path + ", which is already in use");
    }
    detail::library = open_library(path);
}

const Library& require_library() {
    if (detail::library.handle == nullptr)
        throw LibraryFault("no oneDNN library was loaded; call load(path) first");
    return detail::library;
}

void* find_symbol(const char* name) {
    return dlsym(require_library().handle, name);
}

} // namespace pq
