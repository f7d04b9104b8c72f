#include "base/file_size_limit.hpp"

#include <signal.h>
#include <sys/resource.h>

#include <cerrno>

#include "outcore/error.hpp"

namespace outcore {
namespace {

rlim_t limit() noexcept {
  rlimit found{};
  return getrlimit(RLIMIT_FSIZE, &found) == 0 ? found.rlim_cur : RLIM_INFINITY;
}

}  // namespace

void outlive_file_size_limit() noexcept {
  if (limit() == RLIM_INFINITY) return;
  struct sigaction now{};
  if (sigaction(SIGXFSZ, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL)
    (void)signal(SIGXFSZ, SIG_IGN);
}

std::string file_size_limit(int errno_value) {
  const rlim_t bytes = limit();
  if (errno_value != EFBIG || bytes == RLIM_INFINITY) return {};
  return "a file may have " + std::to_string(bytes) + " bytes, by ulimit -f (RLIMIT_FSIZE)";
}

void check_file_size(std::string_view attempted, const std::string& path, std::int64_t size_bytes) {
  if (size_bytes > 0 && static_cast<rlim_t>(size_bytes) > limit())
    throw Error(EFBIG, {.attempted = std::string(attempted),
                        .path = path,
                        .size_bytes = size_bytes,
                        .detail = file_size_limit(EFBIG)});
}

}  // namespace outcore
