// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include <heed/ad/operation.hpp>
#include <heed/ad/saved_results.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/by_rows.hpp>

/// A row-wise program as a single entry of the tape: gradient checkpointing by sentence.
///
/// The forward pass saves the inputs, the outputs, and small intermediate results (saved_results.hpp). The backward
/// pass recomputes the rest of each sentence on an inner tape, one per thread: no step stores [B,T,A].
namespace heed::inline HEED_TARGET::ad::detail {

/// The inner tape, for one sentence. Each thread has one; a nested program gets another.
template <class T>
class inner_tape {
public:
    inner_tape() : kept_(heed::detail::kept_of_this_thread<of_thread>())
    {
        if (kept_ != nullptr && kept_->taken) kept_ = nullptr;
        if (kept_ == nullptr) own_ = std::make_unique<tape<T>>();
        if (kept_ != nullptr) kept_->taken = true;
    }
    ~inner_tape()
    {
        if (kept_ == nullptr) return;
        kept_->on.clear();
        kept_->on.recompute_with(nullptr);
        kept_->taken = false;
    }
    inner_tape(const inner_tape&) = delete;
    inner_tape& operator=(const inner_tape&) = delete;

    tape<T>& operator*() { return kept_ != nullptr ? kept_->on : *own_; }

private:
    struct of_thread : heed::detail::kept_by_thread {
        tape<T> on;
        bool taken = false;

    private:
        std::size_t size() const override { return on.memory().capacity(); }
        void release() override { on.memory() = arena(); }
    };

    of_thread* kept_;  // null: in use, or the thread is ending
    std::unique_ptr<tape<T>> own_;
};

/// Turns tensors into variables of the tape; plain tensors become constants.
template <class T>
struct as_variables {
    tape<T>& on;

    auto operator()(const auto& x) const { return var<T, rank_of<decltype(x)>>(on_tape(on, x)); }
    auto part(const auto& x) const { return detail::kept(on, x); }
};

/// A visit to each input. One visitor type serves all purposes, so that it is compiled once.
template <class T>
struct input_visit {
    bool open = false;        // allocate the required adjoints (not in parallel code)
    const T* sums = nullptr;  // gradients of the parameters from one shard, to be added to their adjoints
    tape<T>* on = nullptr;    // the tape of all inputs
    bool wanted = false;
    std::size_t parameters = 0;  // number of elements of the parameters that need a gradient
};

template <class T>
struct visit_input {
    input_visit<T>& at;
    bool parameter;  // otherwise a tensor with rows

    visited operator()(const auto& x) const
    {
        if constexpr (is_var<std::remove_cvref_t<decltype(x)>>) {
            tape<T>& its = x.tape();
            if (at.on != nullptr && at.on != &its) [[unlikely]]
                refuse_other_tape();
            at.on = &its;
            at.wanted |= x.wanted();
            if (!x.wanted()) return {};
            if (at.open) at.on->wanted_adjoint(x);
            if (!parameter) return {};
            if (at.sums != nullptr) {
                kernels::add(x.size(), at.on->wanted_adjoint(x), at.sums);
                at.sums += x.size();
            }
            at.parameters += x.size();
        }
        return {};
    }
    const auto& part(const auto& x) const { return x; }
};

/// Visits each input.
template <class T>
input_visit<T> visit_inputs(const auto& in, input_visit<T> at = {})
{
    in.visit(visit_input<T>{at, false}, visit_input<T>{at, true});
    return at;
}

/// Some rows of each input on the inner tape; their gradients are added to the adjoints of the outer tape.
template <class T>
struct rows_on_tape {
    tape<T>& inner;
    heed::detail::row_block block;
    bool back;

    auto operator()(const auto& x) const
    {
        T* const adjoint = back && x.wanted() ? x.slot().adjoint : nullptr;
        const auto rows = heed::detail::rows_of_view(x.value(), block);
        return inner.external(rows, adjoint == nullptr ? nullptr : adjoint + (rows.data - x.data()));
    }
    auto part(const auto& x) const { return x.rows(block.first, block.count); }
};

/// A parameter on the inner tape; its gradient is added to the next elements of `sums`.
template <class T>
struct parameters_on_tape {
    tape<T>& inner;
    mutable T* sums;  // null in the forward pass

    auto operator()(const auto& x) const
    {
        if (sums == nullptr || !x.wanted()) return inner.external(x.value(), static_cast<T*>(nullptr));
        T* const mine = sums;
        sums += x.size();
        return inner.external(x.value(), mine);
    }
};

/// The rows of a batch in the backward pass, each on an inner tape: `run` recomputes a row and reads the adjoints of
/// its results from the outer tape. Each shard has separate `sums` for the gradients of the parameters.
template <class T>
struct recompute_row {
    heed::detail::row_block block;
    tape<T>& inner;
    T* sums;
};
template <class T>
void backward_by_rows(tape<T>& on, std::size_t rows, std::size_t work, std::size_t parameters,
                      heed::detail::function_ref<void, recompute_row<T>> run,
                      heed::detail::function_ref<void, const T*> add)
{
    const auto before = on.memory().mark();
    const std::size_t shards = threads();
    T* const sums = on.memory().template array_of<T>(shards * parameters);
    bool* const used = on.memory().template array_of<bool>(shards);
    std::fill_n(used, shards, false);
    parallel_for(rows, kernels::detail::rows_a_shard(work), [&](std::size_t begin, std::size_t end, std::size_t shard) {
        T* const mine = sums + shard * parameters;
        std::fill_n(mine, parameters, T(0));
        used[shard] = true;
        inner_tape<T> inner;
        for (std::size_t b = begin; b < end; ++b) {
            const scratch here;
            run(recompute_row<T>{{b, 1}, *inner, mine});
            (*inner).go_back();
            (*inner).clear();
        }
    });
    for (std::size_t shard = 0; shard < shards; ++shard) {
        if (used[shard]) add(sums + shard * parameters);
    }
    on.memory().release(before);
}

/// Runs a program on zero rows, for the shapes of its results; if a shape does not fit, on all rows, so that the error
/// reports their shapes.
inline void run_no_row(std::size_t rows, heed::detail::function_ref<void, heed::detail::row_block> run)
{
    try {
        run(heed::detail::row_block{0, 0});
    } catch (const shape_error&) {
        if (rows > 0) run(heed::detail::row_block{0, rows});
        throw;
    }
}

/// Runs a program on each row, in parallel. A row costs about `work` multiplications.
inline void run_each_row(std::size_t rows, std::size_t work,
                         heed::detail::function_ref<void, heed::detail::row_block> run)
{
    parallel_for(rows, kernels::detail::rows_a_shard(work), [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t b = begin; b < end; ++b) {
            const scratch here;
            run(heed::detail::row_block{b, 1});
        }
    });
}

template <class T, class Body, class In>
auto run_by_rows(tape<T>& on, const Body& body, const In& in, std::size_t rows, std::size_t work)
{
    using heed::detail::row_block;
    const bool wanted = visit_inputs<T>(in).wanted;
    const auto run = [](tape<T>& inner, const Body& what, const In& of, row_block block, T* sums) {
        return what(of.map(rows_on_tape<T>{inner, block, sums != nullptr}, parameters_on_tape<T>{inner, sums}));
    };
    saved_list<T> list;
    std::size_t row_size = 0;  // elements of all results in a row
    const auto room = [&](const auto& some) {
        auto shape = some.shape();
        shape[0] = 1;
        const std::size_t size = numbers_in(shape);
        row_size += size;
        shape[0] = rows;
        auto [result, data] = on.make(shape, wanted);
        list.is_result(some.slot(), data, size);
        return result;
    };
    std::optional<decltype(run(on, body, in, {}, nullptr).map(room))> all;
    const auto first = [&](row_block block) {
        inner_tape<T> inner;
        saved_results<T> listed{list};
        if (wanted) (*inner).recompute_with(&listed);
        all.emplace(run(*inner, body, in, block, nullptr).map(room));
    };
    detail::run_no_row(rows, first);
    const auto saved = wanted ? list.keep(on.memory(), rows, row_size) : std::span<const saved_result<T>>{};
    bool* const complete = on.memory().template array_of<bool>(rows);  // are all saved results of a row stored?
    const auto each = [&](row_block block) {
        inner_tape<T> inner;
        saved_results<T> forward{saved, block.first, false};
        if (wanted) (*inner).recompute_with(&forward);
        complete[block.first] = true;
        const auto put = [&](const auto& whole, const auto& some) {
            T* const to = const_cast<T*>(heed::detail::rows_of_view(whole.value(), block).data);  // allocated by room
            if (to == some.data()) return 0;
            std::copy_n(some.data(), some.size(), to);
            for (const saved_result<T>& x : saved) complete[block.first] &= x.first != whole.data();
            return 0;
        };
        (void)all->map(put, run(*inner, body, in, block, nullptr));
    };
    detail::run_each_row(rows, work, each);
    if (wanted) {
        on.record([&on, body, in, made = *all, rows, work, run, saved, complete] {
            bool reached = false;
            (void)made.map([&](const auto& x) { return reached |= on.reached(x) != nullptr; });
            if (!reached) return;
            const std::size_t parameters = visit_inputs<T>(in, {.open = true}).parameters;
            T none{};
            const auto recompute = [&](recompute_row<T> row) {
                saved_results<T> backward{saved, row.block.first, true};
                row.inner.recompute_with(complete[row.block.first] ? &backward : nullptr);
                const auto recomputed = run(row.inner, body, in, row.block, row.sums == nullptr ? &none : row.sums);
                row.inner.recompute_with(nullptr);
                const auto accumulate_to_outer = [&](const auto& whole, const auto& some) {
                    if (whole.slot().adjoint == nullptr || !some.wanted()) return 0;
                    const tensor_view<T, rank_of<decltype(whole)>> adjoint{whole.slot().adjoint, whole.shape()};
                    const T* const rows_of_adjoint = heed::detail::rows_of_view(adjoint, row.block).data;
                    kernels::add(some.size(), row.inner.adjoint(some), rows_of_adjoint);
                    return 0;
                };
                (void)made.map(accumulate_to_outer, recomputed);
            };
            const auto add = [&](const T* sums) { (void)visit_inputs<T>(in, {.sums = sums}); };
            backward_by_rows<T>(on, rows, work, parameters, recompute, add);
        });
    }
    return *all;
}

}  // namespace heed::inline HEED_TARGET::ad::detail

namespace heed::inline HEED_TARGET::ad {

/// Moves tensors of T to the tape of an input. `visit(look)` calls look(x) for every input.
template <class T>
auto variables_beside(taped_family, const auto& visit)
{
    detail::input_visit<T> at;
    visit(detail::visit_input<T>{at, false});
    return detail::as_variables<T>{*at.on};
}

/// A row-wise program on the tape of its input, see ops/by_rows.hpp. Throws shape_error if an operation of the program
/// does.
template <class Body, class In>
auto by_rows(taped_family, const Body& body, const In& in, std::size_t rows, std::size_t work)
{
    using T = typename In::element;
    tape<T>& on = *detail::visit_inputs<T>(in).on;
    const detail::as_variables<T> taped{on};
    return detail::run_by_rows(on, body, in.map(taped, taped), rows, work);
}

}  // namespace heed::inline HEED_TARGET::ad
