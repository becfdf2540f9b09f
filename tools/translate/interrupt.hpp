// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/train/stop_signals.hpp>

namespace translation {

/// Starts recording Ctrl-C, SIGTERM and SIGHUP instead of ending (see train::stop_signals).
inline void stop_politely() { static const heed::train::stop_signals until_the_end; }

/// The signal recorded since then, or 0.
inline int interrupted() { return heed::train::stop_signals::number(); }

}  // namespace translation
