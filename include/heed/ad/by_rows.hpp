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
/// Back it computes the rest of each sentence again, on a small tape that the thread keeps, and goes back there: the
/// temporaries of one sentence at a time, instead of those of a batch for every step. It saves [B,T,A] per step.
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

/// Notes the tape that x is on, which all inputs share.
template <class T, std::size_t N>
void note_tape(tape<T>*& on, const var<T, N>& x)
{
    tape<T>& its = x.tape();
    if (on != nullptr && on != &its) [[unlikely]]
        refuse_other_tape();
    on = &its;
}

/// The purpose of a visit of all inputs. One visitor serves all purposes, so that it is compiled once.
template <class T>
struct look {
    enum class purpose {
        find_tape,      // whose tape is it, and is anything wanted?
        open_adjoints,  // room for what is wanted (not while threads share the work), and how many parameters that is
        add_sums        // adds to each parameter what it got in a shard
    } what;
    tape<T>* on = nullptr;
    bool wanted = false;
    std::size_t parameters = 0;
    const T* sums = nullptr;
};

template <class T>
struct looking {
    look<T>& at;
    bool parameter;  // else a tensor with rows

    visited operator()(const auto& x) const
    {
        if constexpr (is_var<std::remove_cvref_t<decltype(x)>>) {
            note_tape(at.on, x);
            at.wanted |= x.wanted();
            if (at.what == look<T>::purpose::find_tape || !x.wanted()) return {};
            if (at.what == look<T>::purpose::open_adjoints) at.on->wanted_adjoint(x);
            if (!parameter) return {};
            if (at.what == look<T>::purpose::add_sums) {
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
void look_at(const auto& in, look<T>& at)
{
    in.visit(looking<T>{at, false}, looking<T>{at, true});
}

/// Some rows of each input on the small tape; their gradients are added to the large tape's adjoints.
template <class T>
struct rows_on_tape {
    tape<T>& small;
    heed::detail::row_block block;
    bool back;

    template <std::size_t N>
    auto operator()(const var<T, N>& x) const
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

    template <std::size_t N>
    auto operator()(const var<T, N>& x) const
    {
        if (sums == nullptr || !x.wanted()) return small.refer(x.value(), static_cast<T*>(nullptr));
        T* const mine = sums;
        sums += x.size();
        return small.refer(x.value(), mine);
    }
};

/// Room on the large tape for all rows of a result.
template <class T>
struct room_on_tape {
    tape<T>& on;
    std::size_t rows;
    bool wanted;
    kept_list<T>& kept;
    std::size_t& row_size;  // of all results together

    template <std::size_t N>
    auto operator()(const var<T, N>& some) const
    {
        auto shape = some.shape();
        shape[0] = 1;
        const std::size_t size = numbers_in(shape);
        row_size += size;
        shape[0] = rows;
        auto [all, data] = on.make(shape, wanted);
        kept.is_result(some.slot(), data, size);
        return all;
    }
};

template <class T>
struct put_values {
    heed::detail::row_block block;
    std::span<const kept_result<T>> kept;
    bool* complete;  // does the row hold all that is kept of it?

    template <std::size_t N>
    int operator()(const var<T, N>& all, const var<T, N>& some) const
    {
        const auto to = heed::detail::rows_of_view(all.value(), block);
        if (to.data == some.data()) return 0;
        std::copy_n(some.data(), some.size(), const_cast<T*>(to.data));  // made by room_on_tape
        const auto lies_there = [&](const kept_result<T>& x) { return x.first == all.data(); };
        if (std::any_of(kept.begin(), kept.end(), lies_there)) *complete = false;
        return 0;
    }
};

/// Copies the adjoint of some rows of a result to the small tape.
template <class T>
struct pass_back {
    tape<T>&on, &small;
    heed::detail::row_block block;

    template <std::size_t N>
    int operator()(const var<T, N>& all, const var<T, N>& some) const
    {
        if (all.slot().adjoint == nullptr || !some.wanted()) return 0;
        const auto rows = heed::detail::rows_of_view(tensor_view<const T, N>{all.slot().adjoint, all.shape()}, block);
        kernels::add(some.size(), small.adjoint(some), rows.data);
        return 0;
    }
};

template <class T>
struct any_reached {
    tape<T>& on;
    bool& any;

    template <std::size_t N>
    int operator()(const var<T, N>& x) const
    {
        any = any || on.reached(x) != nullptr;
        return 0;
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

template <class T, class Program, class In>
auto run_by_rows(tape<T>& on, const Program& program, const In& in, std::size_t rows, std::size_t work)
{
    using heed::detail::row_block;
    look<T> at{look<T>::purpose::find_tape};
    look_at(in, at);
    const bool wanted = at.wanted;
    const auto run = [](tape<T>& small, const Program& what, const In& of, row_block block, T* sums) {
        return what(of.map(rows_on_tape<T>{small, block, sums != nullptr}, parameters_on_tape<T>{small, sums}));
    };
    kept_list<T> list;
    std::size_t row_size = 0;
    const room_on_tape<T> room{on, rows, wanted, list, row_size};
    std::optional<decltype(run(on, program, in, {}, nullptr).map(room))> all;
    const auto first = [&](row_block block) {
        small_tape<T> small;
        kept_results<T> listed{list};
        if (wanted) (*small).keep_in(&listed);
        all.emplace(run(*small, program, in, block, nullptr).map(room));
    };
    heed::detail::run_no_row(rows, first);
    const auto kept = wanted ? list.keep(on.memory(), rows, row_size) : std::span<const kept_result<T>>{};
    bool* const complete = on.memory().template array_of<bool>(rows);
    const auto each = [&](row_block block) {
        small_tape<T> small;
        kept_results<T> forth{kept, block.first, false};
        if (wanted) (*small).keep_in(&forth);
        complete[block.first] = true;
        (void)all->map(put_values<T>{block, kept, complete + block.first}, run(*small, program, in, block, nullptr));
    };
    heed::detail::run_each_row(rows, work, each);
    if (wanted) {
        on.record([&on, program, in, made = *all, rows, work, run, kept, complete] {
            bool reached = false;
            (void)made.map(any_reached<T>{on, reached});
            if (!reached) return;
            look<T> open{look<T>::purpose::open_adjoints};
            look_at(in, open);
            T none{};
            const auto again = [&](row_again<T> row) {
                kept_results<T> back{kept, row.block.first, true};
                row.small.keep_in(complete[row.block.first] ? &back : nullptr);
                const auto some = run(row.small, program, in, row.block, row.sums == nullptr ? &none : row.sums);
                row.small.keep_in(nullptr);
                (void)made.map(pass_back<T>{on, row.small, row.block}, some);
            };
            const auto add = [&](const T* sums) {
                look<T> total{look<T>::purpose::add_sums};
                total.sums = sums;
                look_at(in, total);
            };
            go_back_by_rows<T>(on, rows, work, open.parameters, again, add);
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
    detail::look<T> at{detail::look<T>::purpose::find_tape};
    visit(detail::looking<T>{at, false});
    return detail::as_variables<T>{*at.on};
}

/// A program by rows on the tape of its input, see ops/by_rows.hpp.
template <class Program, class In>
auto by_rows(taped_family, const Program& program, const In& in, std::size_t rows, std::size_t work)
{
    using T = typename In::element;
    detail::look<T> at{detail::look<T>::purpose::find_tape};
    detail::look_at(in, at);
    const detail::as_variables<T> taped{*at.on};
    return detail::run_by_rows(*at.on, program, in.map(taped, taped), rows, work);
}

}  // namespace heed::ad
