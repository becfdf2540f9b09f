// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace heed {

template <class Score, class Normalize, class Combine>
struct attention;

/// Which combinations of policies have a fused kernel. Where `exists`, attention::step uses it for both families; the
/// composed form stays the specification that it is tested against.
template <class Attention>
struct fused_form {
    static constexpr bool exists = false;
};

}  // namespace heed
