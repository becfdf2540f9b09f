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

/// The type of the limits of a batch: lengths, or a mask.
template <class Limit>
concept source_limit = std::is_same_v<Limit, lengths> || std::is_base_of_v<boolean_mask<2>, Limit>;

/// The rows 0, …, count − 1, each so many times.
inline std::vector<std::size_t> repeated(std::size_t count, std::size_t times)
{
    std::vector<std::size_t> which(count * times);
    for (std::size_t row = 0; row < which.size(); ++row) which[row] = row / times;
    return which;
}

/// These rows of a mask [B,T].
inline no_mask rows_of_mask(const no_mask&, std::span<const std::size_t>) { return {}; }
inline boolean_mask<2> rows_of_mask(const boolean_mask<2>& mask, std::span<const std::size_t> which)
{
    const std::size_t T = mask.shape()[1];
    boolean_mask<2> some(shape_of_rank<2>{which.size(), T});
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
    bool values_given = false;  // `on(x, v)` made it: the values are not the annotations that keys were made of
    lengths dropped{};          // how many older positions each row had; empty: none

    std::size_t batch() const { return shape_of(values)[0]; }
    std::size_t positions() const { return shape_of(values)[1]; }  // T
    std::size_t width() const { return shape_of(values)[2]; }      // D of the values

    /// The number of the position that is next in the longest sentence: positions() and, of a KV cache that has dropped
    /// its oldest, those as well.
    std::size_t next_position() const
    {
        std::size_t next = positions();
        for (std::size_t b = 0; b < dropped.batch(); ++b) next = std::max(next, dropped[b] + real[b]);
        return next;
    }

    /// The memory of these rows, in this order, any number of times each. Copies keys and values, unless they grow.
    memory rows(std::span<const std::size_t> which) const
    {
        memory some{ops::rows_of(values, which), ops::rows_of(keys, which), real.rows({which.begin(), which.end()}),
                    detail::rows_of_mask(mask, which), values_given};
        if (dropped.batch() > 0) some.dropped = dropped.rows({which.begin(), which.end()});
        return some;
    }

    /// The KV cache without the n oldest positions of each row, or without the first n[b] of row b. Copies nothing, but
    /// to make room now and then. The other positions keep their numbers, and so do queries.
    ///
    ///     if (memory.positions() > 4096) memory = memory.without_oldest(1024);
    ///
    /// Throws shape_error if a row has fewer.
    memory without_oldest(const lengths& n) const
    {
        static_assert(is_cache<Values> && is_cache<Keys>,
                      "heed: memory::without_oldest: only a KV cache drops positions: with_cache(memory), of plain "
                      "tensors; on a tape hide them by a mask, causal{} & sliding_window{n}");
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

/// A memory whose sentences are shared by several rows of queries, as the hypotheses of a beam share theirs. Nothing is
/// copied, and all hypotheses of a sentence find its keys in the cache. It refers to a memory, which must outlive it.
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
                detail::throw_shape_error({"attention: a row asks about sentence ", s, " of ", shape_of(values)[0],
                                           "; sentences count from 0"});
            }
        }
    }

    std::size_t batch() const { return sentence.size(); }          // rows of queries
    std::size_t positions() const { return shape_of(values)[1]; }  // T
    std::size_t width() const { return shape_of(values)[2]; }      // D of the values

    /// The number of the position that is next in the longest of all sentences: see memory.
    std::size_t next_position() const { return next; }
};

/// A memory in which so many rows of queries, one behind the other, share a row of keys and values.
template <class Values, class Keys>
struct grouped_memory : shared_memory<Values, Keys> {
    const memory<Values, Keys>& all;
    std::size_t sharing;

    /// `heads` of the queries of each sentence; those of the keys divide them.
    grouped_memory(const memory<Values, Keys>& of, std::size_t heads)
        : shared_memory<Values, Keys>(of, detail::repeated(of.batch(), heads / of.real.heads())),
          all(of),
          sharing(heads / of.real.heads())
    {
        this->real = this->real.rows_of_heads(heads);
    }
};

/// Do as many rows of queries, one behind the other, share each row of this memory?
template <class Memory>
concept shared_evenly = requires(const Memory& memory)
{
    memory.sharing;
};

#define HEED_SAYS_KEYS_DO_NOT_TRAIN                                                                                    \
    "heed: this memory was made by the plain mechanism, so the parameters that made its keys would get no gradient: "  \
    "make the memory with the lifted one, lifted.on(annotations, lengths)"

/// The memory with room behind its last positions, so that `extend` need not copy it, for a decoder that attends to its
/// own words:
///
///     auto memory = with_cache(attend.on(prompt));           // [B,T,D]
///     while (…) {
///         memory = attend.extend(memory, word);           // [B,1,D]: copies the word, not what was before
///         auto [context, weights, next] = attend.step(memory, query, state);
///         memory = memory.rows(chosen);                   // in a beam: the hypotheses that go on, none copied
///     }
///
/// Copies that grow do not see each other's words (core/cache_tensor.hpp). Sentences may differ in length; scores that
/// read the number of the query, such as score::rotary, then have one for each (policy/query_numbers.hpp). A memory on
/// a tape is returned as it is: there `extend` copies, so that gradients flow.
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

/// A memory of another kind, such as a user's own, grows as it can.
template <class Memory>
Memory with_cache(const Memory& from)
{
    return from;
}

/// The same of each of several memories, as multi_head makes them.
template <class Memories>
auto with_cache(const memory_list<Memories>& from)
{
    return memory_list{detail::each_of(from.of, [&](auto i) { return heed::with_cache(detail::nth(from.of, i)); })};
}

/// A copy of a KV cache that no longer grows: all its sentences in arrays [B,T,.], with zeros in the padding.
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

/// Does this memory grow?
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

/// An array as a view, for what reads annotations and does not keep them; anything else as it is.
const auto& read_in_place(const auto& x) { return x; }
template <class X>
    requires(is_array<X>)
auto read_in_place(const X& x) { return view_of(x); }

/// In one piece, for what does not run by rows: several sentences of a memory that grows are copied.
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
