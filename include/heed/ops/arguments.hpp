// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include <heed/core/mask.hpp>
#include <heed/core/tensor.hpp>

/// Does an operation accept its arguments? If not, the compiler prints one message with the argument's number, the rank
/// that it has and the rank that it must have, next to the name of the operation.
///
/// The accepted arguments follow from the declaration of `forward`: `in<T, 3> x, in<T, 1> v` are a tensor of rank 3 and
/// one of rank 1; or from its `takes`.
namespace heed::inline HEED_TARGET {

struct word_ids;

namespace ops {

/// The ranks of an operation's first tensor, from `least` to `most` axes.
struct ranks {
    std::size_t least = 0;
    std::size_t most = static_cast<std::size_t>(-1);

    /// Does the operation accept this rank?
    constexpr bool have(std::size_t rank) const { return least <= rank && rank <= most; }
};

namespace detail {

/// A result of any rank, only for declarations of `forward`.
template <class T>
struct any_result : tensor_view<T, 0>,
                    tensor_view<T, 1>,
                    tensor_view<T, 2>,
                    tensor_view<T, 3>,
                    tensor_view<T, 4>,
                    tensor_view<T, 5>,
                    tensor_view<T, 6> {};

/// Can `forward` be called with these arguments, the last of which are results (and saved elements)?
template <class Operation, class... A>
concept forwards = requires(const Operation& operation, const A&... a)
{
    operation.forward(a...);
};
/// forwards, where the rank of a tensor cannot be deduced from results of any rank.
template <class Operation, class T, std::size_t rank, class... A>
concept forwards_at_rank = requires(const Operation& operation, const A&... a)
{
    operation.template forward<T, rank>(a...);
}
|| requires(const Operation& operation, const A&... a) { operation.template forward<T, rank, rank>(a...); };

template <class... A>
struct argument_list {};

/// The rank of a tensor; 0 for other types.
template <class A>
inline constexpr std::size_t rank_or_0 = 0;
template <class T, std::size_t N>
inline constexpr std::size_t rank_or_0<tensor_view<const T, N>> = N;

/// The rank of the first tensor.
template <class... A>
constexpr std::size_t first_rank()
{
    constexpr bool tensors[] = {tensor<A>..., true};
    constexpr std::size_t all[] = {rank_or_0<A>..., 0};
    std::size_t first = 0;
    while (!tensors[first]) ++first;
    return all[first];
}

/// Does `forward` take the arguments A with the results (and saved elements) Y?
template <class Operation, class T, class... A, class... Y>
constexpr bool forwards_to(argument_list<A...>, argument_list<Y...>)
{
    if constexpr (forwards<Operation, A..., Y...>) {
        return true;
    } else {
        return ((tensor<A> && forwards_at_rank<Operation, T, rank_or_0<A>, A..., Y...>) || ...);
    }
}

/// forwards_to with Y and one to four further results, plus `saved` elements if the operation saves any.
template <class Operation, class T, class... A, class... Saved, class... Y>
constexpr bool forwards_somehow(argument_list<A...> a, argument_list<Saved...> saved, argument_list<Y...>)
{
    if constexpr (forwards_to<Operation, T>(a, argument_list<Y..., any_result<T>, Saved...>{})) {
        return true;
    } else if constexpr (sizeof...(Y) < 3) {
        return forwards_somehow<Operation, T>(a, saved, argument_list<Y..., any_result<T>>{});
    } else {  // template parameters in a different order, or a result of a higher rank
        return forwards<Operation, A..., tensor_view<T, 0>, Saved...> ||
               forwards<Operation, A..., tensor_view<T, 1>, Saved...> ||
               forwards<Operation, A..., tensor_view<T, 2>, Saved...> ||
               forwards<Operation, A..., tensor_view<T, 3>, Saved...> ||
               forwards<Operation, A..., tensor_view<T, 4>, Saved...> ||
               (forwards<Operation, A..., tensor_view<T, rank_or_0<A>>, Saved...> || ...);
    }
}

/// The ranks that an operation's first tensor may have, if it declares them.
template <class Operation>
inline constexpr ranks ranks_of = {};
template <class Operation>
    requires requires { Operation::takes; }
inline constexpr ranks ranks_of<Operation> = Operation::takes;

/// Does the operation take arguments of these types (tensors as views)?
template <class Operation, class T, class... A>
constexpr bool takes()
{
    if constexpr (!ranks_of<Operation>.have(first_rank<A...>())) {
        return false;
    } else if constexpr (requires(const Operation& operation, const A&... a) { operation.piece(a...); }) {
        return true;
    } else if constexpr (requires(const Operation& operation, const A&... a) { operation.saved(a...); }) {
        return forwards_somehow<Operation, T>(argument_list<A...>{}, argument_list<T*>{}, argument_list<>{});
    } else {
        return forwards_somehow<Operation, T>(argument_list<A...>{}, argument_list<>{}, argument_list<>{});
    }
}

/// The actual or expected ranks of tensor arguments; meaningless for other arguments.
template <std::size_t count>
struct ranks_of_arguments {
    std::array<std::size_t, count> rank{};
    unsigned also = 0;       // bit mask of the ranks that argument `at` may have
    std::size_t at = count;  // the first wrong argument; `count`: none was found
};

template <class A, std::size_t N>
struct with_rank : std::type_identity<A> {};
template <class T, std::size_t R, std::size_t N>
struct with_rank<tensor_view<const T, R>, N> : std::type_identity<tensor_view<const T, N>> {};

/// f(i) for each constant i < n.
template <std::size_t n>
constexpr void each_constant(const auto& f)
{
    [&]<std::size_t... i>(std::index_sequence<i...>) { (f(std::integral_constant<std::size_t, i>{}), ...); }
    (std::make_index_sequence<n>{});
}

/// The expected ranks of the arguments: changes as few arguments as possible, and prefers to change later ones.
template <class Operation, class T, class... A>
struct meant_ranks {
    static constexpr std::size_t count = sizeof...(A), most = 5;

    /// Would the operation accept the arguments if the i-th had rank n, and the k-th rank m?
    template <std::size_t i, std::size_t n, std::size_t k, std::size_t m>
    static constexpr bool takes_changed()
    {
        constexpr bool tensors[] = {tensor<A>...};
        if constexpr (tensors[i] && tensors[k]) {
            return []<std::size_t... at>(std::index_sequence<at...>)
            {
                return takes<Operation, T, typename with_rank<A, at == i ? n : at == k ? m : rank_or_0<A>>::type...>();
            }
            (std::index_sequence_for<A...>{});
        } else {
            return false;
        }
    }

    static constexpr auto one()
    {
        ranks_of_arguments<count> meant{{rank_or_0<A>...}};
        each_constant<count * most>([&](auto c) {
            constexpr std::size_t i = count - 1 - c / most, n = c % most;
            if (!takes_changed<i, n, i, n>() || (meant.at != count && meant.at != i)) return;
            meant.rank[i] = n;
            meant.at = i;
            meant.also |= 1U << n;
        });
        return meant;
    }
    static constexpr auto found()
    {
        constexpr auto by_one = one();
        ranks_of_arguments<count> meant = by_one;
        if constexpr (by_one.at == count && count <= 5) {
            each_constant<count * count>([&](auto pair) {
                constexpr std::size_t i = pair / count, k = pair % count;
                if constexpr (i < k) {
                    each_constant<most * most>([&](auto c) {
                        constexpr std::size_t n = c / most, m = c % most;
                        if (meant.at != count || !takes_changed<i, n, k, m>()) return;
                        meant.rank[i] = n, meant.rank[k] = m;
                        meant.at = i;
                        meant.also = 1U << n;
                    });
                }
            });
        }
        return meant;
    }
};

/// The ranks that a message names: a single rank, or one of these sets.
enum : std::size_t { ranks_2_or_3 = 10, ranks_3_or_4, ranks_2_to_4, ranks_1_or_more, ranks_2_or_more, ranks_other };
constexpr std::size_t named_ranks(std::size_t rank, unsigned also, std::size_t has)
{
    switch (also) {
    case 0b01100:
        return ranks_2_or_3;
    case 0b11000:
        return ranks_3_or_4;
    case 0b11110:
        return ranks_1_or_more;
    case 0b11100:
        return has > 4 ? ranks_2_to_4 : ranks_2_or_more;
    default:
        return std::popcount(also) <= 1 ? rank : ranks_other;
    }
}

/// Reports that argument `at` of an operation has rank `has` but must have rank `must`. A static assertion requires a
/// literal, so all messages are written out: only those for common arguments, as every file parses them.
template <class Operation, std::size_t at, std::size_t has, std::size_t must>
struct argument_of_wrong_rank {
    static constexpr bool is(std::size_t i, std::size_t n, std::size_t m) { return at == i && has == n && must == m; }

#define HEED_SAYS_RANK(i, nth, n, m, ranks)                                                                            \
    static_assert(!is(i, n, m), "heed: the " nth " argument of this operation has rank " #n                            \
                                " but must have rank " ranks ": see the comment above the "                            \
                                "operation");
#define HEED_SAYS_RANKS(i, nth, n)                                                                                     \
    HEED_SAYS_RANK(i, nth, n, 1, "1")                                                                                  \
    HEED_SAYS_RANK(i, nth, n, 2, "2")                                                                                  \
    HEED_SAYS_RANK(i, nth, n, 3, "3")                                                                                  \
    HEED_SAYS_RANK(i, nth, n, 4, "4")                                                                                  \
    HEED_SAYS_RANK(i, nth, n, ranks_2_or_3, "2 or 3")                                                                  \
    HEED_SAYS_RANK(i, nth, n, ranks_3_or_4, "3 or 4")                                                                  \
    HEED_SAYS_RANK(i, nth, n, ranks_2_to_4, "2, 3 or 4")                                                               \
    HEED_SAYS_RANK(i, nth, n, ranks_1_or_more, "1 or more")                                                            \
    HEED_SAYS_RANK(i, nth, n, ranks_2_or_more, "2 or more")                                                            \
    HEED_SAYS_RANK(i, nth, n, ranks_other, "other than " #n)
#define HEED_SAYS_ARGUMENT(i, nth)                                                                                     \
    HEED_SAYS_RANKS(i, nth, 1)                                                                                         \
    HEED_SAYS_RANKS(i, nth, 2)                                                                                         \
    HEED_SAYS_RANKS(i, nth, 3)
#define HEED_SAYS_ARGUMENT_OF_ANY_RANK(i, nth)                                                                         \
    HEED_SAYS_RANKS(i, nth, 0)                                                                                         \
    HEED_SAYS_ARGUMENT(i, nth)                                                                                         \
    HEED_SAYS_RANKS(i, nth, 4)                                                                                         \
    HEED_SAYS_RANKS(i, nth, 5)
    HEED_SAYS_ARGUMENT_OF_ANY_RANK(0, "first")
    HEED_SAYS_ARGUMENT_OF_ANY_RANK(1, "second")
    HEED_SAYS_ARGUMENT(2, "third")
    HEED_SAYS_ARGUMENT(3, "fourth")
#undef HEED_SAYS_ARGUMENT_OF_ANY_RANK
#undef HEED_SAYS_ARGUMENT
#undef HEED_SAYS_RANKS
#undef HEED_SAYS_RANK
    static_assert(must != 0 && has < 6 && (at < 2 || (at < 4 && 1 <= has && has < 4)),
                  "heed: an argument of this operation has the wrong rank: see the comment above the operation");
};

/// Reports any other error: a list of integers of the wrong type, or wrong types in general.
enum class wrong { list_for_word_ids, list_for_lengths, list_of_other_numbers, types };
template <class Operation, wrong what>
struct wrong_arguments {
    static_assert(what != wrong::list_for_word_ids,
                  "heed: word ids are not a std::vector: write `heed::word_ids ids(steps, batch)`, where "
                  "`ids(step, row)` is the id of a word");
    static_assert(what != wrong::list_for_lengths,
                  "heed: the numbers of real positions are `heed::lengths`: write `heed::lengths(counts)`, or "
                  "`heed::lengths{3, 2}`");
    static_assert(what != wrong::list_of_other_numbers,
                  "heed: a std::vector has the wrong integer type for this operation: lists of rows and positions "
                  "are of std::size_t, lists of words and columns of std::uint32_t");
    static_assert(what != wrong::types,
                  "heed: this operation does not take arguments of these types and ranks in this order: see the "
                  "comment above the operation");
};

template <class A>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::span<const T>> = std::is_integral_v<T>;

/// Would the operation take the arguments if their lists of integers had a different type?
template <class Operation, class T, class Other, class... A>
constexpr bool takes_lists()
{
    return (is_list<A> || ...) && takes<Operation, T, std::conditional_t<is_list<A>, Other, A>...>();
}

/// Reports the error in the arguments A.
template <class Operation, class T, class... A>
struct what_is_wrong {
    static constexpr auto said()
    {
        constexpr auto meant = meant_ranks<Operation, T, A...>::found();
        if constexpr (meant.at != sizeof...(A)) {
            constexpr std::array<std::size_t, sizeof...(A)> has{rank_or_0<A>...};
            (void)sizeof(argument_of_wrong_rank<Operation, meant.at, has[meant.at],
                                                named_ranks(meant.rank[meant.at], meant.also, has[meant.at])>);
        } else {
            constexpr bool words = takes_lists<Operation, T, word_ids, A...>(),
                           lengths = takes_lists<Operation, T, lengths_view, A...>(),
                           others = takes_lists<Operation, T, std::span<const std::size_t>, A...>() ||
                                    takes_lists<Operation, T, std::span<const std::uint32_t>, A...>();
            constexpr wrong what = words     ? wrong::list_for_word_ids
                                   : lengths ? wrong::list_for_lengths
                                   : others  ? wrong::list_of_other_numbers
                                             : wrong::types;
            (void)sizeof(wrong_arguments<Operation, what>);
        }
        return meant;
    }
};

}  // namespace detail

}  // namespace ops

}  // namespace heed::inline HEED_TARGET
