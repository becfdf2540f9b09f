#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench/compile_time.sh measures the compile time of heed for its users. Six files:
#
#   xtensor   includes only xtensor's container
#   heed      includes heed/attention.hpp and one mechanism                (target: at most 1.5 s more)
#   step      adds one step of that mechanism                              (the cost of a first program)
#   another   adds one step of a second mechanism with other policies      (the cost of one more policy)
#   function  includes heed and trains attention of many queries in tiles with a score function, forward and backward
#   functions adds the same training with another function                 (target: at most 1.0 s more with g++ -O2)
#
# Prints compiler, options, file and the median CPU time of the interleaved rounds in seconds, separated by tabs.
# Environment: FILES selects files (default: all), ROUNDS (5), COMPILERS ("g++ clang++").

set -euo pipefail
case ${1:-} in -h | --help) sed -n '/^$/q; 4,$s/^# \{0,1\}//p' "$0"; exit ;; esac
export LC_ALL=C

rounds=${ROUNDS:-5}
files=${FILES:-"xtensor heed step another function functions"}
compilers=${COMPILERS:-"g++ clang++"}
include=$(cd "$(dirname "${BASH_SOURCE[0]}")/../include" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo '#include <xtensor/xtensor.hpp>' >"$folder/xtensor.cpp"
cat >"$folder/heed.cpp" <<'END'
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/additive.hpp>
END
cat "$folder/heed.cpp" - >"$folder/step.cpp" <<'END'
using matrix = xt::xtensor<float, 2>;
using vector = xt::xtensor<float, 1>;
matrix step(const matrix& W, const matrix& U, const vector& v, const xt::xtensor<float, 3>& annotations, const matrix& query)
{
    const heed::attention attend{heed::score::additive{W, U, v}, heed::normalize::softmax{}, heed::combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory)).context;
}
END

cat "$folder/step.cpp" - >"$folder/another.cpp" <<'END'
#include <heed/normalize/sparsemax.hpp>
#include <heed/score/general.hpp>
matrix step(const matrix& W, const xt::xtensor<float, 3>& annotations, const matrix& query)
{
    const heed::attention attend{heed::score::general{W}, heed::normalize::sparsemax{}, heed::combine::weighted_sum{}};
    const auto memory = attend.on(annotations);
    return attend.step(memory, query, attend.start(memory)).context;
}
END

cat >"$folder/function.cpp" <<'END'
#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/modified.hpp>
#include <heed/score/scaled_dot.hpp>
using tensor = xt::xtensor<float, 3>;
template <class Function>
float train(const Function& f, const tensor& annotations, const tensor& queries, const tensor& by)
{
    const heed::attention attend{heed::score::modified{heed::score::scaled_dot{}, f}, heed::normalize::softmax{},
                                 heed::combine::weighted_sum{}};
    heed::ad::tape<float> tape;
    const auto q = tape.parameter(queries), h = tape.parameter(annotations);
    const auto lifted = heed::ad::lift(tape, attend);
    tape.backward(heed::ops::dot(lifted(lifted.on(h), q), by));
    return *tape.gradient(q).data;
}
float near(const tensor& annotations, const tensor& queries, const tensor& by)
{
    return train([](auto e, heed::score_index p) { return e - 0.1 * abs(p.query - p.key); }, annotations, queries, by);
}
END
cat "$folder/function.cpp" - >"$folder/functions.cpp" <<'END'
float capped(const tensor& annotations, const tensor& queries, const tensor& by)
{
    return train([](auto e, heed::score_index) { return 20 * tanh(e / 20); }, annotations, queries, by);
}
END

TIMEFORMAT='%U %S'
for _ in $(seq "$rounds"); do
    for compiler in $compilers; do
        command -v "$compiler" >/dev/null || continue
        for options in -fsyntax-only -O2; do
            for file in $files; do
                if ! seconds=$({ time "$compiler" -std=c++20 "$options" -c -I "$include" "$folder/$file.cpp" \
                    -o "$folder/$file.o" 2>"$folder/errors"; } 2>&1); then
                    echo "compile_time.sh: $compiler $options does not compile $file.cpp:" >&2
                    head -n 5 "$folder/errors" >&2
                    continue
                fi
                printf '%s\t%s\t%s\t%s\n' "$compiler" "$options" "$file" "$seconds"
            done
        done
    done
done | awk -F '[\t ]' '{ printf "%s\t%s\t%s\t%.3f\n", $1, $2, $3, $4 + $5 }' | sort -t "$(printf '\t')" -k1,3 -k4,4g |
    awk -F '\t' '
    function flush() { if (n) printf "%s\t%.3f\n", last, n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
    { group = $1 "\t" $2 "\t" $3; if (group != last) { flush(); n = 0; last = group } v[++n] = $4 }
    END { flush() }'
