// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/lookup.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/kernels/rows.hpp>

namespace heed::inline HEED_TARGET::train {

/// Sums gradients of several batches before one update: equals the update of one large batch, in the memory of a small
/// one.
///
///     g = Σ_k ∂loss_k/∂θ = ∂(Σ_k loss_k)/∂θ
///
/// Each loss has the weight that it has in the large batch: for a mean per word, divide by the words of all batches.
/// For a table that is only looked up, the sum stores only the rows that some batch read, as lazy updates (see
/// optimizer) need.
///
///     train::accumulated_gradients<float> sum;
///     for (k = 1 … n) {
///         tape.clear();
///         const auto lifted = ad::lift(tape, model);
///         tape.backward(lifted.loss(batch_k));
///         if (k < n) sum.add(lifted, tape);
///         else { sum.give(lifted, tape); optimizer.step(model, lifted, tape); }
///     }
template <class T>
class accumulated_gradients {
public:
    /// The sum of one parameter's gradients: of all its numbers, or of some rows.
    struct gradient {
        std::string name;
        std::size_t size = 0;  // of the parameter
        std::vector<T> all;
        std::vector<std::uint32_t> ids;  // ascending
        std::vector<T> rows;             // [ids,width]
        std::size_t width = 0;

        /// Adds the rows of another gradient.
        void add_rows(const ad::sparse_gradient<T>& more)
        {
            std::vector<std::uint32_t> both(ids.size() + more.ids.size());
            std::vector<T> sums(both.size() * more.width);
            width = more.width;
            const ad::sparse_gradient<T> own{ids, rows.data(), width};
            const std::size_t count = ad::merge_rows(own, more, both.data(), sums.data());
            both.resize(count);
            sums.resize(count * width);
            ids = std::move(both);
            rows = std::move(sums);
        }

        /// Converts the rows to a gradient of all numbers.
        void make_dense()
        {
            if (all.empty()) all.assign(size, T(0));
            for (std::size_t i = 0; i < ids.size(); ++i)
                kernels::add(width, all.data() + ids[i] * width, rows.data() + i * width);
            ids.clear();
            rows.clear();
        }
    };

    /// Adds the gradients on the tape. Throws heed::error before tape.backward and for a recording that was already
    /// added.
    void add(const parameterized auto& lifted, ad::tape<T>& on)
    {
        on.require_gradients("train::accumulated_gradients::add");
        check_new(on);
        walk(lifted, [&](const auto& x, gradient& sum) {
            const ad::sparse_gradient<T> rows = ad::gradient_rows(x);
            if (rows.rows != nullptr && sum.all.empty()) {
                sum.add_rows(rows);
                return;
            }
            const T* const from = on.gradient(x).data;
            sum.make_dense();
            kernels::add(x.size(), sum.all.data(), from);
        });
        added_ = on.recording();
    }

    /// Adds the sum, if any, to the gradients on the tape and clears it. Throws heed::error if the gradients on the
    /// tape are already in the sum.
    void give(const parameterized auto& lifted, ad::tape<T>& on)
    {
        if (sums_.empty()) return;
        check_new(on);
        on.gradients_given();
        walk(lifted, [&](const auto& x, gradient& sum) {
            if (!sum.all.empty()) {
                on.gradient(x);  // dense from here on
                kernels::add(x.size(), on.adjoint(x), sum.all.data());
            } else if (!sum.ids.empty()) {
                ad::add_gradient_rows(x, {sum.ids, sum.rows.data(), sum.width});
            }
        });
        sums_.clear();
    }

    /// The state for a checkpoint within an update: a sum for each parameter, in their order; empty between updates.
    const std::vector<gradient>& state() const { return sums_; }

    /// Continues from a checkpoint. If a sum does not fit its parameter, throws heed::error and changes nothing.
    void restore(std::vector<gradient> state)
    {
        for (const gradient& each : state) {
            const auto rising =
                std::adjacent_find(each.ids.begin(), each.ids.end(), std::greater_equal<>()) == each.ids.end();
            const bool within = each.ids.empty() || (each.ids.back() + std::size_t{1}) * each.width <= each.size;
            if ((!each.all.empty() && (each.all.size() != each.size || !each.ids.empty())) || !rising || !within ||
                each.rows.size() != each.ids.size() * each.width)
                throw error("the sum of the gradients of " + each.name + " does not fit its " +
                            counted(each.size, "number"));
        }
        sums_ = std::move(state);
    }

private:
    void check_new(const ad::tape<T>& on) const
    {
        if (on.recording() == added_) {
            throw error("train::accumulated_gradients: the gradients of this recording are already in the sum and "
                        "would count twice; call add for each batch except the last, and give for the last");
        }
    }

    void walk(const auto& lifted, const auto& f)
    {
        std::size_t parameter = 0;
        for_each_parameter(lifted, [&](const std::string& name, const auto& x) {
            if (parameter == sums_.size()) {
                sums_.emplace_back();
                sums_.back().name = name;
                sums_.back().size = x.size();
            }
            gradient& sum = sums_[parameter++];
            if (sum.name != name || sum.size != x.size()) {
                throw error("the gradient of " + name + " with " + counted(x.size(), "number") +
                            " cannot be added to that of " + sum.name + " with " + std::to_string(sum.size) +
                            "; use one sum per model");
            }
            f(x, sum);
        });
    }

    std::vector<gradient> sums_;  // in the order of the model's parameters
    ad::recording_id added_;      // the last recording whose gradients are in the sum
};

}  // namespace heed::inline HEED_TARGET::train
