// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/metrics/ter.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <support/approx.hpp>

using namespace heed::metrics;
using heed::text::sentence;
using heed::text::split;

namespace {

ter_counts edits(const std::string& hypothesis, const std::string& reference)
{
    return ter_edits(split(hypothesis), split(reference));
}

}  // namespace

TEST_CASE("insertions, deletions and replacements count")
{
    CHECK(edits("a b c", "a b c").edits == 0);
    CHECK(edits("a b", "a b c").edits == 1);
    CHECK(edits("a b c", "a c").edits == 1);
    CHECK(edits("a x c", "a b c").edits == 1);
    CHECK(edits("d e f", "a b c").edits == 3);
    CHECK(edits("d e f", "a b c").shifts == 0);
    CHECK(edits("A b", "a b").edits == 1);  // case counts
    CHECK(edits("x y z", "a").edits == 3);
    CHECK(ter(edits("x y z", "a")) == 300.0);
}

TEST_CASE("a misplaced phrase costs one edit for any length")
{
    const ter_counts one = edits("d e f g h a b c", "a b c d e f g h");  // a test of sacrebleu: 1/8
    CHECK(one.edits == 1);
    CHECK(one.shifts == 1);
    CHECK(ter(one) == 12.5);
    CHECK(edits("b a", "a b").edits == 1);
    // Two phrases have swapped places with two others, and one word differs.
    const ter_counts two = edits("c d a b x g h e f", "a b c d y e f g h");
    CHECK(two.shifts == 2);
    CHECK(two.edits == 3);
    // Snover et al. 2006, section 3: "THIS WEEK" moves, "AMERICAN" is inserted, two words are replaced: 4 edits.
    const ter_counts snover =
        edits("THIS WEEK THE SAUDIS denied information published in the new york times",
              "SAUDI ARABIA denied THIS WEEK information published in the AMERICAN new york times");
    CHECK(snover.edits == 4);
    CHECK(snover.shifts == 1);
    CHECK(snover.reference_length == 13);
}

TEST_CASE("a phrase of more than ten words is moved in parts, and no phrase moves farther than fifty places")
{
    std::string ten, eleven, far_from, far_to;
    for (char letter = 'a'; letter <= 'j'; ++letter) (ten += letter) += ' ';
    eleven = ten + "k ";
    CHECK(edits(ten + "x y z u v w q r s t p", "x y z u v w q r s t p " + ten).edits == 1);
    CHECK(edits(eleven + "x y z u v w q r s t p o", "x y z u v w q r s t p o " + eleven).edits == 2);
    for (int i = 0; i < 60; ++i) far_to += "w" + std::to_string(i) + " ";
    CHECK(edits("m " + far_to, far_to + "m").edits == 2);                                // removed here, inserted there
    CHECK(edits("m " + far_to.substr(0, 190), far_to.substr(0, 190) + "m").edits == 1);  // 50 words
}

TEST_CASE("each rule of the search matters in an example; edits equal sacrebleu's")
{
    // At most 1000 moves are tried.
    CHECK(edits("1 1 0 0 1 1 0 0 1 1 0 1 1 1 0 0 1 1 0 1 0 0 0 0 0 0 1 1 1 1 1 0 1 0 1 1 0 0 1",
                "1 1 0 0 1 1 0 1 1 1 1 1 1 0 1 0 0 1 0 1 1 0 1 0 0 0 0 1 0 0 1 1 0 1 0 1 1 0 0 1")
              .edits == 6);
    // Among equal gains, the longest phrase.
    CHECK(edits("0 2 0 0 2 2 1 2 0 0 0", "0 0 2 2 0 1 0 2 2 0").edits == 4);
    CHECK(edits("2 0 0 2 1 1 1 2 1 2 1", "1 2 1 0 1 0 2 2 2 1").edits == 4);
    // Among equally long phrases, the leftmost, to the leftmost position.
    CHECK(edits("7 3 0 9 3 9 8 4 2", "8 3 1 9 4 7 6 3 7 2").edits == 7);
    CHECK(edits("3 0 3 5 9 5 3 9 2 6 7 0 2 0 8 2 2 7 6", "3 0 3 8 9 7 6 0 2 2 2 2 8 6 7 0 3 9 2 5").edits == 8);
    // A position inside the phrase means that many places to the right.
    CHECK(edits("3 2 4 1 4 0 3 0 1 4 1 0 1 0 1 1 0 4 3 0 1", "4 1 0 4 1 3 0 1 4 0 3 0 1 4 1 0 1 0 1 1").edits == 6);
    // A phrase is not moved onto itself, nor if it or its counterpart is entirely correct.
    CHECK(edits("7 9 3 9 4", "7 4 7 9 3").edits == 3);
    CHECK(edits("0 0 1 0 0 1 0 0 1 1 1 1 0 1 0 1 0 0", "0 0 1 1 0 0 0 1 0 0 1 0 0 1 0 0 1 0 0 1").edits == 5);
    CHECK(edits("0 0 1 1 1 1 0 1 1 1 1 1 0 1 1 1 0 1 0 0", "1 1 0 1 0 1 1 0 1 1 1 0 0 1 1 1 0 1 1 0").edits == 3);
    // Among equally short edits, a replacement before a deletion.
    CHECK(edits("0 0 0 0 1 1 0 0 0 1", "0 1 1 1 0 0 0 0 0 0").edits == 3);
    // The distance covers only 25 words on each side of the diagonal.
    CHECK(edits("5 9 5",
                "1 1 4 7 1 0 4 9 7 4 6 5 0 7 5 2 9 1 7 0 3 4 2 3 6 6 7 1 2 7 6 8 4 2 6 8 4 6 5 6 3 2 1 2 2 3 3 0 7 "
                "9 2 4 4 0 2 6 8 5 9 9 5 2 8 9 0 7 8 6 6 6")
              .edits == 68);
}

TEST_CASE("empty sentences")
{
    CHECK(edits("", "a").edits == 1);
    CHECK(ter(edits("", "a")) == 100.0);
    CHECK(edits("a", "").edits == 1);
    CHECK(ter(edits("a", "")) == 100.0);  // no reference word to divide by
    CHECK(ter(edits("", "")) == 0.0);
    CHECK(ter(std::vector<sentence>{}, std::vector<sentence>{}) == 0.0);
}

TEST_CASE("edits of a corpus are summed before dividing; a sacrebleu test from WMT 2019")
{
    const auto lines = [](const std::vector<const char*>& all) {
        std::vector<sentence> result;
        for (const char* const line : all) result.push_back(split(line));
        return result;
    };
    const auto hypotheses = lines({
        "wählen Sie \" Bild neu berechnen , \" um beim Ändern der Bildgröße Pixel hinzuzufügen oder zu entfernen , "
        "damit das "
        "Bild ungefähr dieselbe Größe aufweist wie die andere Größe .",
        "wenn Sie alle Aufgaben im aktuellen Dokument aktualisieren möchten , wählen Sie im Menü des "
        "Aufgabenbedienfelds die "
        "Option \" Alle Aufgaben aktualisieren . \"",
        "klicken Sie auf der Registerkarte \" Optionen \" auf die Schaltfläche \" Benutzerdefiniert \" und geben Sie "
        "Werte "
        "für \" Fehlerkorrektur-Level \" und \" Y / X-Verhältnis \" ein .",
        "Sie können beispielsweise ein Dokument erstellen , das ein Auto über die Bühne enthält .",
        "wählen Sie im Dialogfeld \" Neu aus Vorlage \" eine Vorlage aus und klicken Sie auf \" Neu . \"",
    });
    const auto references = lines({
        "wählen Sie \" Bild neu berechnen , \" um beim Ändern der Bildgröße Pixel hinzuzufügen oder zu entfernen , "
        "damit die "
        "Darstellung des Bildes in einer anderen Größe beibehalten wird .",
        "wenn Sie alle Aufgaben im aktuellen Dokument aktualisieren möchten , wählen Sie im Menü des "
        "Aufgabenbedienfelds die "
        "Option \" Alle Aufgaben aktualisieren . \"",
        "klicken Sie auf der Registerkarte \" Optionen \" auf die Schaltfläche \" Benutzerdefiniert \" und geben Sie "
        "für \" "
        "Fehlerkorrektur-Level \" und \" Y / X-Verhältnis \" niedrigere Werte ein .",
        "Sie können beispielsweise ein Dokument erstellen , das ein Auto enthalt , das sich über die Bühne bewegt .",
        "wählen Sie im Dialogfeld \" Neu aus Vorlage \" eine Vorlage aus und klicken Sie auf \" Neu . \"",
    });
    CHECK(ter(hypotheses, references) == support::approx(13.6));
    CHECK(ter(references, references) == 0.0);
    ter_counts sum;
    for (const ter_counts& each : ter_statistics(hypotheses, references)) sum += each;
    CHECK(sum.edits == 17);
    CHECK(sum.reference_length == 125);
}

TEST_CASE("degenerate output of a model does not hang the metric")
{
    const sentence word(3000, "the");
    sentence text;
    for (int i = 0; i < 3000; ++i) text.push_back(std::to_string(i % 7));
    CHECK(ter_edits(word, text).edits == 3000);
    CHECK(ter_edits(sentence(3000, "1"), sentence(2, "1")).edits == 2998);
    CHECK(ter_edits(sentence(2, "1"), sentence(3000, "1")).edits == 2998);
}

TEST_CASE("a misplaced phrase of a long text is one shift")
{
    sentence text;
    for (int i = 0; i < 3000; ++i) text.push_back(std::to_string(i));
    sentence moved = text;
    std::rotate(moved.begin() + 100, moved.begin() + 103, moved.begin() + 120);
    moved[2900] = "x";
    const ter_counts counts = ter_edits(moved, text);
    CHECK(counts.edits == 2);
    CHECK(counts.shifts == 1);
}

TEST_CASE("TB = (TER - BLEU) / 2")
{
    CHECK(tb(60, 20) == 20);
    CHECK(tb(0, 100) == -50);
}

TEST_CASE("with several references, the fewest edits and the mean length are used")
{
    const sentence hypothesis = split("a b c d");
    // 2 edits (one word missing, one wrong), 1 edit, 3 edits; 5, 4 and 3 words.
    const std::vector<sentence> references{split("a b x d e"), split("a b c x"), split("x y d")};
    const ter_counts counts = ter_edits(hypothesis, references);
    CHECK(counts.edits == 1);
    CHECK(counts.reference_length == 4);
    CHECK(ter(counts) == 25.0);
    CHECK(ter_edits(hypothesis, std::vector<sentence>{split("a b c d"), split("a")}).reference_length == 2.5);
    // Shifts are those of the reference with the fewest edits.
    CHECK(ter_edits(hypothesis, std::vector<sentence>{split("w x y z"), split("d a b c")}).shifts == 1);
    const std::vector<std::vector<sentence>> sets{{references[0], split("a")}, {references[1], split("b c")}};
    const std::vector<ter_counts> each = ter_statistics(std::vector<sentence>{hypothesis, split("b")}, sets);
    CHECK(each[0].edits == 1);
    CHECK(each[0].reference_length == 4.5);
    CHECK(each[1].edits == 1);
    CHECK(each[1].reference_length == 1.5);
    CHECK_THROWS_WITH_AS(ter_edits(hypothesis, std::vector<sentence>{}),
                         "ter: a hypothesis has no reference; at least one is required", heed::error);
    CHECK_THROWS_WITH_AS(ter_statistics(std::vector<sentence>(2), std::vector<std::vector<sentence>>{}),
                         "ter: no references; each sentence requires at least one", heed::error);
    CHECK_THROWS_WITH_AS(ter_statistics(std::vector<sentence>(1), sets),
                         "ter: 1 hypothesis but 2 references; expected one of each per sentence", heed::error);
}

TEST_CASE("the numbers of hypotheses and references must be equal")
{
    const std::vector<sentence> two(2), three(3);
    CHECK_THROWS_WITH_AS(ter(two, three), "ter: 2 hypotheses but 3 references; expected one of each per sentence",
                         heed::error);
}
