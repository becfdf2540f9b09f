// SPDX-License-Identifier: BSD-3-Clause
//
// own_policy: a custom score, from its equation to a trained model.
//
// The task: read a word backward. At step s of a word of n letters, the model must attend to position n - 1 - s. It
// learns this from pairs of words and reversed words. Then it reads words longer than those in training.
//
// test:

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <heed/nn/init.hpp>
#include <heed/train/adam.hpp>
#include <heed/verify.hpp>
#include <heed_kit/view/shades.hpp>

using namespace heed;

// 1. The policy.

namespace mine {

/// The distance of query and annotation in a common space.
///
///     e_j = -|W s - U h_j|²
///
/// Written with heed's operations, for a whole batch at once: from keys h [B,T,D] and query s [B,Q] to scores [B,T].
/// The same code runs on plain arrays and, in training, on variables of a tape. (U h_j does not depend on the query: a
/// member `prepare`, as score::additive has, would compute it once per batch instead of once per step.)
// section: score
template <class Matrix>
struct nearness {
    Matrix W, U;  // [Q,A], [D,A]
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& s, const tensor auto& h) const
    {
        return ops::scale(ops::sum_last(ops::square(ops::subtract_per_position(ops::linear(h, U), ops::linear(s, W)))),
                          -1);
    }
    static auto parameters(auto& self, auto&& visit) { return mine::nearness{visit("W", self.W), visit("U", self.U)}; }
};
template <class Matrix>
nearness(Matrix, Matrix) -> nearness<Matrix>;  // clang before 17 cannot deduce this itself
// end

}  // namespace mine

namespace {

// 2. The data: annotations and queries.

constexpr std::size_t letters = 26, place = letters, annotation_size = letters + 1, query_size = 3;

/// A batch of words. An annotation is a letter, one of 26, and its position; a query is the step, the length of the
/// word, and a 1.
struct batch {
    array<float, 3> annotations;  // [B,T,27]
    array<float, 3> queries;      // [B,S,3]
    array<float, 3> expected;     // [B,S,27]: the letter to attend to
    array<float, 3> counts;       // [B,S,27]: 1 for the features of `expected` that count, 0 for positions and padding
    lengths real;

    explicit batch(const std::vector<std::string>& words)
    {
        std::size_t longest = 0;
        for (const std::string& word : words) longest = std::max(longest, word.size());
        annotations = filled<float, 3>({words.size(), longest, annotation_size}, 0.0f);
        queries = filled<float, 3>({words.size(), longest, query_size}, 0.0f);
        expected = counts = annotations;
        std::vector<std::size_t> sizes;
        for (std::size_t b = 0; b < words.size(); ++b) {
            const std::size_t n = words[b].size();
            sizes.push_back(n);
            for (std::size_t j = 0; j < n; ++j) {
                const auto letter_at = [&](std::size_t i) { return static_cast<std::size_t>(words[b][i] - 'a'); };
                annotations(b, j, letter_at(j)) = 1;
                annotations(b, j, place) = static_cast<float>(j);
                queries(b, j, 0) = static_cast<float>(j);
                queries(b, j, 1) = static_cast<float>(n);
                queries(b, j, 2) = 1;
                expected(b, j, letter_at(n - 1 - j)) = 1;
                for (std::size_t k = 0; k < letters; ++k) counts(b, j, k) = 1.0f / static_cast<float>(words.size());
            }
        }
        real = lengths(sizes);
    }
};

// 3. Inference: reads a word backward and shows the weights.

std::string read_backwards(const auto& attend, const std::string& word, bool show)
{
    const batch one({word});
    const auto memory = attend.on(one.annotations, one.real);
    auto state = attend.start(memory);
    std::vector<float> picture;  // [S,T]
    std::vector<std::string> source, target;
    std::string result;
    for (std::size_t s = 0; s < word.size(); ++s) {
        const auto [context, weights, next] = attend.step(memory, ops::step_of(one.queries, s), state);
        state = next;
        const float* letter = context.data();
        result += static_cast<char>('a' + (std::max_element(letter, letter + letters) - letter));
        picture.insert(picture.end(), weights.begin(), weights.end());
        source.push_back(word.substr(s, 1));
        target.push_back(result.substr(s, 1));
    }
    if (show) std::puts(view::shades({picture, source, target, {}, {}}).c_str());
    return result;
}

}  // namespace

int main()
{
    random_source random{1};
    attention attend{mine::nearness{nn::gaussian<float>(random, query_size, 2, 0.1),
                                    nn::gaussian<float>(random, annotation_size, 2, 0.3)},
                     normalize::softmax{}, combine::weighted_sum{}};

    std::puts("Before training:\n");
    read_backwards(attend, "forward", true);

    // 4. Training: words of two to eight letters, with all steps together.
    const batch words({"ox",      "ant",      "bee",      "cat",     "dog",    "elk",     "fox",     "gnu",
                       "hen",     "kiwi",     "lion",     "mole",    "newt",   "oryx",    "puma",    "quail",
                       "robin",   "snake",    "tiger",    "vixen",   "whale",  "badger",  "donkey",  "ferret",
                       "iguana",  "jackal",   "monkey",   "rabbit",  "turtle", "cheetah", "giraffe", "hamster",
                       "leopard", "elephant", "kangaroo", "squirrel"});
    ad::tape<float> tape;
    train::adam<float> optimizer({.rate = 0.03});
    const int epochs = 600;
    for (int epoch = 1; epoch <= epochs; ++epoch) {
        tape.clear();
        const auto lifted = ad::lift(tape, attend);  // the same mechanism, with variables that refer to its weights
        const auto contexts = lifted(lifted.on(words.annotations, words.real), words.queries);  // all steps together
        const auto loss = ops::dot(ops::square(ops::subtract(contexts, words.expected)), words.counts);
        tape.backward(loss);
        optimizer.step(attend, lifted, tape);
        if (epoch == 1 || epoch % 100 == 0) std::printf("epoch %3d  loss %.4f\n", epoch, double(*loss.data()));
    }

    std::puts("\nAfter training:\n");
    bool right = read_backwards(attend, "forward", true) == "drawrof";
    for (const std::string word : {"attention", "chrysanthemum"}) {  // longer than all training words
        const std::string result = read_backwards(attend, word, false);
        std::printf("%s -> %s\n", word.c_str(), result.c_str());
        right = right && result == std::string(word.rbegin(), word.rend());
    }

    // 5. Checks the contracts of policies: gradients by finite differences, empty sentences, padding, a sentence alone
    // and in a batch, large scores, wrong shapes and more, in double, in several sizes, and with another normalizer,
    // since a score must work with all normalizers.
    const mine::nearness score{nn::gaussian<double>(random, 3, 4, 1.0), nn::gaussian<double>(random, 5, 4, 1.0)};
    const verification report =
        verify(attention{score, normalize::temporal{}, combine::weighted_sum{}}, {.query = 3, .width = 5});
    std::printf("\n%s", report.text().c_str());
    return right && report ? 0 : 1;
}
