# SPDX-License-Identifier: BSD-3-Clause
#
# The tables of docs/explanation/accuracy.md, from the lines of tests/every_float. Widths with the same bits share a row.
BEGIN {
    FS = "\t"
    title["portable"] = "portable"; title["sse2"] = "SSE2"; title["avx2"] = "AVX2"; title["avx512"] = "AVX-512"
    order["portable"] = 1; order["sse2"] = 2; order["avx2"] = 3; order["avx512"] = 4
    without_direction = "^(sin|cos|gelu|gelu_erf|silu|gelu_slope|gelu_erf_slope|silu_slope)$"
}
{
    if (!($1 in seen)) { seen[$1] = 1; functions[++count] = $1 }
    for (i = 1; i <= NF; ++i) cell[$1, $2, order[$3], i] = $i
    if (!($3 in widths)) widths[$3] = order[$3]
    name[order[$3]] = title[$3]
    if ($19 + $21 + $25 > 0) wrong = 1
    if ($19 + $21 + $23 + $25 > 0) {
        what = sprintf("- `%s`, %s:%s%s%s%s; ", $1, $2, fault($19, $20, "NaN or not"), fault($21, $22, "not odd or even"),
                       fault($23, $24, "sign of 0"), fault($25, $26, "position"))
        if (!(what in faulty)) fault_texts[++fault_count] = what
        faulty[what] = faulty[what] (what in faulty && faulty[what] != "" ? ", " : "") title[$3]
    }
}
function fault(n, at, what) { return n > 0 ? sprintf(" %s, inputs: %s, the nearest to 0 is %s", what, n, minus(at)) : "" }
function rounded(x) { return x > 1000 ? "> 1000" : x == 0 ? "0" : sprintf("%.3f", x) }
function minus(text) { gsub(/-/, "−", text); return text }
function small(x) { return x == 0 ? "" : sprintf("%.2g", x) }

# f of each group of widths whose column `by` is equal.
function rows(type, by, kind,    i, w, v, f, done, who) {
    for (i = 1; i <= count; ++i) {
        f = functions[i]
        split("", done)
        for (w = 1; w <= 4; ++w) {
            if (!((f, type, w, 1) in cell) || w in done) continue
            who = ""
            for (v = w; v <= 4; ++v) {
                if (!((f, type, v, 1) in cell) || cell[f, type, v, by] != cell[f, type, w, by]) continue
                done[v] = 1
                who = who (who == "" ? "" : ", ") name[v]
            }
            row(f, type, w, who == "portable, SSE2, AVX2, AVX-512" ? "all" : who, kind)
        }
    }
}
function row(f, type, w, who, kind,    text, i, special) {
    text = "| `" f "` | " who " |"
    if (kind == "specials") {
        split(cell[f, type, w, 30], special, ",")
        for (i = 1; i <= 11; ++i) text = text " " minus(special[i]) " |"
        print text
        return
    }
    text = text " " rounded(cell[f, type, w, 5]) " | " minus(cell[f, type, w, 6]) " |"
    if (type == "float") text = text " " (cell[f, type, w, 7] > 0 ? rounded(cell[f, type, w, 7]) : "") " |"
    text = text " " (cell[f, type, w, 9] > 0 ? rounded(cell[f, type, w, 9]) : "") " | " minus(small(cell[f, type, w, 13])) " |"
    if (type == "float") {
        if (f ~ without_direction) text = text " |"
        else if (cell[f, type, w, 15] == 0) text = text " never |"
        else text = text " at " cell[f, type, w, 15] ", by " (cell[f, type, w, 11] > 1000 ? "> 1000" : cell[f, type, w, 11]) " |"
    }
    print text
}
END {
    print "\n### Floats\n"
    print "| function | registers | error, ulp | at | subnormal results, 2⁻¹⁴⁹ | results up to 1, 2⁻²³ | 0 instead of up to | turns |"
    print "|---|---|---|---|---|---|---|---|"
    rows("float", 29, "errors")
    print "\n### Special values of floats\n"
    print "| function | registers | 0 | −0 | 1 | −1 | inf | −inf | NaN | 2⁻¹⁴⁹ | 2⁻¹²⁶ | largest | −largest |"
    print "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    rows("float", 30, "specials")
    print "\n### A sample of doubles\n"
    print "| function | registers | error, ulp | at | results up to 1, 2⁻⁵² | 0 instead of up to |"
    print "|---|---|---|---|---|---|"
    rows("double", 29, "errors")
    print "\n### Faults\n"
    for (i = 1; i <= fault_count; ++i) print fault_texts[i] faulty[fault_texts[i]]
    if (!fault_count) print "None."
    exit wrong
}
