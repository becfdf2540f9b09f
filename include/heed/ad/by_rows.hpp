// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include <heed/ad/kept_results.hpp>
#include <heed/ad/operation.hpp>
#include <heed/core/callback.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/ops/by_rows.hpp>

/// A program by rows, as one entry of the tape.
///
/// Forward it keeps what went in and what came out, and of what lies between only what is small (kept_results.hpp).
/// Back it computes the rest of each sentence again, on a small tape that the thread keeps: it saves [B,T,A] per step.
namespace heed::ad::detail {

/// The tape for one sentence. Each thread keeps one; a program inside a program gets another.
template <class T>
class small_tape {
public:
    small_tape() : kept_(heed::detail::kept_of_this_thread<of_thread>())
    {
        if (kept_ != nullptr && kept_->taken) kept_ = nullptr;
        if (kept_ == nullptr) own_ = std::make_unique<tape<T>>();
        if (kept_ != nullptr) kept_->taken = true;
    }
    ~small_tape()
    {
        if (kept_ == nullptr) return;
        kept_->on.clear();
        kept_->on.keep_in(nullptr);
        kept_->taken = false;
    }
    small_tape(const small_tape&) = delete;
    small_tape& operator=(const small_tape&) = delete;

    tape<T>& operator*() { return kept_ != nullptr ? kept_->on : *own_; }

private:
    struct of_thread : heed::detail::kept_by_thread {
        tape<T> on;
        bool taken = false;

    private:
        std::size_t size() const override { return on.memory().capacity(); }
        void release() override { on.memory() = arena(); }
    };

    of_thread* kept_;  // null: it is taken, or this thread keeps nothing any more
    std::unique_ptr<tape<T>> own_;
};

/// Everything as variables of the tape; plain tensors become constants.
template <class T>
struct as_variables {
    tape<T>& on;

    auto operator()(const auto& x) const { return var<T, rank_of<decltype(x)>>(on_tape(on, x)); }
    auto part(const auto& x) const { return detail::kept(on, x); }
};

/// A look at each input. One visitor serves all purposes, so that it is compiled once.
template <class T>
struct look {
    bool open = false;        // make room for adjoints that are wanted (not while threads share the work)
    const T* sums = nullptr;  // what each parameter got in a shard, to be added to its adjoint
    tape<T>* on = nullptr;    // all inputs are on it
    bool wanted = false;
    std::size_t parameters = 0;  // numbers of those that are wanted
};

template <class T>
struct looking {
    look<T>& at;
    bool parameter;  // else a tensor with rows

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

/// Looks at each input.
template <class T>
look<T> look_at(const auto& in, look<T> at = {})
{
    in.visit(looking<T>{at, false}, looking<T>{at, true});
    return at;
}

/// Some rows of each input on the small tape; their gradients are added to the large tape's adjoints.
template <class T>
struct rows_on_tape {
    tape<T>& small;
    heed::detail::row_block block;
    bool back;

    auto operator()(const auto& x) const
    {
        T* const adjoint = back && x.wanted() ? x.slot().adjoint : nullptr;
        const auto rows = heed::detail::rows_of_view(x.value(), block);
        return small.refer(rows, adjoint == nullptr ? nullptr : adjoint + (rows.data - x.data()));
    }
    auto part(const auto& x) const { return x.rows(block.first, block.count); }
};

/// A parameter on the small tape; its gradient is added to the next numbers of `sums`.
template <class T>
struct parameters_on_tape {
    tape<T>& small;
    mutable T* sums;  // null: nobody goes back

    auto operator()(const auto& x) const
    {
        if (sums == nullptr || !x.wanted()) return small.refer(x.value(), static_cast<T*>(nullptr));
        T* const mine = sums;
        sums += x.size();
        return small.refer(x.value(), mine);
    }
};

/// The rows of a batch in the backward pass, each on a small tape: `run` computes a row again and passes on the
/// adjoints of its results. Each shard has its own `sums` for the gradients of the parameters.
template <class T>
struct row_again {
    heed::detail::row_block block;
    tape<T>& small;
    T* sums;
};
template <class T>
void go_back_by_rows(tape<T>& on, std::size_t rows, std::size_t work, std::size_t parameters,
                     heed::detail::callback<void, row_again<T>> run, heed::detail::callback<void, const T*> add)
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
        small_tape<T> small;
        for (std::size_t b = begin; b < end; ++b) {
            const scratch here;
            run(row_again<T>{{b, 1}, *small, mine});
            (*small).go_back();
            (*small).clear();
        }
    });
    for (std::size_t shard = 0; shard < shards; ++shard) {
        if (used[shard]) add(sums + shard * parameters);
    }
    on.memory().release(before);
}

/// Runs a program on no row, for the shapes of its results; if one does not fit, on all, so that the error shows
/// theirs.
inline void run_no_row(std::size_t rows, heed::detail::callback<void, heed::detail::row_block> run)
{
    try {
        run(heed::detail::row_block{0, 0});
    } catch (const shape_error&) {
        if (rows > 0) run(heed::detail::row_block{0, rows});
        throw;
    }
}

/// Runs a program on one row after the other; threads share the rows. A row costs about `work` multiplications.
inline void run_each_row(std::size_t rows, std::size_t work, heed::detail::callback<void, heed::detail::row_block> run)
{
    parallel_for(rows, kernels::detail::rows_a_shard(work), [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t b = begin; b < end; ++b) {
            const scratch here;
            run(heed::detail::row_block{b, 1});
        }
    });
}

template <class T, class Program, class In>
auto run_by_rows(tape<T>& on, const Program& program, const In& in, std::size_t rows, std::size_t work)
{
    using heed::detail::row_block;
    const bool wanted = look_at<T>(in).wanted;
    const auto run = [](tape<T>& small, const Program& what, const In& of, row_block block, T* sums) {
        return what(of.map(rows_on_tape<T>{small, block, sums != nullptr}, parameters_on_tape<T>{small, sums}));
    };
    kept_list<T> list;
    std::size_t row_size = 0;  // of all results together
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
    std::optional<decltype(run(on, program, in, {}, nullptr).map(room))> all;
    const auto first = [&](row_block block) {
        small_tape<T> small;
        kept_results<T> listed{list};
        if (wanted) (*small).keep_in(&listed);
        all.emplace(run(*small, program, in, block, nullptr).map(room));
    };
    detail::run_no_row(rows, first);
    const auto kept = wanted ? list.keep(on.memory(), rows, row_size) : std::span<const kept_result<T>>{};
    bool* const complete = on.memory().template array_of<bool>(rows);  // does a row hold all that is kept of it?
    const auto each = [&](row_block block) {
        small_tape<T> small;
        kept_results<T> forth{kept, block.first, false};
        if (wanted) (*small).keep_in(&forth);
        complete[block.first] = true;
        const auto put = [&](const auto& whole, const auto& some) {
            T* const to = const_cast<T*>(heed::detail::rows_of_view(whole.value(), block).data);  // made by room
            if (to == some.data()) return 0;
            std::copy_n(some.data(), some.size(), to);
            for (const kept_result<T>& x : kept) complete[block.first] &= x.first != whole.data();
            return 0;
        };
        (void)all->map(put, run(*small, program, in, block, nullptr));
    };
    detail::run_each_row(rows, work, each);
    if (wanted) {
        on.record([&on, program, in, made = *all, rows, work, run, kept, complete] {
            bool reached = false;
            (void)made.map([&](const auto& x) { return reached |= on.reached(x) != nullptr; });
            if (!reached) return;
            const std::size_t parameters = look_at<T>(in, {.open = true}).parameters;
            T none{};
            const auto again = [&](row_again<T> row) {
                kept_results<T> back{kept, row.block.first, true};
                row.small.keep_in(complete[row.block.first] ? &back : nullptr);
                const auto rows_again = run(row.small, program, in, row.block, row.sums == nullptr ? &none : row.sums);
                row.small.keep_in(nullptr);
                const auto pass_back = [&](const auto& whole, const auto& some) {
                    if (whole.slot().adjoint == nullptr || !some.wanted()) return 0;
                    const tensor_view<T, rank_of<decltype(whole)>> adjoint{whole.slot().adjoint, whole.shape()};
                    const T* const rows_of_adjoint = heed::detail::rows_of_view(adjoint, row.block).data;
                    kernels::add(some.size(), row.small.adjoint(some), rows_of_adjoint);
                    return 0;
                };
                (void)made.map(pass_back, rows_again);
            };
            const auto add = [&](const T* sums) { (void)look_at<T>(in, {.sums = sums}); };
            go_back_by_rows<T>(on, rows, work, parameters, again, add);
        });
    }
    return *all;
}

}  // namespace heed::ad::detail

namespace heed::ad {

/// Brings tensors of T onto the tape that an input is on. `visit(look)` calls look(x) for every input.
template <class T>
auto variables_beside(taped_family, const auto& visit)
{
    detail::look<T> at;
    visit(detail::looking<T>{at, false});
    return detail::as_variables<T>{*at.on};
}

/// A program by rows on the tape of its input, see ops/by_rows.hpp.
template <class Program, class In>
auto by_rows(taped_family, const Program& program, const In& in, std::size_t rows, std::size_t work)
{
    using T = typename In::element;
    tape<T>& on = *detail::look_at<T>(in).on;
    const detail::as_variables<T> taped{on};
    return detail::run_by_rows(on, program, in.map(taped, taped), rows, work);
}

}  // namespace heed::ad
