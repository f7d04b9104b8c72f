#include "world/gate.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <vector>

#include "outcore/world.hpp"

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

/// An error as bytes: the fields of its context, one after another.
class Message {
 public:
  Message() = default;
  explicit Message(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] std::vector<std::byte>& bytes() noexcept { return bytes_; }

  void write(std::int64_t value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof value);
  }
  void write(const std::string& text) {
    write(static_cast<std::int64_t>(text.size()));
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), first, first + text.size());
  }
  std::int64_t number() {
    std::int64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string text() {
    const auto size = static_cast<std::size_t>(number());
    std::string text(reinterpret_cast<const char*>(bytes_.data() + at_), size);
    at_ += size;
    return text;
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
};

Message written(const Error& error) {
  Message message;
  const ErrorContext& context = error.context();
  message.write(error.errno_value());
  message.write(error.rank());
  message.write(context.attempted);
  message.write(context.path);
  message.write(context.offset);
  message.write(context.size_bytes);
  message.write(context.detail);
  return message;
}

Error read(Message message) {
  const auto errno_value = static_cast<int>(message.number());
  const auto rank = static_cast<int>(message.number());
  ErrorContext context;
  context.attempted = message.text();
  context.path = message.text();
  context.offset = message.number();
  context.size_bytes = message.number();
  context.detail = message.text();
  return {errno_value, std::move(context), rank};
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
  Message message;
  if (transport.rank() == root) message = written(*failure);
  auto size = static_cast<std::int64_t>(message.bytes().size());
  transport.broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  message.bytes().resize(static_cast<std::size_t>(size));
  transport.broadcast(message.bytes(), root);
  throw read(std::move(message));
}

void agree(transport::Transport& transport, std::string_view what, const std::function<void()>& step) {
  std::optional<Error> failure;
  try {
    step();
  } catch (...) {
    failure = current_error(what);
  }
  leave(transport, failure);
}

Error current_error(std::string_view what) {
  const auto as_error = [&](int errno_value, std::string detail) {
    return Error(errno_value, {.attempted = std::string(what), .detail = std::move(detail)});
  };
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return as_error(ENOMEM, "");
  } catch (const std::system_error& error) {
    return as_error(error.code().category() == std::generic_category() ? error.code().value() : EIO,
                    error.what());
  } catch (const std::exception& error) {
    return as_error(EIO, error.what());
  } catch (...) {
    return as_error(EIO, "an exception of an unknown kind");
  }
}

}  // namespace outcore::world
