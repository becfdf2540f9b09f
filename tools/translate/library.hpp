// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace heed::translator {

class system;

}  // namespace heed::translator

/// The parts of this program are in heed_translator: models, model files and searches.
namespace translation {

using namespace heed::translator;
using heed::translator::system;  // not the function of <cstdlib>

}  // namespace translation
