// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>

/// What is attended to: the memory of a batch.
namespace heed {

/// What one batch of source sentences offers to be attended to.
template <class Values, class Keys, class Mask = no_mask>
struct memory {
    Values values;                      // [B,T,D], zeros in the padding
    Keys keys;                          // what the score's prepare made of them; [B,T,A] for most
    lengths real;                       // the number of real positions of each row
    [[no_unique_address]] Mask mask{};  // boolean_mask<2>: which of them may be attended to

    std::size_t batch() const { return shape_of(values)[0]; }
    std::size_t positions() const { return shape_of(values)[1]; }
    std::size_t width() const { return shape_of(values)[2]; }
};

/// A memory that is asked about each of its sentences by several rows of queries, as a beam does: nothing is copied,
/// and a sentence's hypotheses find its keys in the cache. The memory it is made of must stay where it is.
template <class Values, class Keys>
struct shared_memory {
    const Values& values;               // [B,T,D]
    const Keys& keys;                   // [B,T,A]
    std::vector<std::size_t> sentence;  // [R] below B: which one a row asks about
    lengths real;                       // of each row
    [[no_unique_address]] no_mask mask{};

    shared_memory(const memory<Values, Keys>& of, std::vector<std::size_t> rows)
        : values(of.values), keys(of.keys), sentence(std::move(rows)), real(of.real.rows(sentence))
    {}

    /// Throws shape_error where a row asks about a sentence that is not there.
    void require_sentences() const
    {
        for (const std::size_t s : sentence) {
            if (s >= shape_of(values)[0]) {
                throw shape_error("attention: a row asks about sentence " + std::to_string(s) + " of " +
                                  std::to_string(shape_of(values)[0]) + "; sentences count from 0");
            }
        }
    }

    std::size_t batch() const { return sentence.size(); }
    std::size_t positions() const { return shape_of(values)[1]; }
    std::size_t width() const { return shape_of(values)[2]; }
};

/// Is it asked by several rows about each of its sentences?
template <class Memory>
concept shared_by_rows = requires(const Memory& memory)
{
    memory.sentence;
};

namespace detail {

/// Can the parameters that made a memory's keys get a gradient from it? Not where the plain score made them and the
/// lifted one is asked.
template <class Score, class Memory>
consteval bool keys_train()
{
    using keys = std::remove_cvref_t<decltype(std::declval<const Memory&>().keys)>;
    using values = std::remove_cvref_t<decltype(std::declval<const Memory&>().values)>;
    if constexpr (plain_tensor<keys> && requires(const Score& score, const values& x) { score.prepare(x); }) {
        return plain_tensor<decltype(std::declval<const Score&>().prepare(std::declval<const values&>()))>;
    } else {
        return true;
    }
}

#define HEED_SAYS_KEYS_DO_NOT_TRAIN                                                                                    \
    "heed: this memory was made by the plain mechanism, so what made its keys (U of score::additive, W_K of "          \
    "multi_head) would get no gradient: make the memory with the lifted one, lifted.on(annotations, lengths)"

}  // namespace detail

}  // namespace heed
