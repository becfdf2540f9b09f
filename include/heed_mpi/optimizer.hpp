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

/// An optimizer of heed's whose step is that of all ranks together: it sums their gradients (gradients.hpp), clips by
/// the norm of the sum, and updates this rank's model, so that all models stay the same, bit for bit.
///
///     distributed::mpi ranks;
///     distributed::optimizer together{ranks, train::adam<float>{{.rate = 1e-3}}, model};  // rank 0's model for all
///     for (…) {
///         tape.clear();
///         const auto lifted = ad::lift(tape, model);
///         together.backward(lifted, lifted.loss(my_share_of(batch)));
///         together.step(model, lifted, tape, clip);
///     }
///
/// The losses of all ranks together must have the weights of the whole batch, see gradients.hpp.
///
/// In everything else it is the optimizer that it wraps: `settings`, steps(), and what a checkpoint keeps of it, which
/// nothing of the ranks is in. A training goes on with another number of ranks, or without any.
template <ranks R, class T, class Rule>
class optimizer : public train::optimizer<T, Rule> {
public:
    using wrapped = train::optimizer<T, Rule>;

    /// `over` must outlive the optimizer.
    optimizer(R& over, train::optimizer<T, Rule> inner) : wrapped(std::move(inner)), ranks_(&over) {}

    /// The same, and begin(model).
    template <parameterised M>
    optimizer(R& over, train::optimizer<T, Rule> inner, M& model) : optimizer(over, std::move(inner))
    {
        begin(model);
    }

    /// Every rank gets rank 0's parameters and rank 0's optimizer: after the model was made, or loaded by rank 0.
    /// Throws heed::error on every rank if their models differ.
    template <parameterised M>
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

    /// Goes back from the loss, while the gradients that are final are summed. tape.backward(loss) does as well, and
    /// step() sums later; between the two, nobody reads or changes gradients here.
    template <parameterised L>
    void backward(const L& lifted, const ad::var<T, 0>& loss)
    {
        gradients_.backward(*ranks_, lifted, loss);
    }

    /// One step with the gradients on the tapes of all ranks; `lifted` is the model as it was lifted for this
    /// recording. Returns the norm of their sum before clipping; if that is not finite, nothing is changed, on any
    /// rank.
    template <parameterised M, parameterised L>
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
