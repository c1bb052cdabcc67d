// A primitive ready to run: immutable, its constants bound, safe to call from many threads at once.
#pragma once

#include "code_source.hpp"
#include "frame.hpp"

#include <optional>

namespace pq {

class Prepared {
public:
    using Bound = std::map<std::string, std::shared_ptr<Memory>>;

    // `per_call` names the arguments of run, in order; everything else the primitive reads must be
    // in `bound`. `arrays` says how arrays lie where the primitive takes them otherwise: they are
    // seen in its dims, or copied in each call. Throws ArgumentFault when an argument is missing or
    // its layout is opaque per call.
    Prepared(const Candidate& candidate, const std::vector<std::string>& per_call, Bound bound,
             const Arrays& arrays);

    // One call: checks every array, sets pointers, executes, waits. The last slot is dst.
    void run(const py::args& arrays);

    // How many arrays a call reads, dst not counted.
    std::size_t inputs() const { return slots_.size() - 1; }

    // The same for that many objects and dst, or None for a new array; returns dst. A residual is
    // what a sum reads in place of dst, or None. Returns NotImplemented and runs nothing unless
    // every array fits as it is.
    py::object run_if_fitting(PyObject* const* arrays, PyObject* residual, PyObject* out);

    // The same for a source of float32, of which codes are made first; the other inputs are what
    // they are worth. Returns NotImplemented, too, for values that have no codes.
    py::object run_if_source_fits(const CodeSource& source, PyObject* src, PyObject* residual,
                                  PyObject* out);

    // Whether all inputs are what a source brings along, row after row; or, too, operands.
    bool reads_only(const CodeSource& source, bool and_operands = false) const;

    // Whether the first input is s8.
    bool takes_signed() const { return slots_[0].layout.dtype() == dnnl_s8; }

    // Seconds of `calls` executions in a row, in C++ alone: what the library costs without Python.
    double time_calls(const py::tuple& arrays, int calls);

    // The arguments that are copied in each call, and the layouts they are copied into.
    std::map<std::string, Layout> copied() const;

    // Seconds of one copy of each of them, over `calls` in a row.
    std::map<std::string, double> time_copies(int calls);

    std::size_t frames() const { return pool_.size(); }

    // For whoever runs it among others, in memory of its own (program.hpp): arguments in the order
    // of a call, dst last.
    const std::vector<Slot>& slots() const { return slots_; }
    bool reads_dst() const { return reads_dst_; }
    std::size_t scratchpad_bytes() const { return scratchpad_->nbytes(); }
    // A frame whose scratchpad is somebody else's memory.
    std::unique_ptr<Frame> frame_in(void* scratchpad) const;
    void set_data(Frame& frame, std::size_t slot, void* data) const;
    void execute(const Frame& frame) const;

private:
    std::unique_ptr<Frame> make_frame() const;
    std::unique_ptr<Frame> frame_over(AlignedBuffer scratchpad, void* at) const;
    // A frame with its pointers set (one a slot), from the pool or new.
    std::unique_ptr<Frame> frame_for(void* const* data);
    // The slot whose array overlaps dst in a way that would change the result, or null.
    // Operands may be dst itself, unless something is copied there first.
    const Slot* overlapping(void* const* data, bool may_be_in_place = true) const;
    std::vector<void*> checked(const py::handle& arrays) const;
    void copy(const Frame& frame, std::shared_ptr<const Reorder> Slot::* way) const;
    // `residual`: of the size of dst, to which it is copied first, or null. `codes` are made before
    // anything is written; false, and nothing is run, where values have none.
    bool execute_once(void* const* data, const void* residual = nullptr,
                      const MadeCodes* codes = nullptr);
    // Runs on inputs that fit; returns dst or NotImplemented.
    py::object run_into(void** data, PyObject* residual, PyObject* out,
                        const MadeCodes* codes = nullptr);

    int threads_; // that it is made for and run with
    Primitive primitive_;
    std::vector<Slot> slots_;
    Bound bound_;
    std::vector<dnnl_exec_arg_t> bound_arguments_;
    std::optional<Layout> scratchpad_; // set once the primitive is made
    bool reads_dst_;
    bool copies_ = false; // any argument, in each call
    FramePool pool_;
};

} // namespace pq
