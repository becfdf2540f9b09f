// SPDX-License-Identifier: BSD-3-Clause
//
// kit: heed's tools without heed's models: subwords, a search over a custom model, metrics, word links, and an HTML
// page. docs/how_to/kit.md quotes it.
//
// test:

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/io/atomic_file.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/own_model.hpp>
#include <heed_kit/metrics/alignment_error.hpp>
#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/metrics/bootstrap.hpp>
#include <heed_kit/metrics/chrf.hpp>
#include <heed_kit/metrics/symmetrize.hpp>
#include <heed_kit/metrics/ter.hpp>
#include <heed_kit/metrics/tokenize_13a.hpp>
#include <heed_kit/text/bpe.hpp>
#include <heed_kit/text/learn_bpe.hpp>
#include <heed_kit/text/vocabulary.hpp>
#include <heed_kit/view/page.hpp>

using namespace heed;
using text::sentence;

namespace {

// A corpus is a vector of sentences, a sentence a vector of words. From files: text::read_corpus("train.en").
std::vector<sentence> corpus()
{
    std::vector<sentence> lines;
    for (const char* line : {"the low house is lower than the lowest tree", "the new house is newer than the old house",
                             "the widest tree is wider than the new house", "the newest house is the lowest house"})
        lines.push_back(text::split(line));
    return lines;
}

// section: model
/// A bigram model by counting: a minimal model.
class bigrams {
public:
    bigrams(const std::vector<std::vector<text::word_id>>& corpus, std::size_t words) : words_(words)
    {
        for (const auto& line : corpus) {
            auto before = text::vocabulary::bos;
            for (const auto word : line) ++after_[std::exchange(before, word)][word];
            ++after_[before][text::vocabulary::eos];
        }
    }

    // The interface of a search. A row is a hypothesis.
    std::size_t vocabulary() const { return words_; }
    void step(std::span<const std::uint32_t> previous, std::span<float> scores)  // [rows] -> [rows, vocabulary]
    {
        std::fill(scores.begin(), scores.end(), -INFINITY);
        for (std::size_t row = 0; row < previous.size(); ++row) {
            for (const auto& [word, times] : after_[previous[row]])
                scores[row * words_ + word] = std::log(static_cast<float>(times));
        }
    }
    void select(std::span<const std::size_t>) {}  // row i continues rows[i]: this model has no state

private:
    std::size_t words_;
    std::map<text::word_id, std::map<text::word_id, int>> after_;
};
// end

void words_in_pieces()
{
    // section: pieces
    text::word_counts counts;
    text::count_words(counts, corpus());
    const text::bpe_codes codes = text::learn_bpe(counts, 24);  // codes.to_text(): a file that subword-nmt can read
    text::bpe pieces(codes);
    const std::vector<sentence> cut = pieces.apply(corpus());  // "lower" -> "lo@@ wer"
    const sentence whole = text::undo_bpe(cut[0]);             // and back
    // end
    std::printf("%s\n%s\n\n", text::join(cut[0]).c_str(), text::join(whole).c_str());
}

void search()
{
    // section: search
    const auto words = text::vocabulary::build(corpus());
    std::vector<std::vector<text::word_id>> ids;
    for (const sentence& line : corpus()) ids.push_back(words.encode(line));
    bigrams model(ids, words.size());

    seq2seq::decoding_by<float, bigrams> at_work(model, 1);  // one sentence
    seq2seq::beam_options how;
    how.width = 12;
    how.best = 3;
    how.no_repeat = 2;      // no repeated bigrams
    how.at_most = {0, 10};  // words
    const auto found = seq2seq::beam<float>(at_work, lengths{1}, how);
    for (const auto& each : found[0])
        std::printf("%6.3f  %s\n", each.score, text::join(words.decode(each.words)).c_str());
    // end
    std::printf("\n");
}

void metrics_of_text()
{
    // section: metrics
    const std::vector<std::string> reference{"The cat sat on the mat.", "It was raining, wasn't it?"};
    const std::vector<std::string> ours{"The cat sat on a mat.", "It was raining, was it not?"};
    const std::vector<std::string> theirs{"A cat on mat sat.", "It rained."};
    const auto tokens = [](const std::vector<std::string>& lines) {
        std::vector<sentence> all;
        for (const std::string& line : lines) all.push_back(metrics::tokenize_13a(line));  // as sacrebleu does
        return all;
    };
    const auto bleu = metrics::bleu(tokens(ours), tokens(reference), metrics::smoothing::exponential);
    std::printf("%s\n", bleu.text().c_str());
    std::printf("TER %.2f, chrF %.2f\n", metrics::ter(tokens(ours), tokens(reference)), metrics::chrf(ours, reference));

    // Tests whether the difference is significant. Works for any metric that sums over sentences.
    const auto of = [&](const auto& system) { return metrics::ter_statistics(tokens(system), tokens(reference)); };
    const auto p = metrics::paired_bootstrap(of(ours), of(theirs), [](const auto& sum) { return metrics::ter(sum); });
    std::printf("the other's TER is %.2f, p = %.3f\n", p.second.score, p.p_value);
    // end
    std::printf("\n");
}

void links_of_words()
{
    // section: links
    const auto forward = metrics::parse_links("0-0 1-1 2-2 3-2"), reverse = metrics::parse_links("0-0 1-1 2-3 3-2");
    const auto both = metrics::symmetrize(forward, reverse, metrics::symmetrization::grow_diag);
    metrics::alignment_score score;
    score.add(both, metrics::parse_gold("0-0 1-1 3-2 2p3"));  // i-j sure, ipj possible
    std::printf("%s: AER %.3f\n", metrics::pharaoh(both).c_str(), score.aer());
    // end
}

void picture()
{
    // section: page
    view::page page{.title = "Where they looked", .systems = {"ours", "theirs"}};
    page.sentences.push_back({
        .source = {"the", "red", "house"},
        .reference = {"la", "maison", "rouge"},
        .gold = metrics::parse_gold("0-0 2-1 1-2"),
        .translations = {{.words = {"la", "maison", "rouge"}, .weights = {.9F, 0, .1F, 0, .1F, .9F, .1F, .8F, .1F}},
                         {.words = {"une", "maison"}, .weights = {.5F, .3F, .2F, 0, 0, 1}, .note = "log p -3.2"}},
    });
    io::write_file("kit.html", view::html(page));  // one file; open it in a browser
    // end
}

}  // namespace

int main()
{
    words_in_pieces();
    search();
    metrics_of_text();
    links_of_words();
    picture();
}
