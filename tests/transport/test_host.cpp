// What the library knows of this host and its processes, also without free file descriptors.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "outcore/error.hpp"
#include "support/check.hpp"
#include "transport/host.hpp"

using namespace outcore;

namespace {

/// While this object lives no file can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST("a host without its name is an error, not another host") {  // the first that asks for it
  {
    const NoDescriptors none;
    check::equal(check::throws<Error>([] { (void)transport::host_name(); }).errno_value(), EMFILE);
  }
  const std::string found = transport::host_name();
  const NoDescriptors none;
  check::equal(transport::host_name(), found);
}

TEST("a process that cannot look for another does not take it for dead") {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  {
    const NoDescriptors none;
    check::is_true(transport::process_exists(child));
  }
  check::is_true(transport::process_exists(child));
  kill(child, SIGKILL);
  siginfo_t ended;
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  check::is_true(!transport::process_exists(child));  // a zombie
  waitpid(child, nullptr, 0);
  check::is_true(!transport::process_exists(child));
  const NoDescriptors none;
  check::is_true(!transport::process_exists(child));
}

TEST_MAIN
