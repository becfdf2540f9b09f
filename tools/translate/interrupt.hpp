// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/train/stop_signals.hpp>

namespace translation {

/// From now on Ctrl-C, SIGTERM and SIGHUP are only recorded (see train::stop_signals).
inline void stop_politely() { static const heed::train::stop_signals until_the_end; }

/// The signal that asked for an end since then, or 0.
inline int interrupted() { return heed::train::stop_signals::number(); }

}  // namespace translation
