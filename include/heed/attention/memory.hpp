// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/cache_tensor.hpp>
#include <heed/core/mask.hpp>
#include <heed/core/mechanism_list.hpp>
#include <heed/core/shared_tensor.hpp>
#include <heed/core/tensor.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/query_numbers.hpp>

/// Memories: the keys and values of a batch.
namespace heed::inline HEED_TARGET {

namespace detail {

/// The limits of a batch: lengths or a mask.
template <class Limit>
concept source_limit = std::is_same_v<Limit, lengths> || std::is_base_of_v<boolean_mask<2>, Limit>;

/// The rows 0, …, count − 1, each repeated `times` times.
inline std::vector<std::size_t> repeated(std::size_t count, std::size_t times)
{
    std::vector<std::size_t> which(count * times);
    for (std::size_t row = 0; row < which.size(); ++row) which[row] = row / times;
    return which;
}

/// These rows of a mask [B,T]. A template: a file without masks does not compile it.
inline no_mask rows_of_mask(const no_mask&, std::span<const std::size_t>) { return {}; }
template <std::size_t N>
boolean_mask<N> rows_of_mask(const boolean_mask<N>& mask, std::span<const std::size_t> which)
{
    const std::size_t T = mask.shape()[1];
    boolean_mask<N> some(shape_of_rank<N>{which.size(), T});
    for (std::size_t i = 0; i < which.size() * T; ++i) some[i] = mask[which[i / T] * T + i % T];
    return some;
}

}  // namespace detail

/// The keys and values of one batch of source sentences.
template <class Values, class Keys, class Mask = no_mask>
struct memory {
    Values values;                       // [B,T,D], zeros in the padding
    Keys keys;                           // prepared by the score; [B,T,A] for most scores
    lengths real;                        // the number of real positions of each row
    HEED_NO_UNIQUE_ADDRESS Mask mask{};  // boolean_mask<2>: which positions may be attended to
    bool values_given = false;           // made by `on(x, v)`, from separate keys and values
    lengths dropped{};                   // the number of positions dropped from each row; empty: none

    std::size_t batch() const { return shape_of(values)[0]; }
    std::size_t positions() const { return shape_of(values)[1]; }  // T
    std::size_t width() const { return shape_of(values)[2]; }      // D of the values

    /// The number of the next position in the longest sentence: positions(), plus the positions that a KV cache has
    /// dropped.
    std::size_t next_position() const
    {
        std::size_t next = positions();
        for (std::size_t b = 0; b < dropped.batch(); ++b) next = std::max(next, dropped[b] + real[b]);
        return next;
    }

    /// The memory with these rows, in this order; a row may be repeated. Copies keys and values, except in a KV cache.
    memory rows(std::span<const std::size_t> which) const
    {
        memory some{ops::rows_of(values, which), ops::rows_of(keys, which), real.rows({which.begin(), which.end()}),
                    detail::rows_of_mask(mask, which), values_given};
        if (dropped.batch() > 0) some.dropped = dropped.rows({which.begin(), which.end()});
        return some;
    }

    /// The KV cache without the n oldest positions of each row, or without the first n[b] of row b. Nothing is copied,
    /// except now and then to make room. The other positions and the queries keep their numbers.
    ///
    ///     if (memory.positions() > 4096) memory = memory.without_oldest(1024);
    ///
    /// Throws shape_error if a row has fewer.
    memory without_oldest(const lengths& n) const
    {
        static_assert(is_cache<Values> && is_cache<Keys>,
                      "heed: memory::without_oldest: only a KV cache drops positions: with_cache(memory) makes one of "
                      "plain tensors; on a tape hide positions with a mask, causal{} & sliding_window{n}");
        if constexpr (is_cache<Values> && is_cache<Keys>) {
            memory some{values.without_oldest(n), keys.without_oldest(n), {}, mask, values_given};
            std::vector<std::size_t> left(batch()), before(batch());
            for (std::size_t b = 0; b < batch(); ++b) {
                left[b] = real[b] - n[b];
                before[b] = n[b] + (dropped.batch() == 0 ? 0 : dropped[b]);
            }
            some.real = lengths(std::move(left));
            some.dropped = lengths(std::move(before));
            return some;
        } else {
            return *this;
        }
    }
    memory without_oldest(std::size_t n) const { return without_oldest(lengths::full(batch(), n)); }
};

/// A memory in which several rows of queries share a sentence, such as the hypotheses of a beam. Nothing is copied, and
/// all hypotheses of a sentence find its keys in the cache. It refers to a memory, which must outlive it.
template <class Values, class Keys>
struct shared_memory {
    const Values& values;               // [B,T,D]
    const Keys& keys;                   // [B,T,A]
    std::vector<std::size_t> sentence;  // [R], each below B: the sentence of each row
    lengths real;                       // of each row
    HEED_NO_UNIQUE_ADDRESS no_mask mask{};
    lengths dropped;   // of each row, see memory
    std::size_t next;  // the number of the next position of that memory

    shared_memory(const memory<Values, Keys>& of, std::vector<std::size_t> rows)
        : values(of.values),
          keys(of.keys),
          sentence(std::move(rows)),
          real(of.real.rows(sentence)),
          dropped(of.dropped.batch() == 0 ? lengths() : of.dropped.rows(sentence)),
          next(of.next_position())
    {}
    shared_memory(const memory<Values, Keys>&&, std::vector<std::size_t>) = delete;

    /// Throws shape_error if a row's sentence does not exist.
    void require_sentences() const
    {
        for (const std::size_t s : sentence) {
            if (s >= shape_of(values)[0]) {
                detail::throw_shape_error({"attention: a row of queries reads sentence ", s, " of ",
                                           shape_of(values)[0], "; sentences count from 0"});
            }
        }
    }

    std::size_t batch() const { return sentence.size(); }          // rows of queries
    std::size_t positions() const { return shape_of(values)[1]; }  // T
    std::size_t width() const { return shape_of(values)[2]; }      // D of the values

    /// The number of the next position in the longest of all sentences: see memory.
    std::size_t next_position() const { return next; }
};

/// A memory in which `sharing` consecutive rows of queries share a row of keys and values.
template <class Values, class Keys>
struct grouped_memory : shared_memory<Values, Keys> {
    const memory<Values, Keys>& all;
    std::size_t sharing;

    /// `heads`: the number of query heads of each sentence, a multiple of the number of key heads.
    grouped_memory(const memory<Values, Keys>& of, std::size_t heads)
        : shared_memory<Values, Keys>(of, detail::repeated(of.batch(), heads / of.real.heads())),
          all(of),
          sharing(heads / of.real.heads())
    {
        this->real = this->real.rows_of_heads(heads);
    }
};

/// Do the same number of consecutive rows of queries share each row of this memory?
template <class Memory>
concept shared_evenly = requires(const Memory& memory)
{
    memory.sharing;
};

#define HEED_SAYS_KEYS_DO_NOT_TRAIN                                                                                    \
    "heed: this memory was made by the plain mechanism, so the parameters that made its keys would get no gradient: "  \
    "make the memory with the lifted one, lifted.on(annotations, lengths)"

/// The memory as a KV cache, with room after its last positions, so that `extend` need not copy it. For a decoder that
/// attends to its own words:
///
///     auto memory = with_cache(attend.on(prompt));           // [B,T,D]
///     while (…) {
///         memory = attend.extend(memory, word);           // [B,1,D]: copies the word only
///         auto [context, weights, next] = attend.step(memory, query, state);
///         memory = memory.rows(chosen);                   // in a beam: the surviving hypotheses, without a copy
///     }
///
/// Copies of a cache grow independently (core/cache_tensor.hpp). Sentences may differ in length; scores that read the
/// query's number, such as score::rotary, then get one for each sentence (policy/query_numbers.hpp). A memory on a tape
/// is returned unchanged: there `extend` copies, so that gradients flow.
template <plain_tensor Values, plain_tensor Keys>
    requires(!is_cache<Keys>)
auto with_cache(const memory<Values, Keys>& from)
{
    using keys = cache_tensor<element_of<Keys>>;
    using values = cache_tensor<element_of<Values>>;
    return memory<values, keys>{values(view_of(from.values), from.real),
                                keys(view_of(from.keys), from.real),
                                from.real,
                                no_mask{},
                                from.values_given,
                                from.dropped};
}

/// Returns any other memory, such as a custom type, unchanged.
template <class Memory>
Memory with_cache(const Memory& from)
{
    return from;
}

/// `with_cache` for each of several memories, such as those of multi_head.
template <class Memories>
auto with_cache(const memory_list<Memories>& from)
{
    return memory_list{detail::each_of(from.of, [&](auto i) { return heed::with_cache(detail::nth(from.of, i)); })};
}

/// A copy of a KV cache in arrays [B,T,.], with zeros in the padding; it no longer grows.
template <class T>
auto gathered(const memory<cache_tensor<T>, cache_tensor<T>>& from)
{
    return memory<array<T, 3>, array<T, 3>>{gathered(from.values), gathered(from.keys), from.real, no_mask{},
                                            from.values_given,     from.dropped};
}

template <class Memories>
auto gathered(const memory_list<Memories>& from)
{
    return memory_list{detail::each_of(from.of, [&](auto i) { return heed::gathered(detail::nth(from.of, i)); })};
}

namespace detail {

std::size_t sharing_of(const auto&) { return 1; }
std::size_t sharing_of(const shared_evenly auto& memory) { return memory.sharing; }

/// Is this memory a KV cache?
template <class Memory>
concept grows = is_cache<decltype(Memory::keys)> && is_cache<decltype(Memory::values)>;

/// The positions [begin, end) of a memory of one sentence.
template <class T>
auto positions_of(const memory<cache_tensor<T>, cache_tensor<T>>& from, std::size_t begin, std::size_t end)
{
    const auto part = [=](const cache_tensor<T>& x) {
        const std::size_t width = x.shape()[2];
        return tensor_view<const T, 3>{x.row(0) + begin * width, {1, end - begin, width}};
    };
    using view = tensor_view<const T, 3>;
    return memory<view, view>{part(from.values), part(from.keys), lengths{end - begin}};
}

/// An array as a view, for callers that only read annotations; anything else is passed through.
const auto& read_in_place(const auto& x) { return x; }
template <class X>
    requires(is_array<X>)
auto read_in_place(const X& x) { return view_of(x); }

/// The memory with contiguous rows, for code that does not run by rows: a KV cache of several sentences is copied.
const auto& in_one_piece(const auto& memory) { return memory; }
template <class T>
shared_tensor<T, 3> in_one_piece(const cache_tensor<T>& x)
{
    if (x.shape()[0] <= 1) return x.view();
    return gathered(x);
}
template <class T>
auto in_one_piece(const memory<cache_tensor<T>, cache_tensor<T>>& from)
{
    using kept = shared_tensor<T, 3>;
    return memory<kept, kept>{
        in_one_piece(from.values), in_one_piece(from.keys), from.real, no_mask{}, from.values_given, from.dropped};
}

}  // namespace detail

}  // namespace heed::inline HEED_TARGET
