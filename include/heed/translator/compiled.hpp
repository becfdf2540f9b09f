// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

/// The headers of this folder declare; those in definitions/ define, and each takes up to a minute to compile. The
/// library heed::translator compiles them once and defines HEED_TRANSLATOR_COMPILED for the programs that link it.
/// Without that macro each header includes its definitions, which are inline, and there is nothing to link.
#ifdef HEED_TRANSLATOR_COMPILED
#define HEED_TRANSLATOR_INLINE
#else
#define HEED_TRANSLATOR_INLINE inline
#endif
