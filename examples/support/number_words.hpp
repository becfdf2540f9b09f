// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// English and German number words: a small parallel corpus with its exact word alignment
// =======================================================================================
//
//     seven   hundred   twenty   four
//       |        |          ╲     ╱
//       |        |           ╲   ╱
//       |        |            ╲ ╱
//       |        |            ╱ ╲
//     sieben  hundert     vier und zwanzig
//
// Two natural languages, about thirty words each, sentences of one to eleven words, and still many difficulties of
// translation: German says the ones before the tens ("four and twenty"), puts an "und" between them that has no English
// counterpart, and repeats words ("hundert" may occur twice, and only its position determines which "hundred" it is).
//
// The grammar, for n = 0 … 999,999. [x] is x in words, by this same table; a [0] after hundred or thousand is silent.
//
//     n               English                               German
//     0               zero                                  null
//     1 … 19          one, two, three, … nineteen           ein or eins, zwei, drei, … neunzehn
//     20, 30, … 90    twenty, thirty, … ninety              zwanzig, dreißig, … neunzig
//     other < 100     [tens] [ones]                         [ones] und [tens]
//     < 1000          [n div 100] hundred [n mod 100]       [n div 100] hundert [n mod 100]
//     < 1,000,000     [n div 1000] thousand [n mod 1000]    [n div 1000] tausend [n mod 1000]
//
// One is "eins" at the end of the number ("ein hundert eins") and "ein" elsewhere ("ein hundert", "ein und zwanzig",
// "ein tausend"). German compounds such as einhunderteins are written as separate words here.
//
// The alignment: every word is linked to its translation (hundred with hundert, four with vier); "und" is unlinked.

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace numbers {

inline constexpr std::uint32_t limit = 1'000'000;  ///< the first number not covered by the grammar

/// A number in both languages. A link is (position in english, position in german), from 0.
struct pair {
    std::uint32_t number = 0;
    std::vector<std::string> english, german;
    std::vector<std::pair<int, int>> links;
};

namespace detail {

// By number; the German list has 1 in the form used inside a number.
inline constexpr std::array<const char*, 20> english_ones{
    "zero", "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
    "ten",  "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
inline constexpr std::array<const char*, 20> german_ones{
    "null", "ein", "zwei",  "drei",     "vier",     "fünf",     "sechs",    "sieben",   "acht",     "neun",
    "zehn", "elf", "zwölf", "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};

// By tens.
inline constexpr std::array<const char*, 10> english_tens{"",      "",      "twenty",  "thirty", "forty",
                                                          "fifty", "sixty", "seventy", "eighty", "ninety"};
inline constexpr std::array<const char*, 10> german_tens{"",        "",        "zwanzig", "dreißig", "vierzig",
                                                         "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

/// For equal structures in both languages: adds one linked word to each.
inline void say_both(pair& result, const char* english, const char* german)
{
    result.links.emplace_back(static_cast<int>(result.english.size()), static_cast<int>(result.german.size()));
    result.english.emplace_back(english);
    result.german.emplace_back(german);
}

/// The table above. `last`: the number ends after n, so a 1 is "eins".
inline void say_words(pair& result, std::uint32_t n, bool last)
{
    if (n >= 1000) {
        say_words(result, n / 1000, false);
        say_both(result, "thousand", "tausend");
        if (n % 1000 != 0) say_words(result, n % 1000, last);
    } else if (n >= 100) {
        say_words(result, n / 100, false);
        say_both(result, "hundred", "hundert");
        if (n % 100 != 0) say_words(result, n % 100, last);
    } else if (n == 1 && last) {
        say_both(result, "one", "eins");
    } else if (n < 20) {
        say_both(result, english_ones[n], german_ones[n]);
    } else if (n % 10 == 0) {
        say_both(result, english_tens[n / 10], german_tens[n / 10]);
    } else {
        // twenty four -> vier und zwanzig: crossed links, and "und" is unlinked
        const int i = static_cast<int>(result.english.size()), j = static_cast<int>(result.german.size());
        result.english.insert(result.english.end(), {english_tens[n / 10], english_ones[n % 10]});
        result.german.insert(result.german.end(), {german_ones[n % 10], "und", german_tens[n / 10]});
        result.links.insert(result.links.end(), {{i, j + 2}, {i + 1, j}});
    }
}

/// Sebastiano Vigna's splitmix64. Not from <random>: its distributions differ between libraries, and a seed must
/// produce the same corpus everywhere.
struct generator {
    std::uint64_t state;

    std::uint64_t operator()()
    {
        std::uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return z ^ z >> 31;
    }

    /// 0 … bound - 1. The modulo bias toward small values is less than one part in 2^44, which is negligible here.
    std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>((*this)() % bound); }
};

}  // namespace detail

/// The number in both languages. Throws std::out_of_range for numbers from `limit` on.
inline pair say(std::uint32_t number)
{
    if (number >= limit) throw std::out_of_range("numbers::say: only 0 to 999999 are supported");
    pair result;
    result.number = number;
    detail::say_words(result, number, true);
    return result;
}

/// Three disjoint sets of numbers.
struct split {
    std::vector<pair> train, valid, test;
};

/// Draws three disjoint sets, deterministic in the arguments.
///
/// Each draw first picks the number of digits, 1 to 6, uniformly: otherwise, nine of ten numbers would have six digits.
/// Short numbers are few and run out: valid and test may each take an eighth of a length, and when a length is used up,
/// the others replace it. Zero is always in training (if that is not empty): no other number contains its word, so it
/// could not be learned from the others.
///
/// Throws std::invalid_argument for more than 124,999 in valid or in test, or more than a million in total.
inline split sample(std::uint64_t seed, std::size_t train, std::size_t valid, std::size_t test)
{
    // The numbers of one length: `first` and the following `count`, and the number that may be drawn so far.
    struct length {
        std::uint32_t first, count, drawn, most;
    };
    std::array<length, 6> lengths{};
    std::size_t room = 0;
    for (std::uint32_t i = 0, first = 0, end = 10; i < 6; ++i, first = end, end *= 10) {
        lengths[i] = {first, end - first, 0, 0};
        room += lengths[i].count / 8;
    }
    if (valid > room || test > room || train > limit - valid - test)
        throw std::invalid_argument("numbers::sample: valid and test may have " + std::to_string(room) +
                                    " numbers each, and all three together " + std::to_string(limit));

    split result;
    detail::generator random{seed};
    std::vector<bool> taken(limit, false);
    const auto take = [&](std::vector<pair>& set, std::uint32_t number, length& of) {
        taken[number] = true;
        ++of.drawn;
        set.push_back(say(number));
    };
    const auto fill = [&](std::vector<pair>& set, std::size_t size) {
        while (set.size() < size) {
            const std::uint32_t i = random.below(6);
            if (lengths[i].drawn == lengths[i].most) continue;
            std::uint32_t number = 0;
            do {
                number = lengths[i].first + random.below(lengths[i].count);
            } while (taken[number]);
            take(set, number, lengths[i]);
        }
    };

    if (train > 0) take(result.train, 0, lengths[0]);
    taken[0] = true;
    for (length& each : lengths) each.most = each.drawn + each.count / 8;
    fill(result.test, test);
    for (length& each : lengths) each.most = each.drawn + each.count / 8;
    fill(result.valid, valid);
    for (length& each : lengths) each.most = each.count;
    fill(result.train, train);
    return result;
}

}  // namespace numbers
