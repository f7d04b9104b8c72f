#include "world/gate.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

namespace outcore::world {
namespace {

/// Exchanged by every collective call, first thing, so that different calls meet in it.
struct Arrival {
  std::uint64_t fingerprint;
  char what[56];
};

/// Exchanged at the end; followed by a broadcast if there is an error.
struct Outcome {
  std::int32_t errno_value;  // 0: none
  std::int32_t text_bytes;
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
    if (count == all.size()) return;
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
  Message mine;
  if (failure) mine = written(*failure);
  const auto all = gather(transport, Outcome{failure ? std::max(failure->errno_value(), 1) : 0,
                                             static_cast<std::int32_t>(mine.bytes().size())});
  const auto first =
      std::find_if(all.begin(), all.end(), [](const Outcome& each) { return each.errno_value != 0; });
  if (first == all.end()) return;
  mine.bytes().resize(static_cast<std::size_t>(first->text_bytes));
  transport.broadcast(mine.bytes(), static_cast<int>(first - all.begin()));
  throw read(std::move(mine));
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
