#include "crew.hpp"

#include <condition_variable>
#include <system_error>
#include <thread>

namespace pq {

namespace {

class Crew {
public:
    void join(Spans& spans, std::size_t helpers) {
        const std::unique_lock<std::mutex> use(use_, std::try_to_lock);
        if (!use.owns_lock()) return spans.join(0);
        {
            const std::lock_guard<std::mutex> hold(guard_);
            recruit(helpers);
            spans_ = &spans;
            wanted_ = std::min(helpers, size_);
        }
        called_.notify_all();
        spans.join(0);
        std::unique_lock<std::mutex> hold(guard_);
        // Who wakes up from here on finds nothing to join.
        wanted_ = 0;
        done_.wait(hold, [this] { return working_ == 0; });
    }

private:
    void recruit(std::size_t helpers) {
        try {
            for (; size_ < helpers; ++size_)
                std::thread(&Crew::serve, this).detach();
        } catch (const std::system_error&) {
            // As many as the system grants.
        }
    }

    void serve() {
        std::unique_lock<std::mutex> hold(guard_);
        while (true) {
            called_.wait(hold, [this] { return wanted_ > 0; });
            Spans& spans = *spans_;
            const std::size_t number = wanted_--;
            ++working_;
            hold.unlock();
            spans.join(number);
            hold.lock();
            if (--working_ == 0) done_.notify_one();
        }
    }

    std::mutex use_, guard_;
    std::condition_variable called_, done_;
    Spans* spans_ = nullptr;
    std::size_t size_ = 0, wanted_ = 0, working_ = 0;
};

} // namespace

void join_with_crew(Spans& spans, std::size_t helpers) {
    // Leaked on purpose: its threads wait in it until the process ends.
    static Crew& crew = *new Crew;
    crew.join(spans, helpers);
}

} // namespace pq
