# SPDX-License-Identifier: BSD-3-Clause
"""Source text as HTML: comments, strings, numbers and keywords are colored, and each line is an anchor."""

import html
import re

KEYWORDS = {
    "cpp": """alignas auto bool break case catch char class concept const consteval constexpr constinit continue decltype default
        delete do double else enum explicit extern false float for friend if inline int long mutable namespace new noexcept
        nullptr operator private protected public requires return short signed sizeof static static_assert struct switch template
        this throw true try typedef typename union unsigned using virtual void volatile while""",
    "shell": "if then else elif fi for in do done while case esac function local export return exit set source shift trap",
    "cmake": """if else elseif endif foreach endforeach function endfunction macro endmacro set list string include message option
        add_executable add_library add_test target_link_libraries file return while endwhile math project""",
    "python": """and as assert break class continue def del elif else except finally for from global if import in is lambda not or
        pass raise return try while with yield None True False""",
    "text": "",
}
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".js": "cpp", ".sh": "shell", ".bash": "shell", ".awk": "shell", ".cmake": "cmake",
             ".py": "python"}
STRING = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''


def language_of(path: str) -> str:
    if path.endswith("CMakeLists.txt"):
        return "cmake"
    return LANGUAGES.get(path[path.rfind("."):], "text")


def to_html(text: str, language: str) -> str:
    comment = {"cpp": r"//[^\n]*|/\*.*?\*/", "text": r"(?!)"}.get(language, r"(?<![\w$])\#[^\n]*")
    if language == "text":
        tokens = re.compile(r"(?!)")
    else:
        words = "|".join(KEYWORDS[language].split())
        raw = r'R"(\w*)\(.*?\)(?P=raw)"'.replace("(\\w*)", r"(?P<raw>\w*)") + "|" if language == "cpp" else ""
        before = r"^[ ]*\#[ ]*\w+(?:[^\n/]|/(?!/))*" if language == "cpp" else r"(?!)"
        tokens = re.compile(rf"(?P<p>{before})|(?P<c>{comment})|(?P<s>{raw}{STRING})|(?P<k>\b(?:{words})\b)|"
                            r"(?P<n>\b\d[\w.']*)", re.S | re.M)
    parts, at = [], 0
    for match in tokens.finditer(text):
        parts.append(html.escape(text[at:match.start()], quote=False))
        kind = match.lastgroup if match.lastgroup != "raw" else "s"
        # A token of several lines is colored line by line.
        parts.append("\n".join(f'<i class="{kind}">{html.escape(line, quote=False)}</i>' for line in match.group(0).split("\n")))
        at = match.end()
    parts.append(html.escape(text[at:], quote=False))
    lines = "".join(parts).rstrip("\n").split("\n")
    return "\n".join(f'<span id="L{i}">{line}</span>' for i, line in enumerate(lines, 1))
