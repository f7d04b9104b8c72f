// The processes that make files and arrays together: those of the default group of Global Arrays if the
// program uses it, else those of the job.
#pragma once

#include <string>
#include <vector>

#include "compat/shared.hpp"

namespace outcore::compat {

/// Numbers of processes in the job, ascending.
using Members = std::vector<int>;
/// The processes of a group of Global Arrays to which this process belongs; below 0: the job.
[[nodiscard]] Members members_of(Integer group);
/// The processes that make files and arrays together now; empty without Global Arrays.
[[nodiscard]] Members calling_processes();
/// An error unless `callers` are the processes that have made an object: the call would wait for the others.
/// Returns a code.
int check_callers(const Members& callers, const Members& makers, const std::string& attempted);
/// "the processes 0, 1, 4"
[[nodiscard]] std::string text_of(const Members& members);

// All others return a code, and are collective over these processes.

/// The world of these processes with a scratch directory (empty: the default one), made at the first call. It
/// outlives groups of Global Arrays, whose numbers are used again for other processes.
int world_of_processes(const std::string& scratch, int* world);
/// Closes all worlds with a scratch directory that this process belongs to.
int close_worlds(const std::string& scratch);

/// A question that processes ask together with a code: `any` whether it is true at any process, `all` whether
/// at all.
struct Vote {
  bool any = false, all = any;
};
/// Gives all processes the same code; `otherwise` is the text at a process that has not failed itself.
int agreed(int code, const std::string& otherwise, Vote* vote = nullptr);
/// The text of the first process: programs may pass a different one at each.
[[nodiscard]] std::string of_first(const std::string& text);

}  // namespace outcore::compat
