#include "harness/abort_guard.hpp"

#include <csetjmp>
#include <csignal>
#include <mutex>

namespace bitwitness {
namespace {

thread_local sigjmp_buf* way_out = nullptr;
struct sigaction previous_action {};

extern "C" void leave_library(int) {
  if (way_out != nullptr) siglongjmp(*way_out, 1);
  sigaction(SIGABRT, &previous_action, nullptr);  // not the library's: abort() raises it again
}

/// While any lives, abort() is caught on threads that have a way out. Others may set handlers of their own in between.
class Catching {
 public:
  Catching() {
    const std::scoped_lock lock(mutex);
    if (count++ != 0) return;
    struct sigaction action {};
    action.sa_handler = leave_library;
    action.sa_flags = SA_NODEFER;  // so that leaving it restores no mask
    sigemptyset(&action.sa_mask);
    sigaction(SIGABRT, &action, &previous_action);
  }
  Catching(const Catching&) = delete;
  Catching& operator=(const Catching&) = delete;
  ~Catching() {
    const std::scoped_lock lock(mutex);
    if (--count == 0) sigaction(SIGABRT, &previous_action, nullptr);
  }

 private:
  inline static std::mutex mutex;
  inline static unsigned count = 0;
};

}  // namespace

bool survives_abort(const std::function<void()>& work) {
  /// Gives the way out before back, also when the work throws.
  class WayOut {
   public:
    explicit WayOut(sigjmp_buf* now) : before_(way_out) { way_out = now; }
    WayOut(const WayOut&) = delete;
    WayOut& operator=(const WayOut&) = delete;
    ~WayOut() { way_out = before_; }

   private:
    sigjmp_buf* before_;
  };
  const Catching catching;
  sigjmp_buf out;
  const WayOut way(&out);
  if (sigsetjmp(out, 0) != 0) return false;
  work();
  return true;
}

}  // namespace bitwitness
