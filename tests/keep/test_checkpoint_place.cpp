// Directories of generations: readers hold them, and jobs that save remove them, but never while they are
// held.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "keep/checkpoint_place.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;

namespace {

int code_of_holding(const std::string& root, std::int64_t generation) {
  try {
    (void)keep::hold_place(root, generation);
    return 0;
  } catch (const Error& error) {
    return error.errno_value();
  }
}

}  // namespace

TEST("what is held stays") {
  const TemporaryDirectory root;
  for (const int generation : {1, 2, 3}) keep::make_place(root, generation);
  device::HeldLock held = keep::hold_place(root, 1);
  check::is_true(static_cast<bool>(held));
  keep::remove_other_places(root, 3);
  check::equal(root.count("arrays.1") + root.count("arrays.3"), 2);
  check::equal(root.count(), 2);
  held.reset();
  keep::remove_other_places(root, 3);
  check::equal(root.count("arrays.3"), root.count());
}

TEST("what goes is not held, and nobody waits") {
  const TemporaryDirectory root;
  keep::make_place(root, 1);
  const int remover = ::open((root / "arrays.1").c_str(), O_RDONLY | O_DIRECTORY);
  check::equal(::flock(remover, LOCK_EX), 0);
  check::equal(code_of_holding(root, 1), ESTALE);
  ::close(remover);
  check::equal(code_of_holding(root, 1), 0);
  check::equal(code_of_holding(root, 2), ESTALE);
}

TEST("no link is followed") {
  const TemporaryDirectory root;
  keep::make_place(root, 1);
  check::equal(::symlink("arrays.1", (root / "arrays.2").c_str()), 0);
  check::equal(code_of_holding(root, 2), EINVAL);
  keep::remove_other_places(root, 1);
  check::equal(root.count(), 1);
}

TEST_MAIN
