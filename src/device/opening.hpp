// How files are opened: quietly, without waiting for anybody, and inside a directory of doubtful origin.
#pragma once

#include <string>

#include "device/descriptor.hpp"
#include "device/file.hpp"

namespace outcore::device {

/// The descriptor of `path`, looked up as options.directory says; empty, with errno, if it cannot be opened.
/// Reads need not change the file's time of access. A FIFO does not keep the caller waiting.
[[nodiscard]] Descriptor open_descriptor(const std::string& path, const OpenOptions& options, int flags);

/// Throws Error if this is nothing that a file can be made of: EISDIR, or EINVAL for a FIFO and for what
/// OpenOptions::directory refuses.
void check_opened(const std::string& path, const OpenOptions& options, int fd);

/// Takes the file's name away. Throws Error.
void unlink_opened(const std::string& path, const OpenOptions& options);

}  // namespace outcore::device
