// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/concepts.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>
#include <heed/ops/parts.hpp>

/// Memories: the keys and values of a batch.
namespace heed {

/// The keys and values of one batch of source sentences.
template <class Values, class Keys, class Mask = no_mask>
struct memory {
    Values values;                       // [B,T,D], zeros in the padding
    Keys keys;                           // prepared by the score; [B,T,A] for most scores
    lengths real;                        // the number of real positions of each row
    HEED_NO_UNIQUE_ADDRESS Mask mask{};  // boolean_mask<2>: which positions may be attended to

    std::size_t batch() const { return shape_of(values)[0]; }
    std::size_t positions() const { return shape_of(values)[1]; }  // T
    std::size_t width() const { return shape_of(values)[2]; }      // D of the values

    /// The memory of these rows, in this order, any number of times each. Copies keys and values, unless they grow.
    memory rows(std::span<const std::size_t> which) const
    {
        memory some{ops::rows_of(values, which), ops::rows_of(keys, which), real.rows({which.begin(), which.end()}),
                    mask};
        if constexpr (!std::is_same_v<Mask, no_mask>) {
            const std::size_t P = positions();
            some.mask = Mask(shape_of_rank<2>{which.size(), P});
            for (std::size_t i = 0; i < which.size(); ++i) {
                for (std::size_t t = 0; t < P; ++t) some.mask[i * P + t] = mask[which[i] * P + t];
            }
        }
        return some;
    }
};

/// A memory whose sentences are shared by several rows of queries, as the hypotheses of a beam share theirs. Nothing is
/// copied, and all hypotheses of a sentence find its keys in the cache. It refers to a memory, which must outlive it.
template <class Values, class Keys>
struct shared_memory {
    const Values& values;               // [B,T,D]
    const Keys& keys;                   // [B,T,A]
    std::vector<std::size_t> sentence;  // [R], each below B: the sentence of each row
    lengths real;                       // of each row
    HEED_NO_UNIQUE_ADDRESS no_mask mask{};

    shared_memory(const memory<Values, Keys>& of, std::vector<std::size_t> rows)
        : values(of.values), keys(of.keys), sentence(std::move(rows)), real(of.real.rows(sentence))
    {}
    shared_memory(const memory<Values, Keys>&&, std::vector<std::size_t>) = delete;

    /// Throws shape_error if a row's sentence does not exist.
    void require_sentences() const
    {
        for (const std::size_t s : sentence) {
            if (s >= shape_of(values)[0]) {
                throw shape_error("attention: a row asks about sentence " + std::to_string(s) + " of " +
                                  std::to_string(shape_of(values)[0]) + "; sentences count from 0");
            }
        }
    }

    std::size_t batch() const { return sentence.size(); }          // rows of queries
    std::size_t positions() const { return shape_of(values)[1]; }  // T
    std::size_t width() const { return shape_of(values)[2]; }      // D of the values
};

/// Do several rows of queries share a sentence of this memory?
template <class Memory>
concept shared_by_rows = requires(const Memory& memory)
{
    memory.sentence;
};

namespace detail {

/// Does the gradient of the keys reach the parameters that made them? Not if the plain score made them.
template <class Score, class Memory>
consteval bool keys_train()
{
    using keys = std::remove_cvref_t<decltype(std::declval<const Memory&>().keys)>;
    using values = std::remove_cvref_t<decltype(std::declval<const Memory&>().values)>;
    if constexpr (plain_tensor<keys> && hook::prepare<Score, const values&>) {
        return plain_tensor<decltype(std::declval<const Score&>().prepare(std::declval<const values&>()))>;
    } else {
        return true;
    }
}

#define HEED_SAYS_KEYS_DO_NOT_TRAIN                                                                                    \
    "heed: this memory was made by the plain mechanism, so the parameters that made its keys would get no gradient: "  \
    "make the memory with the lifted one, lifted.on(annotations, lengths)"

}  // namespace detail

}  // namespace heed
