// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>

/// Checks the numbers and statements in the text of a step.
namespace course {

/// Prints `what` and the value, and ends the program if the value differs from `promised` at this number of decimals.
inline void says(const std::string& what, double value, double promised, int digits = 3)
{
    std::printf("%s: %.*f\n", what.c_str(), digits, value);
    if (std::abs(value - promised) <= 0.5000001 * std::pow(10.0, -digits)) return;
    std::fprintf(stderr, "but the text says %.*f\n", digits, promised);
    std::exit(1);
}

/// Prints a statement and whether it is true, and ends the program if it is not.
inline void holds(const std::string& what, bool truth)
{
    std::printf("%s: %s\n", what.c_str(), truth ? "yes" : "no");
    if (!truth) std::exit(1);
}

/// Thrown by an exercise that is not solved yet.
struct not_yet : std::logic_error {
    not_yet() : std::logic_error("the function is still empty") {}
};

/// Grades the exercises of a step. Each has a name, a title, and a check that returns an error message, or an empty
/// text for a right answer. `return course::graded({…});` ends main.
struct exercise {
    std::string name, asked;
    std::function<std::string()> check;
};
inline int graded(const std::initializer_list<exercise>& exercises)
{
    int open = 0;
    for (const exercise& e : exercises) {
        std::string wrong;
        std::printf("%s) %s: ", e.name.c_str(), e.asked.c_str());
        std::fflush(stdout);  // if an answer crashes, the last line names the exercise
        try {
            wrong = e.check();
        } catch (const std::exception& error) {
            wrong = error.what();
        }
        std::printf("%s%s\n", wrong.empty() ? "done" : "not yet: ", wrong.c_str());
        if (!wrong.empty()) ++open;
    }
    return open == 0 ? 0 : 1;
}

/// Returns an empty text if |value - expected| <= within * (1 + |expected|), else an error message.
inline std::string same(const std::string& what, double value, double expected, double within = 1e-6)
{
    if (std::abs(value - expected) <= within * (1 + std::abs(expected))) return {};
    char text[200];
    const bool near = std::abs(value - expected) < 1e-4 * (1 + std::abs(expected));
    std::snprintf(text, sizeof text, near ? " is %.12g, but should be %.12g" : " is %g, but should be %g", value,
                  expected);
    return what + text;
}

}  // namespace course
