// A network as one program: prepared primitives in a row, over one block of memory that holds all
// that lies between them.
#pragma once

#include "array_layout.hpp"
#include "pass.hpp"
#include "primitive.hpp"

#include <mutex>
#include <optional>
#include <sys/types.h>

namespace pq {

// Where a tensor begins: in the arena (buffer 0), or in an array of the call (1, 2, ...).
struct Place {
    std::size_t buffer = 0;
    std::size_t offset = 0; // in bytes
};

struct Step {
    py::object runs; // a Prepared; a Pass; or a function of Python, of arrays, the last is dst
    Prepared* primitive = nullptr; // null for others
    const Pass* pass = nullptr;    // the same
    std::vector<Place> places;     // of its arguments in order, dst last
    std::optional<Place> residual; // copied to dst before it runs
    std::vector<TensorSpec> specs; // of a function's arrays

    bool is_function() const { return primitive == nullptr && pass == nullptr; }
};

// Immutable; safe to call from many threads at once, each on an arena of its own. Arenas are kept.
class Program {
public:
    // `arrays`: those of a call, in the layouts that they must have; the first `inputs` of them are
    // only read.
    Program(std::vector<Step> steps, std::size_t arena_bytes, std::vector<TensorSpec> arrays,
            std::size_t inputs);

    // Runs all steps on inputs, and returns new outputs in a tuple: NotImplemented, and nothing
    // ran, unless all inputs fit as they are. Python is not touched between primitives and passes
    // that follow each other.
    py::object run(const py::args& inputs);

    // The same of inputs that are checked in full; ArgumentFault says what is wrong with one.
    py::tuple run_checked(const py::args& inputs);

    // The same; returns the seconds that each step took in its place.
    std::vector<double> run_timed(const py::args& inputs);

    // Of one call: what lies between steps, and what primitives need beside their arguments.
    std::size_t arena_bytes() const { return arena_bytes_; }
    std::size_t scratchpad_bytes() const { return scratchpad_bytes_; }

private:
    // The memory of one call, and all that points into it.
    struct Room {
        AlignedBuffer arena, scratchpad;
        std::vector<std::unique_ptr<Frame>> frames; // one a step, null but for primitives
    };

    // A room for the time of one call, given back however the call ends.
    class Loan {
    public:
        explicit Loan(Program& program);
        ~Loan();
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;

        char* arena() const { return static_cast<char*>(room_->arena.data()); }
        Frame& frame(std::size_t step) const { return *room_->frames[step]; }
        // What keeps the memory as long as an array of Python looks at it.
        py::object owner() const;

    private:
        Program& program_;
        std::shared_ptr<Room> room_;
    };

    bool fits(const py::args& inputs) const;
    void check_inputs(const py::args& inputs) const;
    // All arrays of a call, outputs new.
    std::vector<py::object> arrays_for(const py::args& inputs) const;
    py::tuple outputs_of(const py::args& inputs);
    void check_places() const;
    std::size_t bytes_of(std::size_t buffer) const;
    void run_steps(const std::vector<py::object>& arrays, double* seconds);
    void run_primitive(const Step& step, const std::vector<char*>& buffers, Frame& frame) const;
    void run_pass(const Step& step, const std::vector<char*>& buffers) const;
    void run_function(const Step& step, const std::vector<char*>& buffers,
                      const std::vector<py::object>& given, const Loan& loan) const;

    std::vector<Step> steps_;
    std::size_t arena_bytes_;
    std::size_t scratchpad_bytes_ = 0;
    std::vector<ArrayLayout> arrays_;
    std::size_t inputs_;
    const pid_t process_; // the only one that runs it: a child may find its lock held for good
    std::mutex guard_;
    std::vector<std::shared_ptr<Room>> rooms_; // that nobody uses now
    std::size_t made_ = 0;                     // rooms, in use or not
};

} // namespace pq
