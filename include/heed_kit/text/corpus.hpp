// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed_kit/text/sentence.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace heed::inline HEED_TARGET::text {

/// The maximum length of a line in heed's readers, in bytes: three times the text of a long novel. Without a limit, a
/// file with an endless line, such as /dev/zero, would exhaust the memory.
inline constexpr std::size_t longest_line = std::size_t{1} << 24;

/// std::getline for untrusted text: throws heed::error as soon as the line is longer than `most` bytes, not counting
/// the line end. `where`: the beginning of the message, such as "name:12".
template <class Where>
bool read_line(std::istream& stream, std::string& line, const Where& where, std::size_t most = longest_line)
{
    line.clear();
    char some[4096];
    for (;;) {
        stream.getline(some, sizeof some);  // sets failbit if it ends within the line, or has read no byte
        auto count = static_cast<std::size_t>(stream.gcount());
        const bool full = stream.rdstate() == std::ios::failbit && count + 1 == sizeof some;
        const bool at_end = stream.eof();
        if (stream.bad() || (stream.fail() && !full && !(at_end && !line.empty()))) return false;
        if (!full && !at_end) --count;  // the line end
        line.append(some, count);
        if (line.size() > most)
            throw error(where() + ": a line has more than " + counted(most, "byte") +
                        "; expected a text with one sentence per line");
        if (!full) {
            if (stream.fail()) stream.clear(std::ios::eofbit);  // no byte was left, but the line is not empty
            return true;
        }
        stream.clear();
    }
}

/// Treatment of lines without tokens. Training text rejects them: in parallel text they nearly always indicate
/// misaligned lines. A translator that reads from a pipe keeps them and answers each line with a line.
enum class empty_lines { refuse, keep };

/// Reads tokenized text: UTF-8, one sentence per line, tokens separated by spaces or tabs. A byte order mark, CRLF line
/// ends and a missing last line end are accepted; a line may have longest_line bytes. Errors refer to the stream as
/// `name`, as in "name:12:5: …" (line, and column in bytes, both from 1).
class sentence_reader {
public:
    sentence_reader(std::istream& stream, std::string name, empty_lines empty = empty_lines::refuse)
        : stream_(stream), name_(std::move(name)), empty_(empty)
    {}

    /// Reads the next sentence; returns false at the end. Throws heed::error for an invalid line, for a line that is
    /// too long or has no tokens (unless such lines are kept), and for a stream that fails.
    bool next(sentence& words)
    {
        std::string_view line;
        if (!next_line(line)) return false;
        words = split(line);
        return true;
    }

    /// Reads the next sentence as text, which is valid until the next call. Throws heed::error as `next` does.
    bool next_line(std::string_view& line)
    {
        errno = 0;
        if (!read_line(stream_, line_, [&] { return name_ + ":" + std::to_string(number_ + 1); })) {
            if (stream_.bad())
                throw error(name_ + ": cannot be read to its end" +
                            (errno != 0 ? std::string(": ") + std::strerror(errno) : std::string()));
            return false;
        }
        ++number_;
        std::string_view rest = line_;
        if (const auto bad = find_invalid_utf8(rest)) refuse_byte(*bad, "is not valid UTF-8; save the text as UTF-8");
        if (const auto nul = rest.find('\0'); nul != std::string_view::npos)
            refuse_byte(nul, "is not allowed in text; this may be a binary or UTF-16 file");
        if (number_ == 1 && rest.starts_with(byte_order_mark)) rest.remove_prefix(byte_order_mark.size());

        if (empty_ == empty_lines::refuse && std::all_of(rest.begin(), rest.end(), is_separator)) {
            if (number_ == 1 && rest.empty() && stream_.eof())
                throw error(name_ + ": is empty (a byte order mark only)");
            throw error(where() + ": a sentence has no tokens; each line must have at least one");
        }
        line = rest;
        return true;
    }

    /// Number of lines read so far.
    std::size_t line() const { return number_; }

    /// "name:12": the location of the last sentence, for messages of the caller.
    std::string where() const { return name_ + ":" + std::to_string(number_); }

private:
    [[noreturn]] void refuse_byte(std::size_t position, const char* why) const
    {
        constexpr std::string_view digits = "0123456789abcdef";
        const unsigned byte = static_cast<unsigned char>(line_[position]);
        throw error(where() + ":" + std::to_string(position + 1) + ": byte 0x" + digits[byte / 16] + digits[byte % 16] +
                    " " + why);
    }

    std::istream& stream_;
    std::string name_;
    empty_lines empty_;
    std::string line_;
    std::size_t number_ = 0;
};

/// All sentences of a stream. Throws heed::error as sentence_reader does, and if there is no sentence (unless empty
/// lines are kept: then a stream without lines is also valid).
inline std::vector<sentence> read_corpus(std::istream& stream, const std::string& name,
                                         empty_lines empty = empty_lines::refuse)
{
    sentence_reader reader(stream, name, empty);
    std::vector<sentence> sentences;
    for (sentence words; reader.next(words);) sentences.push_back(std::move(words));
    if (sentences.empty() && empty == empty_lines::refuse)
        throw error(name + ": is empty; it must have one sentence per line");
    return sentences;
}

/// The contents of a text file with these lines: if the first character is U+FEFF, a byte order mark is added before
/// it, which sentence_reader removes instead.
inline std::string after_byte_order_mark(std::string lines)
{
    if (lines.starts_with(byte_order_mark)) lines.insert(0, byte_order_mark);
    return lines;
}

/// Opens a text file. Throws heed::error for a missing file and for a directory.
inline std::ifstream open_text(const std::filesystem::path& path)
{
    const std::string name = path.string();
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) throw error(name + ": is a directory; expected a text file");
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        throw error(name + ": cannot be opened" +
                    (errno != 0 ? std::string(": ") + std::strerror(errno) : std::string()));
    return stream;
}

/// All sentences of a file. Throws heed::error "file:line:column: …"; also for a missing file and for a directory.
inline std::vector<sentence> read_corpus(const std::filesystem::path& path, empty_lines empty = empty_lines::refuse)
{
    std::ifstream stream = open_text(path);
    return read_corpus(stream, path.string(), empty);
}

/// Sentences and their translations: target[i] translates source[i].
struct parallel_corpus {
    std::vector<sentence> source;
    std::vector<sentence> target;

    std::size_t size() const { return source.size(); }
};

/// Reads two files that correspond line by line. Throws heed::error as read_corpus does, and if their line counts
/// differ.
inline parallel_corpus read_parallel(const std::filesystem::path& source, const std::filesystem::path& target,
                                     empty_lines empty = empty_lines::refuse)
{
    parallel_corpus both{read_corpus(source, empty), read_corpus(target, empty)};
    if (both.source.size() != both.target.size())
        throw error(source.string() + " has " + counted(both.source.size(), "line") + ", " + target.string() + " has " +
                    std::to_string(both.target.size()) +
                    "; parallel files must have the same number, since line n of one translates line n of the other");
    return both;
}

}  // namespace heed::inline HEED_TARGET::text
