#!/usr/bin/awk -f
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: awk -f scripts/word_classes.awk TEXT >TAGS
#
# Prints a class for each word of English captions (lower case, tokenized), based on word lists and one ending. The input
# of `translate dimensions --tags`, which finds the classes that dimensions of an attention attend to.
function put(tag, words,  n, i, w) { n = split(words, w, " "); for (i = 1; i <= n; ++i) tag_of[w[i]] = tag }
BEGIN {
    put("article", "a an the")
    put("preposition", "in on at of with by for from into through over under behind near down up along across around off onto against between next front to")
    put("conjunction", "and while as or that who")
    put("be", "is are being be was")
    put("possessive", "his her their its")
    put("number", "two three four five six several many some")
    put("color", "red blue white black green yellow orange brown pink gray gray purple blond dark colorful")
    put("person", "man woman men women boy girl boys girls child children people person dog dogs guy lady player players group crowd couple baby kids worker workers")
    put("clothing", "shirt hat dress jacket pants jeans shorts suit uniform t-shirt helmet sunglasses coat clothing sweater vest glasses")
    put("punctuation", ". , \" '")
}
{ for (i = 1; i <= NF; ++i) printf "%s%s", ($i in tag_of ? tag_of[$i] : $i ~ /..ing$/ ? "-ing" : "other"), i < NF ? " " : "\n" }
