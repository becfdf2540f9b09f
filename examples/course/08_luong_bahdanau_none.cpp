// SPDX-License-Identifier: BSD-3-Clause
// test, exhaustive:

// # 8. Luong, Bahdanau, none
//
// Is attention worth it, and which one? We compare three policies with the same translator, the same data and the same
// training. The translator is that of step 7: its file is included unchanged, and its `main` is renamed.

#define main step_7
#include "07_translator.cpp"
#undef main

#include <heed_kit/metrics/by_length.hpp>

// ## The policies
//
// **Bahdanau** et al. 2015 use the additive score, a small network: vᵀ tanh(W s + U h_j). **Luong** et al. 2015 replace
// the network by one matrix, which is cheaper: sᵀ W h_j, their `general` score. (They also moved attention to another
// point of the decoder's step. Here only the score differs, so that we know the cause of a difference.)
//
// **None** is the design before attention: Cho et al. and Sutskever et al. 2014 gave the decoder one vector for the
// whole sentence, the state after its last word. We can write this as an attention that always looks at the last word.

struct last_word {
    auto operator()(const tensor auto& scores, const auto&, const auto& at) const  // [B,T] -> [B,T]
    {
        using T = element_of<decltype(scores)>;
        auto weights = filled<T, 2>({shape_of(scores)[0], shape_of(scores)[1]}, T(0));
        for (std::size_t b = 0; b < shape_of(scores)[0]; ++b) {
            if (at.real[b] > 0) weights(b, at.real[b] - 1) = 1;
        }
        return same_family(scores, std::move(weights));  // on the tape, if the scores are
    }
    static auto parameters(auto&, auto&&) { return last_word{}; }
};

// ## Data of every length
//
// The sentences are lists of numbers, `seven , four hundred one , twelve`: one to five numbers below a thousand, up to
// 24 words.

std::vector<numbers::pair> draw_lists(std::uint64_t stream, std::size_t count)
{
    std::vector<numbers::pair> lists(count);
    std::uint64_t i = 0;
    for (numbers::pair& list : lists) {
        const std::size_t size = 1 + below(5, stream, i++);
        for (std::size_t k = 0; k < size; ++k) {
            const numbers::pair one = numbers::say(static_cast<std::uint32_t>(below(1000, stream, i++)));
            if (k > 0) list.english.push_back(","), list.german.push_back(",");
            list.english.insert(list.english.end(), one.english.begin(), one.english.end());
            list.german.insert(list.german.end(), one.german.begin(), one.german.end());
        }
    }
    return lists;
}

// ## The score
//
// **BLEU** compares translations with right ones: it computes the share of words, and of runs of two, three and four
// words, that occur in the right one. The score is the geometric mean of the four shares, times 100, with a penalty for
// translations that are too short. 100 is perfect. We compute it separately for sentences of similar length.

std::vector<metrics::length_bucket> quality(auto attend, const std::vector<numbers::pair>& train,
                                            const std::vector<numbers::pair>& test)
{
    vocabulary english, german;
    const auto model = learn(attend, train, english, german, 500);
    std::vector<text::sentence> made, right;
    std::vector<std::size_t> words;
    for (const numbers::pair& pair : test) {
        made.push_back(translate(model, pair, english, german).first);
        right.push_back(pair.german);
        words.push_back(pair.english.size());
    }
    return metrics::bleu_by_length(metrics::bleu_statistics(made, std::span(&right, 1)), words,
                                   std::vector<std::size_t>{4, 8, 12, 16});
}

int main(int argc, char** argv)
{
    course::pictures_to(argc, argv);
    const auto train = draw_lists(1, 20000), test = draw_lists(2, 400);
    random_source random{8};
    const auto matrix = [&](std::size_t rows, std::size_t columns) { return nn::glorot<float>(random, rows, columns); };
    const score::additive additive{matrix(H, H), matrix(2 * H, H), nn::small_vector<float>(random, H)};
    const score::general general{matrix(H, 2 * H)};
    std::printf("Bahdanau\n");
    const auto bahdanau = quality(attention{additive, normalize::softmax{}, combine::weighted_sum{}}, train, test);
    std::printf("Luong\n");
    const auto luong = quality(attention{general, normalize::softmax{}, combine::weighted_sum{}}, train, test);
    std::printf("none\n");
    const auto none = quality(attention{general, last_word{}, combine::weighted_sum{}}, train, test);

    std::printf("\nBLEU             Bahdanau   Luong    none\n");
    double least = 100;
    for (std::size_t i = 0; i < none.size(); ++i) {
        const auto of = [&](const auto& buckets) { return buckets[i].bleu().score; };
        std::printf("%5s words %13.1f %7.1f %7.1f\n", none[i].text().c_str(), of(bahdanau), of(luong), of(none));
        least = std::min({least, of(bahdanau), of(luong)});
    }
    course::holds("with attention, above 90 for every length", least > 90);
    course::holds("without, below 60 for the longest sentences", none.back().bleu().score < 60);
}

// ## The table
//
// On short sentences all three are good. Without attention, the score falls with every row: more words have to pass
// through the same 64 numbers. With attention it stays high. That was the point of Bahdanau et al. (figure 2 of their
// paper), and it is why every translator since then has attention. The two scores are about equal here; `general` has
// no hidden layer, so it does less work for each pair of words.
//
// Does a larger H help the translator without attention? Do more training steps? Change them in step 7 and here, and
// see.
//
// ## Exercises
//
// Write your answers into `exercises/08.hpp`; `exercise_08` grades them.
//
// - **a.** Compute the core of BLEU: how many words of a translation are right.
// - **b.** Write another "none": a score that knows nothing, so that the softmax gives every word the same weight.
