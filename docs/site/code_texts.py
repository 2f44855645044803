"""Texts of the sources that users read: docstrings, comments of the C++ reference, --help and messages.

texts(root) gives (file, line, kind, text) of each paragraph. Pieces of code, formulas and the values that a message prints are `C`,
which check_words.py counts as one word."""

import ast
import re

PYTHON = "python/sheafnn"
CPP = ("include/sheafnn", "examples", "python/src")

TOKEN = re.compile(
    r'R"(?P<fence>[^(\s]*)\((?P<raw>.*?)\)(?P=fence)"'
    r'|"(?P<text>(?:[^"\\\n]|\\.)*)"'
    r"|(?<!\w)'(?:[^'\\\n]|\\.)+'"
    r"|//[^\n]*|/\*.*?\*/"
    r"|(?P<code>\S)",
    re.DOTALL,
)
FLAG = re.compile(r"-[\w,!{}-]+")  # the names of an option of a program
MARKUP = re.compile(r"</?[a-z!]|^(?:set|plot) ")  # of a page or a picture
# A piece of a formula: it has an operator, a digit or a subscript, or is one letter.
FORMULA = r"\S*[=+−·≤≥<>←→↦∘∈~≈×^⊗∑ΣΠ∂√‖⟨|_\d²³ᵀ…]\S*|\W*(?![aAI]\b)\w\W*|[-/]"
PYTHON_BEGINS = re.compile(r"[-*] |:\w+|\d+[.)] ")
CPP_BEGINS = re.compile(r"\\(?:t?param|throws?|returns?|file|brief|f\[|code|pre|post|note|see|name|\w*group)|[-*@|] |\d+[.)] ")


def paragraphs(text, first, begins, indented=False):
    """(line, paragraph) of a comment or a docstring without its blocks of code.

    :param first: number of the first line
    :param begins: matches the beginning of a line that begins a paragraph
    :param indented: whether lines that four blanks indent are code, unless they belong to an item
    """
    lines, begin, code = [], first, False
    for number, line in enumerate([*text.splitlines(), ""], first):
        stripped = line.strip()
        code = code and bool(stripped) or stripped.startswith((">>>", "\\code", "\\f["))
        if indented and line.startswith("    ") and not (lines and begins.match(lines[0])) and not begins.match(stripped):
            if lines:
                yield begin, " ".join(lines)
            lines = []
            continue
        if lines and (not stripped or code or begins.match(stripped)):
            yield begin, " ".join(lines)
            lines = []
        if stripped and not code:
            begin = begin if lines else number
            lines.append(stripped)
        code = code and not stripped.startswith(("\\endcode", "\\f]"))


def python_texts(source):
    """Of docstrings, comments of attributes (#:) and literals."""
    for number, line in enumerate(source.split("\n"), 1):
        if "#: " in line:
            yield number, "docstring", re.sub(r"``.*?``", "`C`", line.partition("#: ")[2])
    tree = ast.parse(source)
    inner = set()  # constants that are docstrings or parts of an f-string
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner.update(id(part) for part in ast.walk(node) if part is not node)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            docstring = node.body[0].value
            inner.add(id(docstring))
            for line, text in paragraphs(docstring.value, docstring.lineno, PYTHON_BEGINS):
                text = re.sub(r":\w+:`[^`]*`|``.*?``", "`C`", text)
                yield line, "docstring", re.sub(r"^:\w+(?: [\w*, ]+)?: ?", "", text)
    for node in ast.walk(tree):
        if id(node) in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "`C`" for part in node.values)
            yield node.lineno, "message", "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, "message", node.value


def formula_in_words(match):
    """A formula as one word, with the mark that ends its sentence."""
    return "`F`" + (match.group()[-1] if match.group()[-1] in ".,;:" else "")


def comment_texts(source):
    """Of the comments that begin with ///."""
    lines, first, after_code = [], 0, False

    def end():
        for line, text in paragraphs("\n".join(lines), first, CPP_BEGINS, indented=True):
            text = re.sub(r"^\\t?param(?:\[\w+\])? .+?(?:  +|$)|^\\throws? .+?(?:  +|$)|^\\\w+ *", "", text)
            text = re.sub(r"\\f\$.*?\\f\$|\\[cp] \S+", "`C`", text)
            yield line, "comment", re.sub(rf"(?<!\S)(?:{FORMULA})(?: (?:{FORMULA}))+(?!\S)", formula_in_words, text)
        lines.clear()

    for number, line in enumerate([*source.split("\n"), ""], 1):
        match = re.match(r"(.*?)(?<!:)//(/?)(<?) ?(.*)", line)
        trailing = match is not None and bool(match[3])
        begins = match is not None and bool(match[2]) and (trailing or not match[1].strip())
        follows = match is not None and bool(lines) and not match[1].strip() and not trailing
        follows = follows and (bool(match[2]) != after_code)  # the next lines of a ///< comment begin with //
        if lines and (not follows or trailing):
            yield from end()
        if begins or follows:
            first = first if lines else number
            after_code = trailing if not lines else after_code
            lines.append(match[4])


def is_one_text(between):
    """Do two literals with this code between them belong to one text?"""
    joined = between[0] in ",+<" and between[-1] in ",+<(" and between != ","
    return joined and not re.search(r"[;{}?]|->|\)\.|return", between)


def unescaped(literal):
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": " "}.get(match[1], match[1]), literal)


def message_texts(source):
    """Of the literals: help of options, and other messages."""
    line = last = 0
    text, begin, kind, code = "", 0, "message", ""

    def end():
        if text and not MARKUP.search(text):
            yield begin + 1, kind, text

    for token in TOKEN.finditer(source):
        line += source.count("\n", last, token.start())
        last = token.start()
        literal = token["raw"] if token["text"] is None else unescaped(token["text"])
        if literal is None:
            code += token["code"] or ""
        elif text and (not code or is_one_text(code) and not FLAG.fullmatch(text)):
            text += (" `C` " if code else "") + literal
            code = ""
        else:
            yield from end()
            kind = "help" if FLAG.fullmatch(text) and "add_" not in code and ";" not in code else "message"
            text, begin, code = literal, line, ""
    yield from end()


def texts(root):
    """Every text below the root of the repository."""
    for path in sorted((root / PYTHON).rglob("*.py")):
        for line, kind, text in python_texts(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(root)), line, kind, text
    for folder in CPP:
        for path in sorted((root / folder).rglob("*.*")):
            if path.suffix not in (".hpp", ".cpp", ".in"):
                continue
            source = path.read_text(encoding="utf-8")
            for part in (comment_texts, message_texts):
                for line, kind, text in part(source):
                    yield str(path.relative_to(root)), line, kind, text
