// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/lookup.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed_mpi/ranks.hpp>

/// The sum of gradients over the ranks.
///
///     g = Σ_r ∂loss_r/∂θ = ∂(Σ_r loss_r)/∂θ
///
/// The losses must have the weights of the whole batch: for a mean per word, the sum of each rank is divided by the
/// words of all ranks. Then g equals the gradient of one process with the whole batch, except for rounding, since the
/// order of additions differs.
///
/// A table that is only looked up has a gradient with the rows that were looked up. Ranks exchange the ids of these
/// rows, and only rows that some rank has are sent. A rank without a gradient, because it had no sentence, adds zero.
namespace heed::inline HEED_TARGET::distributed {

/// Sums the gradients of one model over the ranks. One object serves one model and keeps its buffers from step to step.
template <class T>
class gradients {
public:
    /// Parameters with at least this many numbers are summed separately.
    static constexpr std::size_t large = std::size_t{1} << 14;
    /// Smaller parameters are summed together in packs of at least this many numbers.
    static constexpr std::size_t pack = std::size_t{1} << 16;

    /// While an object of this class exists, gradients that become final in the backward pass are summed while the rest
    /// is computed, for a subsequent sum(). Construct it before one backward pass; from then until sum(), gradients
    /// must not be read or changed. Ranks with and without such an object, for example without a loss, may be mixed.
    template <ranks R>
    class early_sums {
    public:
        /// `lifted` is the model as lifted for this recording. All arguments except `lifted` must outlive this object.
        template <parameterized L>
        early_sums(gradients& sums, R& over, const L& lifted, ad::tape<T>& on) : sums_(sums), over_(over), on_(on)
        {
            if (over.size() == 1) return;
            sums.list(lifted);
            sums.begin(over);
            sums.begun_ = true;
            on.when_final(
                [](void* self, ad::slot<T>& s) {
                    const auto& of = *static_cast<early_sums*>(self);
                    of.sums_.is_final(of.over_, of.on_, s);
                },
                this);
            on.meanwhile(
                [](void* self) {
                    auto& of = *static_cast<early_sums*>(self);
                    if (of.sums_.next_ == 0) return;
                    const auto now = std::chrono::steady_clock::now();
                    if (now - of.looked_ < look_every) return;
                    detail::progress(of.over_);
                    of.looked_ = now;
                },
                this);
        }
        early_sums(const early_sums&) = delete;
        early_sums& operator=(const early_sums&) = delete;
        ~early_sums()
        {
            if (over_.size() == 1) return;
            on_.when_final(nullptr, nullptr);
            on_.meanwhile(nullptr, nullptr);
        }

    private:
        /// MPI progresses only when polled: often enough for a fast network, and rarely enough to have no cost.
        static constexpr auto look_every = std::chrono::microseconds(200);

        gradients& sums_;
        R& over_;
        ad::tape<T>& on_;
        std::chrono::steady_clock::time_point looked_{};
    };

    /// Calls on.backward(loss) with early_sums.
    template <ranks R, parameterized L>
    void backward(R& over, const L& lifted, const ad::var<T, 0>& loss)
    {
        const early_sums<R> meanwhile(*this, over, lifted, loss.tape());
        loss.tape().backward(loss);
    }

    /// Call after on.backward(loss) or backward(): the gradients on the tape become the sums over all ranks. `lifted`
    /// is the model as lifted for this recording. A rank without a loss lifts the model without running backward.
    /// Throws heed::error on every rank if the models differ, if no rank ran backward, or if the gradients of these
    /// recordings were already summed.
    template <ranks R, parameterized L>
    void sum(R& over, const L& lifted, ad::tape<T>& on)
    {
        if (over.size() == 1) return;
        if (on.recording() == summed_) {
            throw error(
                "distributed::gradients: the gradients of this recording are already summed over all ranks; call "
                "tape.clear(), lift the model again and call tape.backward(loss) before the next sum");
        }
        const bool own = on.has_gradients();
        if (!begun_) {
            list(lifted);
            begin(over);
        }
        begun_ = false;
        tell(own);
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (!parameters_[i].prepared) prepare(over, on, i);
        }
        over.gather(std::span<const std::byte>(message_), messages_);
        agree(over);
        on.gradients_given();
        detail::finish(over);
        take_sums(on);
        sum_others(over, on);
        sum_rows(over);
        plan();
        summed_ = on.recording();
    }

private:
    enum kind : std::uint32_t { nothing = 0, rows = 1, all = 2 };

    struct parameter {
        ad::var<T, 1> x;
        kind mine = nothing, is = nothing;        // kind of the gradient on this rank, and on any rank
        ad::sparse_gradient<T> own{};             // rows on this rank
        std::size_t width = 0;                    // numbers per row
        std::size_t ids_first = 0, ids_last = 0;  // rows on any rank, in ids_
        std::uint32_t turn = 0;                   // order of completion on this rank, from 1; 0: not seen
        bool prepared = false;                    // state of the sum on this rank
        T* beside = nullptr;                      // buffer that is summed instead of the gradient
    };

    /// The complete gradient of one large parameter, or of several small parameters in `packed_`.
    struct unit {
        std::size_t parameter, first, last;  // the parameter, or its position in `packed_`
        std::size_t members;
        std::size_t missing;  // members that are not prepared yet
    };

    /// Where the gradient of a parameter is summed.
    struct place {
        kind expected = nothing;
        std::uint32_t turn = 0;  // as in the previous step
        std::size_t unit = 0, offset = 0;
    };

    struct told {
        std::uint32_t is, turn;
        std::uint64_t count, width;
    };

    // ---- the parameters of this recording ----

    struct listing_look {
        gradients& to;

        void operator()(const std::string&, const auto& x) const
        {
            to.outline_ = (to.outline_ ^ x.size()) * 1099511628211u;  // FNV-1a
            to.parameters_.push_back({{x.tape(), x.slot(), {x.size()}}});
        }
    };

    template <class L>
    void list(const L& lifted)
    {
        parameters_.clear();
        outline_ = 14695981039346656037u;
        for_each_parameter(lifted, listing_look{*this});
        sort_slots();
        const auto again = [](const auto& a, const auto& b) { return a.first == b.first; };
        if (std::adjacent_find(slots_.begin(), slots_.end(), again) != slots_.end()) {  // two names of one variable
            std::vector<bool> twice(parameters_.size(), false);
            for (std::size_t i = 1; i < slots_.size(); ++i) twice[slots_[i].second] = again(slots_[i], slots_[i - 1]);
            std::size_t kept = 0;
            for (std::size_t i = 0; i < parameters_.size(); ++i)
                if (!twice[i]) parameters_[kept++] = parameters_[i];
            parameters_.erase(parameters_.begin() + static_cast<std::ptrdiff_t>(kept), parameters_.end());
            sort_slots();
        }
        if (planned_ != outline_) {
            planned_ = outline_;
            places_.assign(parameters_.size(), {});
            arrange();
        }
    }

    void sort_slots()
    {
        slots_.clear();
        for (std::size_t i = 0; i < parameters_.size(); ++i) slots_.emplace_back(&parameters_[i].x.slot(), i);
        std::sort(slots_.begin(), slots_.end(), [](const auto& a, const auto& b) {
            return a.first != b.first ? std::less<>()(a.first, b.first) : a.second < b.second;
        });
    }

    // ---- contents and order of the sums ----

    /// The next step expects the kinds of gradients seen so far, in the order of this step.
    void plan()
    {
        bool changed = false;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const parameter& p = parameters_[i];
            place& at = places_[i];
            changed = changed || p.is > at.expected || (at.expected == all && p.turn != at.turn);
            at.expected = std::max(at.expected, p.is);
            at.turn = p.turn;
        }
        if (changed) arrange();
    }

    /// Gradients that are final first come first; if the order is unknown, those of the last parameters.
    void arrange()
    {
        order_.clear();
        for (std::size_t i = parameters_.size(); i-- > 0;) order_.push_back(i);
        std::stable_sort(order_.begin(), order_.end(),
                         [&](std::size_t i, std::size_t k) { return places_[i].turn < places_[k].turn; });
        units_.clear();
        std::size_t used = 0, first = 0, members = 0;
        const auto close = [&] {
            if (members > 0) units_.push_back({none, first, used, members, 0});
            first = used;
            members = 0;
        };
        for (const std::size_t i : order_) {
            const std::size_t size = parameters_[i].x.size();
            if (places_[i].expected != all) continue;
            if (size >= large) {
                places_[i].unit = units_.size();
                units_.push_back({i, 0, size, 1, 0});
                continue;
            }
            places_[i].unit = none;  // the pack, as soon as it is full
            places_[i].offset = used;
            used += size;
            ++members;
            if (used - first >= pack) close();
        }
        close();
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            place& at = places_[i];
            if (at.expected != all || at.unit != none) continue;
            for (std::size_t u = 0; u < units_.size(); ++u) {
                const unit& each = units_[u];
                if (each.parameter == none && at.offset >= each.first && at.offset < each.last) at.unit = u;
            }
        }
        packed_.resize(used);
    }

    /// Call before the sums of a step.
    template <class R>
    void begin(R& over)
    {
        if (next_ != 0) detail::finish(over);  // sums of an abandoned step
        next_ = 0;
        turns_ = 0;
        for (unit& each : units_) each.missing = each.members;
    }

    /// The gradient of a parameter is final.
    template <class R>
    void is_final(R& over, ad::tape<T>& on, ad::slot<T>& s)
    {
        const auto found =
            std::lower_bound(slots_.begin(), slots_.end(), &s, [](const auto& each, const ad::slot<T>* x) {
                return std::less<>()(static_cast<const ad::slot<T>*>(each.first), x);
            });
        if (found == slots_.end() || found->first != &s) return;
        look_at(parameters_[found->second]);
        parameters_[found->second].turn = ++turns_;
        prepare(over, on, found->second);
        detail::progress(over);
    }

    /// The kind of a parameter's gradient on this rank, before any changes.
    void look_at(parameter& p)
    {
        if (p.x.size() == 0) return;
        p.own = ad::gradient_rows(p.x);
        p.mine = p.own.rows != nullptr ? rows : p.x.slot().adjoint != nullptr ? all : nothing;
    }

    /// Adds the gradient of a parameter to its unit, and starts the sums that are ready.
    template <class R>
    void prepare(R& over, ad::tape<T>& on, std::size_t i)
    {
        parameter& p = parameters_[i];
        p.prepared = true;
        if (places_[i].expected != all) return;
        unit& of = units_[places_[i].unit];
        if (of.parameter == none) {
            p.beside = packed_.data() + places_[i].offset;
        } else if (p.mine != all) {
            p.beside = on.memory().template array_of<T>(p.x.size());
        }
        if (p.beside != nullptr && p.mine == all) std::copy_n(on.adjoint(p.x), p.x.size(), p.beside);
        if (p.beside != nullptr && p.mine != all) {
            std::fill_n(p.beside, p.x.size(), T(0));
            for (std::size_t k = 0; k < p.own.ids.size(); ++k)
                std::copy_n(p.own.rows + k * p.own.width, p.own.width, p.beside + p.own.ids[k] * p.own.width);
        }
        --of.missing;
        for (; next_ < units_.size() && units_[next_].missing == 0; ++next_) {
            const unit& now = units_[next_];
            if (now.parameter == none) {
                detail::begin_sum(over, std::span<T>(packed_).subspan(now.first, now.last - now.first));
            } else {
                const parameter& one = parameters_[now.parameter];
                detail::begin_sum(over,
                                  std::span<T>(one.beside != nullptr ? one.beside : on.adjoint(one.x), one.x.size()));
            }
        }
    }

    /// Copies finished sums to the gradients.
    void take_sums(ad::tape<T>& on)
    {
        next_ = 0;
        for (const parameter& p : parameters_) {
            if (p.is == all && p.beside != nullptr) std::copy_n(p.beside, p.x.size(), on.adjoint(p.x));
        }
    }

    /// Sums the full gradients that were not expected to be full.
    template <class R>
    void sum_others(R& over, ad::tape<T>& on)
    {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const parameter& p = parameters_[i];
            if (p.is != all || places_[i].expected == all) continue;
            on.gradient(p.x);  // full, if it had rows only
            over.sum(std::span<T>(on.adjoint(p.x), p.x.size()));
        }
    }

    void put(const void* from, std::size_t bytes)
    {
        const std::size_t at = message_.size();
        message_.resize(at + bytes);
        if (bytes > 0) std::memcpy(message_.data() + at, from, bytes);
    }

    // ---- exchange between ranks ----

    /// The state of this rank: whether it ran backward, the kind of each parameter's gradient, and the ids of its rows.
    void tell(bool own)
    {
        message_.clear();
        put(&outline_, sizeof outline_);
        const std::uint64_t went_back = own ? 1 : 0;
        put(&went_back, sizeof went_back);
        for (parameter& p : parameters_) {
            if (!p.prepared) look_at(p);
            p.is = p.mine;
            const told one{p.is, p.turn, p.own.ids.size(), p.own.width};
            put(&one, sizeof one);
        }
        for (const parameter& p : parameters_) put(p.own.ids.data(), p.own.ids.size_bytes());
    }

    /// The combined state: a gradient is full if it is full on any rank; otherwise it has the rows of all ranks.
    template <class R>
    void agree(const R& over)
    {
        constexpr std::size_t first_told = sizeof outline_ + sizeof(std::uint64_t);
        const std::size_t head = first_told + parameters_.size() * sizeof(told);
        bool any = false;
        for (std::size_t r = 0; r < over.size(); ++r) {
            std::uint64_t outline = 0;
            std::memcpy(&outline, messages_.of(r).data(), sizeof outline);
            if (outline != outline_ || messages_.of(r).size() < head)
                throw error("the ranks have different models: the parameters of rank " + std::to_string(r) +
                            " differ in number or size from those of rank " + std::to_string(over.rank()));
            std::uint64_t went_back = 0;
            std::memcpy(&went_back, messages_.of(r).data() + sizeof outline, sizeof went_back);
            any = any || went_back != 0;
        }
        if (!any) {
            throw error("distributed::gradients: no rank has gradients on its tape; call "
                        "tape.backward(loss) first");
        }
        ids_.clear();
        at_.assign(over.size(), head);
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            parameter& p = parameters_[i];
            p.ids_first = ids_.size();
            for (std::size_t r = 0; r < over.size(); ++r) {
                told one{};
                std::memcpy(&one, messages_.of(r).data() + first_told + i * sizeof one, sizeof one);
                p.is = std::max(p.is, static_cast<kind>(one.is));
                if (r == 0 || p.turn == 0) p.turn = one.turn;  // of the first rank with a gradient, on all ranks
                p.width = std::max(p.width, static_cast<std::size_t>(one.width));
                if (one.count == 0) continue;
                const std::size_t known = ids_.size();
                ids_.resize(known + one.count);
                std::memcpy(ids_.data() + known, messages_.of(r).data() + at_[r], one.count * sizeof(std::uint32_t));
                at_[r] += one.count * sizeof(std::uint32_t);
            }
            const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(p.ids_first);
            if (p.is != rows) {
                ids_.erase(first, ids_.end());
            } else {
                std::sort(first, ids_.end());
                ids_.erase(std::unique(first, ids_.end()), ids_.end());
            }
            p.ids_last = ids_.size();
        }
    }

    /// Sums gradients with rows, for all tables together.
    template <class R>
    void sum_rows(R& over)
    {
        std::size_t count = 0;
        for (const parameter& p : parameters_) count += p.is == rows ? (p.ids_last - p.ids_first) * p.width : 0;
        if (count == 0) return;
        rows_.assign(count, T(0));
        T* to = rows_.data();
        for (const parameter& p : parameters_) {
            if (p.is != rows) continue;
            const auto of_all = ids_of(p);
            std::size_t row = 0;
            for (std::size_t i = 0; i < p.own.ids.size(); ++i) {
                while (of_all[row] != p.own.ids[i]) ++row;  // both are ascending
                std::copy_n(p.own.rows + i * p.width, p.width, to + row * p.width);
            }
            to += of_all.size() * p.width;
        }
        over.sum(std::span<T>(rows_));
        const T* from = rows_.data();
        for (const parameter& p : parameters_) {
            if (p.is != rows) continue;
            const auto of_all = ids_of(p);
            ad::set_gradient_rows(p.x, {of_all, from, p.width});
            from += of_all.size() * p.width;
        }
    }

    std::span<const std::uint32_t> ids_of(const parameter& p) const
    {
        return std::span<const std::uint32_t>(ids_).subspan(p.ids_first, p.ids_last - p.ids_first);
    }

    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    std::vector<parameter> parameters_;
    std::vector<std::pair<ad::slot<T>*, std::size_t>> slots_;  // and the parameter of each address
    std::uint64_t outline_ = 0, planned_ = 0;                  // a hash of the sizes of all parameters
    std::vector<place> places_;
    std::vector<unit> units_;
    std::vector<std::size_t> order_;  // number of parameters
    std::size_t next_ = 0;            // the first unit whose sum has not started
    std::uint32_t turns_ = 0;         // gradients that were final in this step
    bool begun_ = false;              // set by backward()
    ad::recording_id summed_;         // the last recording whose gradients were summed
    std::vector<std::byte> message_;
    gathered messages_;
    std::vector<std::size_t> at_;
    std::vector<std::uint32_t> ids_;
    std::vector<T> packed_, rows_;
};

}  // namespace heed::inline HEED_TARGET::distributed
