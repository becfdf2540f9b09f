// SPDX-License-Identifier: BSD-3-Clause
//
// Writes parallel text of any size, for measurements of how time and memory grow with it (docs/results/scale.md):
//
//     synthetic_corpus LINES SEED SOURCE TARGET [WORDS]
//
// Line n of both files depends only on SEED, WORDS and n, so that a shorter text is a prefix of a longer one. The
// frequency of word k of WORDS (100,000) is proportional to 1 / (k + 2.7) (Zipf and Mandelbrot). Lengths follow a
// log-normal distribution, 18 words on average and at most 120. The translation can be learned: each word is spelled
// differently, and an odd word is swapped with the next word.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/io/atomic_file.hpp>

namespace {

/// Draws k in proportion to 1 / (k + 2.7), by Walker's alias table.
class zipf {
public:
    explicit zipf(std::size_t words) : share_(words), other_(words)
    {
        double sum = 0;
        for (std::size_t k = 0; k < words; ++k) sum += share_[k] = 1 / (static_cast<double>(k) + 2.7);
        std::vector<std::size_t> small, large;
        for (std::size_t k = 0; k < words; ++k) {
            share_[k] *= static_cast<double>(words) / sum;
            (share_[k] < 1 ? small : large).push_back(k);
        }
        while (!small.empty() && !large.empty()) {
            const std::size_t low = small.back(), high = large.back();
            small.pop_back();
            other_[low] = high;
            share_[high] -= 1 - share_[low];
            if (share_[high] >= 1) continue;
            large.pop_back();
            small.push_back(high);
        }
        for (const auto& rest : {small, large}) {
            for (const std::size_t k : rest) share_[k] = 1;
        }
    }

    std::size_t operator()(double uniform) const
    {
        const double place = uniform * static_cast<double>(share_.size());
        const auto k = static_cast<std::size_t>(place);
        return place - static_cast<double>(k) < share_[k] ? k : other_[k];
    }

private:
    std::vector<double> share_;
    std::vector<std::size_t> other_;
};

/// Word k, spelled in syllables of these letters; frequent words are short.
std::string spelling(std::size_t k, const char* consonants, const char* vowels)
{
    std::string word;
    do {
        word += consonants[k % 12];
        word += vowels[k / 12 % 5];
        k /= 60;
    } while (k-- > 0);
    return word;
}

/// A file, replaced as a whole by close().
class output {
public:
    explicit output(const char* path) : file_(path) {}
    void write(const std::string& text)
    {
        waiting_ += text;
        if (waiting_.size() >= (std::size_t{1} << 20)) flush();
    }
    void close()
    {
        flush();
        file_.commit();
    }

private:
    void flush()
    {
        file_.write(waiting_);
        waiting_.clear();
    }

    heed::io::atomic_file file_;
    std::string waiting_;
};

}  // namespace

int main(int argc, char** argv)
{
    if (argc != 5 && argc != 6) {
        std::fputs("synthetic_corpus LINES SEED SOURCE TARGET [WORDS]\n", stderr);
        return 1;
    }
    try {
        const std::size_t lines = std::stoull(argv[1]), words = argc == 6 ? std::stoull(argv[5]) : 100'000;
        const std::uint64_t seed = std::stoull(argv[2]);
        if (words == 0) throw std::runtime_error("WORDS must be at least 1");
        const zipf draw(words);
        std::array<std::vector<std::string>, 2> spelled;
        for (std::size_t k = 0; k < words; ++k) {
            spelled[0].push_back(spelling(k, "bdfgklmnprst", "aeiou"));
            spelled[1].push_back(spelling((k + 7) % words, "hjvwzcqxlmrs", "aeiou"));
        }
        output source(argv[3]), target(argv[4]);
        std::vector<std::size_t> line;
        std::string text;
        for (std::size_t n = 0; n < lines; ++n) {
            const std::uint64_t stream = heed::mix(seed ^ heed::mix(n));
            const double length = std::exp(2.72 + 0.6 * heed::normal(stream, std::uint64_t{1} << 32));
            line.resize(static_cast<std::size_t>(std::min(120.0, std::max(1.0, length))));
            for (std::size_t i = 0; i < line.size(); ++i) line[i] = draw(heed::uniform(stream, i));
            const auto put = [&](output& to, const std::vector<std::string>& as) {
                text.clear();
                for (const std::size_t word : line) text.append(as[word]).append(1, ' ');
                text.back() = '\n';
                to.write(text);
            };
            put(source, spelled[0]);
            for (std::size_t i = 0; i + 1 < line.size(); ++i) {
                if (line[i] % 2 == 1) {
                    std::swap(line[i], line[i + 1]);
                    ++i;
                }
            }
            put(target, spelled[1]);
        }
        source.close();
        target.close();
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "synthetic_corpus: %s\n", problem.what());
        return 1;
    }
}
