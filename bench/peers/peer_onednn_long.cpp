// SPDX-License-Identifier: BSD-3-Clause

// A peer of bench/long: attention of many queries composed of oneDNN's matmul and softmax, forward, or forward and
// backward. PEER_WAY chooses:
//
//   blocks=N  N queries of a head at a time, so that scores stay in the cache; with a causal mask, only the keys up to
//             the block's last query. The backward pass recomputes the weights of a block. Threads share the heads.
//             (The default is 128; with N equal to the number of queries, a block is a whole head.)
//   whole     all heads at once by batched primitives, scores and weights in memory
//
// The scale is an output scale of the first product, and softmax works in place. A causal mask is written over the
// scores by a plain loop: with the mask as a binary post-op, matmul uses its reference implementation, which is a
// thousand times slower. Primitives are created before the clock starts. The backward pass: ∂V += Pᵀ ∂C, ∂P = ∂C Vᵀ,
// ∂S by softmax_backward, ∂Q = scale · ∂S K, ∂K += scale · ∂Sᵀ Q.

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#include "../long_peer.hpp"
#include "../search.hpp"

namespace {

using namespace bench::long_attention;
using dims = dnnl::memory::dims;
using dnnl::memory;

dnnl::engine& cpu()
{
    static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
}

memory::desc matrices(const dims& shape, const dims& strides) { return {shape, memory::data_type::f32, strides}; }

/// A primitive with the memory objects that it reads and writes; their pointers are set for each call.
class call {
public:
    call(dnnl::primitive does, const std::vector<std::pair<int, memory::desc>>& arguments) : does_(std::move(does))
    {
        for (const auto& [what, desc] : arguments) with_.emplace(what, memory(desc, cpu(), nullptr));
    }
    void operator()(dnnl::stream& stream, const std::vector<std::pair<int, float*>>& at)
    {
        for (const auto& [what, data] : at) with_.at(what).set_data_handle(data);
        does_.execute(stream, with_);
    }

private:
    dnnl::primitive does_;
    std::unordered_map<int, memory> with_;
};

/// c = scale · a b (+ c).
call product(const memory::desc& a, const memory::desc& b, const memory::desc& c, double scale, bool adds)
{
    dnnl::primitive_attr how;
    if (scale != 1) how.set_output_scales(0, {static_cast<float>(scale)});
    dnnl::post_ops then;
    if (adds) then.append_sum(1.0F);
    how.set_post_ops(then);
    const dnnl::matmul::desc what(a, b, c);
    return {dnnl::matmul(dnnl::matmul::primitive_desc(what, how, cpu())),
            {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}}};
}

/// The memory that the primitives of a part of the work read and write.
struct layouts {
    memory::desc rows, columns, turned, weights, weights_turned;

    /// For `queries` queries with `keys` keys, in `heads` heads at once.
    layouts(long heads, long length, long queries, long keys, long width)
        : rows(matrices({heads, queries, width}, {length * width, width, 1})),
          columns(matrices({heads, keys, width}, {length * width, width, 1})),
          turned(matrices({heads, width, keys}, {length * width, 1, width})),
          weights(matrices({heads, queries, keys}, {queries * keys, keys, 1})),
          weights_turned(matrices({heads, keys, queries}, {queries * keys, 1, keys}))
    {}
};

struct attention {
    dnnl::softmax_forward::primitive_desc hint;
    call scores, softmax, contexts, d_weights, d_softmax, d_values, d_queries, d_keys;

    attention(const layouts& x, double scale)
        : hint(dnnl::softmax_forward::desc(dnnl::prop_kind::forward_training, x.weights, 2), cpu()),
          scores(product(x.rows, x.turned, x.weights, scale, false)),
          softmax(dnnl::softmax_forward(hint), {{DNNL_ARG_SRC, x.weights}, {DNNL_ARG_DST, x.weights}}),
          contexts(product(x.weights, x.columns, x.rows, 1, false)),
          d_weights(product(x.rows, x.turned, x.weights, 1, false)),
          d_softmax(dnnl::softmax_backward(dnnl::softmax_backward::primitive_desc(
                        dnnl::softmax_backward::desc(x.weights, x.weights, 2), cpu(), hint)),
                    {{DNNL_ARG_DST, x.weights}, {DNNL_ARG_DIFF_DST, x.weights}, {DNNL_ARG_DIFF_SRC, x.weights}}),
          d_values(product(x.weights_turned, x.rows, x.columns, 1, true)),
          d_queries(product(x.weights, x.columns, x.rows, scale, false)),
          d_keys(product(x.weights_turned, x.rows, x.columns, scale, true))
    {}
};

struct tensors {
    std::vector<float> q, k, v, c, d_c, d_q, d_k, d_v;

    explicit tensors(const request& of)
        : q(head_by_head(of, of_queries)),
          k(head_by_head(of, of_keys)),
          v(head_by_head(of, of_values)),
          c(of.numbers()),
          d_c(head_by_head(of, of_gradient)),
          d_q(of.numbers()),
          d_k(of.numbers()),
          d_v(of.numbers())
    {}
    void clear_sums()
    {
        std::fill(d_k.begin(), d_k.end(), 0.0F);
        std::fill(d_v.begin(), d_v.end(), 0.0F);
    }
};

/// A part of the work: heads starting at h, queries starting at s, with the weights and their gradients
/// [heads,queries,keys].
struct part {
    tensors& x;
    const request& of;
    std::size_t h, s, heads, queries, keys;
    float *weights, *d_weights;

    float* head(std::vector<float>& all, std::size_t row = 0) const
    {
        return all.data() + (h * of.length + row) * of.width;
    }
    void weigh(attention& by, dnnl::stream& on) const
    {
        by.scores(on, {{DNNL_ARG_SRC, head(x.q, s)}, {DNNL_ARG_WEIGHTS, head(x.k)}, {DNNL_ARG_DST, weights}});
        if (of.causal()) hide_later_keys();
        by.softmax(on, {{DNNL_ARG_SRC, weights}, {DNNL_ARG_DST, weights}});
    }
    void hide_later_keys() const
    {
        const auto rows = static_cast<long>(heads * queries);
#pragma omp parallel for schedule(static) if (heads > 1)
        for (long row = 0; row < rows; ++row) {
            float* const scores = weights + static_cast<std::size_t>(row) * keys;
            const std::size_t seen = s + static_cast<std::size_t>(row) % queries + 1;
            std::fill(scores + seen, scores + keys, -std::numeric_limits<float>::infinity());
        }
    }
    void forward(attention& by, dnnl::stream& on) const
    {
        weigh(by, on);
        by.contexts(on, {{DNNL_ARG_SRC, weights}, {DNNL_ARG_WEIGHTS, head(x.v)}, {DNNL_ARG_DST, head(x.c, s)}});
    }
    /// Requires that `weights` are computed.
    void backward(attention& by, dnnl::stream& on) const
    {
        by.d_values(on, {{DNNL_ARG_SRC, weights}, {DNNL_ARG_WEIGHTS, head(x.d_c, s)}, {DNNL_ARG_DST, head(x.d_v)}});
        by.d_weights(on, {{DNNL_ARG_SRC, head(x.d_c, s)}, {DNNL_ARG_WEIGHTS, head(x.v)}, {DNNL_ARG_DST, d_weights}});
        by.d_softmax(on, {{DNNL_ARG_DST, weights}, {DNNL_ARG_DIFF_DST, d_weights}, {DNNL_ARG_DIFF_SRC, d_weights}});
        by.d_queries(on, {{DNNL_ARG_SRC, d_weights}, {DNNL_ARG_WEIGHTS, head(x.k)}, {DNNL_ARG_DST, head(x.d_q, s)}});
        by.d_keys(on, {{DNNL_ARG_SRC, d_weights}, {DNNL_ARG_WEIGHTS, head(x.q, s)}, {DNNL_ARG_DST, head(x.d_k)}});
    }
};

/// The work as a function.
std::function<void()> whole(const request& of, tensors& x)
{
    const auto heads = static_cast<long>(of.all_heads()), L = static_cast<long>(of.length);
    const std::size_t scores = of.all_heads() * of.length * of.length;
    struct kept {
        attention by;
        dnnl::stream on;
        std::vector<float> weights, d_weights;
    };
    const std::shared_ptr<kept> all(
        new kept{attention(layouts(heads, L, L, L, static_cast<long>(of.width)), of.scale()), dnnl::stream(cpu()),
                 std::vector<float>(scores), std::vector<float>(of.backward ? scores : 0)});
    return [all, &of, &x] {
        const part everything{
            x, of, 0, 0, of.all_heads(), of.length, of.length, all->weights.data(), all->d_weights.data()};
        everything.forward(all->by, all->on);
        if (of.backward) {
            x.clear_sums();
            everything.backward(all->by, all->on);
        }
        all->on.wait();
    };
}

std::function<void()> in_blocks(const request& of, tensors& x, std::size_t most, int threads)
{
    struct block {
        std::size_t s, queries, keys;
        attention by;
    };
    struct of_thread {
        dnnl::stream on{cpu()};
        std::vector<block> blocks;
        std::vector<float> weights, d_weights;
    };
    const auto all = std::make_shared<std::vector<of_thread>>();
    for (int thread = 0; thread < threads; ++thread) {
        of_thread& one = all->emplace_back();
        for (std::size_t s = 0; s < of.length; s += most) {
            const std::size_t queries = std::min(most, of.length - s), keys = of.causal() ? s + queries : of.length;
            const layouts reads(1, static_cast<long>(of.length), static_cast<long>(queries), static_cast<long>(keys),
                                static_cast<long>(of.width));
            one.blocks.push_back({s, queries, keys, attention(reads, of.scale())});
        }
        one.weights.resize(most * of.length);
        one.d_weights.resize(most * of.length);
    }
    return [all, &of, &x, threads] {
        const auto each_block = [&](const auto& f) {
            const auto heads = static_cast<long>(of.all_heads());
#pragma omp parallel for schedule(static) num_threads(threads)
            for (long h = 0; h < heads; ++h) {
                of_thread& one = (*all)[static_cast<std::size_t>(omp_get_thread_num())];
                for (block& b : one.blocks) {
                    f(part{x, of, static_cast<std::size_t>(h), b.s, 1, b.queries, b.keys, one.weights.data(),
                           one.d_weights.data()},
                      b.by, one.on);
                }
                one.on.wait();
            }
        };
        each_block([](const part& p, attention& by, dnnl::stream& on) { p.forward(by, on); });
        if (!of.backward) return;
        x.clear_sums();
        each_block([](const part& p, attention& by, dnnl::stream& on) {
            p.weigh(by, on);
            p.backward(by, on);
        });
    };
}

std::pair<double, double> run(const request& of, const std::string& way, int threads)
{
    tensors x(of);
    const bool blocks = way.rfind("blocks=", 0) == 0;
    const std::size_t most = blocks ? static_cast<std::size_t>(std::atol(way.c_str() + 7)) : 0;
    const auto work = blocks ? in_blocks(of, x, std::min(most, of.length), threads) : whole(of, x);
    work();  // warm-up: page faults, and oneDNN's code generation at the first call
    const double begin = bench::search::now(threads);
    work();
    const double seconds = bench::search::now(threads) - begin;
    using bench::long_attention::sum_of_absolutes;
    if (!of.backward) return {seconds, sum_of_absolutes(x.c.data(), x.c.size())};
    return {seconds, sum_of_absolutes(x.d_q.data(), x.d_q.size()) + sum_of_absolutes(x.d_k.data(), x.d_k.size()) +
                         sum_of_absolutes(x.d_v.data(), x.d_v.size())};
}

}  // namespace

int main()
{
    const char* const chosen = std::getenv("PEER_WAY");
    const std::string way = chosen == nullptr || *chosen == '\0' ? "blocks=128" : chosen;
    const int threads = threads_of_peer();
    answer([&](const request& of) { return run(of, way, threads); });
    return 0;
}
