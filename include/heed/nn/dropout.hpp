// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/ops/operation.hpp>
#include <heed/simd/simd.hpp>

namespace heed::inline HEED_TARGET::ops {

/// The sentences of a tensor, if they are part of a larger batch: dropout then drops the same elements as it would in
/// the larger batch. `axis` is the batch axis: 0 in [B,...], 1 in [T,B,...]. By default, the tensor is a whole batch.
struct sentences_of_batch {
    const std::uint32_t* place = nullptr;  ///< [B] the index of each sentence in the larger batch
    std::size_t count = 0;                 ///< B
    std::size_t of = 0;                    ///< the number of sentences in the larger batch
    std::size_t axis = 0;

    /// A copy in memory owned by the tape.
    sentences_of_batch kept(auto& on) const
    {
        return {place == nullptr ? nullptr : on.keep(place, count), count, of, axis};
    }
};

/// y_i = m_i x_i, m_i 0 with probability `rate`, else 1 / (1 − rate): x [...] -> [...]. Srivastava et al. 2014.
///
///     ∂x_i += m_i ∂y_i
///
/// The stream and an element's position determine whether it is dropped. Dropout takes effect only on a tape, since
/// inference drops nothing. Throws heed::error if the rate is 1 or more.
struct dropout_op : operation<dropout_op> {
    template <tensor X>
    X operator()(const X& x, double rate, std::uint64_t stream, const sentences_of_batch& part = {}) const
    {
        if constexpr (family_of<X>::rank == family_rank::taped) {
            if (rate >= 1) throw error("dropout: the rate is " + std::to_string(rate) + " but must be below 1");
            if (rate > 0) return operation<dropout_op>::operator()(x, rate, stream, part);
        }
        return x;
    }

    static auto shape(const auto& x, double, std::uint64_t, const sentences_of_batch& part)
    {
        if (part.place != nullptr && (part.axis >= x.shape.size() || x.shape[part.axis] != part.count))
            throw error("dropout: axis " + std::to_string(part.axis) + " of " + shape_text(x.shape) +
                        " must be the batch axis, with " + std::to_string(part.count) + " of the larger batch's " +
                        counted(part.of, "sentence"));
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, double rate, std::uint64_t stream, const sentences_of_batch& part, out<T, R> y)
    {
        each_block<T>(x.shape, rate, stream, part, [=](std::size_t first, std::size_t n, const T* mask) {
            simd::transform(
                n, y.data + first, [](auto v, auto m) { return v * m; }, x.data + first, mask);
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, double rate, std::uint64_t stream, const sentences_of_batch& part, in<T, R>,
                         in<T, R> d_y, adjoint<T, R> d_x)
    {
        each_block<T>(x.shape, rate, stream, part, [=](std::size_t first, std::size_t n, const T* mask) {
            simd::transform(
                n, d_x.data + first, [](auto sum, auto m, auto d) { return sum + m * d; },
                static_cast<const T*>(d_x.data + first), mask, d_y.data + first);
        });
    }

private:
    /// Calls f(first element, count, the values m of these elements) for blocks that fit in the cache, in parallel.
    template <class T, std::size_t R, class F>
    static void each_block(const shape_of_rank<R>& shape, double rate, std::uint64_t stream,
                           const sentences_of_batch& part, F&& f)
    {
        const std::size_t n = tensor_view<const T, R>{nullptr, shape}.size();
        if (part.place == nullptr) {
            parallel_for(
                n, grain,
                [&](std::size_t begin, std::size_t end, std::size_t) {
                    each_block<T>(begin, begin, end - begin, rate, stream, f);
                },
                64);
            return;
        }
        // Rows of a sentence, or of a step of one, are contiguous in both batches.
        std::size_t width = 1;
        for (std::size_t i = part.axis + 1; i < R; ++i) width *= shape[i];
        if (n == 0) return;
        parallel_for(n / width, (grain + width - 1) / width, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t row = begin; row < end; ++row) {
                const std::size_t there = row / part.count * part.of + part.place[row % part.count];
                each_block<T>(row * width, there * width, width, rate, stream, f);
            }
        });
    }

    static constexpr std::size_t grain = std::size_t{1} << 15;

    /// As above, for n elements from `first` on, which are the elements from `there` on of the larger batch.
    template <class T>
    static void each_block(std::size_t first, std::size_t there, std::size_t n, double rate, std::uint64_t stream,
                           const auto& f)
    {
        constexpr std::size_t elements = 1024;
        // One 64-bit number decides four elements, 16 bits each: finer than any rate in use.
        const T factor = static_cast<T>(1 / (1 - rate));
        const auto bound = static_cast<std::int32_t>(rate * 65536.0 + 0.5);
        scratch here;
        T* const mask = here.take<T>(elements);
        auto* const bits = here.take<std::uint64_t>(elements / 4 + 1);
        auto* const parts = here.take<std::uint16_t>(elements + 4);
        for (std::size_t done = 0; done < n; done += elements) {
            const std::size_t begin = there + done, skipped = begin % 4;
            const std::size_t count = std::min(elements, n - done), numbers = (skipped + count + 3) / 4;
            // Separate loops, which compilers vectorize.
            for (std::size_t i = 0; i < numbers; ++i) bits[i] = mix(stream + begin / 4 + i);
            if constexpr (std::endian::native == std::endian::little) {
                std::memcpy(parts, bits, numbers * sizeof *bits);
            } else {
                for (std::size_t i = 0; i < 4 * numbers; ++i)
                    parts[i] = static_cast<std::uint16_t>(bits[i / 4] >> (16 * (i % 4)));
            }
            const std::uint16_t* const from = parts + skipped;
            for (std::size_t i = 0; i < count; ++i) mask[i] = static_cast<T>(from[i] >= bound) * factor;
            f(first + done, count, static_cast<const T*>(mask));
        }
    }
};
inline constexpr dropout_op dropout{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::nn {

/// The sentences of a larger batch that this process works on, while other processes work on the rest.
struct part_of_batch {
    std::vector<std::uint32_t> sentences;  ///< [B] indices in the larger batch
    std::size_t of = 0;                    ///< the number of sentences in the larger batch
};

/// Dropout with one rate and a new stream for each use. The default drops nothing, as for inference.
///
/// With a `part`, which must outlive the object, a batch that is split among processes trains like the whole batch.
struct dropout {
    double rate = 0;  // the probability that an element is dropped
    random_source* random = nullptr;
    const part_of_batch* part = nullptr;

    /// x [B,...] after dropout; x itself if it is not on a tape. `axis`: the batch axis of x, if it is not the first.
    template <tensor X>
    X operator()(const X& x, std::size_t axis = 0) const
    {
        if constexpr (plain_tensor<X>) {
            return x;
        } else {
            if (rate <= 0 || random == nullptr) return x;
            ops::sentences_of_batch some;
            if (part != nullptr) some = {part->sentences.data(), part->sentences.size(), part->of, axis};
            return ops::dropout(x, rate, random->next_stream(), some);
        }
    }

    /// x [T,B,...] after dropout.
    auto time_major(const tensor auto& x) const { return (*this)(x, 1); }
};

}  // namespace heed::inline HEED_TARGET::nn
