#pragma once

#include <string>
#include <vector>

#include "base/sibling.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::transport {

/// Name of the machine this process runs on, made unique: machines may be called the same.
/// Asked once. Throws Error(EMFILE, ENFILE, ENOMEM), until it is known.
[[nodiscard]] OUTCORE_SIBLING std::string host_name();

/// Whether a process of this host, as this process numbers them, has not ended. Zombies have, but for a
/// process without free file descriptors, which cannot tell.
[[nodiscard]] OUTCORE_SIBLING bool process_exists(int pid);

/// Each process gives a name; the result has a number for each process, in order of rank, the same for equal
/// names (their first 255 bytes count). They are numbered as they appear. Collective.
[[nodiscard]] std::vector<int> numbers_of_names(Transport& transport, const std::string& name);

}  // namespace outcore::transport
