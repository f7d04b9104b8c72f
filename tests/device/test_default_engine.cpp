// The choice of the engine, each case in a process of its own.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>

#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"
#include "outcore/trace.hpp"
#include "support.hpp"

using namespace outcore;
using namespace outcore::device;

namespace {

/// Runs the body in a child, which reports errors by exceptions and ends by `leave`.
void in_child(const std::function<void()>& body, void (*leave)(int) = _exit) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    int status = 0;
    try {
      body();
    } catch (const std::exception& error) {
      std::printf("      child: %s\n", error.what());
      std::fflush(stdout);
      status = 1;
    }
    leave(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  check::equal(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), 0);
}

/// Refuses io_uring as containers do.
void forbid_io_uring() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = 4, .filter = program};
  check::equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  check::equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

bool uring_works() {
  try {
    static_cast<void>(make_uring_engine());
    return true;
  } catch (const Error&) {
    return false;
  }
}

void move_something(const support::Scratch& scratch, const char* name) {
  File file(scratch.file(name));
  const support::Bytes data = support::pattern(1 << 20, 1);
  support::Bytes back(data.size());
  check::equal(file.write_async(data, 0).wait(), 1 << 20);
  check::equal(file.read_async(back, 0).wait(), 1 << 20);
  support::same(back, data);
}

}  // namespace

TEST("io_uring is the choice where it works") {
  in_child([] {
    const bool works = uring_works();
    check::equal(std::string(default_engine().name()), works ? "uring" : "threads");
    if (works) check::equal(default_engine_reason(), std::string("io_uring works"));
  });
}

TEST("forbidden io_uring falls back to threads and says why") {
  support::Scratch scratch;
  in_child([&] {
    forbid_io_uring();
    check::equal(std::string(default_engine().name()), "threads");
    if (!default_engine_reason().starts_with(
            "io_uring engine"))  // a build without liburing has its own reason
      check::contains(default_engine_reason(), "io_uring_setup: Operation not permitted");
    move_something(scratch, "fallback");
  });
}

TEST("forbidden io_uring is an error for who demands it") {
  in_child([] {
    forbid_io_uring();
    setenv("OUTCORE_ENGINE", "uring", 1);
    const auto error = check::throws<Error>([] { static_cast<void>(default_engine()); });
    check::is_true(error.errno_value() == EPERM || error.errno_value() == ENOSYS, "EPERM, or not built");
  });
}

TEST("the environment chooses, and misspelling is an error") {
  in_child([] {
    setenv("OUTCORE_ENGINE", "threads", 1);
    check::equal(std::string(default_engine().name()), "threads");
    check::contains(default_engine_reason(), "OUTCORE_ENGINE");
  });
  in_child([] {
    setenv("OUTCORE_ENGINE", "uringg", 1);
    const auto error = check::throws<Error>([] { static_cast<void>(default_engine()); });
    check::equal(error.errno_value(), EINVAL);
    check::contains(error.what(), "uringg");
  });
}

TEST("the environment puts an emulated storage in place of the real one") {
  support::Scratch scratch;
  in_child([&] {
    check::equal(emulation(), std::string());
    setenv("OUTCORE_THROTTLE", "bandwidth=1GB,latency=50ms", 1);
    setenv("OUTCORE_REQUESTS", "blocking", 1);
    check::equal(
        emulation(),
        std::string("storage: a disk of 1000 MB/s, latency 50 ms, of each process; blocking requests"));
    move_something(scratch, "slow");
    File file(scratch.file("slow"));
    const std::uint64_t begin = trace::now_ns();
    support::Bytes some(1000);
    file.read(some, 0);
    check::is_true(trace::now_ns() - begin >= 50'000'000, "blocking reads are throttled, too");
    check::is_true(file.read_async(some, 0).done(), "complete when the call returns");
  });
}

TEST("settings of an emulated storage that make no sense are an error at the first file") {
  support::Scratch scratch;
  for (const auto& [name, value] :
       {std::pair("OUTCORE_THROTTLE", "fast"), std::pair("OUTCORE_REQUESTS", "slow")})
    in_child([&] {
      setenv(name, value, 1);
      const auto error = check::throws<Error>([&] { File file(scratch.file("none")); });
      check::equal(error.errno_value(), EINVAL);
      check::contains(error.what(), value);
    });
}

TEST("a forked child gets an engine of its own, and is refused files opened before") {
  support::Scratch scratch;
  in_child([&] {
    File file(scratch.file("before"));
    const support::Bytes data = support::pattern(100000, 2);
    file.write_async(data, 0).wait();
    const Engine* before = &default_engine();
    in_child([&] {
      check::is_true(&default_engine() != before, "not the engine of the parent");
      support::Bytes back(data.size());
      const auto refused =
          check::throws<outcore::Error>([&] { static_cast<void>(file.read_async(back, 0)); });
      check::equal(refused.errno_value(), EBADF);
      check::contains(refused.what(), std::to_string(getppid()));
      move_something(scratch, "child");
    });
    support::Bytes back(data.size());
    check::equal(file.read_async(back, 0).wait(), 100000);
    support::same(back, data);
    move_something(scratch, "parent");
  });
}

TEST("what is under way at exit completes") {
  for (const char* engine : {"", "threads"}) {
    support::Scratch scratch;
    const support::Bytes data = support::pattern(1 << 20, 3);
    in_child(
        [&] {
          if (*engine) setenv("OUTCORE_ENGINE", engine, 1);
          static auto* const file = new File(scratch.file());
          for (int i = 0; i < 40; ++i) static_cast<void>(file->write_async(data, std::int64_t(i) << 20));
        },
        std::exit);
    File file(scratch.file());
    check::equal(file.length(), 40 << 20);
  }
}

TEST("a file that outlives the engine still works") {
  support::Scratch scratch;
  in_child(
      [&] {
        static support::Bytes data = support::pattern(100000, 4);
        static std::string path = scratch.file();
        std::atexit([] {  // registered first, so it runs after the engine has stopped
          File file(path);
          const bool moved = file.write_async(data, 0).wait() == 100000;
          if (!moved) _exit(1);
        });
        static_cast<void>(default_engine());
      },
      std::exit);
  check::equal(File(scratch.file()).length(), 100000);
}

TEST_MAIN
