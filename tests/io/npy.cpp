// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/npy.hpp>
#include <heed/io/weights.hpp>

#include <doctest/doctest.h>

#include <support/temporary_directory.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

using namespace heed::io;

namespace {

/// The bytes of a file of this version with this header and these values.
std::string file_of(const std::string& header, const std::string& values = {}, int version = 1)
{
    std::string bytes = std::string("\x93NUMPY", 6) + static_cast<char>(version) + '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
    return bytes + header + values;
}

std::string described(const std::string& descr, const std::string& order, const std::string& shape)
{
    return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

tensor_entry read(const std::string& bytes)
{
    const temporary_directory directory;
    return load_npy(directory.write("some.array.npy", bytes));
}

/// The error of load_npy() for these bytes, without the path.
std::string problem(const std::string& bytes)
{
    const temporary_directory directory;
    const std::string path = directory.write("array.npy", bytes).string();
    try {
        load_npy(path);
    } catch (const heed::error& caught) {
        const std::string what = caught.what();
        CHECK(what.starts_with(path + ": "));
        return what.substr(path.size() + 2);
    }
    return "no error";
}

const std::string six_shorts("\0\0\1\0\2\0\3\0\4\0\5\0", 12);

}  // namespace

TEST_CASE("versions 1 to 3, either quote, any order of keys and a trailing comma are read")
{
    const std::string headers[] = {described("'<i2'", "False", "(2, 3)"), described("'<i2'", "False", "(2,3,)"),
                                   described("'<i2'", "False", "(2L, 3L)"),
                                   "{\"shape\":(2,3),\"descr\":\"<i2\",\"fortran_order\":False}",
                                   "  { 'fortran_order' : False , 'shape' : ( 2 , 3 ) , 'descr' : '<i2' }   \n"};
    for (const std::string& header : headers) {
        for (const int version : {1, 2, 3}) {
            const tensor_entry entry = read(file_of(header, six_shorts, version));
            CHECK(entry.name == "some.array");
            CHECK(entry.dtype == "I16");
            CHECK(entry.shape == std::vector<std::size_t>{2, 3});
            CHECK(entry.values<std::int16_t>() == std::vector<std::int16_t>{0, 1, 2, 3, 4, 5});
        }
    }
}

TEST_CASE("Fortran order and big-endian numbers are converted")
{
    const auto turned = read(file_of(described("'<i2'", "True", "(2, 3)"), six_shorts));
    CHECK(turned.values<std::int16_t>() == std::vector<std::int16_t>{0, 2, 4, 1, 3, 5});
    const auto swapped = read(file_of(described("'>i2'", "False", "(6,)"), six_shorts));
    CHECK(swapped.values<std::int16_t>() == std::vector<std::int16_t>{0, 256, 512, 768, 1024, 1280});
    const auto both = read(file_of(described("'>i2'", "True", "(3, 2)"), six_shorts));
    CHECK(both.values<std::int16_t>() == std::vector<std::int16_t>{0, 768, 256, 1024, 512, 1280});
    // x(i,j,k) = 100 i + 10 j + k, with i running fastest in the file.
    std::string values;
    for (int k = 0; k < 4; ++k)
        for (int j = 0; j < 3; ++j)
            for (int i = 0; i < 2; ++i) values += static_cast<char>(100 * i + 10 * j + k);
    const auto deep = read(file_of(described("'|u1'", "True", "(2, 3, 4)"), values)).values<std::uint8_t>();
    std::size_t at = 0;
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 4; ++k) CHECK(deep[at++] == 100 * i + 10 * j + k);
    CHECK(read(file_of(described("'<f8'", "True", "(3, 0, 2)"))).size() == 0);
}

TEST_CASE("a saved array is loaded, with NumPy's bytes")
{
    const temporary_directory directory;
    const auto path = directory.path() / "x.npy";
    const auto entry = tensor_entry::of("x", {2, 1}, std::vector<float>{1, 2});
    save_npy(path, entry);
    CHECK(load_npy(path) == entry);
    const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
    CHECK(directory.read("x.npy") ==
          file_of(header + std::string(117 - header.size(), ' ') + "\n", std::string("\0\0\x80\x3f\0\0\0\x40", 8)));
    for (const auto& each : {tensor_entry::of("x", {}, std::vector<double>{0.1}),
                             tensor_entry::of("x", {3}, std::vector<std::uint8_t>{1, 2, 3}),
                             tensor_entry::of("x", {0, 7}, std::vector<std::int64_t>{}),
                             tensor_entry::of("x", std::vector<std::size_t>(32, 1), std::vector<float16>(1))}) {
        save_npy(path, each);
        CHECK(load_npy(path) == each);
        CHECK((directory.read("x.npy").size() - each.bytes.size()) % 64 == 0);
    }
    CHECK_THROWS_WITH_AS(save_npy(path, tensor_entry::of("x", {1}, std::vector<heed::io::bfloat16>(1))),
                         (path.string() + ": cannot be saved: tensor \"x\" has dtype \"BF16\", which NumPy does not "
                                          "have; store floats")
                             .c_str(),
                         heed::error);
    CHECK(directory.files() == 1);
    CHECK_THROWS_AS(save_npy(path, entry, existing::keep), heed::error);
}

TEST_CASE("types that heed does not read keep NumPy's name")
{
    for (const std::string descr : {"<U3", "|S5", "<c8", "<M8[s]", "|O", "<f16", "=f4", "|f4", "f4", "<b2", ""}) {
        CAPTURE(descr);
        const tensor_entry entry = read(file_of(described("'" + descr + "'", "False", "(2,)"), "12345678"));
        CHECK(entry.dtype == descr);
        CHECK(entry.shape == std::vector<std::size_t>{2});
        CHECK(entry.bytes.size() == 8);
        CHECK_THROWS_AS(entry.values<float>(), heed::error);
    }
    const std::string fields = "[('a', '<f4'), ('b]', '<i8', (2,)), ('c', [('d', '|u1')])]";
    CHECK(read(file_of(described(fields, "False", "(1,)"), "x")).dtype == fields);
}

TEST_CASE("truncated files and extra bytes are rejected")
{
    const std::string whole = file_of(described("'<i2'", "False", "(2, 3)"), six_shorts);
    for (std::size_t length = 0; length < whole.size(); ++length) {
        CAPTURE(length);
        CHECK(problem(whole.substr(0, length)) != "no error");
    }
    CHECK(problem(whole) == "no error");
    CHECK(problem(whole.substr(0, whole.size() - 1)) == "is truncated: [2,3] of '<i2' takes 12 bytes, the file has 11");
    CHECK(problem(whole + "x") == "has bytes after its values: [2,3] of '<i2' takes 12 bytes, the file has 13");
    for (std::size_t i = 0; i + 12 < whole.size(); ++i)
        for (const char byte : {'\0', '\'', '9', '(', '[', '}', '\xFF'}) {
            std::string changed = whole;
            changed[i] = byte;
            problem(changed);  // any error is fine, but no crash
        }
}

TEST_CASE("damaged headers are rejected")
{
    const auto said = [](const std::string& header, const std::string& values = {}) {
        return problem(file_of(header, values));
    };
    CHECK(problem("") == "is not an .npy file: it does not begin with \\x93NUMPY");
    CHECK(problem("PK\3\4 and more than ten bytes") == "is not an .npy file: it does not begin with \\x93NUMPY");
    CHECK(problem(file_of("", "", 4)) == "has version 4.0 of the .npy format; heed reads 1.0, 2.0 and 3.0");
    CHECK(problem(std::string("\x93NUMPY\2\0\xFF\xFF\xFF\xFF{", 13)) ==
          "is truncated: the header should have 4294967295 bytes; 1 follow its size");
    CHECK(said("") == "is damaged: the header does not begin with {");
    CHECK(said("{}") == "is damaged: the header must have 'descr', 'fortran_order' and 'shape'");
    CHECK(said("{'a': 1}") == "is damaged: the header has the unknown key 'a'");
    CHECK(said("{'shape': (1,), 'shape': (1,)}") == "is damaged: the header has the key 'shape' twice");
    CHECK(said("{'shape' (1,)}") == "is damaged: the header has no key where a key is expected");
    CHECK(said("{'shape': (1,) 'descr': 'x'}") == "is damaged: the header has no comma or } after 'shape'");
    CHECK(said(described("'<f4'", "0", "(1,)")) ==
          "is damaged: the header has neither True nor False for 'fortran_order'");
    CHECK(said(described("<f4", "False", "(1,)")) == "is damaged: the header has a damaged 'descr'");
    CHECK(said(described("[('a', '<f4')", "False", "(1,)")) == "is damaged: the header has a damaged 'descr'");
    CHECK(said(described(std::string(60'000, '['), "False", "(1,)")) == "is damaged: the header has a damaged 'descr'");
    for (const char* const shape : {"1", "(1", "(1,,2)", "(,)", "(-1,)", "(1.0,)", "[1]", "(1 2)", "('1',)"}) {
        CAPTURE(shape);
        CHECK(said(described("'<f4'", "False", shape), "1234") == "is damaged: the header has a damaged 'shape'");
    }
    CHECK(said(described("'<f4'", "False", "(99999999999999999999,)")) ==
          "is damaged: the header has an extent that is too large");
    // The smallest number of values whose byte size overflows, and the largest whose size does not.
    const std::string few = std::to_string(std::numeric_limits<std::size_t>::max() / 4),
                      many = std::to_string(std::numeric_limits<std::size_t>::max() / 4 + 1),
                      bytes = std::to_string(std::numeric_limits<std::size_t>::max() / 4 * 4);
    CHECK(said(described("'<f4'", "False", "(" + many + ",)"), "1234") ==
          "has shape [" + many + "], more bytes than a file can have");
    CHECK(said(described("'<f4'", "True", "(" + few + ",)"), "1234")
              .starts_with("is truncated: [" + few + "] of '<f4' takes " + bytes + " bytes"));
    std::string ones;
    for (int i = 0; i < 33; ++i) ones += "1,";
    CHECK(said(described("'<f4'", "False", "(" + ones + ")"), "1234") ==
          "is damaged: the header has a damaged 'shape'");
    CHECK(said(described("'<f4'", "False", "(1,)") + "x", "1234") == "is damaged: the header continues after its }");
}

TEST_CASE("files that cannot be opened are reported")
{
    const temporary_directory directory;
    const std::string here = directory.path().string();
    CHECK_THROWS_WITH_AS(load_npy(here + "/none"),
                         (here + "/none: cannot be opened: No such file or directory").c_str(), heed::error);
    CHECK_THROWS_WITH_AS(load_npy(here), (here + ": is a directory; an .npy file is needed").c_str(), heed::error);
}

TEST_CASE("the code of docs/how_to/load_weights.md")
{
    const temporary_directory directory;
    const auto path = directory.path() / "x.npy", other = directory.path() / "a.npy";
    save_npy(path, tensor_entry::of("", {2, 2}, std::vector<float>{1, 2, 3, 4}));
    namespace io = heed::io;
    // section: npy
    const auto a = io::array_of<float, 2>(io::load_npy(path));  // any order of bytes and axes
    io::save_npy(other, io::entry_of("a", a));                  // numpy.load(other)
    // end
    CHECK(a(0, 1) == 2);
    CHECK(a(1, 0) == 3);
    CHECK(load_npy(other).values<float>() == load_npy(path).values<float>());
}

// ---- with NumPy; numpy.py runs this program
// ---------------------------------------------------------------------------

TEST_CASE("every type, byte order and layout that NumPy writes is read")
{
    const char* const folder = std::getenv("HEED_NUMPY_FILES");
    if (folder == nullptr) {
        MESSAGE("only where numpy.py runs this program");
        return;
    }
    const std::filesystem::path here = folder;
    const auto written = [&](const std::string& name) { return load_npy(here / (name + ".npy")); };
    const auto again = [&](const std::string& name) { save_npy(here / "again" / (name + ".npy"), written(name)); };
    for (const std::string kind : {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"}) {
        std::vector<double> expected(24);
        for (std::size_t i = 0; i < 24; ++i) {
            expected[i] = static_cast<double>(i);
            if (kind[0] != 'u') expected[i] -= 5;
            if (kind[0] == 'f') expected[i] /= 8;
        }
        for (const char* const how : {".little.C", ".little.F", ".big.C", ".big.F"}) {
            CAPTURE(kind);
            CAPTURE(how);
            const tensor_entry entry = written(kind + how);
            again(kind + how);
            CHECK(entry.shape == std::vector<std::size_t>{2, 3, 4});
            std::vector<double> values(24);
            if (kind == "i8") {
                const auto whole = entry.values<std::int64_t>();
                values.assign(whole.begin(), whole.end());
            } else if (kind == "u8") {
                const auto whole = entry.values<std::uint64_t>();
                values.assign(whole.begin(), whole.end());
            } else {
                values = entry.values<double>();
            }
            CHECK(values == expected);
        }
    }
    CHECK(written("truth").dtype == "BOOL");
    CHECK(written("truth").values<float>()[3] == 1);
    CHECK(written("truth").values<float>()[4] == 0);
    CHECK(written("number").shape.empty());
    CHECK(written("number").values<double>() == std::vector<double>{2.5});
    CHECK(written("row").shape == std::vector<std::size_t>{3});
    CHECK(written("none").shape == std::vector<std::size_t>{0, 4});
    CHECK(written("words").dtype == "<U3");
    CHECK(written("words").shape == std::vector<std::size_t>{2});
    CHECK(written("fields").dtype == "[('a', '<f4'), ('b', '<i8')]");
    CHECK_THROWS_AS(written("words").values<float>(), heed::error);

    for (const char* const name : {"truth", "number", "row", "none"}) again(name);
    for (const char* const version : {"version1.npy", "version2.npy", "version3.npy"}) {
        const tensor_entry entry = load_npy(here / version);
        CHECK(entry.shape == std::vector<std::size_t>{2, 3, 4});
        CHECK(entry.values<float>()[6] == 1.0F / 8);
        save_npy(here / "again.npy", entry);
    }

    std::vector<float16> all(65536), rounded(200'000);
    std::vector<float> floats(65536), more(200'000);
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = float16::of_bits(static_cast<std::uint16_t>(i));
        floats[i] = static_cast<float>(all[i]);
    }
    for (std::size_t i = 0; i < more.size(); ++i) {
        more[i] = std::bit_cast<float>(static_cast<std::uint32_t>(i * 2654435761u));
        rounded[i] = float16(more[i]);
    }
    for (const auto& each :
         {tensor_entry::of("float16", {65536}, all), tensor_entry::of("float32", {65536}, floats),
          tensor_entry::of("float32.more", {more.size()}, more), tensor_entry::of("rounded", {more.size()}, rounded)})
        save_npy(here / "halves" / (each.name + ".npy"), each);
}
