// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/mapped_file.hpp>

#include <doctest/doctest.h>

#include <support/temporary_directory.hpp>
#include <support/tensors.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sys/stat.h>

using namespace heed::io;

TEST_CASE("mapped or copied bytes, and parts of them, outlive the file")
{
    const temporary_directory directory;
    const std::string text = std::string("one\0two", 7) + "\xFF three";
    const auto path = directory.write("file", text);
    for (const storage how : {storage::mapped, storage::copied}) {
        shared_bytes part;
        {
            const shared_bytes all = bytes_of_file(path, how);
            CHECK(all.size() == text.size());
            CHECK(all.text(0, all.size()) == text);
            CHECK(all.end() - all.begin() == static_cast<std::ptrdiff_t>(text.size()));
            part = all.part(4, 5);
            CHECK(part.data() == all.data() + 4);  // not copied
        }
        std::filesystem::remove(path);
        CHECK(part.text(0, 5) == "two\xFF ");
        CHECK(part.part(1, 2).text(1, 1) == "o");
        directory.write("file", text);
    }
    CHECK(bytes_of_file(path, storage::mapped) == bytes_of_file(path, storage::copied));
    CHECK(bytes_of_file(path).part(0, 3) != bytes_of_file(path).part(4, 3));
    CHECK(bytes_of_file(directory.write("empty", "")).empty());
    CHECK(shared_bytes{}.empty());
}

TEST_CASE("bytes may have an owner, which lives as long as they do")
{
    const shared_bytes own(std::vector<std::byte>{std::byte{1}, std::byte{2}});
    const shared_bytes copy = own;
    CHECK(copy.data() == own.data());
    const auto owner = std::make_shared<std::vector<std::byte>>(3, std::byte{7});
    {
        const shared_bytes shown({owner->data(), 3}, owner);
        const shared_bytes part = shown.part(2, 1);
        CHECK(owner.use_count() == 3);
        CHECK(*part.begin() == std::byte{7});
    }
    CHECK(owner.use_count() == 1);
}

TEST_CASE("paths that are not regular files are rejected")
{
    const temporary_directory directory;
    const std::string here = directory.path().string();
    const auto said = [](const std::string& path, const std::string& needed = "a file") {
        return support::message_of<heed::error>([&] { bytes_of_file(path, storage::copied, needed); });
    };
    CHECK(said(here + "/none") == here + "/none: cannot be opened: No such file or directory");
    CHECK(said(here, "a model") == here + ": is a directory; a model is needed");
    CHECK(said("/dev/null") == "/dev/null: is not a regular file");
    REQUIRE(::mkfifo((here + "/pipe").c_str(), 0600) == 0);
    CHECK(said(here + "/pipe") == here + "/pipe: is not a regular file");  // and does not wait for a writer
}
