// SPDX-License-Identifier: BSD-3-Clause
#include "reading.hpp"

#include <heed/io/atomic_file.hpp>
#include <heed/io/safetensors.hpp>
#include <heed_kit/metrics/alignment_error.hpp>

namespace translation {

namespace {

/// Calls work(i, seen) for source (0) and target (1), concurrently if there is more than one thread. An error of the
/// source is reported first, as in sequential reading.
void for_both(const std::function<void(int, const std::function<void(double)>&)>& work, const std::string& what)
{
    live_line line;
    const clock::time_point start = clock::now();
    const auto show = [&](double done) {
        line.show(fmt::format("{} {:3.0f}%, left {}", what, 100 * done,
                              duration_text((1 - done) / done * seconds_since(start))));
    };
    const auto nothing = [](double) {};
    if (heed::threads() == 1) {
        work(0, [&](double share) { show(share / 2); });
        work(1, [&](double share) { show((1 + share) / 2); });
        return;
    }
    std::exception_ptr of_source, of_target;
    std::thread other([&] {
        try {
            work(1, nothing);
        } catch (...) {
            of_target = std::current_exception();
        }
    });
    try {
        work(0, show);
    } catch (...) {
        of_source = std::current_exception();
    }
    other.join();
    for (const std::exception_ptr& problem : {of_source, of_target}) {
        if (problem) std::rethrow_exception(problem);
    }
}

/// Packs languages into one text: entries with a name, the number of bytes, and the bytes.
std::string to_note(const metadata& entries)
{
    std::string note;
    for (const auto& [name, text] : entries) note += fmt::format("{} {}\n{}\n", name, text.size(), text);
    return note;
}

/// The inverse.
metadata from_note(const std::string& note)
{
    metadata entries;
    for (std::size_t at = 0; at < note.size();) {
        const std::size_t space = note.find(' ', at), end = note.find('\n', at);
        std::size_t bytes = 0;
        if (space == note.npos || end == note.npos || space > end)
            throw heed::error("its note is malformed: an entry is missing");
        read_entry({{"bytes", note.substr(space + 1, end - space - 1)}}, "bytes", bytes);
        if (bytes > note.size() - end - 1) throw heed::error("its note ends within an entry");
        entries[note.substr(at, space - at)] = note.substr(end + 1, bytes);
        at = end + 1 + bytes + 1;
    }
    return entries;
}

/// The shard of a pair.
std::size_t shard_of(std::size_t pair, std::size_t shards)
{
    return shards == 1 ? 0 : heed::below(shards, heed::mix(shards), pair);
}

/// The links between words of each line, and their file.
struct given_links {
    const link_lines& between_words;
    const fs::path& path;
};

/// Reads pairs as the tokens of a model.
class pairs_reader {
public:
    /// `given`: unless null, `links` of each pair are set, and checked even if the pair is too long.
    pairs_reader(const text_side& source, const word_tokens_of& source_tokens, const text_side& target,
                 const word_tokens_of& target_tokens, const options& how, const given_links* given)
        : source_(source, source_tokens),
          target_(target, target_tokens),
          how_(how),
          links_(given),
          lines_(source.lines()),
          left_(lines_)
    {}

    /// The next pair that is not too long; false at the end.
    bool next()
    {
        for (; left_ > 0; ++left_out) {
            --left_;
            source_.read(source_ids, how_.raw, links_ != nullptr);
            target_.read(target_ids, how_.raw, links_ != nullptr);
            if (links_ != nullptr) set_links(lines_ - left_);
            if (how_.max_length > 0 && std::max(source_ids.size(), target_ids.size()) > how_.max_length) continue;
            return true;
        }
        return false;
    }

    id_sentence source_ids, target_ids;
    token_links links;  // between tokens, if given: each link of words links all their tokens
    std::size_t left_out = 0;

private:
    struct side_reader {
        side_reader(const text_side& side, const word_tokens_of& with)
            : numbers(side.numbers()), tokens_of(side.tokens_of()), tokens(with)
        {}

        void read(id_sentence& to, bool raw, bool with_words)
        {
            numbers.next(numbers.next(), line);
            to.clear();
            tokens.append(line, to);
            if (!with_words) return;
            if (!raw) {
                words = tokens.positions(line);
                return;
            }
            words.assign(tokens_of.next(), {});
            for (auto& word : words) {
                word.resize(tokens_of.next());
                for (std::size_t& token : word) token = tokens_of.next();
            }
        }

        heed::text::spilled_numbers::reader numbers, tokens_of;
        const word_tokens_of& tokens;
        std::vector<std::uint32_t> line;
        word_tokens words;
    };

    void set_links(std::size_t line)
    {
        links.clear();
        for (const auto& [i, j] : links_->between_words[line - 1]) {
            if (std::cmp_greater_equal(i, source_.words.size()) || std::cmp_greater_equal(j, target_.words.size()))
                throw heed::error(fmt::format("{}:{}: the link {}-{}, but the sentences have {} and {}; words count "
                                              "from 0",
                                              links_->path.string(), line, i, j,
                                              heed::counted(source_.words.size(), "word"), target_.words.size()));
            for (const std::size_t from : source_.words[static_cast<std::size_t>(i)]) {
                for (const std::size_t to : target_.words[static_cast<std::size_t>(j)])
                    links.emplace_back(static_cast<int>(from), static_cast<int>(to));
            }
        }
    }

    side_reader source_, target_;
    const options& how_;
    const given_links* links_;
    std::size_t lines_, left_;
};

}  // namespace

training_pairs training_text::read(translator_file& file)
{
    const std::string stamp = this->stamp(file.how);
    const std::optional<link_lines> between_words = read_links();
    if (auto known = cached(file, stamp)) {
        if (between_words) refuse_shards();
        return std::move(*known);
    }

    const clock::time_point start = clock::now();
    const fs::path folder = from_.cache.has_parent_path() ? from_.cache.parent_path() : fs::path(".");
    text_side source(from_.source, folder), target(from_.target, folder);
    std::optional<given_links> given;
    if (between_words) {
        given.emplace(given_links{*between_words, from_.links});
        source.keep_words();
        target.keep_words();
    }
    read_sides(file, source, target);
    if (between_words && between_words->size() != source.lines())
        throw heed::error(fmt::format("{} has {}, {} has {}; expected the links of each pair, an empty line for none",
                                      from_.links.string(), heed::counted(between_words->size(), "line"),
                                      from_.source.string(), source.lines()));
    learn_codes(file, source, target);
    word_tokens_of source_tokens(source, file.source), target_tokens(target, file.target);
    build_vocabularies(file, source_tokens, target_tokens);
    source_tokens.number(file.source.vocabulary);
    target_tokens.number(file.target.vocabulary);

    const auto reader = [&] {
        return pairs_reader(source, source_tokens, target, target_tokens, file.how, given ? &*given : nullptr);
    };
    std::size_t pairs = source.lines();
    if (file.how.max_length > 0) {
        pairs_reader each = reader();
        while (each.next()) {}
        pairs -= each.left_out;
        if (pairs == 0)
            throw heed::error(
                fmt::format("{}: --max-length {} leaves no sentence pair", from_.source.string(), file.how.max_length));
        say(fmt::format("skipped {} sentence pairs with more than {} tokens on a side", each.left_out,
                        file.how.max_length));
    }
    const std::size_t source_words = file.source.vocabulary.size(), target_words = file.target.vocabulary.size();
    if (pairs <= from_.shard) {
        id_pairs all{heed::text::id_lines(source_words), heed::text::id_lines(target_words)};
        std::optional<link_lines> links;
        if (given) links.emplace();
        for (pairs_reader each = reader(); each.next();) {
            all.source.add(each.source_ids);
            all.target.add(each.target_ids);
            if (links) links->add(each.links);
        }
        return training_pairs(std::move(all), std::move(links));
    }
    if (given) refuse_shards();

    const std::size_t shards = (pairs + from_.shard - 1) / from_.shard;
    std::vector<heed::text::shard_size> sizes(shards);
    std::size_t pair = 0;
    for (pairs_reader each = reader(); each.next(); ++pair) {
        heed::text::shard_size& one = sizes[shard_of(pair, shards)];
        one.pairs += 1;
        one.source_words += each.source_ids.size();
        one.target_words += each.target_ids.size();
    }
    metadata note;
    for (const auto& [name, side] : {std::pair("source", &file.source), std::pair("target", &file.target)}) {
        note[std::string("vocabulary.") + name] = side->vocabulary.to_text();
        if (side->raw) note[std::string("raw.") + name] = side->raw->to_text();
        if (side->splitting) note[std::string("bpe.") + name] = side->splitting->codes().to_text();
    }
    {
        heed::text::pair_shards_writer writer(from_.cache, sizes, source_words, target_words, stamp, to_note(note));
        live_line line;
        pair = 0;
        for (pairs_reader each = reader(); each.next(); ++pair) {
            writer.add(shard_of(pair, shards), each.source_ids, each.target_ids);
            if (pair % 65536 == 0)
                line.show(fmt::format("writing {} {:3.0f}%", from_.cache.string(),
                                      100 * static_cast<double>(pair) / static_cast<double>(pairs)));
        }
        writer.commit();
    }
    say(fmt::format("{}: {} sentence pairs in {} shards, read in {}; it may be removed after training",
                    from_.cache.string(), pairs, shards, duration_text(seconds_since(start))));
    return training_pairs(heed::text::pair_shards(from_.cache));
}

/// The links between words of each line, if given.
std::optional<link_lines> training_text::read_links() const
{
    if (from_.links.empty()) return std::nullopt;
    link_lines all;
    std::ifstream stream = heed::text::open_text(from_.links);
    heed::text::sentence_reader lines(stream, from_.links.string(), heed::text::empty_lines::keep);
    for (std::string_view line; lines.next_line(line);) all.add(heed::metrics::parse_links(line, lines.where()));
    return all;
}

void training_text::refuse_shards() const
{
    throw heed::error(fmt::format("{}: the text has more pairs than --shard {}, and links of a text in shards are not "
                                  "supported; use a larger --shard",
                                  from_.links.string(), from_.shard));
}

std::string training_text::stamp(const options& how) const
{
    const std::string source = stamp_of(from_.source), target = stamp_of(from_.target);
    if (source.empty() || target.empty()) return "";
    std::string text = fmt::format("source {}, target {}, shard {}", source, target, from_.shard);
    const bool shared = how.share_embeddings == "all";
    text += fmt::format(", bpe {} {}, min-count {}, max-length {}, shared {}", how.bpe, how.bpe_separate, how.min_count,
                        how.max_length, shared);
    if (how.raw) text += fmt::format(", raw {} {} {}", how.subword_vocab, how.subword_model, how.casing);
    for (const fs::path& codes : {from_.codes, from_.target_codes})
        text += codes.empty() ? ", no codes" : fmt::format(", codes {}", stamp_of(codes));
    return text;
}

/// The file of an earlier run for the same text with the same options.
std::optional<training_pairs> training_text::cached(translator_file& file, const std::string& stamp) const
{
    using heed::text::pair_shards;
    std::error_code not_there;
    if (!fs::exists(from_.cache, not_there)) return std::nullopt;
    try {
        pair_shards found(from_.cache);
        if (stamp.empty() || found.stamp() != stamp) {
            say(fmt::format("note: {} is for another text or other options; rebuilt if required",
                            from_.cache.string()));
            return std::nullopt;
        }
        const metadata entries = from_note(found.note());
        for (const auto& [name, side] : {std::pair("source", &file.source), std::pair("target", &file.target)}) {
            side->vocabulary = heed::text::vocabulary::from_text(entry(entries, std::string("vocabulary.") + name));
            if (file.how.raw) side->raw = read_tokenizer(entry(entries, std::string("raw.") + name));
            if (const auto codes = entries.find(std::string("bpe.") + name); codes != entries.end())
                side->splitting.emplace(heed::text::bpe_codes::from_text(codes->second, "byte-pair codes"));
        }
        if (found.source_vocabulary() != file.source.vocabulary.size() ||
            found.target_vocabulary() != file.target.vocabulary.size())
            throw heed::error(from_.cache.string() + ": is damaged: its words do not match its vocabularies");
        say(fmt::format("{}: {} sentence pairs in {} shards, from the cache", from_.cache.string(), found.pairs(),
                        found.size()));
        return training_pairs(std::move(found));
    } catch (const heed::error& problem) {
        if (!pair_shards::is_one(from_.cache))
            throw heed::error(from_.cache.string() + ": not a file of this program; remove it, or give "
                                                     "--cache another name");
        say(fmt::format("note: {}; rebuilt", problem.what()));
    }
    file.source = file.target = language();
    return std::nullopt;
}

void training_text::read_sides(translator_file& file, text_side& source, text_side& target) const
{
    const auto require_as_many = [&](std::size_t lines, std::size_t translations) {
        if (lines == translations) return;
        throw heed::error(
            source.path().string() + " has " + heed::counted(lines, "line") + ", " + target.path().string() + " has " +
            std::to_string(translations) +
            "; parallel files must have the same number, since line n of one translates line n of the other");
    };
    if (file.how.raw) {
        source.count_lines();
        target.count_lines();
        require_as_many(source.counted(), target.counted());
        const clock::time_point start = clock::now();
        for_both(
            [&](int side, const auto&) {
                side == 0 ? source.learn_raw(file.source, file.how) : target.learn_raw(file.target, file.how);
            },
            "learning tokenization");
        say(fmt::format("raw text: casing and subwords learned in {:.1f} s", seconds_since(start)));
    }
    for_both(
        [&](int side, const auto& seen) {
            side == 0 ? source.read(file.source, true, seen) : target.read(file.target, false, seen);
        },
        "reading the text");
    require_as_many(source.lines(), target.lines());
    if (file.how.raw) return;
    for (const text_side* side : {&source, &target}) {
        if (!side->ends().many()) continue;
        say(fmt::format("note: {}: {}: {}. If this is raw text, pass --raw: it learns to split it into words and "
                        "symbols, which gives better translations",
                        side->path().string(), side->ends().text(),
                        "a word with a mark is then a different word than the word alone"));
        return;
    }
}

/// The byte-pair codes of both languages, if any: learned or read.
void training_text::learn_codes(translator_file& file, const text_side& source, const text_side& target) const
{
    using heed::text::bpe_codes;
    if (!from_.codes.empty()) {
        file.source.splitting.emplace(bpe_codes::read(from_.codes));
        file.target.splitting.emplace(bpe_codes::read(from_.target_codes.empty() ? from_.codes : from_.target_codes));
    } else if (file.how.bpe > 0) {
        const auto count = [](heed::text::word_counts& counts, const text_side& side) {
            for (std::uint32_t word = 0; word < side.words().size(); ++word)
                counts[std::string(side.words().word(word))] += side.words().count(word);
        };
        heed::text::word_counts words, target_words;
        count(words, source);
        count(file.how.bpe_separate ? target_words : words, target);
        file.source.splitting.emplace(heed::text::learn_bpe(words, file.how.bpe));
        file.target.splitting.emplace(file.how.bpe_separate ? heed::text::learn_bpe(target_words, file.how.bpe)
                                                            : file.source.codes());
    } else {
        return;
    }
    const std::size_t n = file.source.codes().size(), m = file.target.codes().size();
    say(file.source.codes() == file.target.codes() ? fmt::format("byte-pair encoding: {} merges for both languages", n)
                                                   : fmt::format("byte-pair encoding: {} and {} merges", n, m));
}

/// The token counts of the text, for each side or, if both share their embeddings, for both together.
void training_text::build_vocabularies(translator_file& file, word_tokens_of& source, word_tokens_of& target) const
{
    const auto of = [&](std::initializer_list<const word_tokens_of*> sides) {
        std::unordered_map<std::string_view, std::size_t> counts;
        for (const word_tokens_of* each : sides) each->count(counts);
        return heed::text::vocabulary::of_counts({counts.begin(), counts.end()}, file.how.min_count);
    };
    if (file.how.share_embeddings == "all") {
        file.source.vocabulary = file.target.vocabulary = of({&source, &target});
    } else {
        file.source.vocabulary = of({&source});
        file.target.vocabulary = of({&target});
    }
    for (const auto& [words, path] :
         {std::pair(&file.source.vocabulary, &from_.source), std::pair(&file.target.vocabulary, &from_.target)}) {
        if (words->size() == words->special_words.size())
            throw heed::error(fmt::format("{}: --min-count {} leaves no words", path->string(), file.how.min_count));
    }
}

}  // namespace translation
