// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include <heed/core/arena.hpp>
#include <heed/core/blas.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/tensor.hpp>

/// Reverse-mode differentiation of tensors.
///
/// A tape remembers operations in the order in which they ran. That order is topological, so going back is one loop
/// over the entries, last first: each operation once, no sorting, no recursion, time linear in the number of entries
/// however often a value is shared.
///
/// A variable is a handle to a slot: a tensor of values and, once somebody asks, a tensor of adjoints (∂loss/∂value) of
/// the same shape. Values, adjoints and the closures that go back live in the tape's arena, which is kept from step to
/// step.
namespace heed::ad {

template <class T>
class tape;

/// One use of a matrix W in y = x W. What it adds to ∂W, xᵀ ∂y, waits until all uses are known:
/// a recurrent weight then costs one product for all time steps instead of one a step.
template <class T>
struct waiting_product {
    const T* x;    // [rows,K]
    const T* d_y;  // [rows,N]
    std::size_t rows;
    std::size_t d_y_stride;  // from a row of d_y to the next: N, or more where d_y is a part of wider rows
    waiting_product* next;
};

/// One use of an embedding table E in y = E[ids].
template <class T>
struct waiting_rows {
    const std::uint32_t* ids;  // [count]
    const T* d_y;              // [count,width]
    std::size_t count;
    waiting_rows* next;
};

/// The touched rows of an embedding table and their gradients; ids ascending, each once.
template <class T>
struct sparse_gradient {
    std::span<const std::uint32_t> ids;
    const T* rows = nullptr;  // [ids,width]
    std::size_t width = 0;
};

template <class T>
struct slot {
    const T* value = nullptr;
    T* adjoint = nullptr;
    std::size_t size = 0;
    bool wanted = false;  // does the loss's derivative by this value matter to anyone?
    bool leaf = false;
    bool lent = false;  // a weight's gradient still waits to read this adjoint: who adds to it adds to a copy

    slot* whole = nullptr;  // this value is a piece of another one and shares its memory
    std::size_t offset = 0;

    std::size_t last_extent = 0;  // leaf: the size of the last axis
    waiting_product<T>* products = nullptr;
    waiting_rows<T>* lookups = nullptr;
    sparse_gradient<T> sparse;
};

/// A tensor on a tape: a cheap handle, copied freely, valid until the tape is cleared.
template <class T, std::size_t N>
class var {
public:
    var() = default;
    var(ad::tape<T>& on, ad::slot<T>& at, const shape_of_rank<N>& shape) : tape_(&on), slot_(&at), shape_(shape) {}

    ad::tape<T>& tape() const { return *tape_; }
    ad::slot<T>& slot() const { return *slot_; }
    const shape_of_rank<N>& shape() const { return shape_; }
    tensor_view<const T, N> value() const { return {slot_->value, shape_}; }
    const T* data() const { return slot_->value; }
    std::size_t size() const { return slot_->size; }
    bool wanted() const { return slot_->wanted; }

private:
    ad::tape<T>* tape_ = nullptr;
    ad::slot<T>* slot_ = nullptr;
    shape_of_rank<N> shape_{};
};

template <class T>
class tape {
public:
    tape() = default;
    tape(const tape&) = delete;
    tape& operator=(const tape&) = delete;

    /// A parameter: refers to the caller's memory, which must outlive the tape's use of it. No copy.
    template <std::size_t N>
    var<T, N> parameter(tensor_view<const T, N> values)
    {
        slot<T>& s = new_slot(values.data, values.size());
        s.wanted = s.leaf = true;
        if constexpr (N > 0) s.last_extent = values.shape[N - 1];
        // The first entry that mentions a leaf is the last one on the way back: by then every use is known.
        entries_.push_back({&flush, &s, nullptr});
        return {*this, s, values.shape};
    }
    template <std::size_t N>
    var<T, N> parameter(const array<T, N>& values)
    {
        return parameter(view_of(values));
    }
    template <std::size_t N>
    var<T, N> parameter(const array<T, N>&&) = delete;

    /// A value that needs no gradient; copied, so that it cannot dangle.
    template <std::size_t N>
    var<T, N> constant(tensor_view<const T, N> values)
    {
        T* copy = memory_.template array_of<T>(values.size());
        std::copy_n(values.data, values.size(), copy);
        return {*this, new_slot(copy, values.size()), values.shape};
    }
    template <std::size_t N>
    var<T, N> constant(const array<T, N>& values)
    {
        return constant(view_of(values));
    }

    /// A new value and the memory to write it to.
    template <std::size_t N>
    struct fresh {
        var<T, N> result;
        T* data;
    };
    template <std::size_t N>
    fresh<N> make(const shape_of_rank<N>& shape, bool wanted)
    {
        const std::size_t size = tensor_view<const T, N>{nullptr, shape}.size();
        T* data = memory_.template array_of<T>(size);
        slot<T>& s = new_slot(data, size);
        s.wanted = wanted;
        return {{*this, s, shape}, data};
    }

    /// A piece of another value, without copy: it reads the whole's memory and adds to the whole's adjoint.
    template <std::size_t N, std::size_t M>
    var<T, N> piece(const var<T, M>& whole, std::size_t offset, const shape_of_rank<N>& shape)
    {
        const std::size_t size = tensor_view<const T, N>{nullptr, shape}.size();
        slot<T>& s = new_slot(whole.data() + offset, size);
        s.wanted = whole.wanted();
        s.whole = &whole.slot();
        s.offset = offset;
        return {*this, s, shape};
    }

    /// Remember how to go back through the operation that made y: back(∂y), once something has reached y. Nothing is
    /// remembered where nobody wants y's derivative.
    template <std::size_t N, class Back>
    void record(const var<T, N>& y, Back back)
    {
        if (!y.wanted()) return;
        push(
            &y.slot(),
            [](tape& on, slot<T>* made, void* closure) {
                if (const T* d_y = on.reached(*made)) (*static_cast<Back*>(closure))(d_y);
            },
            back);
    }

    /// The same for an operation with several results: `back()` asks for what has `reached` them. Skipped by the caller
    /// where nothing it depends on is wanted.
    template <class Back>
    void record(Back back)
    {
        push(
            nullptr, [](tape&, slot<T>*, void* closure) { (*static_cast<Back*>(closure))(); }, back);
    }

    /// The adjoint of a slot; zeros where nobody has added to it yet.
    T* adjoint(slot<T>& s)
    {
        if (s.lent) {
            T* copy = memory_.template array_of<T>(s.size);
            std::copy_n(s.adjoint, s.size, copy);
            s.adjoint = copy;
            s.lent = false;
        }
        if (s.adjoint == nullptr) {
            if (s.whole != nullptr) {
                s.adjoint = adjoint(*s.whole) + s.offset;
            } else {
                s.adjoint = memory_.template array_of<T>(s.size);
                std::fill_n(s.adjoint, s.size, T(0));
            }
        }
        return s.adjoint;
    }
    template <std::size_t N>
    T* adjoint(const var<T, N>& x)
    {
        return adjoint(x.slot());
    }

    /// The adjoint if x's gradient is wanted, else nullptr.
    template <std::size_t N>
    T* wanted_adjoint(const var<T, N>& x)
    {
        return x.wanted() ? adjoint(x.slot()) : nullptr;
    }

    /// The adjoint if anything has reached it, else nullptr: the operation behind it has nothing to do.
    const T* reached(slot<T>& s)
    {
        if (s.adjoint == nullptr && s.whole != nullptr && s.whole->adjoint != nullptr) return adjoint(s);
        return s.adjoint;
    }
    template <std::size_t N>
    const T* reached(const var<T, N>& x)
    {
        return reached(x.slot());
    }

    /// Where a product may write its gradient: beta 0 into fresh memory spares the zeros, beta 1 adds.
    struct target {
        T* data;
        T beta;
    };
    target accumulate(slot<T>& s)
    {
        if (s.adjoint == nullptr && s.whole == nullptr) {
            s.adjoint = memory_.template array_of<T>(s.size);
            return {s.adjoint, T(0)};
        }
        return {adjoint(s), T(1)};
    }

    /// ∂loss/∂(every wanted value). Once for a recording.
    void backward(const var<T, 0>& loss)
    {
        adjoint(loss.slot())[0] = T(1);
        for (std::size_t i = entries_.size(); i-- > 0;) {
            const entry e = entries_[i];
            e.back(*this, e.of, e.closure);
        }
    }

    /// ∂loss/∂x after backward. Zeros where the loss does not depend on x.
    template <std::size_t N>
    tensor_view<const T, N> gradient(const var<T, N>& x)
    {
        slot<T>& s = x.slot();
        if (s.adjoint == nullptr && s.sparse.rows != nullptr) scatter_sparse(s);
        return {adjoint(s), x.shape()};
    }

    /// The gradient of a table that was only looked up; no rows (data nullptr) where a dense one exists.
    template <std::size_t N>
    sparse_gradient<T> gradient_rows(const var<T, N>& x)
    {
        return x.slot().adjoint == nullptr ? x.slot().sparse : sparse_gradient<T>{};
    }

    /// After backward: ∂loss/∂x times a factor, in whichever form it is asked for.
    template <std::size_t N>
    void scale_gradient(const var<T, N>& x, T factor)
    {
        slot<T>& s = x.slot();
        const sparse_gradient<T> rows = gradient_rows(x);
        const std::size_t size = rows.rows != nullptr ? rows.ids.size() * rows.width : s.size;
        const T* const from = rows.rows != nullptr ? rows.rows : adjoint(s);
        T* const to = rows.rows != nullptr ? memory_.template array_of<T>(size) : adjoint(s);
        for (std::size_t i = 0; i < size; ++i) to[i] = factor * from[i];
        if (rows.rows != nullptr) s.sparse.rows = to;
    }

    /// Nothing is recorded any more and every variable is void; the memory stays for the next step.
    void clear()
    {
        entries_.clear();
        memory_.clear();
    }

    std::size_t entries() const { return entries_.size(); }
    arena& memory() { return memory_; }

    /// A copy of plain data that lives as long as the recording.
    template <class U>
    const U* keep(const U* data, std::size_t count)
    {
        U* copy = memory_.template array_of<U>(count);
        std::copy_n(data, count, copy);
        return copy;
    }

private:
    struct entry {
        void (*back)(tape&, slot<T>*, void*);
        slot<T>* of;
        void* closure;
    };

    template <class Back>
    void push(slot<T>* of, void (*back)(tape&, slot<T>*, void*), const Back& closure)
    {
        static_assert(std::is_trivially_destructible_v<Back>,
                      "heed: a closure on the tape must be trivially destructible: keep tensors in the tape's memory");
        entries_.push_back({back, of, new (memory_.allocate(sizeof(Back))) Back(closure)});
    }

    slot<T>& new_slot(const T* value, std::size_t size)
    {
        slot<T>& s = *new (memory_.allocate(sizeof(slot<T>))) slot<T>();
        s.value = value;
        s.size = size;
        return s;
    }

    /// The last thing that happens to a parameter on the way back: its waiting products become one.
    static void flush(tape& self, slot<T>* s, void*)
    {
        if (s->products != nullptr) self.flush_products(*s);
        if (s->lookups != nullptr) self.flush_lookups(*s);
    }

    void flush_products(slot<T>& s)
    {
        if (s.size == 0) return;  // no column to divide by, and nothing to add to
        const std::size_t N = s.last_extent, K = s.size / N;
        const target into = accumulate(s);
        const arena::position before = memory_.mark();
        std::size_t rows = 0;
        bool joined = true;  // the uses are listed last first; in memory they may follow each other
        for (const waiting_product<T>* p = s.products; p != nullptr; p = p->next) {
            rows += p->rows;
            joined = joined && p->d_y_stride == N &&
                     (p->next == nullptr ||
                      (p->next->x + p->next->rows * K == p->x && p->next->d_y + p->next->rows * N == p->d_y));
        }
        const T* x = s.products->x;
        const T* d_y = s.products->d_y;
        if (joined) {
            for (const waiting_product<T>* p = s.products; p != nullptr; p = p->next) x = p->x, d_y = p->d_y;
        } else {
            T* all_x = memory_.template array_of<T>(rows * K);
            T* all_d_y = memory_.template array_of<T>(rows * N);
            x = all_x;
            d_y = all_d_y;
            for (const waiting_product<T>* p = s.products; p != nullptr; p = p->next) {
                all_x = std::copy_n(p->x, p->rows * K, all_x);
                for (std::size_t r = 0; r < p->rows; ++r) {
                    all_d_y = std::copy_n(p->d_y + r * p->d_y_stride, N, all_d_y);
                }
            }
        }
        blas::gemm(blas::op::transposed, blas::op::plain, K, N, rows, x, d_y, into.beta, into.data);
        memory_.release(before);
    }

    void flush_lookups(slot<T>& s)
    {
        struct use {
            std::uint32_t id;
            const T* d_y;
        };
        const std::size_t width = s.last_extent;
        std::size_t count = 0;
        for (const waiting_rows<T>* p = s.lookups; p != nullptr; p = p->next) count += p->count;
        auto* ids = memory_.template array_of<std::uint32_t>(count);
        T* rows = memory_.template array_of<T>(count * width);
        const arena::position before = memory_.mark();
        use* uses = memory_.template array_of<use>(count);
        std::size_t filled = 0;
        for (const waiting_rows<T>* p = s.lookups; p != nullptr; p = p->next) {
            for (std::size_t i = 0; i < p->count; ++i) uses[filled++] = {p->ids[i], p->d_y + i * width};
        }
        std::stable_sort(uses, uses + count, [](const use& a, const use& b) { return a.id < b.id; });
        std::size_t distinct = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (i == 0 || uses[i].id != uses[i - 1].id) {
                ids[distinct] = uses[i].id;
                std::copy_n(uses[i].d_y, width, rows + distinct * width);
                ++distinct;
            } else {
                T* row = rows + (distinct - 1) * width;
                for (std::size_t k = 0; k < width; ++k) row[k] += uses[i].d_y[k];
            }
        }
        memory_.release(before);
        s.sparse = {{ids, distinct}, rows, width};
        if (s.adjoint != nullptr) scatter_sparse(s);
    }

    void scatter_sparse(slot<T>& s)
    {
        T* dense = adjoint(s);
        for (std::size_t i = 0; i < s.sparse.ids.size(); ++i) {
            T* row = dense + s.sparse.ids[i] * s.sparse.width;
            for (std::size_t k = 0; k < s.sparse.width; ++k) row[k] += s.sparse.rows[i * s.sparse.width + k];
        }
    }

    arena memory_;
    std::vector<entry> entries_;
};

using heed::shape_of;
using heed::view_of;

template <class T, std::size_t N>
shape_of_rank<N> shape_of(const var<T, N>& x)
{
    return x.shape();
}
template <class T, std::size_t N>
tensor_view<const T, N> view_of(const var<T, N>& x)
{
    return x.value();
}

/// Tensors on a tape: an operation computes, and records how to go back.
struct taped_family {
    template <class T, std::size_t N>
    using tensor_type = var<T, N>;

    /// The taped twin of an operation, found by the variable's namespace: `ad::twin(operation, arguments...)`.
    template <class Operation, class... X>
    static auto call(const Operation& operation, const X&... x)
    {
        return twin(operation, x...);
    }

    /// A constant on the tape that `beside` is on.
    template <class T, std::size_t N, plain_tensor X>
    static auto constant(const var<T, N>& beside, const X& x)
    {
        return beside.tape().constant(x);
    }
};

}  // namespace heed::ad

template <class T, std::size_t N>
struct heed::tensor_traits<heed::ad::var<T, N>> {
    using element = T;
    using family = ad::taped_family;
    static constexpr std::size_t rank = N;
};

namespace heed::ad {

/// The tape that the first taped argument is on.
template <class First, class... Rest>
auto& tape_of(const First& first, const Rest&... rest)
{
    if constexpr (requires { first.tape(); }) {
        return first.tape();
    } else {
        return tape_of(rest...);
    }
}

/// A plain argument among taped ones is a constant.
template <class T, std::size_t N>
const var<T, N>& on_tape(tape<T>&, const var<T, N>& x)
{
    return x;
}
template <class T, plain_tensor X>
var<T, rank_of<X>> on_tape(tape<T>& to, const X& x)
{
    return to.constant(tensor_view<const T, rank_of<X>>(view_of(x)));
}

}  // namespace heed::ad
