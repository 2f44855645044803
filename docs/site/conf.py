"""Sphinx: the pages of docs/, the Python package, and the C++ names that Doxygen reads (cpp_reference.py)."""

import html
import os
import pathlib
import re
import sys
import urllib.parse

from docutils import nodes
from sphinx import addnodes

root = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root / "python"), str(root / "docs" / "site")]

project = "sheafnn"
author = "the sheafnn contributors"
copyright = "2026, the sheafnn contributors. MIT license"
version = release = re.search(
    r'VERSION_STRING "([^"]+)"', (root / "include/sheafnn/version.hpp").read_text(encoding="utf-8")
).group(1)

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "site_only", "formulas", "cpp_reference"]
exclude_patterns = ["site", "notebook"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "fieldlist", "dollarmath"]
myst_fence_as_directive = ["math"]
html_math_renderer = "katex"
autodoc_mock_imports = ["sheafnn._core", "sheafnn._torch", "torch"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {
    "members": True,
    "show-inheritance": False,
    # scikit-learn writes these.
    "exclude-members": "set_fit_request, set_predict_request, set_predict_proba_request, set_score_request, get_metadata_routing",
}
suppress_warnings = ["misc.highlighting_failure"]  # code with … in it, and .csv
highlight_language = "none"

html_theme = "furo"
changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
unreleased = re.search(r"^## \[Unreleased\]\s+(?!## \[)\S", changes, re.MULTILINE)
html_title = f"sheafnn, after {version}" if unreleased else f"sheafnn {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]  # and, from formulas.py, KaTeX's
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1d5a8c", "color-brand-content": "#1d5a8c"},
    "dark_css_variables": {"color-brand-primary": "#7db7e8", "color-brand-content": "#7db7e8"},
    "source_directory": "docs/",
}


def copied(app, path):
    """Copies a file under _source, or all files of a folder beside a list of them. Returns where it is, from the site's root."""
    place = pathlib.Path("_source") / path.relative_to(root)
    if path.is_dir():
        inside = [p for p in sorted(path.iterdir()) if not p.name.startswith((".", "__pycache__"))]
        links = ((os.path.relpath(copied(app, p), place), p.name + "/" * p.is_dir()) for p in inside)
        items = "".join(f'<li><a href="{urllib.parse.quote(link)}">{html.escape(name)}</a></li>\n' for link, name in links)
        title = html.escape(str(path.relative_to(root)))
        place /= "index.html"
        text = f'<!DOCTYPE html>\n<meta charset="utf-8">\n<title>{title}</title>\n<h1>{title}</h1>\n<ul>\n{items}</ul>\n'
        content = text.encode()
    else:
        content = path.read_bytes()
        if path.suffix not in (".html", ".svg", ".png"):
            place = place.with_name(place.name + ".txt")
    copy = pathlib.Path(app.outdir) / place
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(content)
    return str(place)


def link_files(app, doctree):
    """Links to files and folders of the repository that are no pages: to copies, or to the README that is a folder's page. As pages
    are read, before anything else looks at the links: what MyST makes of them, and complains of, differs between its versions."""
    docname = app.env.docname
    here = pathlib.Path(app.srcdir)
    for node in list(doctree.findall(lambda n: isinstance(n, (nodes.reference, addnodes.pending_xref)))):
        target = node.get("refuri") or node.get("reftarget") or ""
        of_myst = node.get("reftype") == "myst"
        if not target or re.match(r"[a-z][a-z0-9+.-]+:|#", target) or isinstance(node, addnodes.pending_xref) and not of_myst:
            continue
        if node.get("refdomain") == "doc":  # a name of a page, without its suffix, where one could be
            path = (here / (target + ".md")).resolve()
        else:
            path = ((here / docname).parent / urllib.parse.unquote(target.split("#")[0])).resolve()
        page = app.env.path2doc(str(path / "README.md" if path.is_dir() else path))
        if page in app.env.found_docs and not path.is_dir() or not path.exists() or root not in path.parents:
            continue
        text = nodes.reference("", "", *[child.deepcopy() for child in node.children], internal=False)
        if page in app.env.found_docs:
            text["refuri"] = app.builder.get_relative_uri(docname, page)
        else:
            text["refuri"] = "../" * docname.count("/") + urllib.parse.quote(copied(app, path))
        node.replace_self(text)


def keep_on_one_line(app, doctree):
    """Numbers in tables, 84.3 ± 7.0, and words of code, --sheaf, do not break. Long ones may: a page on a telephone has some 40
    characters a line. (Sphinx makes each word of code an element of the class pre.)"""
    for cell in doctree.findall(nodes.entry):
        text = cell.astext()
        if len(text) <= 24 and re.fullmatch(r"[^a-zA-Z]*[0-9][^a-zA-Z]*[a-zA-Zµ]{0,4}", text):
            cell["classes"].append("one-line")
    for code in doctree.findall(nodes.literal):
        if max(map(len, code.astext().split()), default=0) > 28:
            code["classes"].append("long-words")


def setup(app):
    app.connect("doctree-read", link_files, priority=100)
    app.connect("doctree-read", keep_on_one_line)
