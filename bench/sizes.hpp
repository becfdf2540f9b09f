// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// The workloads of bench/: their sizes and names.
///
/// Every executable registers its benchmarks under these names; the table joins on them. Examples:
///
///     <work>/<pass>/<Q>-<D>-<A>/B<batch>/T<positions>      additive/forward/256-512-256/B12/T50
///     training/step                                        the whole training step
///
/// The pass `products` is the floor: only the matrix products of that workload. A variant of a workload has the
/// variant's name after a `#`.
namespace bench {

struct attention_size {
    long query;      // Q
    long value;      // D
    long alignment;  // A
    long batch;      // B
    long positions;  // T

    [[nodiscard]] long rows() const { return batch * positions; }
    [[nodiscard]] bool operator==(const attention_size&) const = default;
};

inline std::vector<attention_size> attention_sizes()
{
    std::vector<attention_size> sizes;
    for (const bool big : {false, true}) {
        for (const long batch : {1L, 12L, 80L}) {
            for (const long positions : {20L, 50L, 200L}) {
                sizes.push_back(big ? attention_size{1000, 2000, 1000, batch, positions}
                                    : attention_size{256, 512, 256, batch, positions});
            }
        }
    }
    return sizes;
}

inline std::string name_of(std::string_view what, std::string_view pass, const attention_size& size)
{
    return std::string{what} + "/" + std::string{pass} + "/" + std::to_string(size.query) + "-" +
           std::to_string(size.value) + "-" + std::to_string(size.alignment) + "/B" + std::to_string(size.batch) +
           "/T" + std::to_string(size.positions);
}

/// RNNsearch as trained here: bidirectional GRU, additive attention with the previous state, GRU on [E y; c], maxout.
struct training_size {
    long batch = 64;
    long source_length = 15;
    long target_length = 15;
    long embedding = 256;
    long hidden = 256;  // per direction of the encoder, and of the decoder
    long alignment = 256;
    long maxout = 256;       // outputs; each is the maximum of two pre-activations
    long vocabulary = 8000;  // both sides

    [[nodiscard]] long annotation() const { return 2 * hidden; }
    [[nodiscard]] long source_words() const { return batch * source_length; }
    [[nodiscard]] long target_words() const { return batch * target_length; }
};

inline constexpr std::string_view training_step = "training/step";
inline constexpr std::string_view training_products = "training/products";

inline constexpr float clip_norm = 1.0F;
inline constexpr float learning_rate = 1e-3F;

/// Numbers uniform in [-scale, scale], identical on every machine and in every executable.
inline void fill(float* first, std::size_t count, unsigned seed, float scale)
{
    unsigned long long state = 0x9E3779B97F4A7C15ULL * (seed + 1ULL);
    for (std::size_t i = 0; i < count; ++i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        first[i] = scale * (static_cast<float>(state >> 40U) * (2.0F / 16777216.0F) - 1.0F);
    }
}

/// Word ids in [0, vocabulary), mostly small, as in text.
inline std::vector<long> words(std::size_t count, long vocabulary, unsigned seed)
{
    std::vector<float> uniform(count);
    fill(uniform.data(), count, seed, 1.0F);
    std::vector<long> result(count);
    for (std::size_t i = 0; i < count; ++i) {
        const float u = 0.5F * (uniform[i] + 1.0F);
        const long word = static_cast<long>(u * u * static_cast<float>(vocabulary));
        result[i] = word < vocabulary ? word : vocabulary - 1;
    }
    return result;
}

}  // namespace bench
