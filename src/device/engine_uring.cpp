// The io_uring engine.
#include <cerrno>

#include "outcore/device/engine.hpp"
#include "outcore/error.hpp"

namespace outcore::device {

std::unique_ptr<Engine> make_uring_engine(unsigned) {
  throw Error(ENOSYS, {.attempted = "io_uring engine",
                       .detail = "built without liburing; install liburing-dev and build again"});
}

}  // namespace outcore::device
