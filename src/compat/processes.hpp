// The processes that make files and arrays together: those of the default group of Global Arrays where the
// program has that, else those of the job.
#pragma once

#include <string>
#include <vector>

#include "compat/shared.hpp"

namespace outcore::compat {

/// Numbers of processes in the job, ascending.
using Members = std::vector<int>;
/// The processes of a group of Global Arrays that this process belongs to; below 0: the job.
[[nodiscard]] Members members_of(Integer group);
/// The processes that make files and arrays together now; empty without Global Arrays.
[[nodiscard]] Members calling_processes();
/// An error unless `callers` are those that have made something: others would be waited for. Returns a code.
int check_callers(const Members& callers, const Members& makers, const std::string& attempted);
/// "the processes 0, 1, 4"
[[nodiscard]] std::string text_of(const Members& members);

// All others return a code, and are collective over these processes.

/// Their world with a scratch directory (empty: the default one), made when it is asked for first. It
/// outlasts groups of Global Arrays, whose numbers are used again for other processes.
int world_of_processes(const std::string& scratch, int* world);
/// Closes all worlds with a scratch directory that this process belongs to.
int close_worlds(const std::string& scratch);

/// What processes ask of one another beside a code: `any` whether it is true at any, `all` at all of them.
struct Vote {
  bool any = false, all = any;
};
/// The same code at all of them; `otherwise` is the text where only others have failed.
int agreed(int code, const std::string& otherwise, Vote* vote = nullptr);
/// The text of the first of them: programs may give another one at each.
[[nodiscard]] std::string of_first(const std::string& text);

}  // namespace outcore::compat
