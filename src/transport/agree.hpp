// Errors of collective calls inside the transport.
#pragma once

#include <functional>

#include "base/sibling.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::transport {

/// Runs a step that waits for no other process. If it throws at any process, all throw the error of the
/// lowest rank (a long message is cut). Collective.
OUTCORE_SIBLING void agree(Transport& transport, const std::function<void()>& step);

}  // namespace outcore::transport
