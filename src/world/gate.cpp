#include "world/gate.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "outcore/extend/transport.hpp"
#include "outcore/world.hpp"
#include "transport/remote_error.hpp"

namespace outcore::world {
namespace {

/// The call of a process. Processes exchange these only to report which one differs.
struct Arrival {
  std::int64_t call;
  char what[56];
};

template <class Record>
std::vector<Record> gather(transport::Transport& transport, const Record& mine) {
  std::vector<Record> all(static_cast<std::size_t>(transport.size()));
  transport.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

std::string quoted(const Arrival& arrival) {
  return "'" + std::string(arrival.what) + "'";
}

constexpr std::int64_t nobody = std::numeric_limits<std::int64_t>::max();

std::int64_t rank_if(const transport::Transport& transport, const std::optional<Error>& failure) {
  return failure ? transport.rank() : nobody;
}

/// All throw the error of process `first`.
[[noreturn]] void throw_that_of(transport::Transport& transport, std::int64_t first,
                                const std::optional<Error>& failure) {
  const auto root = static_cast<int>(first);
  std::vector<std::byte> message;
  if (transport.rank() == root) message = transport::to_bytes(*failure);
  auto size = static_cast<std::int64_t>(message.size());
  transport.broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  message.resize(static_cast<std::size_t>(size));
  transport.broadcast(message, root);
  throw transport::error_from(message);
}

/// The first exchange of every gate: three numbers, whatever the number of processes.
struct Meeting {
  Meeting(transport::Transport& transport, std::string_view what, std::uint64_t fingerprint,
          const std::optional<Error>& failure)
      : call(static_cast<std::int64_t>(outcore::fingerprint(std::as_bytes(std::span(what)), fingerprint))) {
    std::int64_t smallest[] = {call, ~call, rank_if(transport, failure)};
    transport.all_reduce(std::span(smallest), transport::Reduction::min);
    same = smallest[0] == ~smallest[1];  // the smallest is the largest
    first_failed = smallest[2];
  }
  [[nodiscard]] bool good() const noexcept { return same && first_failed == nobody; }

  std::int64_t call;
  bool same;
  std::int64_t first_failed;
};

/// All processes throw the reason.
[[noreturn]] void refuse(transport::Transport& transport, const Meeting& meeting, std::string_view what,
                         const std::optional<Error>& failure) {
  if (meeting.first_failed != nobody) throw_that_of(transport, meeting.first_failed, failure);
  Arrival mine{meeting.call, {}};
  what.copy(mine.what, sizeof mine.what - 1);
  const auto all = gather(transport, mine);
  // Compared with the call of the majority, so that the named process is the one that differs.
  std::size_t most = 0, votes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto count = static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const Arrival& each) { return each.call == all[i].call; }));
    if (count > votes) {
      most = i;
      votes = count;
    }
  }
  const auto stray = static_cast<std::size_t>(
      std::find_if(all.begin(), all.end(), [&](const Arrival& each) { return each.call != all[most].call; }) -
      all.begin());
  const bool arguments = std::strcmp(all[stray].what, all[most].what) == 0;
  throw Error(EINVAL,
              {.attempted = "collective call " + quoted(all[most]),
               .detail = "process " + std::to_string(stray) +
                         (arguments ? " came with other arguments than process "
                                    : " called " + quoted(all[stray]) + " instead, other than process ") +
                         std::to_string(most)},
              static_cast<int>(stray));
}

}  // namespace

void enter(transport::Transport& transport, std::string_view what, std::uint64_t fingerprint,
           const std::optional<Error>& failure) {
  const Meeting meeting(transport, what, fingerprint, failure);
  if (!meeting.good()) refuse(transport, meeting, what, failure);
}

void enter(transport::Transport& transport, std::string_view what,
           const std::function<std::uint64_t()>& bring) {
  std::uint64_t fingerprint = 0;
  std::optional<Error> failure;
  try {
    fingerprint = bring();
  } catch (...) {
    failure = transport::current_error(what);
  }
  enter(transport, what, fingerprint, failure);
}

bool enter_to_close(transport::Transport& transport) {
  constexpr std::string_view what = "close";
  const Meeting meeting(transport, what, 0, {});
  if (meeting.good()) return true;
  try {
    refuse(transport, meeting, what, {});
  } catch (const Error&) {  // concerns processes that made another call; a failed transport will throw again
    return false;
  }
}

void leave(transport::Transport& transport, const std::optional<Error>& failure) {
  enter(transport, "the end of a step", 0, failure);
}

void agree(transport::Transport& transport, std::string_view what, const std::function<void()>& step) {
  std::optional<Error> failure;
  try {
    step();
  } catch (...) {
    failure = transport::current_error(what);
  }
  leave(transport, failure);
}

}  // namespace outcore::world
