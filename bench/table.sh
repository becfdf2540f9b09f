#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench/table.sh DIR: prints the table of ratios, as Markdown, from the JSON that run.sh wrote to DIR.

set -euo pipefail
case ${1:-} in -h | --help) sed -n '/^$/q; 4,$s/^# \{0,1\}//p' "$0"; exit ;; esac
export LC_ALL=C  # the same sort order and decimal point everywhere

folder=${1:?usage: bench/table.sh DIR}
shopt -s nullglob
files=("$folder"/round-*.json)
[ ${#files[@]} -gt 0 ] || { echo "table.sh: no round-*.json in $folder; run bench/run.sh first" >&2; exit 1; }

# threads, side, name, microseconds (or a count, for allocations): one line per measurement
awk '
    FNR == 1 { file = FILENAME; sub(/.*\/round-/, "", file); split(file, part, "-"); side = part[1]; threads = part[2]; inside = 0 }
    /"benchmarks":/ { inside = 1 }
    !inside { next }
    { key = $1; gsub(/[":]/, "", key); value = $0; sub(/^[^:]*: */, "", value); gsub(/[",]/, "", value) }
    key == "name" { name = value; sub(/\/(iterations:|real_time).*/, "", name); time = ""; count = ""; kind = ""; ratio = "" }
    key == "run_type" { kind = value }
    key == "real_time" { time = value }
    key == "time_unit" { scale = value == "ns" ? 0.001 : value == "ms" ? 1000 : value == "s" ? 1000000 : 1 }
    key == "allocations" { count = value }
    key == "composed_us" { composed = value }
    key == "by_hand_us" { by_hand = value }
    key == "ratio" { ratio = value }
    key == "digest" && kind == "iteration" {
        work = name; sub(/#.*/, "", work)
        if (!(work in digest)) digest[work] = value
        else if ((value - digest[work]) ^ 2 > (1e-3 * value) ^ 2) differ[name] = value " and " digest[work]
    }
    /^ *}/ && name != "" {
        if (ratio != "") {
            printf "%d\t%s\t%s\t%.6g\n%d\t%s\t%s#by-hand\t%.6g\n%d\t%s\t%s#ratio\t%.6g\n", threads, side, name, composed, threads, side, name, by_hand, threads, side, name, ratio
        } else if (kind == "iteration") printf "%d\t%s\t%s\t%.6g\n", threads, side, name, count != "" ? count : time * scale
        name = ""
    }
    END { for (work in differ) print "table.sh: the results of " work " differ: " differ[work] > "/dev/stderr" }
' "${files[@]}" | sort -t "$(printf '\t')" -k1,1n -k2,2 -k3,3 -k4,4g |
    awk -F '\t' '
        function flush() { if (n) printf "%s\t%.6g\t%d\n", last, n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2, n }
        { group = $1 "\t" $2 "\t" $3; if (group != last) { flush(); n = 0; last = group } v[++n] = $4 }
        END { flush() }
    ' >"$folder/medians.tsv"

compile=()
if [ -f "$folder/compile_time.tsv" ]; then compile=("$folder/compile_time.tsv"); fi
awk -F '\t' '
    function ratio(a, b) { return a > 0 && b > 0 ? a / b : 0 }
    function shown(x, digits) { return x > 0 ? sprintf("%." digits "f", x) : "–" }
    function verdict(known, good) { return !known ? "not measured" : good ? "yes" : "**no**" }
    function median(threads, side, name) { return m[threads, side, name] }
    function floor_of(threads, name, other) {
        other = median(threads, "heed", name "#openblas-threads")
        name = median(threads, "heed", name)
        return other > 0 && (other < name || !name) ? other : name
    }
    # geometric mean and minimum of other/heed over the nine sizes
    function against(threads, pass, class, way, b, t, r, sum, count) {
        least = 0; where = ""
        for (b = 1; b <= 3; ++b) for (t = 1; t <= 3; ++t) {
            name = "additive/" pass "/" class "/B" B[b] "/T" T[t]
            r = ratio(median(threads, "peer", name way), median(threads, "heed", name))
            if (!r) continue
            sum += log(r); ++count
            if (!least || r < least) { least = r; where = "B" B[b] " T" T[t] }
        }
        return count ? exp(sum / count) : 0
    }
    FILENAME ~ /compile_time/ { compile[$1, $2, $3] = $4; compilers[$1] = 1; next }
    { m[$1, $2, $3] = $4; threads_seen[$1] = 1; if ($5 > rounds) rounds = $5
        if ($3 ~ /^composition\/[^#]*$/) pairs[++number_of_pairs] = $3 }
    END {
        split("1 12 80", B, " "); split("20 50 200", T, " ")
        classes[1] = "1000-2000-1000"; classes[2] = "256-512-256"
        bar["forward", 1] = 2.5; bar["forward_backward", 1] = 2; least_bar[1] = 1.4
        bar["forward", 2] = 4; bar["forward_backward", 2] = 3; least_bar[2] = 2
        passes[1] = "forward"; passes[2] = "forward_backward"; label["forward"] = "forward"; label["forward_backward"] = "forward + backward"
        dash = "–"

        for (threads = 1; threads <= 64; ++threads) {
            if (!(threads in threads_seen)) continue
            plural = threads == 1 ? "" : "s"
            printf "## %d thread%s\n\n", threads, plural
            print "| work | measured | target | reached |"; print "|---|---|---|---|"
            for (c = 1; c <= 2; ++c) for (p = 1; p <= 2; ++p) {
                g = against(threads, passes[p], classes[c], "")
                printf "| additive step %s, %s, against libtorch | %s×, min %s× (%s) | %s×, min %s× | %s |\n", classes[c], label[passes[p]], \
                    shown(g, 2), shown(least, 2), where, bar[passes[p], c], least_bar[c], verdict(g, g >= bar[passes[p], c] && least >= least_bar[c])
                if (p == 2) {
                    g = against(threads, passes[p], classes[c], "#by-hand")
                    if (g) printf "| … libtorch with a hand-written backward | %s×, min %s× (%s) | %s | %s |\n", shown(g, 2), shown(least, 2), where, dash, dash
                }
            }
            for (large = 1; large >= 0; --large) {
                worst = 0; where = ""
                for (c = 1; c <= 2; ++c) for (b = 1; b <= 3; ++b) for (t = 1; t <= 3; ++t) {
                    if ((B[b] * T[t] >= 2000) != large) continue
                    tail = "/" classes[c] "/B" B[b] "/T" T[t]
                    r = ratio(median(threads, "heed", "per_dimension/forward" tail), floor_of(threads, "per_dimension/products" tail))
                    if (r > worst) { worst = r; where = classes[c] " B" B[b] " T" T[t] }
                }
                limit = large ? 1.35 : 1.6
                printf "| per-dimension step, B·T %s 2000, against its products alone | at most %s× (%s) | at most %s× | %s |\n", \
                    large ? "≥" : "<", shown(worst, 2), where, limit, verdict(worst, worst <= limit)
            }
            step = median(threads, "heed", "training/step")
            r = ratio(step, floor_of(threads, "training/products"))
            printf "| RNNsearch training step, against its products alone | %s× | at most 1.35× | %s |\n", shown(r, 2), verdict(r, r <= 1.35)
            r = ratio(median(threads, "peer", "training/step"), step)
            printf "| RNNsearch training step, against libtorch | %s× | 1.5× | %s |\n", shown(r, 2), verdict(r, r >= 1.5)
            for (key in m) {
                split(key, at, SUBSEP)
                if (at[1] == threads && at[2] == "peer" && at[3] ~ /^training\/step#/) {
                    way = at[3]; sub(/.*#/, "", way)
                    printf "| … libtorch, %s | %s× | %s | %s |\n", way, shown(ratio(m[key], step), 2), dash, dash
                }
            }
            for (large = 1; large >= 0; --large) {
                worst = 0; where = ""
                for (i = 1; i <= number_of_pairs; ++i) {
                    r = median(threads, "heed", pairs[i] "#ratio"); split(pairs[i], part, "/")
                    if (r > worst && (part[4] == "medium") == large) { worst = r; gsub(/_/, " ", part[3]); where = part[2] ", " part[3] }
                }
                if (worst) printf "| composed against hand-written, %s | at most %s× (%s) | at most %s× | %s |\n", \
                    large ? "256 numbers, 50 words, 16 sentences" : "64 numbers, 10 words, 1 sentence", shown(worst, 3), where, large ? "1.02" : "1.10", verdict(worst, worst <= (large ? 1.02 : 1.1))
            }
            split("additive,inner products", scores, ","); split(",_dot", of_score, ","); split("1 12", batches, " ")
            for (i = 1; i <= 2; ++i) for (b = 1; b <= 2; ++b) {
                tail = of_score[i] "/256-512-256/B" batches[b] "/T1000"
                r = ratio(median(threads, "heed", "windows/local" tail), median(threads, "heed", "windows/global" tail))
                if (r && i == 1 && b == 1) {
                    of_product = ratio(median(threads, "heed", "windows/local" tail), floor_of(threads, "windows/products" tail))
                    printf "| local, 21 of 1000 positions: %s, batch 1, against the product of the query alone (%s%% of global) | %s× | at most 1.25× | %s |\n", \
                        scores[i], shown(100 * r, 1), shown(of_product, 2), verdict(of_product, of_product <= 1.25)
                } else if (r) printf "| local, 21 of 1000 positions, against global: %s, batch %d | %s%% | under 5%% | %s |\n", \
                    scores[i], batches[b], shown(100 * r, 1), verdict(r, r < 0.05)
            }
            known = 0; most = 0
            for (key in m) {
                split(key, at, SUBSEP)
                if (at[1] == threads && at[3] ~ /^allocations\//) { known = 1; if (m[key] > most) most = m[key] }
            }
            if (known) printf "| allocations in a steady-state step | %g | 0 | %s |\n", most, verdict(1, most == 0)
            print ""

            printf "Additive step, medians of %d rounds in µs, %d thread%s:\n\n", rounds, threads, plural
            print "| Q-D-A | B | T | forward: heed | libtorch | ratio | forward + backward: heed | libtorch | ratio | hand-written | ratio |"
            print "|---|---|---|---|---|---|---|---|---|---|---|"
            for (c = 1; c <= 2; ++c) for (b = 1; b <= 3; ++b) for (t = 1; t <= 3; ++t) {
                tail = "/" classes[c] "/B" B[b] "/T" T[t]
                printf "| %s | %d | %d ", classes[c], B[b], T[t]
                for (p = 1; p <= 2; ++p) {
                    mine = median(threads, "heed", "additive/" passes[p] tail); other = median(threads, "peer", "additive/" passes[p] tail)
                    printf "| %s | %s | %s ", shown(mine, 1), shown(other, 1), shown(ratio(other, mine), 2)
                }
                other = median(threads, "peer", "additive/forward_backward" tail "#by-hand")
                printf "| %s | %s |\n", shown(other, 1), shown(ratio(other, mine), 2)
            }
            print ""
            printf "Per-dimension step, forward, µs, %d thread%s:\n\n", threads, plural
            print "| Q-D-A | B | T | heed | products alone | heed / products | libtorch | libtorch / heed |"; print "|---|---|---|---|---|---|---|---|"
            for (c = 1; c <= 2; ++c) for (b = 1; b <= 3; ++b) for (t = 1; t <= 3; ++t) {
                tail = "/" classes[c] "/B" B[b] "/T" T[t]
                mine = median(threads, "heed", "per_dimension/forward" tail); low = floor_of(threads, "per_dimension/products" tail)
                other = median(threads, "peer", "per_dimension/forward" tail)
                printf "| %s | %d | %d | %s | %s | %s | %s | %s |\n", classes[c], B[b], T[t], shown(mine, 1), shown(low, 1), shown(ratio(mine, low), 2), shown(other, 1), shown(ratio(other, mine), 2)
            }
            printf "\nTraining step, ms, %d thread%s: heed %s, products alone %s, libtorch %s\n\n", threads, plural, \
                shown(step / 1000, 1), shown(floor_of(threads, "training/products") / 1000, 1), shown(median(threads, "peer", "training/step") / 1000, 1)
        }
        if (number_of_pairs) {
            print "## Composed against hand-written\n"
            print "| mechanism | form | size | composed, µs | hand-written, µs | overhead, ns | ratio |"; print "|---|---|---|---|---|---|---|"
            for (i = 1; i <= number_of_pairs; ++i) {
                mine = median(1, "heed", pairs[i]); other = median(1, "heed", pairs[i] "#by-hand")
                split(pairs[i], part, "/"); gsub(/_/, " ", part[3])
                printf "| %s | %s | %s | %.3f | %.3f | %.0f | %s |\n", part[2], part[3], part[4], mine, other, 1000 * (mine - other), shown(median(1, "heed", pairs[i] "#ratio"), 3)
            }
            print ""
        }
        for (c in compilers) {
            if (!printed++) { print "## Compile time\n"; print "| compiler | | xtensor alone, s | heed included, s | difference | target | reached | one step compiled, s | two mechanisms, s | one more mechanism |"; print "|---|---|---|---|---|---|---|---|---|---|" }
            split("-fsyntax-only -O2", ways, " ")
            for (w = 1; w <= 2; ++w) {
                a = compile[c, ways[w], "xtensor"]; h = compile[c, ways[w], "heed"]
                s = compile[c, ways[w], "step"]; two = compile[c, ways[w], "another"]
                if (a) printf "| %s | %s | %s | %s | %s | +1.5 | %s | %s | %s | %s |\n", c, ways[w], shown(a, 2), shown(h, 2), h ? sprintf("+%.2f", h - a) : dash, verdict(h, h - a <= 1.5), shown(s, 2), shown(two, 2), s && two ? sprintf("+%.2f", two - s) : dash
            }
        }
    }
' "$folder/medians.tsv" ${compile[@]+"${compile[@]}"}
