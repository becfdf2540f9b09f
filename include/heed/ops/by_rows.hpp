// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <heed/core/cache_tensor.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/workspace_tensor.hpp>
#include <heed/kernels/softmax.hpp>

/// Runs a function on a batch, sentence by sentence.
///
/// The temporaries of one sentence, [T,A] instead of [B,T,A], stay in a core's cache, and threads process whole
/// sentences. The operations are the usual ones, on views of a sentence; their results are in the thread's workspace.
///
/// The argument is a function object, `program(in)`. `in.map(row, whole)` returns the input with row(x) in place of
/// each tensor that has a row for each sentence (row.part(x) for lengths, masks and windows), and whole(x) in place of
/// each parameter; `in.visit(row, whole)` only makes the calls. The output has `out.map(f, others...)`.
namespace heed::inline HEED_TARGET::detail {

/// Consecutive sentences of a batch.
struct row_block {
    std::size_t first, count;
};

/// The elements of the rows of `block`.
template <class T, std::size_t N>
tensor_view<T, N> rows_of_view(const tensor_view<T, N>& x, row_block block)
{
    static_assert(N > 0, "heed: a tensor in a batch must have one row for each sentence");
    std::size_t row = 1;
    for (std::size_t axis = 1; axis < N; ++axis) row *= x.shape[axis];
    auto shape = x.shape;
    shape[0] = block.count;
    return {x.data + block.first * row, shape};
}

/// A tensor with shared rows: row b of the batch is row `sentence[b]` of `of`.
template <class X>
struct shared_rows {
    const X& of;
    const std::size_t* sentence;
};

/// A tensor with growing rows, each in separate memory.
template <class X>
struct growing_rows {
    const X& of;
};

/// Must the rows of X be read one by one?
template <class X>
inline constexpr bool shares_rows = requires(const X& x)
{
    x.of;
};

/// The element type of a tensor or of shared rows.
template <class X>
struct element_in_rows : std::type_identity<element_of<X>> {};
template <class X>
    requires(shares_rows<X>)
struct element_in_rows<X> : element_in_rows<decltype(X::of)> {};
template <class X>
using element_of_rows = typename element_in_rows<X>::type;

/// Some rows of each tensor, as workspace tensors.
struct workspace_rows {
    row_block block;

    template <plain_tensor X>
    auto operator()(const X& x) const
    {
        return workspace_tensor(rows_of_view(tensor_view<const element_of<X>, rank_of<X>>(view_of(x)), block));
    }
    template <class X>
    auto operator()(const shared_rows<X>& x) const
    {
        const row_block there{block.count == 0 ? 0 : x.sentence[block.first], block.count};
        return workspace_rows{there}(x.of);
    }
    template <class X>
    auto operator()(const growing_rows<X>& x) const
    {
        return (*this)(x.of);
    }
    template <class T>
    auto operator()(const cache_tensor<T>& x) const  // of one row or none
    {
        const auto [B, P, N] = x.shape();
        return workspace_tensor<T, 3>(block.count == 0 ? nullptr : x.row(block.first), {block.count, P, N});
    }
    auto part(const auto& x) const { return x.rows(block.first, block.count); }
};

/// A plain tensor as a workspace tensor, without a copy.
struct as_workspace_tensor {
    template <plain_tensor X>
    auto operator()(const X& x) const
    {
        return workspace_tensor(tensor_view<const element_of<X>, rank_of<X>>(view_of(x)));
    }
};

/// Every tensor unchanged.
struct unchanged {
    const auto& operator()(const auto& x) const { return x; }
};

/// Runs a function on all rows of a batch, in the workspace. The shapes of the results come from the first row or, if
/// threads share the rows, from a run without rows.
template <class Body, class In>
auto by_rows(workspace_family, const Body& body, const In& in, std::size_t rows, std::size_t work)
{
    const as_workspace_tensor whole;
    const std::size_t a_shard = kernels::detail::rows_a_shard(work);
    row_block block{0, rows > 0 && shard_count(rows, a_shard) == 1 ? std::size_t{1} : 0};
    std::optional<decltype(body(in.map(workspace_rows{block}, whole)))> first, all;
    try {
        first.emplace(body(in.map(workspace_rows{block}, whole)));
    } catch (const shape_error&) {  // rerun with all rows, for the shapes that the caller knows
        if (!In::shared && rows > 1) (void)body(in.map(workspace_rows{{0, rows}}, whole));
        throw;
    }
    if (rows == 1) return *std::move(first);
    all.emplace(first->map([rows]<class T, std::size_t N>(const workspace_tensor<T, N>& some) {
        auto shape = some.shape();
        shape[0] = rows;
        return workspace_tensor<T, N>(workspace_family::take<T>(tensor_view<T, N>{nullptr, shape}.size()), shape);
    }));
    const auto put = [&all](row_block at, const auto& some) {
        (void)all->map(
            [at](const auto& to, const auto& from) {
                std::copy_n(from.data(), from.size(),
                            const_cast<element_of<decltype(from)>*>(rows_of_view(to.view(), at).data));
                return 0;  // `to` was allocated above
            },
            some);
    };
    if (block.count == 1) {
        put(block, *first);
        for (block.first = 1; block.first < rows; ++block.first) {
            const scratch here;
            put(block, body(in.map(workspace_rows{block}, whole)));
        }
        return *std::move(all);
    }
    parallel_for(rows, a_shard, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t b = begin; b < end; ++b) {
            const scratch here;
            put({b, 1}, body(in.map(workspace_rows{{b, 1}}, whole)));
        }
    });
    return *std::move(all);
}

/// The arguments of a function of tensors: tensors with a row for each sentence, and parameters.
template <class Rows, class Parameters>
struct arguments_by_rows {
    using element = element_of<std::remove_cvref_t<std::tuple_element_t<0, Rows>>>;
    static constexpr bool shared = false;

    Rows rows;
    Parameters parameters;

    auto map(const auto& row, const auto& whole) const
    {
        auto r = std::apply([&](const auto&... x) { return std::tuple{row(x)...}; }, rows);
        auto p = std::apply([&](const auto&... x) { return std::tuple{whole(x)...}; }, parameters);
        return arguments_by_rows<decltype(r), decltype(p)>{std::move(r), std::move(p)};
    }
    void visit(const auto& row, const auto& whole) const
    {
        std::apply([&](const auto&... x) { ((void)row(x), ...); }, rows);
        std::apply([&](const auto&... x) { ((void)whole(x), ...); }, parameters);
    }
};

template <class X>
struct one_result {
    X x;

    auto map(const auto& f, const auto&... others) const
    {
        auto y = f(x, others.x...);
        return one_result<decltype(y)>{std::move(y)};
    }
};

/// f(rows..., parameters...), a tensor, computed sentence by sentence: on the tape, intermediate results are not
/// stored. A sentence costs about `work` multiplications. Owning tensors are computed as a whole batch.
template <class F, class... Rows, class... Parameters>
auto apply_by_rows(const F& f, std::size_t work, std::tuple<const Rows&...> rows,
                   std::tuple<const Parameters&...> parameters)
{
    using family = common_family_of<Rows..., Parameters...>;
    if constexpr (std::is_same_v<family, plain_family>) {
        return std::apply(f, std::tuple_cat(rows, parameters));
    } else {
        const auto body = [f](const auto& in) {
            auto x = std::apply(f, std::tuple_cat(in.rows, in.parameters));
            return one_result<decltype(x)>{std::move(x)};
        };
        const arguments_by_rows<std::tuple<const Rows&...>, std::tuple<const Parameters&...>> in{rows, parameters};
        return by_rows(family{}, body, in, shape_of(std::get<0>(rows))[0], work).x;
    }
}

}  // namespace heed::inline HEED_TARGET::detail
