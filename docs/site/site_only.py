"""Sphinx: what the site alone shows. GitHub would show a directive as raw text, so pages have it in a comment:

    <!-- site:
    ```{toctree}
    :hidden:

    install
    ```
    -->

The comment marks become empty lines before MyST reads the page."""

import re


def uncovered(text: str) -> str:
    return re.sub(r"^<!-- site:\n(.*?)^-->$", r"\n\1", text, flags=re.MULTILINE | re.DOTALL)


def read(app, docname, source):
    source[0] = uncovered(source[0])


def setup(app):
    app.connect("source-read", read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
