#!/usr/bin/env python3
"""usage: check_links.py FOLDER: does every link of the pages to another page, file or heading lead somewhere? (Not links to
other sites.)"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8", errors="replace"))

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("href", "src") and value:
                self.links.append(value)
            elif key in ("id", "name") and value:
                self.names.add(value)


def main(folder: pathlib.Path) -> int:
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    if not pages:
        sys.exit(f"check_links.py: {folder} has no page")
    broken = count = 0
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = path if not parts.path else (path.parent / urllib.parse.unquote(parts.path)).resolve()
            fragment = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                problem = "there is no such file"
            elif fragment and target in pages and fragment not in pages[target].names:
                problem = "there is no such heading"
            else:
                continue
            print(f"{path.relative_to(folder.resolve())}: {link}: {problem}")
            broken += 1
    print(f"{len(pages)} pages, {count} links, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
