#include "world/gate.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "outcore/world.hpp"
#include "transport/remote_error.hpp"

namespace outcore::world {
namespace {

/// What a process came with. Exchanged by all only to say who strays.
struct Arrival {
  std::uint64_t fingerprint;
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

}  // namespace

void enter(transport::Transport& transport, std::string_view what, std::uint64_t fingerprint) {
  // All came with the same if the smallest is the largest: two numbers, however many processes there are.
  const auto call =
      static_cast<std::int64_t>(outcore::fingerprint(std::as_bytes(std::span(what)), fingerprint));
  std::int64_t smallest[] = {call, ~call};
  transport.all_reduce(std::span(smallest), transport::Reduction::min);
  if (smallest[0] == ~smallest[1]) return;

  Arrival mine{fingerprint, {}};
  what.copy(mine.what, sizeof mine.what - 1);
  const auto all = gather(transport, mine);
  // Compared with the call that most made, so that the process that is named is the one that strays.
  std::size_t most = 0, votes = 0;
  const auto same = [&](const Arrival& a, const Arrival& b) {
    return a.fingerprint == b.fingerprint && std::strcmp(a.what, b.what) == 0;
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto count = static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const Arrival& each) { return same(each, all[i]); }));
    if (count > votes) {
      most = i;
      votes = count;
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (same(all[i], all[most])) continue;
    const bool arguments = std::strcmp(all[i].what, all[most].what) == 0;
    const auto stray = static_cast<int>(i);
    throw Error(EINVAL,
                {.attempted = "collective call " + quoted(all[most]),
                 .detail = "process " + std::to_string(stray) +
                           (arguments ? " came with other arguments than process "
                                      : " called " + quoted(all[i]) + " instead, other than process ") +
                           std::to_string(most)},
                stray);
  }
}

void leave(transport::Transport& transport, const std::optional<Error>& failure) {
  constexpr std::int64_t nobody = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = failure ? transport.rank() : nobody;
  transport.all_reduce(std::span(&first, 1), transport::Reduction::min);
  if (first == nobody) return;
  const auto root = static_cast<int>(first);
  std::vector<std::byte> message;
  if (transport.rank() == root) message = transport::to_bytes(*failure);
  auto size = static_cast<std::int64_t>(message.size());
  transport.broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  message.resize(static_cast<std::size_t>(size));
  transport.broadcast(message, root);
  throw transport::error_from(message);
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
