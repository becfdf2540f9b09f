// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <heed/ad/lookup.hpp>
#include <heed/core/parameters.hpp>
#include <heed/kernels/optimizers.hpp>
#include <heed/train/gradient_norm.hpp>

namespace heed::inline HEED_TARGET::train {

/// An optimizer: an update rule, applied element by element, after clipping by the gradient's norm.
///
///     g ← g · min(1, clip / ‖g‖)             Pascanu et al. 2013, see train::clip_gradient
///     m, v, θ ← Rule(g, m, v, θ)
///
/// `Rule` has a `name`, stores `moments` numbers (0, 1 or 2) per element of a parameter, and returns the update of step
/// t by `update(t, scale)`, see kernels/optimizers.hpp, or that of one parameter by `update_of(name, rank, t, scale)`,
/// see train/adam.hpp.
///
/// Deviation from all papers: in a table that is only looked up, rows that the batch does not read do not change, and
/// neither do their moments.
template <class T, class Rule>
class optimizer {
public:
    struct moments {
        std::string name;
        std::vector<T> first, second;
    };

    Rule settings;

    explicit optimizer(const Rule& with = {}) : settings(with) {}

    /// One step with the gradients on the tape; `lifted` is the model as lifted for this recording. Returns the norm of
    /// the gradient before clipping; if it is not finite, the model is unchanged. Throws heed::error, without changes,
    /// before tape.backward and after a step with the same recording.
    double step(parameterized auto& model, const parameterized auto& lifted, ad::tape<T>& on, double clip = INFINITY)
    {
        check_recording(on);
        collect(model, lifted, on);
        const double norm = gradient_norm(lifted, on);
        const T scale = static_cast<T>(clip_factor(norm, clip));
        if (!std::isfinite(norm)) return norm;
        stepped_ = on.recording();
        ++steps_;
        for (std::size_t i = 0; i < uses_.size(); ++i) {
            const use& u = uses_[i];
            moments& m = moments_[i];
            const auto update = update_of(m.name, u.rank, scale);
            const kernels::moments_of<T> remembered{Rule::moments > 0 ? m.first.data() : nullptr,
                                                    Rule::moments > 1 ? m.second.data() : nullptr};
            if (u.rows.rows != nullptr) {
                kernels::update_rows(u.rows.ids.size(), u.rows.ids.data(), u.rows.width, update, u.rows.rows,
                                     kernels::gradient_rows::packed, remembered, u.values);
            } else {
                kernels::update_all(u.size, update, u.gradient, remembered, u.values);
            }
        }
        return norm;
    }

    std::size_t steps() const { return steps_; }  // number of steps so far

    /// The state for a checkpoint: the moments, in the order of the model's parameters; empty before the first step.
    const std::vector<moments>& state() const { return moments_; }

    /// Continues from a checkpoint.
    void restore(std::size_t steps, std::vector<moments> state)
    {
        steps_ = steps;
        moments_ = std::move(state);
        stepped_ = {};
    }

private:
    struct use {
        T* values = nullptr;
        std::size_t size = 0, rank = 0;
        const T* gradient = nullptr;
        ad::sparse_gradient<T> rows;
    };

    /// Without new gradients, a step would have no effect, or apply the same gradients twice.
    void check_recording(const ad::tape<T>& on) const
    {
        on.require_gradients(Rule::name);
        if (on.recording() == stepped_) {
            throw error(std::string(Rule::name) +
                        ": a second step with the gradients of one recording; call tape.clear(), lift the model again "
                        "and call tape.backward(loss) before each step");
        }
    }

    auto update_of(const std::string& name, std::size_t rank, T scale) const
    {
        if constexpr (requires { settings.template update_of<T>(name, rank, steps_, scale); }) {
            return settings.template update_of<T>(name, rank, steps_, scale);
        } else {
            return settings.template update<T>(steps_, scale);
        }
    }

    void collect(auto& model, const auto& lifted, ad::tape<T>& on)
    {
        collect(numbers_of<T>(model));
        std::size_t parameter = 0;
        for_each_parameter(lifted, [&](const std::string& name, const auto& x) {
            if (parameter == uses_.size() || uses_[parameter].size != x.size()) {
                throw error(std::string(Rule::name) + ": the lifted parameter " + name + " with " +
                            counted(x.size(), "number") +
                            " is not a parameter of the model; give the model that was lifted for this recording");
            }
            use& u = uses_[parameter++];
            u.rank = rank_of<decltype(x)>;
            u.rows = ad::gradient_rows(x);
            if (u.rows.rows == nullptr) u.gradient = on.gradient(x).data;
        });
    }

    void collect(const std::vector<named_numbers<T>>& parameters)
    {
        uses_.clear();
        for (const auto& [name, values] : parameters) {
            const std::size_t known = uses_.size();
            uses_.push_back({values.data, values.size(), 0, nullptr, {}});
            if (known == moments_.size()) {
                moments_.push_back({name, std::vector<T>(Rule::moments > 0 ? values.size() : 0),
                                    std::vector<T>(Rule::moments > 1 ? values.size() : 0)});
            }
            const moments& m = moments_[known];
            const bool fits = (Rule::moments == 0 || m.first.size() == values.size()) &&
                              (Rule::moments < 2 || m.second.size() == values.size());
            if (m.name != name || !fits) {
                throw error(std::string(Rule::name) + ": parameter " + name + " with " +
                            counted(values.size(), "number") + " does not fit the optimizer's state, which has " +
                            m.name + " with " + std::to_string(m.first.size()) + " there; use one optimizer per model");
            }
        }
    }

    std::vector<moments> moments_;
    std::vector<use> uses_;
    std::size_t steps_ = 0;
    ad::recording_id stepped_;  // the recording of the last step
};

}  // namespace heed::inline HEED_TARGET::train
