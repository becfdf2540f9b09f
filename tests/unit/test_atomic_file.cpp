// SPDX-License-Identifier: BSD-3-Clause
#include <heed/io/atomic_file.hpp>

#include <doctest/doctest.h>

#include "temporary_directory.hpp"

#include <csignal>
#include <filesystem>
#include <string>

#include <sys/resource.h>
#include <sys/stat.h>

using heed::io::atomic_file;
using heed::io::write_file;

namespace {

/// While it lives, no file of this process may grow beyond so many bytes: a full disk, as far as write() can tell.
class file_size_limit {
public:
    explicit file_size_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN))
    {
        ::getrlimit(RLIMIT_FSIZE, &old_);
        rlimit lower = old_;
        lower.rlim_cur = bytes;
        ::setrlimit(RLIMIT_FSIZE, &lower);
    }
    file_size_limit(const file_size_limit&) = delete;
    file_size_limit& operator=(const file_size_limit&) = delete;
    ~file_size_limit()
    {
        ::setrlimit(RLIMIT_FSIZE, &old_);
        std::signal(SIGXFSZ, handler_);
    }

private:
    void (*handler_)(int);
    rlimit old_{};
};

template <class Action>
std::string problem(Action&& action)
{
    try {
        action();
    } catch (const heed::error& caught) {
        return caught.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("a new file, and an old one replaced")
{
    const temporary_directory directory;
    write_file(directory.path() / "file", "first");
    CHECK(directory.read("file") == "first");
    write_file(directory.path() / "file", "second, and longer");
    CHECK(directory.read("file") == "second, and longer");
    write_file(directory.path() / "file", "");
    CHECK(directory.read("file") == "");
    CHECK(directory.files() == 1);
}

TEST_CASE("until it is committed, the old file stands, and nothing is left if it never is")
{
    const temporary_directory directory;
    directory.write("file", "old");
    {
        atomic_file file(directory.path() / "file");
        file.write("new");
        CHECK(directory.read("file") == "old");
        CHECK(directory.files() == 2);
    }
    CHECK(directory.read("file") == "old");
    CHECK(directory.files() == 1);
}

TEST_CASE("two writers of one file do not mix")
{
    const temporary_directory directory;
    atomic_file one(directory.path() / "file"), two(directory.path() / "file");
    one.write("one");
    two.write("two");
    two.commit();
    CHECK(directory.read("file") == "two");
    one.commit();
    CHECK(directory.read("file") == "one");
    CHECK(directory.files() == 1);
    CHECK_THROWS_AS(one.write("more"), heed::error);
    CHECK_THROWS_AS(one.commit(), heed::error);
}

TEST_CASE("no room: the error says so and the old file is whole")
{
    const temporary_directory directory;
    const std::string name = directory.write("file", "old").string();
    const std::string much(100'000, 'x');
    std::string said;
    {
        const file_size_limit limit(5'000);
        said = problem([&] { write_file(name, much); });
    }
    CHECK(said == name + ": cannot write: File too large; what was there before is unchanged");
    CHECK(directory.read("file") == "old");
    CHECK(directory.files() == 1);
    write_file(name, much);
    CHECK(directory.read("file") == much);
}

TEST_CASE("no room on a device that is always full")
{
    if (!std::filesystem::exists("/dev/full")) return;
    const std::string said = problem([] { write_file("/dev/full", "anything"); });
    CHECK(said == "/dev/full: cannot write: No space left on device");
    CHECK(std::filesystem::is_character_file("/dev/full"));
}

TEST_CASE("a device is written to, not replaced")
{
    write_file("/dev/null", "anything");
    CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("a place where no file can be")
{
    const temporary_directory directory;
    const std::string here = directory.path().string();
    directory.write("file", "old");
    CHECK(problem([&] { write_file(here + "/none/file", "x"); }) ==
          here + "/none/file: cannot create a temporary beside it: No such file or directory");
    CHECK(problem([&] { write_file(here + "/file/file", "x"); }) ==
          here + "/file/file: cannot create a temporary beside it: Not a directory");
    CHECK(problem([&] { write_file(here, "x"); }) == here + ": cannot open for writing: Is a directory");
    CHECK(problem([&] { write_file("", "x"); }) != "no error");
    CHECK(directory.files() == 1);
}

TEST_CASE("a target that turns into a directory meanwhile: the rename fails, the temporary goes")
{
    const temporary_directory directory;
    const std::string name = (directory.path() / "file").string();
    atomic_file file(name);
    file.write("new");
    std::filesystem::create_directory(name);
    CHECK(problem([&] { file.commit(); }) ==
          name + ": cannot rename the temporary to it: Is a directory; what was there before is unchanged");
    CHECK(directory.files() == 1);
}

TEST_CASE("permissions are kept, links are followed, long names are no trouble")
{
    const temporary_directory directory;
    const auto file = directory.write("file", "old");
    std::filesystem::permissions(file, std::filesystem::perms(0640));
    write_file(file, "new");
    CHECK(std::filesystem::status(file).permissions() == std::filesystem::perms(0640));

    std::filesystem::create_symlink("file", directory.path() / "link");
    write_file(directory.path() / "link", "through the link");
    CHECK(std::filesystem::is_symlink(directory.path() / "link"));
    CHECK(directory.read("file") == "through the link");

    const std::string longest(255, 'n');
    write_file(directory.path() / longest, "x");
    CHECK(directory.read(longest) == "x");
    CHECK(directory.files() == 3);
}
