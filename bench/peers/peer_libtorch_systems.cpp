// SPDX-License-Identifier: BSD-3-Clause

// The peer of bench/systems: libtorch performs the same training step of a Transformer (forward, backward, clip, Adam).
//
// Written as an experienced user would write it for speed with libtorch's operations: one product for queries, keys and
// values of self-attention and one for keys and values of a layer's cross-attention; heads as batched products; one
// table for both languages and the output layer; Adam in place, parameter by parameter.

#include <torch/torch.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../harness.hpp"
#include "../search.hpp"

namespace {

using at::Tensor;

constexpr long sentences = 273, length = 15, vocabulary = 10000;

struct layer {
    Tensor qkv, own_output, q, kv, cross_output;  // the last three in a decoder
    Tensor W_1, b_1, W_2, b_2;
    std::vector<Tensor> gain, bias;
};

class transformer {
public:
    transformer(long width, long hidden, long heads, long layers) : D{width}, n{heads}
    {
        table = parameter({vocabulary, D}, std::sqrt(1.0 / static_cast<double>(D)));
        output_bias = parameter({vocabulary}, 0);
        for (auto* const side : {&encoder, &decoder}) {
            for (long i = 0; i < layers; ++i) {
                layer l;
                const double by = std::sqrt(1.0 / static_cast<double>(D));
                l.qkv = parameter({D, 3 * D}, by);
                l.own_output = parameter({D, D}, by);
                if (side == &decoder) {
                    l.q = parameter({D, D}, by);
                    l.kv = parameter({D, 2 * D}, by);
                    l.cross_output = parameter({D, D}, by);
                }
                l.W_1 = parameter({D, hidden}, by);
                l.b_1 = parameter({hidden}, 0);
                l.W_2 = parameter({hidden, D}, std::sqrt(1.0 / static_cast<double>(hidden)));
                l.b_2 = parameter({D}, 0);
                for (int k = 0; k < (side == &decoder ? 3 : 2); ++k) {
                    l.gain.push_back(parameter({D}, 0));
                    l.gain.back().data().fill_(1);
                    l.bias.push_back(parameter({D}, 0));
                }
                side->push_back(l);
            }
        }
        for (const Tensor& p : parameters) {
            means.push_back(at::zeros_like(p));
            squares.push_back(at::zeros_like(p));
        }
        source = words(11);
        previous = words(12);
        target = words(13).view({-1});
        const auto place = at::arange(length).unsqueeze(1);
        const auto angle = place * at::exp(at::arange(0, D, 2) * (-std::log(10000.0) / static_cast<double>(D)));
        positions = at::stack({angle.sin(), angle.cos()}, 2).view({length, D}).to(at::kFloat);
        later = at::full({length, length}, -std::numeric_limits<float>::infinity()).triu(1);
    }

    double step()
    {
        const Tensor loss = forward();
        loss.backward();
        update();
        return loss.item<double>();
    }

private:
    Tensor parameter(at::IntArrayRef shape, double deviation)
    {
        auto p = at::randn(shape).mul_(deviation).requires_grad_();
        parameters.push_back(p);
        return p;
    }

    static Tensor words(unsigned seed)
    {
        const auto numbers = bench::words(static_cast<std::size_t>(sentences * length), vocabulary, seed);
        auto result = at::empty({sentences, length}, at::kLong);
        std::copy(numbers.begin(), numbers.end(), result.data_ptr<int64_t>());
        return result;
    }

    Tensor embedded(const Tensor& ids) const
    {
        return at::embedding(table, ids).mul(std::sqrt(static_cast<double>(D))).add_(positions);
    }

    /// [B,S,D] -> [B·n,S,d]
    Tensor split(const Tensor& x) const
    {
        const long S = x.size(1);
        return x.view({sentences, S, n, D / n}).transpose(1, 2).reshape({sentences * n, S, D / n});
    }

    Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& output, bool causal) const
    {
        const double by = 1 / std::sqrt(static_cast<double>(D / n));
        auto scores = causal ? at::baddbmm(later, split(q), split(k).transpose(1, 2), 1, by)
                             : at::bmm(split(q), split(k).transpose(1, 2)).mul_(by);
        const auto seen = at::bmm(at::softmax(scores, 2), split(v));
        const auto joined = seen.view({sentences, n, length, D / n}).transpose(1, 2).reshape({-1, D});
        return at::mm(joined, output).view({sentences, length, D});
    }

    Tensor normalized(const Tensor& x, const layer& l, std::size_t k) const
    {
        return at::layer_norm(x, {D}, l.gain[k], l.bias[k]);
    }

    Tensor fed_forward(const Tensor& x, const layer& l) const
    {
        const auto hidden = at::addmm(l.b_1, x.reshape({-1, D}), l.W_1).relu_();
        return at::addmm(l.b_2, hidden, l.W_2).view_as(x);
    }

    Tensor self(const Tensor& x, const layer& l, bool causal) const
    {
        const auto all = at::mm(x.reshape({-1, D}), l.qkv).view({sentences, length, 3 * D}).chunk(3, 2);
        return attend(all[0], all[1], all[2], l.own_output, causal);
    }

    Tensor forward() const
    {
        Tensor x = embedded(source);
        for (const layer& l : encoder) {
            x = normalized(x + self(x, l, false), l, 0);
            x = normalized(x + fed_forward(x, l), l, 1);
        }
        Tensor y = embedded(previous);
        for (const layer& l : decoder) {
            y = normalized(y + self(y, l, true), l, 0);
            const auto both = at::mm(x.reshape({-1, D}), l.kv).view({sentences, length, 2 * D}).chunk(2, 2);
            const auto q = at::mm(y.reshape({-1, D}), l.q).view_as(y);
            y = normalized(y + attend(q, both[0], both[1], l.cross_output, false), l, 1);
            y = normalized(y + fed_forward(y, l), l, 2);
        }
        return at::cross_entropy_loss(at::addmm(output_bias, y.reshape({-1, D}), table.t()), target);
    }

    void update()
    {
        const torch::NoGradGuard guard;
        ++steps;
        double norm = 0;
        for (const Tensor& p : parameters) norm += std::pow(p.grad().norm().item<double>(), 2);
        const double clip = std::min(1.0, 1 / (std::sqrt(norm) + 1e-6)), beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
        const double correction = std::sqrt(1 - std::pow(beta2, steps));
        const double rate = 1e-3 * correction / (1 - std::pow(beta1, steps));
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const Tensor& g = parameters[i].grad();
            means[i].mul_(beta1).add_(g, (1 - beta1) * clip);
            squares[i].mul_(beta2).addcmul_(g, g, (1 - beta2) * clip * clip);
            parameters[i].addcdiv_(means[i], squares[i].sqrt().add_(epsilon * correction), -rate);
            parameters[i].mutable_grad() = Tensor{};
        }
    }

    long D, n;
    std::vector<Tensor> parameters, means, squares;
    Tensor table, output_bias, source, previous, target, positions, later;
    std::vector<layer> encoder, decoder;
    int steps = 0;
};

}  // namespace

int main()
{
    const char* said = std::getenv("OMP_NUM_THREADS");
    const int threads = said == nullptr ? 1 : std::atoi(said);
    at::set_num_threads(threads);
    std::map<std::string, std::unique_ptr<transformer>> models;
    for (std::string name; std::getline(std::cin, name);) {
        auto& model = models[name];
        if (!model) {
            model = name == "transformer/128/256/4+4" ? std::make_unique<transformer>(128, 256, 4, 4)
                                                      : std::make_unique<transformer>(512, 2048, 8, 6);
        }
        const double begin = bench::search::now(threads);
        const double loss = model->step();
        std::cout << bench::search::now(threads) - begin << ' ' << loss << std::endl;
    }
    return 0;
}
