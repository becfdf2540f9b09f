// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <heed/ad/tape.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/embedding.hpp>

/// Lookups in a table that is a parameter: its gradient contains only the rows that were looked up.
namespace heed::inline HEED_TARGET::ad {

/// The rows of a table with a gradient, and their gradients; ids ascending, without duplicates.
template <class T>
struct sparse_gradient {
    std::span<const std::uint32_t> ids;
    const T* rows = nullptr;  // [ids,width]
    std::size_t width = 0;
};

/// Adds a sparse gradient to a gradient of the whole table.
template <class T>
void add_rows(const sparse_gradient<T>& some, T* table)
{
    for (std::size_t i = 0; i < some.ids.size(); ++i)
        kernels::add(some.width, table + some.ids[i] * some.width, some.rows + i * some.width);
}

/// The uses of a table E in y = E[ids]. They are deferred until all are known, and then become one sparse gradient.
template <class T>
struct waiting_lookups : deferred<T> {
    struct use {
        const std::uint32_t* ids;  // [count]
        const T* d_y;              // [count,width]
        std::size_t count;
        use* next;
    };

    std::size_t width;
    use* uses = nullptr;  // in reverse order
    sparse_gradient<T> gradient;

    explicit waiting_lookups(std::size_t columns) : width(columns) { this->materialize = &scatter; }

    /// Sums the gradients of each row that was looked up.
    static void flush(tape<T>& on, slot<T>&, deferred<T>& self)
    {
        auto& waiting = static_cast<waiting_lookups&>(self);
        struct lookup {
            std::uint32_t id;
            const T* d_y;
        };
        const std::size_t width = waiting.width;
        std::size_t count = 0;
        for (const use* p = waiting.uses; p != nullptr; p = p->next) count += p->count;
        auto* ids = on.memory().template array_of<std::uint32_t>(count);
        T* rows = on.memory().template array_of<T>(count * width);
        const arena::position before = on.memory().mark();
        lookup* all = on.memory().template array_of<lookup>(count);
        std::size_t filled = 0;
        for (const use* p = waiting.uses; p != nullptr; p = p->next) {
            for (std::size_t i = 0; i < p->count; ++i) all[filled++] = {p->ids[i], p->d_y + i * width};
        }
        std::stable_sort(all, all + count, [](const lookup& a, const lookup& b) { return a.id < b.id; });
        std::size_t distinct = 0;
        for (std::size_t i = 0, end = 0; i < count; i = end) {
            for (end = i + 1; end < count && all[end].id == all[i].id;) ++end;
            ids[distinct] = all[i].id;
            T* const row = rows + distinct++ * width;
            std::copy_n(all[i].d_y, width, row);
            kernels::add_in_blocks(end - i - 1, width, row, [=](std::size_t first, std::size_t last, T* to) {
                for (std::size_t k = i + 1 + first; k < i + 1 + last; ++k) kernels::add(width, to, all[k].d_y);
            });
        }
        on.memory().release(before);
        waiting.gradient = {{ids, distinct}, rows, width};
    }

    /// Adds the rows to a gradient of the whole table.
    static void scatter(tape<T>& on, slot<T>& s, deferred<T>& self)
    {
        add_rows(static_cast<const waiting_lookups&>(self).gradient, on.adjoint(s));
    }
};

/// The gradient of a table used only in lookups; no rows (null) if the whole table has a gradient.
template <class T, std::size_t N>
sparse_gradient<T> gradient_rows(const var<T, N>& x)
{
    if (x.slot().adjoint != nullptr) return {};
    const auto* const lookups = tape<T>::template find_deferred<waiting_lookups<T>>(x.slot());
    return lookups == nullptr ? sparse_gradient<T>{} : lookups->gradient;
}

/// After backward: multiplies ∂loss/∂x, dense or sparse, by a factor. Throws heed::error before backward.
template <class T, std::size_t N>
void scale_gradient(const var<T, N>& x, T factor)
{
    tape<T>& on = x.tape();
    on.require_gradients("ad::scale_gradient");
    const sparse_gradient<T> rows = gradient_rows(x);
    const std::size_t size = rows.rows != nullptr ? rows.ids.size() * rows.width : x.size();
    T* const to = rows.rows != nullptr ? on.memory().template array_of<T>(size) : on.adjoint(x.slot());
    const T* const from = rows.rows != nullptr ? rows.rows : to;
    for (std::size_t i = 0; i < size; ++i) to[i] = factor * from[i];
    if (rows.rows != nullptr) tape<T>::template find_deferred<waiting_lookups<T>>(x.slot())->gradient.rows = to;
}

/// The union of two sets of rows, where rows with equal ids are added. Returns the number of rows; `ids` and `rows`
/// have room for all rows of both.
template <class T>
std::size_t merge_rows(const sparse_gradient<T>& left, const sparse_gradient<T>& right, std::uint32_t* ids, T* rows)
{
    const std::size_t width = right.width;
    std::size_t i = 0, k = 0, count = 0;
    for (; i < left.ids.size() || k < right.ids.size(); ++count) {
        const bool from_left = k == right.ids.size() || (i < left.ids.size() && left.ids[i] <= right.ids[k]);
        const bool from_both = from_left && k < right.ids.size() && left.ids[i] == right.ids[k];
        ids[count] = from_left ? left.ids[i] : right.ids[k];
        std::copy_n(from_left ? left.rows + i * width : right.rows + k * width, width, rows + count * width);
        if (from_both) kernels::add(width, rows + count * width, right.rows + k * width);
        i += from_left ? 1 : 0;
        k += from_both || !from_left ? 1 : 0;
    }
    return count;
}

namespace detail {

/// Throws shape_error unless these are rows of a table, in ascending order, without duplicates.
template <class T, std::size_t N>
void require_rows_of_table(const char* where, const shape_of_rank<N>& table, const sparse_gradient<T>& rows)
{
    bool fits = rows.ids.empty();
    if constexpr (N == 2) {
        fits = fits || (rows.width == table[1] && rows.ids.back() < table[0]);
    } else {  // a table in flat storage
        fits = fits || (rows.width > 0 && rows.ids.back() < ops::detail::numbers_in(table) / rows.width);
    }
    for (std::size_t i = 1; i < rows.ids.size(); ++i) fits = fits && rows.ids[i - 1] < rows.ids[i];
    if (fits) return;
    ops::detail::refuse(where, ": ", counted(rows.ids.size(), "row"), " of ", rows.width, " elements for a table ",
                        table, "; they must have the table's width, and ascending ids of its rows without duplicates");
}

}  // namespace detail

/// After backward: adds rows to the gradient of a table, which stays sparse if it was sparse or zero. Throws
/// shape_error unless `more` has rows of the table, in ascending order, without duplicates.
template <class T, std::size_t N>
void add_gradient_rows(const var<T, N>& x, const sparse_gradient<T>& more)
{
    detail::require_rows_of_table("add_gradient_rows", x.shape(), more);
    tape<T>& on = x.tape();
    on.gradients_given();
    if (x.slot().adjoint != nullptr) return add_rows(more, on.adjoint(x));
    auto& waiting = on.template defer<waiting_lookups<T>>(x.slot(), more.width);
    const std::size_t most = waiting.gradient.ids.size() + more.ids.size();
    auto* const ids = on.memory().template array_of<std::uint32_t>(most);
    T* const rows = on.memory().template array_of<T>(most * more.width);
    const std::size_t count = merge_rows(waiting.gradient, more, ids, rows);
    waiting.gradient = {{ids, count}, rows, more.width};
}

/// After backward: these rows become the gradient of a table used only in lookups. They are not copied. Throws
/// shape_error unless they are rows of the table, in ascending order, without duplicates.
template <class T, std::size_t N>
void set_gradient_rows(const var<T, N>& x, const sparse_gradient<T>& rows)
{
    detail::require_rows_of_table("set_gradient_rows", x.shape(), rows);
    x.tape().gradients_given();
    x.tape().template defer<waiting_lookups<T>>(x.slot(), rows.width).gradient = rows;
}

/// The words of a lookup, kept for the backward pass.
std::span<const std::uint32_t> kept(auto& on, const word_ids& words)
{
    return {on.keep(words.ids.data(), words.ids.size()), words.ids.size()};
}

/// y[s,b] = E[ids[s,b]]  ->  ∂E[ids[s,b]] += ∂y[s,b]
template <class T>
void go_back(const ops::lookup_op&, tape<T>& on, const T* d_y, const var<T, 2>& table,
             std::span<const std::uint32_t> ids)
{
    slot<T>& s = table.slot();
    const std::size_t width = table.shape()[1];
    if (s.leaf) {
        auto& waiting = on.template defer<waiting_lookups<T>>(s, width);
        using use = typename waiting_lookups<T>::use;
        waiting.uses = new (on.memory().allocate(sizeof(use))) use{ids.data(), d_y, ids.size(), waiting.uses};
    } else {
        add_rows<T>({ids, d_y, width}, on.adjoint(table));
    }
}

}  // namespace heed::inline HEED_TARGET::ad
