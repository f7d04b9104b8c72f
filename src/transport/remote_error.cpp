#include "transport/remote_error.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

namespace outcore::transport {
namespace {

/// The fields of an error, one after another.
class Writer {
 public:
  void number(std::int64_t value) { append(&value, sizeof value); }
  void text(const std::string& value) {
    number(static_cast<std::int64_t>(value.size()));
    append(value.data(), value.size());
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::int64_t number() {
    std::int64_t value = 0;
    if (take(sizeof value)) std::memcpy(&value, bytes_.data() + at_ - sizeof value, sizeof value);
    return value;
  }
  std::string text() {
    const auto size = static_cast<std::size_t>(number());
    if (!take(size)) return {};
    return {reinterpret_cast<const char*>(bytes_.data() + at_ - size), size};
  }
  [[nodiscard]] bool damaged() const noexcept { return damaged_ || at_ != bytes_.size(); }

 private:
  bool take(std::size_t size) {
    damaged_ = damaged_ || size > bytes_.size() - at_;
    if (!damaged_) at_ += size;
    return !damaged_;
  }
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool damaged_ = false;
};

}  // namespace

std::vector<std::byte> to_bytes(const Error& error) {
  const ErrorContext& context = error.context();
  Writer writer;
  writer.number(error.errno_value());
  writer.number(error.rank());
  writer.text(context.attempted);
  writer.text(context.path);
  writer.number(context.offset);
  writer.number(context.size_bytes);
  writer.text(context.detail);
  return writer.take();
}

Error error_from(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto errno_value = static_cast<int>(reader.number());
  const auto rank = static_cast<int>(reader.number());
  ErrorContext context;
  context.attempted = reader.text();
  context.path = reader.text();
  context.offset = reader.number();
  context.size_bytes = reader.number();
  context.detail = reader.text();
  if (reader.damaged())
    return {EIO, {.attempted = "read the error of another process", .detail = "it is damaged"}};
  return {errno_value, std::move(context), rank};
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
    return as_error(error.code().category() == std::generic_category() ? error.code().value() : no_errno,
                    error.what());
  } catch (const std::exception& error) {
    return as_error(no_errno, error.what());
  } catch (...) {
    return as_error(no_errno, "an exception of an unknown kind");
  }
}

}  // namespace outcore::transport
