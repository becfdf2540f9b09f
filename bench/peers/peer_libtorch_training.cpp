// SPDX-License-Identifier: BSD-3-Clause

// The peer: libtorch performs one RNNsearch training step (forward, backward, clip, Adam).
//
// Written for speed, within the limits of libtorch's operations and its autograd:
//   - input projections, keys, E y and the whole output layer are one product each for all steps;
//   - the GRU is composed of few, in-place operations, which is faster than at::gru on a CPU (`#at-gru`);
//   - one product multiplies s_{t-1} with W and the recurrent weights;
//   - clipping and Adam process each parameter once, in blocks that stay in cache, all six operations on a block
//     before the next (torch::optim::Adam makes six passes through memory, `#optim-adam`); the clipping factor is
//     folded in.

#include <torch/torch.h>

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../harness.hpp"
#include "../sizes.hpp"

#ifndef _OPENMP
#error "without OpenMP at::parallel_for is a plain loop, and libtorch would be measured unfairly: compile with -fopenmp"
#endif

namespace {

using at::Tensor;

struct ways {
    bool reset_after =
        true;  // reset after the recurrent product, as in at::gru; false, as in Cho et al. 2014, needs two products
    bool fused_encoder = false;  // at::gru
    bool blocked_adam = true;
    bool deferred = false;       // weight gradients of the recurrent products, batched over time manually
    bool lazy_rows = true;       // Adam updates only the rows of the embedding tables that the batch touches, as heed's
    bool plain_decoder = false;  // at::gru_cell on [E y; c]; only the keys are computed for all steps at once
};

/// x W whose gradient of W is computed in one product for all steps: backward only records.
struct deferred_product {
    Tensor weight;  // the leaf
    std::vector<Tensor> inputs, gradients;

    void finish()
    {
        weight.mutable_grad() = at::mm(at::cat(inputs).t(), at::cat(gradients));
        inputs.clear();
        gradients.clear();
    }
};

struct deferred_mm : torch::autograd::Function<deferred_mm> {
    static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& weight,
                          int64_t notes)
    {
        context->save_for_backward({x, weight});
        context->saved_data["notes"] = notes;
        return at::mm(x, weight);
    }

    static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::tensor_list& gradients)
    {
        const auto saved = context->get_saved_variables();
        auto* notes = reinterpret_cast<deferred_product*>(context->saved_data["notes"].toInt());
        notes->inputs.push_back(saved[0]);
        notes->gradients.push_back(gradients[0]);
        return {at::mm(gradients[0], saved[1].t()), Tensor{}, Tensor{}};
    }
};

class rnnsearch {
public:
    explicit rnnsearch(const ways& chosen) : how{chosen}
    {
        const auto [B, S, T, E, H, A, M, V] = std::tuple{z.batch,  z.source_length, z.target_length, z.embedding,
                                                         z.hidden, z.alignment,     z.maxout,        z.vocabulary};
        const auto word_tensor = [](const std::vector<long>& numbers, at::IntArrayRef shape) {
            auto result = at::empty(shape, at::kLong);
            std::copy(numbers.begin(), numbers.end(), result.data_ptr<int64_t>());
            return result;
        };
        source = word_tensor(bench::words(static_cast<std::size_t>(S * B), V, 11), {S, B});
        previous = word_tensor(bench::words(static_cast<std::size_t>(T * B), V, 12), {T, B});
        target = word_tensor(bench::words(static_cast<std::size_t>(T * B), V, 13), {T * B});
        padding = at::zeros({B, S}, at::kBool);
        zeros = at::zeros({B, H});

        for (table* t : {&source_table, &target_table}) {
            t->values = how.lazy_rows ? random_values({V, E}, E) : parameter({V, E}, E);
            t->means = at::zeros(how.lazy_rows ? V * E : 0).view({-1, E});
            t->squares = at::zeros_like(t->means);
        }
        for (auto& d : directions) {
            if (how.fused_encoder) {
                d.input = parameter({3 * H, E}, E);
                d.recurrent = parameter({3 * H, H}, H);
            } else {
                d.input = parameter({E, 3 * H}, E);
                d.recurrent = parameter({H, how.reset_after ? 3 * H : 2 * H}, H);
                if (!how.reset_after) d.candidate = parameter({H, H}, H);
            }
            d.bias = parameter({3 * H}, E);
            d.recurrent_bias = parameter({3 * H}, E);
        }
        U = parameter({2 * H, A}, H);
        v = parameter({A}, A);
        W_s = parameter({H, H}, H);
        b_s = parameter({H}, H);
        decoder_input = parameter({E, 3 * H}, E);
        decoder_bias = parameter({3 * H}, E);
        decoder_context = parameter({2 * H, 3 * H}, 2 * H);
        if (how.plain_decoder) {
            W = parameter({H, A}, H);
            cell = {parameter({3 * H, E + 2 * H}, E + 2 * H), parameter({3 * H, H}, H), parameter({3 * H}, H),
                    parameter({3 * H}, H)};
        }
        // one product multiplies s with W (A columns) and the recurrent weights
        decoder_state = parameter({H, A + (how.reset_after ? 3 * H : 2 * H)}, H);
        if (!how.reset_after) decoder_candidate = parameter({H, H}, H);
        decoder_recurrent_bias = parameter({A + 3 * H}, H);
        output = parameter({H + E + 2 * H, 2 * M}, H);
        output_bias = parameter({2 * M}, H);
        logits = parameter({M, V}, M);
        logits_bias = parameter({V}, M);

        if (!how.blocked_adam) {
            optimizer =
                std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(bench::learning_rate));
        }
        for (auto* product : {&directions[0].deferred, &directions[1].deferred, &state_product, &context_product}) {
            *product = std::make_unique<deferred_product>();
        }
        directions[0].deferred->weight = directions[0].recurrent;
        directions[1].deferred->weight = directions[1].recurrent;
        state_product->weight = decoder_state;
        context_product->weight = decoder_context;
    }

    float step()
    {
        for (auto& p : parameters) p.mutable_grad().reset();
        const auto cost = loss();
        cost.backward();
        if (how.deferred) {
            if (!how.fused_encoder) {
                directions[0].deferred->finish();
                directions[1].deferred->finish();
            }
            state_product->finish();
            context_product->finish();
        }
        if (how.blocked_adam) {
            clip_and_adam();
        } else {
            torch::nn::utils::clip_grad_norm_(parameters, bench::clip_norm);
            optimizer->step();
        }
        return cost.item<float>();
    }

private:
    struct direction {
        Tensor input, recurrent, candidate, bias, recurrent_bias;
        std::unique_ptr<deferred_product> deferred;
    };

    /// An embedding table whose touched rows are a separate leaf in each step.
    struct table {
        Tensor values, means, squares;  // [V,E]
        Tensor ids, rows;               // [touched], [touched,E]
    };

    Tensor lookup(table& from, const Tensor& words) const
    {
        if (!how.lazy_rows) return at::embedding(from.values, words);
        Tensor places;
        std::tie(from.ids, places, std::ignore) = at::_unique2(words, false, true);
        from.rows = from.values.index_select(0, from.ids).requires_grad_();
        return at::embedding(from.rows, places);
    }

    Tensor random_values(at::IntArrayRef shape, long inputs)
    {
        auto values = at::empty(shape, at::kFloat);
        bench::fill(values.data_ptr<float>(), static_cast<std::size_t>(values.numel()), ++seed,
                    1.0F / std::sqrt(static_cast<float>(inputs)));
        return values;
    }

    Tensor parameter(at::IntArrayRef shape, long inputs)
    {
        auto values = random_values(shape, inputs);
        values.requires_grad_();
        parameters.push_back(values);
        const auto flat = values.detach().view({-1});
        const auto means = at::zeros_like(flat);
        const auto squares = at::zeros_like(flat);
        for (long first = 0; first < flat.numel(); first += block_size) {
            const long count = std::min(block_size, flat.numel() - first);
            blocks.push_back({parameters.size() - 1, first, count, flat.narrow(0, first, count),
                              means.narrow(0, first, count), squares.narrow(0, first, count)});
        }
        return values;
    }

    Tensor multiply(const Tensor& x, const Tensor& weight, const std::unique_ptr<deferred_product>& product)
    {
        return how.deferred ? deferred_mm::apply(x, weight, reinterpret_cast<int64_t>(product.get()))
                            : at::mm(x, weight);
    }

    /// z, r and candidate from their input part gi [B,3H] and the recurrent part gh [B,3H]: order r, z, n.
    Tensor gates(const Tensor& state, const Tensor& input, const Tensor& recurrent) const
    {
        const auto gi = input.unsafe_split(2 * z.hidden, 1);
        const auto gh = recurrent.unsafe_split(2 * z.hidden, 1);
        const auto rz = at::add(gi[0], gh[0]).sigmoid_().unsafe_chunk(2, 1);
        const auto n = at::addcmul(gi[1], rz[0], gh[1]).tanh_();
        return at::lerp(n, state, rz[1]);
    }

    /// The GRU of Cho et al. 2014: r is applied to the state before the product.
    Tensor gates_before(const Tensor& state, const Tensor& input, const Tensor& recurrent,
                        const Tensor& candidate) const
    {
        const auto gi = input.unsafe_split(2 * z.hidden, 1);
        const auto rz = at::add(gi[0], recurrent).sigmoid_().unsafe_chunk(2, 1);
        const auto n = at::addmm(gi[1], rz[0] * state, candidate).tanh_();
        return at::lerp(n, state, rz[1]);
    }

    Tensor encode(const Tensor& words)  // [S,B,E] -> [S,B,2H]
    {
        const auto& [forward, backward] = std::tie(directions[0], directions[1]);
        if (how.fused_encoder) {
            const auto start = at::zeros({2, z.batch, z.hidden});
            return std::get<0>(at::gru(words, start,
                                       {forward.input, forward.recurrent, forward.bias, forward.recurrent_bias,
                                        backward.input, backward.recurrent, backward.bias, backward.recurrent_bias},
                                       true, 1, 0.0, true, true, false));
        }
        const auto flat = words.view({z.source_words(), z.embedding});
        std::vector<Tensor> halves;
        for (direction* d : {&directions[0], &directions[1]}) {
            const auto inputs =
                at::addmm(d->bias, flat, d->input).view({z.source_length, z.batch, 3 * z.hidden}).unbind(0);
            std::vector<Tensor> states(static_cast<std::size_t>(z.source_length));
            Tensor state = zeros;
            for (long i = 0; i < z.source_length; ++i) {
                const auto t = static_cast<std::size_t>(d == &directions[0] ? i : z.source_length - 1 - i);
                if (how.reset_after) {
                    const auto recurrent = how.deferred ? multiply(state, d->recurrent, d->deferred) + d->recurrent_bias
                                                        : at::addmm(d->recurrent_bias, state, d->recurrent);
                    state = gates(state, inputs[t], recurrent);
                } else {
                    state = gates_before(state, inputs[t], multiply(state, d->recurrent, d->deferred), d->candidate);
                }
                states[t] = state;
            }
            halves.push_back(at::stack(states));
        }
        return at::cat(halves, 2);
    }

    void decode(std::vector<Tensor>& states, std::vector<Tensor>& contexts, const Tensor& memory, const Tensor& keys,
                const Tensor& y_flat, const Tensor& start)
    {
        const auto inputs = at::addmm(decoder_bias, y_flat, decoder_input)
                                .view({z.target_length, z.batch, 3 * z.hidden})
                                .unbind(0);  // [B,3H] each
        Tensor state = start;
        for (const auto& input : inputs) {
            const auto from_state =
                how.deferred ? multiply(state, decoder_state, state_product) +
                                   (how.reset_after ? decoder_recurrent_bias
                                                    : decoder_recurrent_bias.narrow(0, 0, decoder_state.size(1)))
                             : (how.reset_after ? at::addmm(decoder_recurrent_bias, state, decoder_state)
                                                : at::mm(state, decoder_state));
            const auto split = from_state.unsafe_split_with_sizes({z.alignment, from_state.size(1) - z.alignment}, 1);
            const auto hidden = at::add(keys, split[0].unsqueeze(1)).tanh_();  // [B,S,A]
            const auto scores =
                at::mv(hidden.view({z.source_words(), z.alignment}), v).view({z.batch, z.source_length});
            const auto weights = at::softmax(scores.masked_fill(padding, minus_infinity), 1);  // [B,S]
            const auto context = at::bmm(weights.unsqueeze(1), memory).squeeze(1);             // [B,2H]
            const auto gate_input = how.deferred ? input + multiply(context, decoder_context, context_product)
                                                 : at::addmm(input, context, decoder_context);  // [B,3H]
            state = how.reset_after ? gates(state, gate_input, split[1])
                                    : gates_before(state, gate_input, split[1], decoder_candidate);  // [B,H]
            states.push_back(state);
            contexts.push_back(context);
        }
    }

    /// The decoder as one would first write it.
    void decode_plainly(std::vector<Tensor>& states, std::vector<Tensor>& contexts, const Tensor& memory,
                        const Tensor& keys, const Tensor& y, const Tensor& start) const
    {
        Tensor state = start;
        for (const auto& word : y.unbind(0)) {
            const auto hidden = at::tanh(keys + at::mm(state, W).unsqueeze(1));
            const auto scores = at::matmul(hidden, v).masked_fill(padding, minus_infinity);
            const auto context = at::bmm(at::softmax(scores, 1).unsqueeze(1), memory).squeeze(1);
            state = at::gru_cell(at::cat({word, context}, 1), state, cell[0], cell[1], cell[2], cell[3]);
            states.push_back(state);
            contexts.push_back(context);
        }
    }

    Tensor loss()
    {
        const auto annotations = encode(lookup(source_table, source));  // [S,B,2H]
        const auto memory = annotations.transpose(0, 1).contiguous();   // [B,S,2H]
        const auto keys = at::mm(memory.view({z.source_words(), z.annotation()}), U)
                              .view({z.batch, z.source_length, z.alignment});  // [B,S,A]
        const auto y = lookup(target_table, previous);                         // [T,B,E]
        const auto y_flat = y.view({z.target_words(), z.embedding});
        // s_0 from the backward state after the first word
        const auto start = at::addmm(b_s, annotations[0].narrow(1, z.hidden, z.hidden), W_s).tanh_();
        std::vector<Tensor> states;
        std::vector<Tensor> contexts;
        if (how.plain_decoder) {
            decode_plainly(states, contexts, memory, keys, y, start);
        } else {
            decode(states, contexts, memory, keys, y_flat, start);
        }
        const auto all = at::cat({at::cat(states), y_flat, at::cat(contexts)}, 1);  // [TB,H+E+2H]
        const auto both = at::addmm(output_bias, all, output).unsafe_chunk(2, 1);
        const auto t = at::maximum(both[0], both[1]);           // [TB,M]
        const auto scores = at::addmm(logits_bias, t, logits);  // [TB,V]
        return at::cross_entropy_loss(scores, target);
    }

    void clip_and_adam()
    {
        const c10::InferenceMode guard;
        ++steps;
        std::vector<Tensor> gradients;
        double squared_norm = 0;
        for (const auto& p : parameters) {
            const auto& gradient = p.grad();
            gradients.push_back(gradient.defined() ? gradient.view({-1}) : Tensor{});
            if (gradient.defined()) squared_norm += at::dot(gradients.back(), gradients.back()).item<double>();
        }
        for (const table* t : {&source_table, &target_table}) {
            if (how.lazy_rows)
                squared_norm += at::dot(t->rows.grad().view({-1}), t->rows.grad().view({-1})).item<double>();
        }
        const double clip = std::min(1.0, bench::clip_norm / (std::sqrt(squared_norm) + 1e-6));
        const double beta1 = 0.9;
        const double beta2 = 0.999;
        const double epsilon = 1e-8;
        const double correction = std::sqrt(1 - std::pow(beta2, steps));
        const double rate = bench::learning_rate * correction / (1 - std::pow(beta1, steps));
        const auto adam = [&](const Tensor& g, Tensor mean, Tensor square, Tensor root, Tensor values) {
            mean.mul_(beta1).add_(g, (1 - beta1) * clip);
            square.mul_(beta2).addcmul_(g, g, (1 - beta2) * clip * clip);
            at::sqrt_out(root, square);
            root.add_(epsilon * correction);
            values.addcdiv_(mean, root, -rate);
        };
        at::parallel_for(0, static_cast<long>(blocks.size()), 1, [&](long first, long last) {
            const c10::InferenceMode inner;
            auto root = at::empty({block_size});
            for (long i = first; i < last; ++i) {
                block& b = blocks[static_cast<std::size_t>(i)];
                if (!gradients[b.parameter].defined()) continue;
                adam(gradients[b.parameter].narrow(0, b.first, b.count), b.mean, b.square, root.narrow(0, 0, b.count),
                     b.values);
            }
        });
        if (!how.lazy_rows) return;
        for (table* t : {&source_table, &target_table}) {
            auto mean = t->means.index_select(0, t->ids);
            auto square = t->squares.index_select(0, t->ids);
            auto values = t->values.index_select(0, t->ids);
            adam(t->rows.grad(), mean, square, at::empty_like(mean), values);
            t->means.index_copy_(0, t->ids, mean);
            t->squares.index_copy_(0, t->ids, square);
            t->values.index_copy_(0, t->ids, values);
        }
    }

    struct block {
        std::size_t parameter;
        long first, count;
        Tensor values, mean, square;
    };

    static constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
    static constexpr long block_size = 32768;

    bench::training_size z;
    ways how;
    Tensor source, previous, target, padding, zeros;
    std::vector<Tensor> parameters;
    std::vector<block> blocks;
    table source_table, target_table;
    Tensor U, v;
    direction directions[2];
    Tensor decoder_input, decoder_bias, decoder_context, decoder_state, decoder_candidate, decoder_recurrent_bias;
    Tensor W, W_s, b_s;
    std::vector<Tensor> cell;
    Tensor output, output_bias, logits, logits_bias;
    std::unique_ptr<deferred_product> state_product, context_product;
    std::unique_ptr<torch::optim::Adam> optimizer;
    int steps = 0;
    unsigned seed = 20;
};

void add(const std::string& way, const bench::options& chosen, const ways& how)
{
    bench::add(std::string{bench::training_step} + way, [chosen, how]() -> bench::work {
        at::set_num_threads(chosen.threads);
        const auto model = std::make_shared<rnnsearch>(how);
        return {[model] { benchmark::DoNotOptimize(model->step()); }};
    });
}

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    add("", chosen, {});
    if (chosen.variants) {
        add("#reset-before", chosen, {.reset_after = false});
        add("#at-gru", chosen, {.fused_encoder = true});
        add("#plain", chosen,
            {.fused_encoder = true, .blocked_adam = false, .lazy_rows = false, .plain_decoder = true});
        add("#optim-adam", chosen, {.blocked_adam = false, .lazy_rows = false});
        add("#dense-rows", chosen, {.lazy_rows = false});
        add("#deferred", chosen, {.deferred = true});
        add("#deferred-reset-before", chosen, {.reset_after = false, .deferred = true});
    }
    return bench::run(argc, argv, chosen);
}
