// SPDX-License-Identifier: BSD-3-Clause
// test, optimized:

// # 10. Real text
//
// The last step translates real sentences, with heed's ready-made parts. Give it two files in which line n of one
// translates line n of the other; 40,000 lines take some minutes. Without files, it makes up its own sentences.
//
//     step course_10 train.en train.de
//
// [Multi30k](https://github.com/multi30k/dataset) has such files; BLEU is about 31. A file from
// [Tatoeba](https://www.manythings.org/anki/) must be shuffled, since its short sentences come first, and split:
//
//     shuf deu.txt > all.txt; cut -f1 all.txt > train.en; cut -f2 all.txt > train.de

#include <string>

#include <heed/ad/ad.hpp>
#include <heed/core/parallel.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/systems/bahdanau2015.hpp>
#include <heed/train/adam.hpp>
#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/metrics/tokenize_13a.hpp>
#include <heed_kit/text/bpe.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/text/learn_bpe.hpp>
#include <heed_kit/text/vocabulary.hpp>

#include "course.hpp"
#include "picture.hpp"

using namespace heed;
using lines = std::vector<text::sentence>;  // a sentence is a vector of words
using ids = std::vector<seq2seq::id_sentence>;

// ## Sentences
//
// In raw text, punctuation is attached to words: `Tom left.` To a program these are two words, `Tom` and `left.`; after
// `tokenize_13a` they are three. `read_parallel` reports errors in a file, with the line.

void read(const std::vector<std::string>& files, lines& english, lines& german)
{
    const auto both = text::read_parallel(files[0], files[1]);
    for (std::size_t i = 0; i < std::min<std::size_t>(both.size(), 40000); ++i) {
        english.push_back(metrics::tokenize_13a(text::join(both.source[i])));
        german.push_back(metrics::tokenize_13a(text::join(both.target[i])));
    }
}

// Our own sentences are short, and hard in three ways. `the` is der, die, das or den, depending on the noun and its
// role. The adjective changes with it. And after `heute` the verb comes first: `heute sieht der alte Hund die Kuh`.

void make_up(std::size_t count, lines& english, lines& german)
{
    using pair = std::pair<const char*, const char*>;
    const pair nouns[3][4] = {{{"dog", "Hund"}, {"man", "Mann"}, {"bird", "Vogel"}, {"tree", "Baum"}},
                              {{"cat", "Katze"}, {"cow", "Kuh"}, {"woman", "Frau"}, {"town", "Stadt"}},
                              {{"child", "Kind"}, {"horse", "Pferd"}, {"house", "Haus"}, {"sheep", "Schaf"}}};
    const pair adjectives[] = {{"old", "alt"}, {"small", "klein"}, {"friendly", "freundlich"}, {"fair", "schön"}};
    const pair verbs[] = {{"sees", "sieht"}, {"hears", "hört"}, {"finds", "findet"}, {"seeks", "sucht"}};
    const char* const articles[] = {"der ", "die ", "das "};
    random_source random{10};
    const auto pick = [&](const auto& from) { return from[below(std::size(from), random.next_stream(), 0)]; };
    for (std::size_t i = 0; i < count; ++i) {
        std::string en[2], de[2];  // subject and object
        for (const int role : {0, 1}) {
            const std::size_t gender = below(3, random.next_stream(), 0);
            const bool den = role == 1 && gender == 0;
            const auto [noun, wort] = pick(nouns[gender]);
            const auto [adjective, stem] = pick(adjectives);
            en[role] = std::string("the ") + adjective + " " + noun;
            de[role] = (den ? "den " : articles[gender]) + std::string(stem) + (den ? "en " : "e ") + wort;
        }
        const auto [sees, sieht] = pick(verbs);
        const bool today = below(2, random.next_stream(), 0) == 0;
        const std::string begin = today ? std::string("heute ") + sieht + " " + de[0] : de[0] + " " + sieht;
        english.push_back(metrics::tokenize_13a((today ? "today " : "") + en[0] + " " + sees + " " + en[1] + "."));
        german.push_back(metrics::tokenize_13a(begin + " " + de[1] + "."));
    }
}

// ## Subwords
//
// A list of all words never ends: names, numbers, `freundlichen`. **Byte-pair encoding** (Sennrich et al. 2016) starts
// from letters. Again and again, it merges the two neighboring symbols that occur most often. A frequent word becomes
// one subword, a rare one several: `freundlich@@ en`. `@@` means that the word continues.

struct language {
    text::bpe pieces;
    text::vocabulary words;

    language(const lines& all, std::size_t merges)
        : pieces(codes(all, merges)), words(text::vocabulary::build(pieces.apply(all)))
    {}
    static text::bpe_codes codes(const lines& all, std::size_t merges)
    {
        text::word_counts counts;
        text::count_words(counts, all);
        return text::learn_bpe(counts, merges);
    }
    ids encode(const lines& all)
    {
        ids encoded;
        for (const text::sentence& line : all) encoded.push_back(words.encode(pieces.apply(line)));
        return encoded;
    }
};

// ## The training
//
// The model is that of step 7 with all the parts of Bahdanau et al. 2015, who call it RNNsearch. Two things are new. An
// **epoch** is one pass over all sentences; a batch has sentences of similar length, so there is little padding.
// **Dropout** sets a random share of the numbers to 0, so that the model cannot learn the text by heart.

std::vector<const seq2seq::id_sentence*> chosen(const ids& all, const std::vector<std::size_t>& which)
{
    std::vector<const seq2seq::id_sentence*> some;
    for (const std::size_t i : which) some.push_back(&all[i]);
    return some;
}

void learn(auto& model, const ids& sources, const ids& targets, int epochs, double rate, double dropout)
{
    ad::tape<float> tape;
    train::adam<float> adam({.rate = rate});
    random_source random{10};
    for (int epoch = 1; epoch <= epochs; ++epoch) {
        double total = 0, words = 0;
        for (const auto& which : seq2seq::shuffled_batches(sources, targets, 32, random.next_stream())) {
            const auto batch = seq2seq::make_training_batch<float>(chosen(sources, which), chosen(targets, which));
            tape.clear();
            const auto taped = ad::lift(tape, model);
            const auto loss = taped.loss(batch, 0.0f, nn::dropout{dropout, &random});
            tape.backward(ops::scale(loss, 1.0 / double(batch.target_words)));
            adam.step(model, taped, tape, 1.0);
            total += double(*loss.data());
            words += double(batch.target_words);
        }
        std::printf("epoch %d  loss %.3f\n", epoch, total / words);
    }
}

// ## The search
//
// Greedy search never takes back a word. **Beam search** continues the best beginnings, here five, and keeps the best
// five of all results. The last lines of the text were held back; BLEU tells how well they are translated.

int main(int argc, char** argv)
try {
    const std::vector<std::string> files = course::pictures_to(argc, argv, "[train.en train.de]");
    const bool real = !files.empty();
    if (real && files.size() != 2)
        course::refuse("give two files in which line n of one translates line n of the other, or no files");
    lines english, german;
    if (real) {
        read(files, english, german);
        set_threads(0);  // all processors
    } else {
        make_up(3000, english, german);
    }
    const auto held = std::min<std::ptrdiff_t>(real ? 500 : 100, std::ssize(english) / 2);
    const lines test(english.end() - held, english.end()), right(german.end() - held, german.end());
    english.erase(english.end() - held, english.end());
    german.erase(german.end() - held, german.end());
    const std::size_t merges = real ? 4000 : 80;
    language source(english, merges), target(german, merges);
    const std::size_t size = real ? 128 : 48;
    seq2seq::sizes n{.embedding = size, .hidden = size, .alignment = size};
    n.source_vocabulary = source.words.size(), n.target_vocabulary = target.words.size();
    auto model = papers::bahdanau2015::translator<float>(10, n);
    learn(model, source.encode(english), target.encode(german), real ? 6 : 3, real ? 0.002 : 0.005, real ? 0.2 : 0.1);
    const ids inputs = source.encode(test);
    lines made;
    for (std::size_t i = 0; i < test.size(); ++i) {
        const auto batch = seq2seq::make_source(chosen(inputs, {i}));
        const auto found = seq2seq::beam<float>(model, batch, {.width = 5, .with_weights = true})[0][0];
        const text::sentence pieces = target.words.decode(found.words);
        made.push_back(text::undo_bpe(pieces));
        if (i >= 2) continue;
        std::printf("\n%s\n%s\n(right: %s)\n", text::join(test[i]).c_str(), text::join(made[i]).c_str(),
                    text::join(right[i]).c_str());
        std::vector<float> weights;
        for (std::size_t s = 0; s < pieces.size(); ++s)
            weights.insert(weights.end(), found.weights[s].begin(), found.weights[s].end() - 1);
        course::picture("10_alignment_" + std::to_string(i), weights, source.pieces.apply(test[i]), pieces);
    }
    const double bleu = metrics::bleu(made, right).score;
    std::printf("BLEU %.1f\n", bleu);
    if (!real) course::holds("BLEU is at least 80", bleu >= 80);
} catch (const std::exception& problem) {  // such as a file that cannot be read
    course::refuse(problem.what());
}

// Look at the German articles: the model looks beyond `the`, at the noun, which determines the article.
//
// ## Exercises
//
// Write your answers into `exercises/10.hpp`; `exercise_10` grades them.
// - **a.** Find the first merge: the two neighboring symbols that occur most often.
// - **b.** Write a beam search on a table of probabilities.
