#include "chem/hf/record_disk.hpp"

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/exclusive_file.hpp"
#include "outcore/shared_file.hpp"

namespace outcore::chem {
namespace {

/// A name that is unique in the process, which may hold the integrals of several molecules.
std::string new_name() {
  static std::atomic<std::uint64_t> count{0};
  return "integrals." + std::to_string(count++);
}

class ExclusiveFiles final : public RecordDisk {
 public:
  explicit ExclusiveFiles(const IntegralFileOptions& options) : record_bytes_(options.record_bytes) {
    auto with = options.file;
    with.keep = !options.kept_name.empty();
    files_.emplace_back(with.keep ? options.kept_name : new_name(), with);
  }

  ExclusiveFiles(const IntegralFileOptions& options, std::span<const KeptFile> kept)
      : record_bytes_(options.record_bytes) {
    auto with = options.file;
    with.keep = true;
    for (const KeptFile& each : kept) {
      if (const auto path = with.scratch + "/" + each.name; !std::filesystem::exists(path))
        throw Error(
            ENOENT,
            {.attempted = "reuse kept integrals", .path = path, .detail = "this file of them is missing"});
      files_.emplace_back(each.name, with);
    }
  }

  RecordLocation locate(std::int64_t n) const override { return {.file = 0, .number = n}; }
  Request write_async(std::span<const std::byte> bytes, RecordLocation location) override {
    return files_[location.file].write_async(bytes, offset(location));
  }
  Request read_async(std::span<std::byte> bytes, RecordLocation location) override {
    return files_[location.file].read_async(bytes, offset(location));
  }
  const std::string& path(std::uint32_t file) const override { return files_[file].path(); }
  void flush() override {
    for (auto& file : files_) file.flush();
  }
  void drop() override {
    for (auto& file : files_) file.erase();
  }

 private:
  [[nodiscard]] std::int64_t offset(RecordLocation location) const {
    return location.number * std::int64_t(record_bytes_);
  }

  std::size_t record_bytes_;
  std::vector<file::ExclusiveFile> files_;
};

class SharedRecords final : public RecordDisk {
 public:
  explicit SharedRecords(const IntegralFileOptions& options)
      : record_bytes_(options.record_bytes),
        rank_(options.world->rank()),
        size_(options.world->size()),
        file_(*options.world, "integrals",
              {.soft_limit_bytes = options.file.expected_bytes * options.world->size(),
               .typical_request_bytes = std::int64_t(options.record_bytes),
               .page_cache = options.file.page_cache,
               .engine = options.file.engine}) {}

  // A record is a stripe, and stripes go round the components. If each process owns one, this is its own.
  RecordLocation locate(std::int64_t n) const override { return {.file = 0, .number = n * size_ + rank_}; }
  Request write_async(std::span<const std::byte> bytes, RecordLocation location) override {
    return file_.write_async(bytes, offset(location));
  }
  Request read_async(std::span<std::byte> bytes, RecordLocation location) override {
    return file_.read_async(bytes, offset(location));
  }
  const std::string& path(std::uint32_t) const override { return file_.name(); }
  void flush() override { file_.flush(); }
  void drop() override { file_.destroy(); }

 private:
  [[nodiscard]] std::int64_t offset(RecordLocation location) const {
    return location.number * std::int64_t(record_bytes_);
  }

  std::size_t record_bytes_;
  std::int64_t rank_, size_;
  file::SharedFile file_;
};

}  // namespace

std::unique_ptr<RecordDisk> own_file(const IntegralFileOptions& options) {
  return std::make_unique<ExclusiveFiles>(options);
}

std::unique_ptr<RecordDisk> kept_files(const IntegralFileOptions& options, std::span<const KeptFile> kept) {
  return std::make_unique<ExclusiveFiles>(options, kept);
}

std::unique_ptr<RecordDisk> file_of_all(const IntegralFileOptions& options) {
  return std::make_unique<SharedRecords>(options);
}

}  // namespace outcore::chem
