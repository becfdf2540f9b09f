// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/text/corpus.hpp>

#include <doctest/doctest.h>

#include <support/temporary_directory.hpp>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

using namespace heed::text;

namespace {

std::vector<sentence> read(const std::string& text, empty_lines empty = empty_lines::refuse)
{
    std::istringstream stream(text);
    return read_corpus(stream, "in", empty);
}

std::string problem(const std::string& text, empty_lines empty = empty_lines::refuse)
{
    try {
        read(text, empty);
    } catch (const heed::error& caught) {
        return caught.what();
    }
    return "no error";
}

const std::vector<sentence> two_lines{{"a", "b"}, {"c"}};

}  // namespace

TEST_CASE("lines become sentences, with any white space")
{
    CHECK(read("a b\nc\n") == two_lines);
    CHECK(read("a b\nc") == two_lines);        // no final newline
    CHECK(read("a b\r\nc\r\n") == two_lines);  // CRLF
    CHECK(read("\xEF\xBB\xBF"
               "a b\nc\n") == two_lines);  // byte order mark
    CHECK(read("  a\t\tb \n\tc\t\n") == two_lines);
    CHECK(read("a\xC2\xA0"
               "b") == std::vector<sentence>{{"a\xC2\xA0"
                                              "b"}});  // a no-break space does not separate
}

TEST_CASE("a byte order mark counts only at the beginning")
{
    CHECK(read("a\n\xEF\xBB\xBF"
               "b\n") == std::vector<sentence>{{"a"},
                                               {"\xEF\xBB\xBF"
                                                "b"}});
}

TEST_CASE("bytes that are not text are rejected with line and column")
{
    CHECK(problem("ok\nab caf\xE9 x\n") == "in:2:7: byte 0xe9 is not valid UTF-8; save the text as UTF-8");
    CHECK(problem("\xFF\xFE") == "in:1:1: byte 0xff is not valid UTF-8; save the text as UTF-8");
    CHECK(problem(std::string("a\nb\0c\n", 6)) ==
          "in:2:2: byte 0x00 is not allowed in text; this may be a binary or UTF-16 file");
}

TEST_CASE("a sentence without tokens is rejected with its line number, unless kept")
{
    CHECK(problem("a\n\nb\n") == "in:2: a sentence has no tokens; each line must have at least one");
    CHECK(problem("a\nb\n \t\r\n") == "in:3: a sentence has no tokens; each line must have at least one");
    CHECK(problem("\n") == "in:1: a sentence has no tokens; each line must have at least one");
    CHECK(read("a\n\n \nb\n", empty_lines::keep) == std::vector<sentence>{{"a"}, {}, {}, {"b"}});
}

TEST_CASE("an empty stream is rejected, unless empty lines are kept")
{
    CHECK(problem("") == "in: is empty; it must have one sentence per line");
    CHECK(problem("\xEF\xBB\xBF") == "in: is empty (a byte order mark only)");
    CHECK(read("", empty_lines::keep).empty());
}

TEST_CASE("a reader returns one sentence at a time and knows its location")
{
    std::istringstream stream("a b\n\nc");
    sentence_reader reader(stream, "standard input", empty_lines::keep);
    sentence words{"left", "over"};
    CHECK(reader.next(words));
    CHECK(words == sentence{"a", "b"});
    CHECK(reader.next(words));
    CHECK(words.empty());
    CHECK(reader.next(words));
    CHECK(words == sentence{"c"});
    CHECK(reader.where() == "standard input:3");
    CHECK_FALSE(reader.next(words));
    CHECK(reader.line() == 3);
}

TEST_CASE("missing, parallel and unequal files, and directories")
{
    const temporary_directory directory;
    const std::string here = directory.path().string();
    directory.write("two", "a b\nc\n");
    directory.write("three", "x\ny\nz\n");
    directory.write("empty", "");
    directory.write("broken", "x\ny z \x80\n");

    CHECK(read_corpus(directory.path() / "two") == two_lines);
    const parallel_corpus both = read_parallel(here + "/two", here + "/two");
    CHECK(both.size() == 2);
    CHECK(both.target == two_lines);

    CHECK_THROWS_WITH_AS(read_corpus(here + "/none"),
                         (here + "/none: cannot be opened: No such file or directory").c_str(), heed::error);
    CHECK_THROWS_WITH_AS(read_corpus(here), (here + ": is a directory; expected a text file").c_str(), heed::error);
    CHECK_THROWS_WITH_AS(read_corpus(here + "/empty"),
                         (here + "/empty: is empty; it must have one sentence per line").c_str(), heed::error);
    CHECK_THROWS_WITH_AS(read_parallel(here + "/two", here + "/broken"),
                         (here + "/broken:2:5: byte 0x80 is not valid UTF-8; save the text as UTF-8").c_str(),
                         heed::error);
    CHECK_THROWS_WITH_AS(read_parallel(here + "/two", here + "/three"),
                         (here + "/two has 2 lines, " + here +
                          "/three has 3; parallel files must have the same number, " +
                          "since line n of one translates line n of the other")
                             .c_str(),
                         heed::error);
}

namespace {

/// One byte, repeated.
class one_byte final : public std::streambuf {
public:
    one_byte(char byte, std::size_t count) : block_(1 << 16, byte), left_(count) {}

    std::size_t left() const { return left_; }

protected:
    int_type underflow() override
    {
        const std::size_t count = std::min(block_.size(), left_);
        if (count == 0) return traits_type::eof();
        left_ -= count;
        setg(block_.data(), block_.data(), block_.data() + count);
        return traits_type::to_int_type(block_.front());
    }

private:
    std::string block_;
    std::size_t left_;
};

}  // namespace

TEST_CASE("an endless line is rejected before it fills the memory")
{
    for (const char byte : {'a', '\0'}) {
        one_byte endless(byte, std::size_t{1} << 27);
        std::istream stream(&endless);
        CHECK_THROWS_WITH_AS(read_corpus(stream, "zero"),
                             "zero:1: a line has more than 16777216 bytes; expected a text with one sentence per line",
                             heed::error);
        CHECK(endless.left() > (std::size_t{1} << 27) - (std::size_t{1} << 25));
    }
    std::istringstream stream("abc\nabcd\nabcde\n");
    std::string line;
    const auto where = [] { return std::string("here"); };
    CHECK(heed::text::read_line(stream, line, where, 4));
    CHECK(heed::text::read_line(stream, line, where, 4));
    CHECK(line == "abcd");
    CHECK_THROWS_WITH_AS(heed::text::read_line(stream, line, where, 4),
                         "here: a line has more than 4 bytes; expected a text with one sentence per line", heed::error);
}

TEST_CASE("lines of any length, and the state of the stream, equal those of std::getline")
{
    for (const std::size_t length : {0u, 1u, 4094u, 4095u, 4096u, 4097u, 8189u, 8190u, 8191u, 8192u, 100000u}) {
        for (const std::string& end :
             std::vector<std::string>{"", "\n", "\n\n", "\nlast", std::string("\n\0x\r\n", 5)}) {
            CAPTURE(length);
            CAPTURE(end);
            const std::string text = std::string(length, 'x') + end + std::string(length, 'y');
            std::istringstream is(text), must(text);
            std::string line, other;
            for (bool more = true; more;) {
                more = static_cast<bool>(std::getline(must, other));
                CHECK(heed::text::read_line(is, line, [] { return std::string(); }) == more);
                CHECK((!more || line == other));  // not printed: they are long
                CHECK(is.rdstate() == must.rdstate());
            }
        }
    }
}

TEST_CASE("split and join")
{
    CHECK(split("").empty());
    CHECK(split("  ").empty());
    CHECK(split("a b") == sentence{"a", "b"});
    CHECK(join(sentence{}) == "");
    CHECK(join(sentence{"a", "b", "c"}) == "a b c");
}
