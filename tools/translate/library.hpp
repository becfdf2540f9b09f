// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace heed::translator {

class system;

}  // namespace heed::translator

/// What this program is made of is in heed_translator: models, their files and searches.
namespace translation {

using namespace heed::translator;
using heed::translator::system;  // not that of <cstdlib>

}  // namespace translation
