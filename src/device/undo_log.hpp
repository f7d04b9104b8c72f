// The bytes that unflushed writes have overwritten, so that a crash can be simulated.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "device/descriptor.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::device {

class UndoLog {
 public:
  /// Before a write: keeps the old bytes. Throws Error if they cannot be read.
  void before_write(const Operation& write);
  /// A mark of the writes noted so far; pass it to `synced` once a sync that begins now has ended.
  [[nodiscard]] std::uint64_t mark();
  void synced(int fd, std::uint64_t mark);
  /// Undoes all remaining writes, newest first, and drops them. Returns the bytes.
  std::int64_t undo();

 private:
  using FileKey = std::pair<dev_t, ino_t>;
  struct Entry {
    std::uint64_t number;
    FileKey file;
    std::int64_t offset, old_length, size_bytes;
    std::vector<std::byte> old_bytes;
  };

  static FileKey key_of(int fd);
  int own_descriptor(int fd, const FileKey& key);

  std::mutex mutex_;
  std::map<FileKey, Descriptor> files_;
  std::vector<Entry> entries_;
  std::uint64_t next_number_ = 0;
};

}  // namespace outcore::device
