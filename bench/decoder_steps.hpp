// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "harness.hpp"
#include "sizes.hpp"

/// Decoder steps on a tape, for programs that train attention alone: each step uses the state of the previous step, and
/// the loss is a weighted sum of all contexts. Uses only heed's public interface, so that the source also compiles with
/// the headers of another version (against.sh).
namespace bench {

using matrix = heed::array<float, 2>;
using vector = heed::array<float, 1>;
using cube = heed::array<float, 3>;

inline std::size_t size_of(long n) { return static_cast<std::size_t>(n); }

template <std::size_t N>
heed::array<float, N> random_array(const heed::shape_of_rank<N>& shape, unsigned seed, float scale = 1)
{
    heed::array<float, N> result(shape);
    fill(result.data(), result.size(), seed, scale);
    return result;
}

inline matrix random_weight(long in, long out, unsigned seed)
{
    return random_array<2>({size_of(in), size_of(out)}, seed, std::sqrt(3.0F / static_cast<float>(in)));
}
inline vector random_vector(long n, unsigned seed)
{
    return random_array<1>({size_of(n)}, seed, std::sqrt(3.0F / static_cast<float>(n)));
}

/// Fixed lengths from a quarter of T to T; the first sentence has T.
inline heed::lengths ragged(long batch, long positions)
{
    std::vector<float> u(size_of(batch));
    fill(u.data(), u.size(), 31, 1.0F);
    std::vector<std::size_t> counts(u.size());
    for (std::size_t b = 0; b < counts.size(); ++b) {
        const float part = 0.625F + 0.375F * u[b];
        counts[b] = static_cast<std::size_t>(std::lround(part * static_cast<float>(positions)));
    }
    counts[0] = size_of(positions);
    return heed::lengths(std::move(counts));
}

/// The parts of a query.
enum class asks { state, state_and_word };

/// A tape with `steps` decoder steps of one mechanism.
template <asks with, class Attend>
class decoder_steps {
public:
    static constexpr int steps = 8;

    /// Keys are already prepared: [B,T,A], or [B,T,D] for a score that compares the query with the annotations.
    decoder_steps(const attention_size& z, Attend attend, heed::lengths real, float scale = 1)
        : attend_{std::move(attend)},
          values_{random_array<3>({size_of(z.batch), size_of(z.positions), size_of(z.value)}, 3)},
          keys_{random_array<3>({size_of(z.batch), size_of(z.positions), size_of(z.alignment)}, 2, scale)},
          slope_{random_array<1>({size_of(z.batch)}, 6)},
          real_{std::move(real)}
    {
        for (unsigned s = 0; s <= steps; ++s) {
            const heed::shape_of_rank<2> shape{size_of(z.batch), size_of(z.query)};
            queries_.push_back(random_array<2>(shape, 40 + s, scale));
            if constexpr (with == asks::state_and_word) words_.push_back(random_array<2>(shape, 60 + s));
        }
    }
    decoder_steps(const decoder_steps&) = delete;
    decoder_steps& operator=(const decoder_steps&) = delete;

    void forward_backward()
    {
        const auto recorded = record(steps);
        tape_.backward(recorded.loss);
        values_gradient_ = tape_.gradient(recorded.values);
        keys_gradient_ = tape_.gradient(recorded.keys);
    }

    [[nodiscard]] double digest() const
    {
        return sum_of_absolutes(values_gradient_.data, values_gradient_.size()) +
               sum_of_absolutes(keys_gradient_.data, keys_gradient_.size());
    }

    /// Bytes of the tape's arena that one more step takes: after recording, and after the backward pass with all
    /// gradients. Exact: from the second recording on, the arena is one block, so that addresses can be subtracted.
    struct bytes {
        double recorded, with_gradients;
    };
    bytes per_step()
    {
        largest();
        const auto [more, more_back] = used(steps + 1);
        const auto [fewer, fewer_back] = used(steps);
        return {more - fewer, more_back - fewer_back};
    }

private:
    using variable = heed::ad::var<float, 3>;
    struct recording {
        heed::ad::var<float, 0> loss;
        variable values, keys;
    };

    recording record(int count)
    {
        tape_.clear();
        const auto attend = heed::ad::lift(tape_, attend_);
        const heed::memory<variable, variable> source{tape_.parameter(values_), tape_.parameter(keys_), real_};
        auto state = attend.start(source);
        auto loss = tape_.constant(heed::filled<float, 0>({}, 0.0F));
        for (std::size_t s = 0; s < size_of(count); ++s) {
            auto seen = attend.read(source, query(s), state);
            // One weight per sentence: `inner` keeps a copy of its constants, which is part of the loss and not of
            // attention.
            loss = heed::ops::add(loss, heed::ops::dot(heed::ops::sum_last(seen.context), slope_));
            state = std::move(seen.state);
        }
        return {loss, source.values, source.keys};
    }

    auto query(std::size_t s)
    {
        if constexpr (with == asks::state_and_word) {
            return heed::state_and_word{tape_.parameter(queries_[s]), tape_.parameter(words_[s])};
        } else {
            return tape_.parameter(queries_[s]);
        }
    }

    void largest()
    {
        const auto recorded = record(steps + 1);
        tape_.backward(recorded.loss);
    }

    std::pair<double, double> used(int count)
    {
        const auto recorded = record(count);
        const auto forward = static_cast<double>(tape_.memory().used());
        tape_.backward(recorded.loss);
        return {forward, static_cast<double>(tape_.memory().used())};
    }

    Attend attend_;
    cube values_, keys_;
    std::vector<matrix> queries_, words_;
    vector slope_;  // [B] ∂loss/∂context of every step, the same for all dimensions
    heed::lengths real_;
    heed::ad::tape<float> tape_;
    heed::tensor_view<const float, 3> values_gradient_, keys_gradient_;
};

/// A custom score: that of examples/own_policy.cpp, with U h_j computed once per batch.
///
///     e_j = -|W s - U h_j|²
template <class Matrix>
struct nearness {
    Matrix W, U;  // [Q,A], [D,A]
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};

    auto prepare(const heed::tensor auto& annotations) const { return heed::ops::linear(annotations, U); }
    auto project(const heed::tensor auto& query) const { return heed::ops::linear(query, W); }
    auto match(const heed::tensor auto& projected, const heed::tensor auto& keys) const  // [B,A], [B,T,A] -> [B,T]
    {
        using namespace heed;
        return ops::scale(ops::sum_last(ops::square(ops::subtract_per_position(keys, projected))), -1);
    }
    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        return match(project(query), keys);
    }

    static auto parameters(auto& self, auto&& visit) { return bench::nearness{visit("W", self.W), visit("U", self.U)}; }
};
template <class Matrix>
nearness(Matrix, Matrix) -> nearness<Matrix>;

/// Keys are already prepared in these programs, so U is never used: one row is enough.
inline matrix no_keys_weight() { return matrix(heed::shape_of_rank<2>{1, 1}); }

inline auto additive_of(const attention_size& z)
{
    return heed::score::additive{random_weight(z.query, z.alignment, 4), no_keys_weight(),
                                 random_vector(z.alignment, 5)};
}

/// The parameters that wrapping scores add, at the papers' sizes. The caller sets the number of coverage dimensions.
inline auto with_coverage_of(const attention_size& z, long dimensions)
{
    return heed::score::with_coverage{additive_of(z), random_weight(dimensions, z.alignment, 11),
                                      heed::nn::coverage_gru{random_weight(z.query, 3 * dimensions, 12),
                                                             random_vector(3 * dimensions, 13),
                                                             random_weight(dimensions, 3 * dimensions, 14)}};
}
inline auto with_fertility_of(const attention_size& z)
{
    return heed::score::with_fertility{additive_of(z), random_vector(z.alignment, 16), random_vector(z.value, 17)};
}
inline auto with_location_of(const attention_size& z)
{
    constexpr long filters = 10, width = 11;
    return heed::score::with_location{additive_of(z), random_weight(filters, width, 18),
                                      random_weight(filters, z.alignment, 19)};
}
inline auto per_dimension_of(const attention_size& z)
{
    return heed::score::additive_per_dimension{random_weight(z.query, z.alignment, 4), no_keys_weight(),
                                               random_weight(z.alignment, z.value, 7)};
}

}  // namespace bench
