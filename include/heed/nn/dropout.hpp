// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/ops/dropout.hpp>

namespace heed::nn {

/// Which sentences of a larger batch these are, whose others another process works on.
struct part_of_batch {
    std::vector<std::uint32_t> sentences;  ///< [B] places in the larger batch
    std::size_t of = 0;                    ///< its number of sentences
};

/// Dropout with one rate and a new stream for each use. The default drops nothing, as inference needs.
///
/// With a `part`, sentences lose what they would lose in the larger batch, so that a batch that is divided trains as
/// one; the part must outlive the object.
struct dropout {
    double rate = 0;
    random_source* random = nullptr;
    const part_of_batch* part = nullptr;

    /// x [B,...]
    template <tensor X>
    X operator()(const X& x) const
    {
        return drop(x, 0);
    }

    /// x [T,B,...]
    template <tensor X>
    X time_major(const X& x) const
    {
        return drop(x, 1);
    }

private:
    template <tensor X>
    X drop(const X& x, std::size_t axis) const
    {
        if constexpr (plain_tensor<X>) {
            return x;
        } else {
            if (rate <= 0 || random == nullptr) return x;
            const std::uint64_t stream = random->next_stream();
            if (part == nullptr) return ops::dropout(x, rate, stream);
            return ops::dropout(
                x, rate, stream,
                ops::sentences_of_batch{part->sentences.data(), part->sentences.size(), part->of, axis});
        }
    }
};

}  // namespace heed::nn
