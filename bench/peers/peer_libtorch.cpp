// SPDX-License-Identifier: BSD-3-Clause

// The peer: libtorch runs the same workloads, each in the fastest way that we found (see README.md, "Fairness").
//
// Forward: no autograd, every result in reused storage (`_out` and in-place forms). Backward: autograd on a graph that
// is rebuilt for each step, as in any training loop. Both process the batch in blocks of rows whose hidden layer
// [rows,T,A] stays in cache, which gains up to 1.2x forward and 1.4x backward.

#include <torch/torch.h>

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../harness.hpp"
#include "../sizes.hpp"

#ifndef _OPENMP
#error "without OpenMP at::parallel_for is a plain loop, and libtorch would be measured unfairly: compile with -fopenmp"
#endif

namespace {

using at::Tensor;
using bench::attention_size;

Tensor random_tensor(at::IntArrayRef shape, unsigned seed, float scale)
{
    auto result = at::empty(shape, at::kFloat);
    bench::fill(result.data_ptr<float>(), static_cast<std::size_t>(result.numel()), seed, scale);
    return result;
}

double digest(const Tensor& x)
{
    return bench::sum_of_absolutes(x.data_ptr<float>(), static_cast<std::size_t>(x.numel()));
}

float uniform_scale(long inputs) { return std::sqrt(3.0F / static_cast<float>(inputs)); }

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// ---------------------------------------------------------------------------------------------------------------------
// Attention

struct attention_case {
    explicit attention_case(const attention_size& s)
        : size{s},
          query{random_tensor({s.batch, s.query}, 1, 1.0F)},
          keys{random_tensor({s.batch, s.positions, s.alignment}, 2, 1.0F)},
          values{random_tensor({s.batch, s.positions, s.value}, 3, 1.0F)},
          W{random_tensor({s.query, s.alignment}, 4, uniform_scale(s.query))},
          v{random_tensor({s.alignment}, 5, uniform_scale(s.alignment))},
          padding{at::zeros({s.batch, s.positions}, at::kBool)},
          context_gradient{random_tensor({s.batch, s.value}, 6, 1.0F)}
    {}

    attention_size size;
    Tensor query;             // [B,Q]
    Tensor keys;              // [B,T,A]
    Tensor values;            // [B,T,D]
    Tensor W;                 // [Q,A]
    Tensor v;                 // [A]
    Tensor padding;           // [B,T], true where there is no source word: all false, but the mask is applied
    Tensor context_gradient;  // [B,D]
};

/// s W; a single row is a matrix-vector product, not a matrix product.
void project_out(Tensor& result, const Tensor& query, const Tensor& W)
{
    if (query.size(0) == 1) {
        auto row = result.view({-1});
        at::mv_out(row, W.t(), query.view({-1}));
    } else {
        at::mm_out(result, query, W);
    }
}

/// The additive step in blocks of `block` rows of the batch. With `across`, threads share the blocks instead of each
/// operation; with `by_row`, the weighted sum is a matrix-vector product per row instead of a bmm.
bench::work additive_forward(const attention_size& size, long block, bool across, bool by_row)
{
    struct part {
        Tensor keys, projected, hidden, hidden_rows, scores, scores_flat, padding, weights, weights_row, values,
            context;
        std::vector<Tensor> row_weights, row_values, row_contexts;
    };
    struct storage {
        attention_case c;
        Tensor projected, weights, context;
        std::vector<part> parts;
    };
    const auto& [Q, D, A, B, T] = size;
    auto s = std::make_shared<storage>(
        storage{attention_case{size}, at::empty({B, A}), at::empty({B, T}), at::empty({B, D}), {}});
    const long threads = across ? at::get_num_threads() : 1;
    std::vector<Tensor> hiddens;  // one per thread, so that threads do not evict each other's blocks
    for (long t = 0; t < threads; ++t) hiddens.push_back(at::empty({std::min(block, B), T, A}));
    const long blocks = (B + block - 1) / block;
    const long share = (blocks + threads - 1) / threads;
    for (long first = 0; first < B; first += block) {
        const long rows = std::min(block, B - first);
        part p;
        p.keys = s->c.keys.narrow(0, first, rows);
        p.projected = s->projected.narrow(0, first, rows).unsqueeze(1);
        p.hidden = hiddens[static_cast<std::size_t>(first / block / share)].narrow(0, 0, rows);
        p.hidden_rows = p.hidden.view({rows * T, A});
        p.scores = at::empty({rows, T});
        p.scores_flat = p.scores.view({rows * T});
        p.padding = s->c.padding.narrow(0, first, rows);
        p.weights = s->weights.narrow(0, first, rows);
        p.weights_row = p.weights.unsqueeze(1);
        p.values = s->c.values.narrow(0, first, rows);
        p.context = s->context.narrow(0, first, rows).unsqueeze(1);
        for (long row = 0; row < rows; ++row) {
            p.row_weights.push_back(p.weights[row]);
            p.row_values.push_back(p.values[row].t());
            p.row_contexts.push_back(p.context[row][0]);
        }
        s->parts.push_back(std::move(p));
    }
    return {[s, across, by_row, share, threads] {
                const c10::InferenceMode guard;
                project_out(s->projected, s->c.query, s->c.W);
                const auto run = [&](long first, long last) {
                    const c10::InferenceMode inner;  // the mode is per thread
                    for (long i = first; i < last; ++i) {
                        part& p = s->parts[static_cast<std::size_t>(i)];
                        at::add_out(p.hidden, p.keys, p.projected);
                        p.hidden.tanh_();
                        at::mv_out(p.scores_flat, p.hidden_rows, s->c.v);
                        p.scores.masked_fill_(p.padding, minus_infinity);
                        at::_softmax_out(p.weights, p.scores, 1, false);
                        if (by_row) {
                            for (std::size_t row = 0; row < p.row_weights.size(); ++row) {
                                at::mv_out(p.row_contexts[row], p.row_values[row], p.row_weights[row]);
                            }
                        } else {
                            at::bmm_out(p.context, p.weights_row, p.values);
                        }
                    }
                };
                const long count = static_cast<long>(s->parts.size());
                if (across) {
                    at::parallel_for(0, threads, 1, [&](long begin, long end) {
                        run(std::min(count, begin * share), std::min(count, end * share));
                    });
                } else {
                    run(0, count);
                }
                benchmark::DoNotOptimize(s->context.data_ptr<float>());
            },
            [s] { return digest(s->context); }};
}

/// Forward and backward through autograd. Keys and values are leaves in blocks of `block` rows, whose gradients are
/// views of one tensor each: they accumulate in place over the decoder steps, as in training. With `across`, each
/// thread takes a share of the batch, with its own graph and gradients of W and v, which are added at the end. Threads
/// inside single operations gain little when a step is twenty small operations.
bench::work additive_autograd(const attention_size& size, long block, bool across)
{
    struct part {
        Tensor keys, values, padding;
    };
    struct share_of_batch {
        Tensor query, W, v, context_gradient;
        std::vector<part> parts;
    };
    struct storage {
        attention_case c;
        Tensor query_gradient, keys_gradient, values_gradient;
        std::vector<share_of_batch> shares;
    };
    const auto& [Q, D, A, B, T] = size;
    auto s = std::make_shared<storage>(
        storage{attention_case{size}, at::zeros({B, Q}), at::zeros({B, T, A}), at::zeros({B, T, D}), {}});
    const auto leaf = [](const Tensor& values, const Tensor& gradient) {
        auto result = values.detach().requires_grad_();
        result.mutable_grad() = gradient;
        return result;
    };
    const long threads = across ? std::min<long>(at::get_num_threads(), B) : 1;
    const long most = (B + threads - 1) / threads;
    for (long begin = 0; begin < B; begin += most) {
        const long end = std::min(B, begin + most);
        share_of_batch mine;
        mine.query = leaf(s->c.query.narrow(0, begin, end - begin), s->query_gradient.narrow(0, begin, end - begin));
        mine.W = leaf(s->c.W, at::zeros({Q, A}));
        mine.v = leaf(s->c.v, at::zeros({A}));
        mine.context_gradient = s->c.context_gradient.narrow(0, begin, end - begin);
        for (long first = begin; first < end; first += block) {
            const long rows = std::min(block, end - first);
            mine.parts.push_back({leaf(s->c.keys.narrow(0, first, rows), s->keys_gradient.narrow(0, first, rows)),
                                  leaf(s->c.values.narrow(0, first, rows), s->values_gradient.narrow(0, first, rows)),
                                  s->c.padding.narrow(0, first, rows)});
        }
        s->shares.push_back(std::move(mine));
    }
    return {[s, block] {
                const auto run = [&](const share_of_batch& mine) {
                    const auto projected = at::mm(mine.query, mine.W);
                    const auto projected_parts = projected.split(block);
                    std::vector<Tensor> contexts;
                    contexts.reserve(mine.parts.size());
                    for (std::size_t i = 0; i < mine.parts.size(); ++i) {
                        const part& p = mine.parts[i];
                        const long rows = p.keys.size(0);
                        const long positions = p.keys.size(1);
                        // add saves nothing for its backward, so tanh may overwrite its result
                        const auto hidden = at::add(p.keys, projected_parts[i].unsqueeze(1)).tanh_();
                        const auto scores = at::mv(hidden.view({rows * positions, -1}), mine.v).view({rows, positions});
                        const auto weights = at::softmax(scores.masked_fill(p.padding, minus_infinity), 1);
                        contexts.push_back(at::bmm(weights.unsqueeze(1), p.values).squeeze(1));
                    }
                    const auto context = contexts.size() == 1 ? contexts[0] : at::cat(contexts);
                    context.backward(mine.context_gradient);
                };
                if (s->shares.size() == 1) {
                    run(s->shares[0]);
                } else {
                    at::parallel_for(0, static_cast<long>(s->shares.size()), 1, [&](long begin, long end) {
                        for (long i = begin; i < end; ++i) run(s->shares[static_cast<std::size_t>(i)]);
                    });
                    // the other threads' gradients of the shared parameters are added to the first's
                    for (std::size_t i = 1; i < s->shares.size(); ++i) {
                        s->shares[0].W.mutable_grad().add_(s->shares[i].W.grad());
                        s->shares[0].v.mutable_grad().add_(s->shares[i].v.grad());
                        s->shares[i].W.mutable_grad().zero_();
                        s->shares[i].v.mutable_grad().zero_();
                    }
                }
                benchmark::DoNotOptimize(s->values_gradient.data_ptr<float>());
            },
            [s] { return digest(s->keys_gradient) + digest(s->values_gradient); }};
}

/// Forward and backward with a backward written from libtorch's operations, all in place or into reused storage. Users
/// of libtorch do not write this; it shows the limit of its operations.
bench::work additive_by_hand(const attention_size& size, long block, bool across)
{
    struct part {
        Tensor keys, projected, hidden, hidden_rows, slope, scores, scores_flat, padding, weights, values, context,
            weights_row, weights_column, context_gradient, context_gradient_column, weights_gradient,
            weights_gradient_column, scores_gradient, scores_gradient_flat, scores_gradient_column, keys_gradient,
            values_gradient, projected_gradient;
    };
    struct storage {
        attention_case c;
        Tensor projected, weights, context;
        Tensor keys_gradient, values_gradient, projected_gradient, query_gradient, W_gradient;
        std::vector<Tensor> v_gradients;  // one for each thread
        std::vector<part> parts;
    };
    const auto& [Q, D, A, B, T] = size;
    const long threads = across ? at::get_num_threads() : 1;
    auto s = std::make_shared<storage>(storage{attention_case{size},
                                               at::empty({B, A}),
                                               at::empty({B, T}),
                                               at::empty({B, D}),
                                               at::zeros({B, T, A}),
                                               at::zeros({B, T, D}),
                                               at::zeros({B, A}),
                                               at::zeros({B, Q}),
                                               at::zeros({Q, A}),
                                               {},
                                               {}});
    const long blocks = (B + block - 1) / block;
    const long share = (blocks + threads - 1) / threads;
    std::vector<Tensor> hiddens;
    std::vector<Tensor> slopes;
    for (long t = 0; t < threads; ++t) {
        hiddens.push_back(at::empty({std::min(block, B), T, A}));
        slopes.push_back(at::empty({std::min(block, B), T, A}));
        s->v_gradients.push_back(at::zeros({A}));
    }
    for (long first = 0; first < B; first += block) {
        const long rows = std::min(block, B - first);
        const auto thread = static_cast<std::size_t>(first / block / share);
        part p;
        p.keys = s->c.keys.narrow(0, first, rows);
        p.projected = s->projected.narrow(0, first, rows).unsqueeze(1);
        p.hidden = hiddens[thread].narrow(0, 0, rows);
        p.hidden_rows = p.hidden.view({rows * T, A});
        p.slope = slopes[thread].narrow(0, 0, rows);
        p.scores = at::empty({rows, T});
        p.scores_flat = p.scores.view({rows * T});
        p.padding = s->c.padding.narrow(0, first, rows);
        p.weights = s->weights.narrow(0, first, rows);
        p.weights_row = p.weights.unsqueeze(1);
        p.weights_column = p.weights.unsqueeze(2);
        p.values = s->c.values.narrow(0, first, rows);
        p.context = s->context.narrow(0, first, rows).unsqueeze(1);
        p.context_gradient = s->c.context_gradient.narrow(0, first, rows).unsqueeze(1);
        p.context_gradient_column = p.context_gradient.transpose(1, 2);
        p.weights_gradient = at::empty({rows, T});
        p.weights_gradient_column = p.weights_gradient.unsqueeze(2);
        p.scores_gradient = at::empty({rows, T});
        p.scores_gradient_flat = p.scores_gradient.view({rows * T});
        p.scores_gradient_column = p.scores_gradient.unsqueeze(2);
        p.keys_gradient = s->keys_gradient.narrow(0, first, rows);
        p.values_gradient = s->values_gradient.narrow(0, first, rows);
        p.projected_gradient = s->projected_gradient.narrow(0, first, rows);
        s->parts.push_back(std::move(p));
    }
    return {[s, across, share, threads] {
                const c10::InferenceMode guard;
                project_out(s->projected, s->c.query, s->c.W);
                const auto run = [&](long first, long last, std::size_t thread) {
                    const c10::InferenceMode inner;
                    for (long i = first; i < last; ++i) {
                        part& p = s->parts[static_cast<std::size_t>(i)];
                        at::add_out(p.hidden, p.keys, p.projected);
                        p.hidden.tanh_();
                        at::mv_out(p.scores_flat, p.hidden_rows, s->c.v);
                        p.scores.masked_fill_(p.padding, minus_infinity);
                        at::_softmax_out(p.weights, p.scores, 1, false);
                        at::bmm_out(p.context, p.weights_row, p.values);

                        at::bmm_out(p.weights_gradient_column, p.values, p.context_gradient_column);
                        p.values_gradient.baddbmm_(p.weights_column, p.context_gradient);
                        at::_softmax_backward_data_out(p.scores_gradient, p.weights_gradient, p.weights, 1, at::kFloat);
                        s->v_gradients[thread].addmv_(p.hidden_rows.t(), p.scores_gradient_flat);
                        at::mul_out(p.slope, p.scores_gradient_column, s->c.v);
                        at::tanh_backward_out(p.slope, p.slope, p.hidden);
                        p.keys_gradient.add_(p.slope);
                        at::sum_out(p.projected_gradient, p.slope, 1);
                    }
                };
                const long count = static_cast<long>(s->parts.size());
                if (across) {
                    at::parallel_for(0, threads, 1, [&](long begin, long end) {
                        for (long t = begin; t < end; ++t) {
                            run(std::min(count, t * share), std::min(count, (t + 1) * share),
                                static_cast<std::size_t>(t));
                        }
                    });
                } else {
                    run(0, count, 0);
                }
                s->W_gradient.addmm_(s->c.query.t(), s->projected_gradient);
                at::mm_out(s->query_gradient, s->projected_gradient, s->c.W.t());
                benchmark::DoNotOptimize(s->values_gradient.data_ptr<float>());
            },
            [s] { return digest(s->keys_gradient) + digest(s->values_gradient); }};
}

/// The per-dimension step: scores [rows,T,D] = tanh(q + k) V, softmax over T per dimension, sum over T.
bench::work per_dimension_forward(const attention_size& size, long block, bool across)
{
    struct part {
        Tensor keys, projected, hidden, hidden_rows, scores, scores_rows, padding, weights, values, context;
    };
    struct storage {
        attention_case c;
        Tensor V, projected, context;
        std::vector<part> parts;
    };
    const auto& [Q, D, A, B, T] = size;
    auto s = std::make_shared<storage>(storage{
        attention_case{size}, random_tensor({A, D}, 7, uniform_scale(A)), at::empty({B, A}), at::empty({B, D}), {}});
    const long threads = across ? at::get_num_threads() : 1;
    const long most = std::min(block, B);
    const long blocks = (B + block - 1) / block;
    const long share = (blocks + threads - 1) / threads;
    for (long thread = 0; thread < threads; ++thread) {
        const auto hidden = at::empty({most, T, A});
        const auto scores = at::empty({most, T, D});
        const auto weights = at::empty({most, T, D});
        for (long first = thread * share * block; first < std::min(B, (thread + 1) * share * block); first += block) {
            const long rows = std::min(block, B - first);
            part p;
            p.keys = s->c.keys.narrow(0, first, rows);
            p.projected = s->projected.narrow(0, first, rows).unsqueeze(1);
            p.hidden = hidden.narrow(0, 0, rows);
            p.hidden_rows = p.hidden.view({rows * T, A});
            p.scores = scores.narrow(0, 0, rows);
            p.scores_rows = p.scores.view({rows * T, D});
            p.padding = s->c.padding.narrow(0, first, rows).unsqueeze(2);
            p.weights = weights.narrow(0, 0, rows);
            p.values = s->c.values.narrow(0, first, rows);
            p.context = s->context.narrow(0, first, rows);
            s->parts.push_back(std::move(p));
        }
    }
    return {[s, across, share, threads] {
                const c10::InferenceMode guard;
                project_out(s->projected, s->c.query, s->c.W);
                const auto run = [&](long first, long last) {
                    const c10::InferenceMode inner;
                    for (long i = first; i < last; ++i) {
                        part& p = s->parts[static_cast<std::size_t>(i)];
                        at::add_out(p.hidden, p.keys, p.projected);
                        p.hidden.tanh_();
                        at::mm_out(p.scores_rows, p.hidden_rows, s->V);
                        p.scores.masked_fill_(p.padding, minus_infinity);
                        at::_softmax_out(p.weights, p.scores, 1, false);
                        p.weights.mul_(p.values);
                        at::sum_out(p.context, p.weights, 1);
                    }
                };
                const long count = static_cast<long>(s->parts.size());
                if (across) {
                    at::parallel_for(0, threads, 1, [&](long begin, long end) {
                        run(std::min(count, begin * share), std::min(count, end * share));
                    });
                } else {
                    run(0, count);
                }
                benchmark::DoNotOptimize(s->context.data_ptr<float>());
            },
            [s] { return digest(s->context); }};
}

// ---------------------------------------------------------------------------------------------------------------------

// ---------------------------------------------------------------------------------------------------------------------
// The fastest variants, as measured (--variants) on a Zen 5 with 1 MiB of L2 cache per core

/// The number of rows for which a block's hidden layer takes about 1.6 MB. Between 0.8 and 3.2 MB the differences are
/// small; whole batches are up to 1.4 times slower.
long rows_in_cache(const attention_size& size, long threads)
{
    const long row_bytes = 4 * size.positions * size.alignment;
    const long share = (size.batch + threads - 1) / threads;
    return std::clamp(1'700'000 / row_bytes, 1L, share);
}

/// One sentence uses one thread: except at the largest size, waking the second costs more than it gains.
long threads_for(const attention_size& size, long threads) { return size.batch == 1 ? 1 : threads; }

void add(const std::string& name, long threads, std::function<bench::work()> make)
{
    bench::add(name, [threads, make = std::move(make)] {
        at::set_num_threads(static_cast<int>(threads));
        return make();
    });
}

void register_attention(const bench::options& chosen)
{
    for (const auto& size : bench::attention_sizes()) {
        const auto forward = bench::name_of("additive", "forward", size);
        const auto both = bench::name_of("additive", "forward_backward", size);
        const auto dimension = bench::name_of("per_dimension", "forward", size);
        const long threads = threads_for(size, chosen.threads);
        const long block = rows_in_cache(size, threads);
        const bool by_row = size.value < 1000;  // bmm and one product per row differ by 5%, either way
        add(forward, threads, [=] { return additive_forward(size, block, threads > 1, by_row); });
        add(both, threads, [=] { return additive_autograd(size, block, threads > 1); });
        add(both + "#by-hand", threads, [=] { return additive_by_hand(size, block, threads > 1); });
        add(dimension, threads, [=] { return per_dimension_forward(size, block, threads > 1); });
        if (!chosen.variants) continue;

        for (const long rows : {1L, 2L, 4L, 8L, 16L, size.batch}) {
            if (rows > size.batch || (rows == size.batch && rows <= 16 && rows != 12 && rows != 1)) continue;
            const auto tail = std::to_string(rows);
            for (const bool across : {false, true}) {
                if (across && chosen.threads == 1) continue;
                const auto way = (across ? "#across" : "#block") + tail;
                add(forward + way + "-bmm", chosen.threads,
                    [=] { return additive_forward(size, rows, across, false); });
                add(forward + way + "-rows", chosen.threads,
                    [=] { return additive_forward(size, rows, across, true); });
                add(both + way, chosen.threads, [=] { return additive_autograd(size, rows, across); });
                add(both + way + "-by-hand", chosen.threads, [=] { return additive_by_hand(size, rows, across); });
                add(dimension + way, chosen.threads, [=] { return per_dimension_forward(size, rows, across); });
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    register_attention(chosen);
    return bench::run(argc, argv, chosen);
}
