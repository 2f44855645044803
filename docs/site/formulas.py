"""Sphinx: formulas are typeset when the site is built, by KaTeX (formulas.js), so that pages have no script and fetch nothing.

An equation with \\tag{2.7} has the anchor equation-2-7. "(2.7)" in the text of the pages QUOTING, and on another page behind a quoted
heading or a link to docs/math/, is a link to it. A formula that KaTeX does not understand is an error, and so is a number that is given
twice or that no equation has."""

import functools
import json
import pathlib
import re
import shutil
import subprocess

from docutils import nodes
from sphinx.util import logging

KATEX = pathlib.Path("/usr/share/javascript/katex")
PAGES = "math/"
QUOTING = (PAGES, "paper", "architecture")  # pages whose numbers in brackets are equations
logger = logging.getLogger(__name__)


class Katex:
    """A process that answers a line with a formula by a line with its HTML."""

    def __init__(self):
        script = pathlib.Path(__file__).with_name("formulas.js")
        self.process = subprocess.Popen(
            ["node", str(script), str(KATEX / "katex.min.js")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def __call__(self, tex: str, display: bool) -> str:
        self.process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("KaTeX does not answer: bash docs/site/install.sh")
        answer = json.loads(answer)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["html"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@functools.cache
def katex() -> Katex:
    return Katex()


def anchor(number: str) -> str:
    return "equation-" + number.replace(".", "-")


def typeset(visitor, node, tex: str, display: bool) -> str:
    try:
        return katex()(tex, display)
    except ValueError as error:
        logger.warning("%s: %s", tex, error, location=node)
        return visitor.encode(tex)


def visit_inline(visitor, node):
    tex = node.astext()
    if tex.startswith("`") and tex.endswith("`"):  # $`…`$, GitHub's other notation
        tex = tex[1:-1]
    html = typeset(visitor, node, tex, False)
    if len(re.sub(r"\\[a-zA-Z]+", "x", tex).translate(str.maketrans("", "", "{}_^ "))) > 12:
        # Lines break between the parts of a long formula: <wbr> says so within the span of keep_together.
        html = html.replace('</span><span class="base">', '</span><wbr><span class="base">')
    visitor.body.append(f'<span class="math notranslate nohighlight">{html}</span>')
    raise nodes.SkipNode


def visit_block(visitor, node):
    number = re.search(r"\\tag\{([0-9.]+)\}", node.astext())
    tex = re.sub(r"\\tag\{[0-9.]+\}", "", node.astext())
    formula = f'<div class="formula">{typeset(visitor, node, tex, True)}</div>'
    if number:
        name, number = anchor(number.group(1)), number.group(1)
        link = f'<a class="number" href="#{name}" title="Link to this equation">({number})</a>'
        visitor.body.append(f'<div class="equation notranslate nohighlight" id="{name}">{formula}{link}</div>\n')
    else:
        visitor.body.append(f'<div class="equation notranslate nohighlight">{formula}</div>\n')
    raise nodes.SkipNode


def read_numbers(app, doctree):
    """Which equations there are."""
    if not app.env.docname.startswith(PAGES):
        return
    if not hasattr(app.env, "equation_pages"):
        app.env.equation_pages = {}
    numbers = app.env.equation_pages
    for node in doctree.findall(nodes.math_block):
        found = re.findall(r"\\tag\{([0-9.]+)\}", node.astext())
        if len(found) != 1:
            logger.warning("a displayed formula has %d numbers", len(found), location=node)
        for number in found:
            if number in numbers:
                logger.warning("a second equation (%s)", number, location=node)
            numbers[number] = app.env.docname


def link_numbers(app, doctree, docname):
    """(2.7) in a text becomes a link."""
    anywhere = re.compile(r"\(([0-9]+\.[0-9]+)\)")
    behind_name = re.compile(r"(?<=[\"”] )\(([0-9]+\.[0-9]+)\)")
    behind_link = re.compile(r"(?<=[\"”] )\(([0-9]+\.[0-9]+)\)|^,? \(([0-9]+\.[0-9]+)\)")
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.reference, nodes.raw)):
            continue
        siblings = text.parent.children
        before = next((before for before, child in zip(siblings, siblings[1:]) if child is text), None)
        to_mathematics = isinstance(before, nodes.reference) and "math/" in before.get("refuri", "")
        number = anywhere if docname.startswith(QUOTING) else behind_link if to_mathematics else behind_name
        parts, end = [], 0
        for match in number.finditer(text):
            found = next(group for group in match.groups() if group)
            page = app.env.equation_pages.get(found)
            if page is None:
                logger.warning("there is no equation (%s)", found, location=text.parent)
                continue
            start = match.end() - len(found) - 2
            parts.append(nodes.Text(text[end:start]))
            uri = "" if page == docname else app.builder.get_relative_uri(docname, page)
            parts.append(nodes.reference("", f"({found})", internal=True, refuri=f"{uri}#{anchor(found)}"))
            end = match.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def keep_together(app, doctree, docname):
    """No line ends between a formula and the bracket or comma beside it, as it would beside an image."""
    for parent in {id(node.parent): node.parent for node in doctree.findall(nodes.math)}.values():
        children, group = [], None  # group: the span that is being filled
        for child in parent.children:
            if isinstance(child, nodes.math):
                if group is None:
                    group = nodes.inline(classes=["nobr"])
                    before = re.search(r"\S{1,3}$", children[-1]) if children and isinstance(children[-1], nodes.Text) else None
                    if before:
                        children[-1] = nodes.Text(children[-1][: before.start()])
                        group += nodes.Text(before.group())
                    children.append(group)
                group += child
                continue
            if group is not None and isinstance(child, nodes.Text):
                after = re.match(r"\S{0,8}", child).group()
                group += nodes.Text(after)
                if len(after) == len(child):
                    continue
                child = nodes.Text(child[len(after):])
            group = None
            children.append(child)
        parent.children = []
        parent.extend(children)


def copy_katex(app, error):
    """The style sheet and the fonts that it names."""
    if katex.cache_info().currsize:
        katex().close()
        katex.cache_clear()
    if error:
        return
    style = (KATEX / "katex.min.css").read_text(encoding="utf-8")
    target = pathlib.Path(app.outdir) / "_static" / "katex"
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    # Of every font the first format that is there; browsers read all of them.
    formats = re.compile(r"src:((?:url\([^)]+\) format\([^)]+\),?)+)")

    def present(match):
        for url, kind in re.findall(r"url\(([^)]+)\) (format\([^)]+\))", match.group(1)):
            if (KATEX / url).is_file():
                shutil.copyfile(KATEX / url, target / url)
                return f"src:url({url}) {kind}"
        raise FileNotFoundError(f"no font of {match.group(1)} in {KATEX}: bash docs/site/install.sh")

    (target / "katex.css").write_text(formats.sub(present, style), encoding="utf-8")


def setup(app):
    app.add_html_math_renderer("katex", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    app.add_css_file("katex/katex.css", priority=100)
    app.connect("doctree-read", read_numbers)
    app.connect("doctree-resolved", link_numbers)
    app.connect("doctree-resolved", keep_together)
    app.connect("build-finished", copy_katex)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": False}
