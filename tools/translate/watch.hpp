// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed_translator/search.hpp>

#include "interrupt.hpp"
#include "library.hpp"
#include "progress.hpp"

namespace translation {

/// Shows a search's progress, and ends it after an interrupt.
inline watch_search shown_on(progress* seen)
{
    return [seen](std::size_t sentences) {
        if (seen != nullptr && sentences > 0) seen->add(sentences);
        return interrupted() == 0;
    };
}

}  // namespace translation
