#include "dio/visibility.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <span>

#include "base/uninterrupted.hpp"
#include "device/descriptor.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::dio {
namespace {

std::string mark_file(const std::string& directory, std::int64_t number) {
  return directory + "/" + Visibility::mark_name + "." + std::to_string(number);
}

}  // namespace

void Visibility::leave_mark(const std::string& directory) {
  number_ = std::random_device{}();
  mark_ = mark_file(directory, number_);
  const device::Descriptor file =
      device::open_at(AT_FDCWD, mark_, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (!file) throw Error(errno, {.attempted = "leave a mark", .path = mark_});
  const std::string text = std::to_string(number_);
  const ssize_t written = uninterrupted([&] { return ::write(file.get(), text.data(), text.size()); });
  if (written != static_cast<ssize_t>(text.size()))
    throw Error(errno, {.attempted = "leave a mark", .path = mark_});
}

void Visibility::look(World& world, const std::string& directory) {
  world.transport().broadcast(std::as_writable_bytes(std::span(&number_, 1)), 0);
  by_me_ = ::access(mark_file(directory, number_).c_str(), F_OK) == 0;
  std::int64_t seen = by_me_;
  world.transport().all_reduce(std::span(&seen, 1), transport::Reduction::min);
  by_all_ = seen != 0;
}

void Visibility::remove_mark() const {
  ::unlink(mark_.c_str());
}

}  // namespace outcore::dio
