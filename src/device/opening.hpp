// How files are opened: without a change of access times, without waiting for anybody, and inside a directory
// that is not trusted.
#pragma once

#include <string>

#include "device/descriptor.hpp"
#include "device/file.hpp"

namespace outcore::device {

/// The descriptor of `path`, looked up as options.directory says; empty, with errno, if it cannot be opened.
/// Reads need not change the file's time of access. A FIFO does not keep the caller waiting.
[[nodiscard]] Descriptor open_descriptor(const std::string& path, const OpenOptions& options, int flags);

/// Throws Error if the descriptor is no usable file: EISDIR, or EINVAL for a FIFO and for files that
/// OpenOptions::directory refuses.
void check_opened(const std::string& path, const OpenOptions& options, int fd);

/// Takes the file's name away. Throws Error.
void unlink_opened(const std::string& path, const OpenOptions& options);

}  // namespace outcore::device
