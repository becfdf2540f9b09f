// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include <unistd.h>

#include <heed/train/training_lock.hpp>
#include <support/temporary_directory.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::contains;
using support::message_of;

TEST_CASE("a model is trained by one run at a time, and a file that is not a lock is kept")
{
    const temporary_directory here;
    const auto path = here.path() / "model";
    std::filesystem::create_symlink("model", here.path() / "link");
    {
        const train::training_lock alone(path);
        CHECK(alone.not_locked().empty());
        for (const char* name : {"model", "link", "./model"}) {
            const auto again = here.path() / name;
            const std::string message = message_of<error>([&] { const train::training_lock second(again); });
            CHECK(contains(message,
                           again.string() + ": is being trained by process " + std::to_string(::getpid()) + " on "));
            CHECK(contains(message, "; wait until that run ends, or stop it, or write to another file"));
        }
        const train::training_lock another(here.path() / "other");
    }
    CHECK(here.files() == 1);  // the link
    const train::training_lock free_again(path);
    here.write(".mine.lock", "notes");
    CHECK(contains(message_of<error>([&] { const train::training_lock mine(here.path() / "mine"); }),
                   ".mine.lock: is not a lock of this program"));
    CHECK(here.read(".mine.lock") == "notes");
}
