// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <heed/train/optimizer.hpp>
#include <heed/train/settings.hpp>
#include <heed_mpi/gradients.hpp>

namespace heed::inline HEED_TARGET::distributed {

/// Wraps an optimizer for several ranks: it sums gradients over the ranks (gradients.hpp), clips by the norm of the
/// sum, and updates the model of this rank, so that all models stay equal, bit for bit.
///
///     distributed::mpi ranks;
///     distributed::optimizer together{ranks, train::adam<float>{{.rate = 1e-3}}, model};  // copies rank 0's model to
///     all ranks
///     for (…) {
///         tape.clear();
///         const auto lifted = ad::lift(tape, model);
///         together.backward(lifted, lifted.loss(my_share_of(batch)));
///         together.step(model, lifted, tape, clip);
///     }
///
/// The losses of all ranks together must have the weights of the whole batch, see gradients.hpp.
///
/// Otherwise it behaves like the wrapped optimizer: `settings`, steps(), and its checkpoint state, which does not
/// depend on the ranks. Training can be resumed with a different number of ranks, or without ranks.
template <ranks R, class T, class Rule>
class optimizer : public train::optimizer<T, Rule> {
public:
    using wrapped = train::optimizer<T, Rule>;

    /// `over` must outlive the optimizer.
    optimizer(R& over, train::optimizer<T, Rule> inner) : wrapped(std::move(inner)), ranks_(&over) {}

    /// As above, and calls begin(model).
    template <parameterized M>
    optimizer(R& over, train::optimizer<T, Rule> inner, M& model) : optimizer(over, std::move(inner))
    {
        begin(model);
    }

    /// Copies the parameters and the optimizer of rank 0 to every rank. Call it after the model was created, or loaded
    /// by rank 0. Throws heed::error on every rank if the models differ.
    template <parameterized M>
    void begin(M& model)
    {
        distributed::broadcast_parameters<T>(*ranks_, model);
        train::each_number(this->settings, [this](auto& number) { distributed::broadcast(*ranks_, number); });
        std::size_t steps = this->steps();
        distributed::broadcast(*ranks_, steps);
        std::vector<typename wrapped::moments> state;
        if (steps > 0) {
            for (const auto& each : numbers_of<T>(model)) state.push_back({each.name, {}, {}});
            for (std::size_t i = 0; i < state.size(); ++i) {
                if (ranks_->rank() == 0) state[i] = this->state()[i];
                distributed::broadcast(*ranks_, state[i].first);
                distributed::broadcast(*ranks_, state[i].second);
            }
        }
        this->restore(steps, std::move(state));
    }

    /// Runs backward from the loss and sums final gradients meanwhile. Alternatively, call tape.backward(loss), and
    /// step() sums later. Between backward() and step(), gradients must not be read or changed.
    template <parameterized L>
    void backward(const L& lifted, const ad::var<T, 0>& loss)
    {
        gradients_.backward(*ranks_, lifted, loss);
    }

    /// One step with the gradients on the tapes of all ranks; `lifted` is the model as lifted for this recording.
    /// Returns the norm of the summed gradient before clipping; if it is not finite, no rank changes its model.
    template <parameterized M, parameterized L>
    double step(M& model, const L& lifted, ad::tape<T>& on, double clip = INFINITY)
    {
        gradients_.sum(*ranks_, lifted, on);
        return wrapped::step(model, lifted, on, clip);
    }

private:
    R* ranks_;
    gradients<T> gradients_;
};

}  // namespace heed::inline HEED_TARGET::distributed
