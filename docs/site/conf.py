"""Sphinx: the pages of docs/ and the Python package. build.sh makes the C++ reference with Doxygen and puts it beside."""

import pathlib
import re
import sys

from docutils import nodes

root = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root / "python"), str(root / "docs" / "site")]

project = "sheafnn"
author = "the sheafnn contributors"
copyright = "2026, the sheafnn contributors. MIT license"
version = release = re.search(
    r'VERSION_STRING "([^"]+)"', (root / "include/sheafnn/version.hpp").read_text(encoding="utf-8")
).group(1)

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "formulas"]
exclude_patterns = ["site"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4
myst_enable_extensions = ["fieldlist", "dollarmath"]
myst_fence_as_directive = ["math"]
html_math_renderer = "katex"
autodoc_mock_imports = ["sheafnn._core"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {
    "members": True,
    "show-inheritance": False,
    # scikit-learn writes these.
    "exclude-members": "set_fit_request, set_predict_request, set_predict_proba_request, set_score_request",
}
suppress_warnings = ["misc.highlighting_failure"]  # code with … in it, and .csv
highlight_language = "none"

html_theme = "furo"
html_title = f"sheafnn {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]  # and, from formulas.py, KaTeX's
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1d5a8c", "color-brand-content": "#1d5a8c"},
    "dark_css_variables": {"color-brand-primary": "#7db7e8", "color-brand-content": "#7db7e8"},
    "source_directory": "docs/",
}


def link_files(app, doctree, docname):
    """Links to files of the repository that are no pages: to copies under _source, or to the C++ reference of a header."""
    page = (pathlib.Path(app.srcdir) / docname).parent
    depth = docname.count("/")
    for node in list(doctree.findall(nodes.reference)):
        target = node.get("refuri") or node.get("reftarget") or ""
        if not target or "://" in target or target.startswith(("#", "mailto:")):
            continue
        path = (page / target.split("#")[0]).resolve()
        if not path.is_file() or not path.is_relative_to(root) or path.suffix == ".md" and path.is_relative_to(app.srcdir):
            continue
        inside = path.relative_to(root)
        copy = pathlib.Path(app.outdir) / "_source" / inside
        if path.suffix != ".html":
            copy = copy.with_name(copy.name + ".txt")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        text = nodes.reference("", "", *[child.deepcopy() for child in node.children], internal=False)
        text["refuri"] = "../" * depth + "_source/" + str(copy.relative_to(pathlib.Path(app.outdir) / "_source"))
        node.replace_self(text)


def setup(app):
    app.connect("doctree-resolved", link_files)
