// SPDX-License-Identifier: BSD-3-Clause
//
// twins: the results of each preset of heed::papers for a few given numbers, in JSON: inputs, settings, results, and
// the gradient with respect to every input. The Python files in this folder read it, compute the same with PyTorch, and
// compare.
//
//     twins bahdanau2015              # or `python3 bahdanau2015.py build/…/examples/twins`, which runs it
//
// test:
// test: luong2015

#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "papers.hpp"

namespace {

const std::pair<const char*, void (*)(const twins::presets&)> papers[] = {
    {"ainslie2023", twins::ainslie2023},
    {"bahdanau2015", twins::bahdanau2015},
    {"chiu2018", twins::chiu2018},
    {"choi2018", twins::choi2018},
    {"choromanski2021", twins::choromanski2021},
    {"correia2019", twins::correia2019},
    {"dao2024", twins::dao2024},
    {"deepseek2024", twins::deepseek2024},
    {"gehring2017", twins::gehring2017},
    {"gemma2024", twins::gemma2024},
    {"golovneva2024", twins::golovneva2024},
    {"graves2013", twins::graves2013},
    {"gupta2021", twins::gupta2021},
    {"henry2020", twins::henry2020},
    {"katharopoulos2020", twins::katharopoulos2020},
    {"lin2025", twins::lin2025},
    {"luong2015", twins::luong2015},
    {"mi2016", twins::mi2016},
    {"openai2025", twins::openai2025},
    {"press2022", twins::press2022},
    {"qiu2025", twins::qiu2025},
    {"raffel2017", twins::raffel2017},
    {"raffel2020", twins::raffel2020},
    {"ramapuram2025", twins::ramapuram2025},
    {"sankaran2016", twins::sankaran2016},
    {"schlag2021", twins::schlag2021},
    {"shaw2018", twins::shaw2018},
    {"shazeer2020", twins::shazeer2020},
    {"su2021", twins::su2021},
    {"sun2023", twins::sun2023},
    {"tan2025", twins::tan2025},
    {"vaswani2017", twins::vaswani2017},
    {"wu2019", twins::wu2019},
    {"xiao2024", twins::xiao2024},
    {"xu2015", twins::xu2015},
    {"yang2024", twins::yang2024},
    {"yang2025", twins::yang2025},
    {"ye2024", twins::ye2024},
    {"yin2016", twins::yin2016},
};

/// All presets of a paper, as an object.
void print(void (*paper)(const twins::presets&))
{
    const char* before = "{\n";
    paper([&](const std::string& name, const auto& fill) {
        twins::twin each(name);
        fill(each);
        std::printf("%s%s", before, each.text().c_str());
        before = ",\n";
    });
    std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        if (argc == 1) {
            for (const auto& [name, paper] : papers) std::printf("%s\n", name);
            return 0;
        }
        for (const auto& [name, paper] : papers) {
            if (std::string(argv[1]) != name) continue;
            print(paper);
            return 0;
        }
        std::fprintf(stderr, "twins: unknown paper %s; run without arguments to list the names\n", argv[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "twins: %s\n", error.what());
    }
    return 1;
}
