#include "outcore/shared_file.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include "dio/stripes/striped_file.hpp"
#include "file/shared_end.hpp"
#include "outcore/error.hpp"

namespace outcore::file {
namespace {

constexpr std::string_view creating = "create shared file";

void check(const std::string& name, const SharedFileOptions& options) {
  const auto refuse = [&](const std::string& why) {
    throw Error(EINVAL, {.attempted = std::string(creating), .path = "'" + name + "'", .detail = why});
  };
  if (name.empty()) refuse("the name is empty");
  if (options.hard_limit_bytes < 0) refuse("hard limit " + std::to_string(options.hard_limit_bytes));
  if (options.soft_limit_bytes < 0) refuse("soft limit " + std::to_string(options.soft_limit_bytes));
  if (options.hard_limit_bytes > 0 && options.soft_limit_bytes > options.hard_limit_bytes)
    refuse("soft limit " + std::to_string(options.soft_limit_bytes) + " is above the hard limit " +
           std::to_string(options.hard_limit_bytes));
  if (options.client_cache_bytes < 0)
    refuse("client cache of " + std::to_string(options.client_cache_bytes) + " bytes");
  if (options.typical_request_bytes < 0)
    refuse("typical requests of " + std::to_string(options.typical_request_bytes) + " bytes");
}

}  // namespace

struct SharedFile::State {
  State(World& w, const Make& make) : State(w, Prepared(w, make)) {}

  std::string name;
  std::int64_t hard_limit_bytes = 0;
  dio::StripedFile stored;
  SharedEnd end;

  void check_open(std::string_view attempted) const {
    if (stored.closed())
      throw Error(EBADF, {.attempted = std::string(attempted), .path = name, .detail = "it is closed"});
  }

  /// The end of a range; throws if there is none.
  [[nodiscard]] std::int64_t end_of(std::string_view attempted, std::int64_t offset, std::size_t size) const {
    std::int64_t past = 0;
    if (offset < 0 || __builtin_add_overflow(offset, size, &past))
      throw Error(EINVAL, {.attempted = std::string(attempted),
                           .path = name,
                           .detail = "offset " + std::to_string(offset) + ", size " +
                                     std::to_string(static_cast<std::int64_t>(size)) + " bytes"});
    return past;
  }

  void before(const ReadRange& range) {
    const std::int64_t past = end_of("read", range.offset, range.memory.size());
    if (end.reaches(past)) return;
    throw Error(EINVAL, {.attempted = "read",
                         .path = name,
                         .offset = range.offset,
                         .size_bytes = static_cast<std::int64_t>(range.memory.size()),
                         .detail = "the file ends at " + std::to_string(end.known())});
  }

  void check_limit(const WriteRange& range) const {
    const std::int64_t past = end_of("write", range.offset, range.memory.size());
    if (hard_limit_bytes > 0 && past > hard_limit_bytes)
      throw Error(EFBIG, {.attempted = "write",
                          .path = name,
                          .offset = range.offset,
                          .size_bytes = static_cast<std::int64_t>(range.memory.size()),
                          .detail = "the hard limit is " + std::to_string(hard_limit_bytes)});
  }

  void before(std::span<const ReadRange> ranges) {
    check_open("read");
    for (const ReadRange& range : ranges) before(range);
  }

  void before(std::span<const WriteRange> ranges) {
    check_open("write");
    std::int64_t past = 0;
    for (const WriteRange& range : ranges) {
      check_limit(range);
      if (!range.memory.empty())
        past = std::max(past, range.offset + static_cast<std::int64_t>(range.memory.size()));
    }
    end.raise(past);
  }

 private:
  /// The arguments, once all processes agree that they are valid.
  struct Prepared {
    Prepared(World& world, const Make& make) {
      world.enter(creating, [&] {
        make(name, options);
        check(name, options);
        return fingerprint(std::as_bytes(std::span(&options.hard_limit_bytes, 1)));
      });
    }
    std::string name;
    SharedFileOptions options;
  };

  State(World& world, const Prepared& prepared)
      : name(prepared.name),
        hard_limit_bytes(prepared.options.hard_limit_bytes),
        stored(world, {.name = prepared.name,
                       .typical_request_bytes = prepared.options.typical_request_bytes,
                       .expected_bytes = prepared.options.soft_limit_bytes,
                       .reserve = prepared.options.reserve,
                       .placement = prepared.options.placement,
                       .components_per_node = prepared.options.components_per_node,
                       .page_cache = prepared.options.page_cache,
                       .client_cache_bytes = prepared.options.client_cache_bytes,
                       .engine = prepared.options.engine}),
        end(world) {}
};

SharedFile::SharedFile(World& world, const std::string& name, const SharedFileOptions& options)
    : SharedFile(world, [&](std::string& its_name, SharedFileOptions& its_options) {
        its_name = name;
        its_options = options;
      }) {}

SharedFile::SharedFile(World& world, const Make& make)
    : state_(std::make_unique<State>(world, make), "use a shared file") {}

SharedFile::~SharedFile() = default;
SharedFile::SharedFile(SharedFile&&) noexcept = default;
SharedFile& SharedFile::operator=(SharedFile&&) noexcept = default;

void SharedFile::read(std::span<const ReadRange> ranges) {
  state_->before(ranges);
  state_->stored.read(ranges);
}
void SharedFile::write(std::span<const WriteRange> ranges) {
  state_->before(ranges);
  state_->stored.write(ranges);
}
Request SharedFile::read_async(std::span<const ReadRange> ranges) {
  state_->before(ranges);
  return state_->stored.read_async(ranges);
}
Request SharedFile::write_async(std::span<const WriteRange> ranges) {
  state_->before(ranges);
  return state_->stored.write_async(ranges);
}

void SharedFile::read(PlainMemory buffer, std::int64_t offset) {
  read(std::array{ReadRange{offset, buffer}});
}
void SharedFile::write(ConstPlainMemory buffer, std::int64_t offset) {
  write(std::array{WriteRange{offset, buffer}});
}
Request SharedFile::read_async(PlainMemory buffer, std::int64_t offset) {
  return read_async(std::array{ReadRange{offset, buffer}});
}
Request SharedFile::write_async(ConstPlainMemory buffer, std::int64_t offset) {
  return write_async(std::array{WriteRange{offset, buffer}});
}

std::int64_t SharedFile::length() {
  state_->check_open("ask for the length");
  return state_->end.ask();
}

void SharedFile::sync() {
  state_->check_open("sync");
  state_->stored.settle();
}

void SharedFile::flush() {
  state_->stored.flush();
}

void SharedFile::close() {
  if (!state_.here() || closed()) return;
  state_->stored.close();
}

void SharedFile::destroy() {
  if (!state_.here() || closed()) return;
  try {
    state_->stored.settle();
  } catch (const Error&) {  // documented
  }
  close();
}

bool SharedFile::closed() const noexcept {
  return !state_ || state_.get()->stored.closed();
}
const std::string& SharedFile::name() const noexcept {
  return state_.get()->name;
}
std::int64_t SharedFile::hard_limit_bytes() const noexcept {
  return state_.get()->hard_limit_bytes;
}
const dio::StripedFile& SharedFile::stored() const noexcept {
  return state_.get()->stored;
}
World& SharedFile::world() const noexcept {
  return state_.get()->stored.world();
}

}  // namespace outcore::file
