"""Sphinx: the C++ names of a task, from what Doxygen read.

    :::{cpp-group} rotations
    :first: rotation/cayley_distribution.hpp
    :fitted: fit, score

    (text and blocks of C++ code)
    :::

lists what is in Doxygen's group (group.sh), header by header, those in `first` first: every class with its members and the functions
that take it as their first argument, then the other names. A block of code is the example of the first class that it names. Functions in `fitted` take any class that Fitting<> is
specialised for; the entries of these classes name them. A group without a page is an error, and so is a name without documentation.

build.sh says in SHEAFNN_DOXYGEN where Doxygen's XML is."""

import functools
import os
import pathlib
import re
import xml.etree.ElementTree as ElementTree

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx import addnodes
from sphinx.util import logging

logger = logging.getLogger(__name__)
CLASSES = ("class", "struct", "union")
DELETED = re.compile(r"= ?(delete|default)$")
LONGEST = 90  # characters of a signature on one line


def plain(element) -> str:
    """The code that an element holds, on one line, spaced as in the headers."""
    text = re.sub(r"\s+", " ", "".join(element.itertext())).strip() if element is not None else ""
    text = re.sub(r"< ", "<", re.sub(r" >", ">", text))
    text = re.sub(r" ([&*]+)(?=[\w.]|$)", r"\1 ", text).strip() if "&" in text or "*" in text else text
    return text.replace("sheafnn::", "")


def declared(kind: str, name: str) -> str:
    return f"{kind} {name}".strip()


class Names:
    """What Doxygen's XML has."""

    def __init__(self, folder: pathlib.Path):
        self.compounds, self.groups, self.page_of, self.page = {}, {}, {}, ""  # page: where names are being listed
        for path in sorted(folder.glob("*.xml")):
            for compound in ElementTree.parse(path).getroot().iter("compounddef"):
                self.compounds[compound.get("id")] = compound
        group_of_header = {}
        for compound in self.compounds.values():
            if compound.get("kind") != "group":
                continue
            inside = [self.compounds[inner.get("refid")] for inner in compound.iter("innerclass")]
            inside += [member for member in compound.iter("memberdef") if member.get("kind") != "define"]
            self.groups[compound.find("compoundname").text] = inside
            group_of_header.update((header_of(entry), inside) for entry in inside)
        for compound in self.compounds.values():
            if compound.get("kind") == "concept":
                if header_of(compound) not in group_of_header:
                    logger.warning("%s: no group has the header of a concept", header_of(compound))
                    continue
                group_of_header[header_of(compound)].append(compound)
        for inside in self.groups.values():
            inside.sort(key=lambda entry: (header_of(entry), int(entry.find("location").get("line"))))
        files = (compound for compound in self.compounds.values() if compound.get("kind") == "file")
        self.files = {compound.find("location").get("file"): compound for compound in files}
        self.scopes = {full_name(compound) for compound in self.compounds.values() if compound.get("kind") in CLASSES}
        self.fitted = {match.group(1) for match in (re.match(r".*\bFitting<(\w+)<", name) for name in self.scopes) if match}


@functools.cache
def names() -> Names | None:
    folder = os.environ.get("SHEAFNN_DOXYGEN")
    return Names(pathlib.Path(folder)) if folder else None


def header_of(entry) -> str:
    return entry.find("location").get("file")


def full_name(entry) -> str:
    name = entry.find("compoundname")
    return plain(name if name is not None else entry.find("qualifiedname"))


def short_name(entry) -> str:
    name = full_name(entry)
    operator = re.search(r"\boperator\b.*", name)
    return operator.group() if operator else re.sub(r".*::", "", re.sub(r"<.*", "", name))


def is_class(entry) -> bool:
    return entry.get("kind") in CLASSES


def has_own_place(entry) -> bool:
    """Not: specialisations, which say no more than what they specialise; definitions of members behind their class; deduction
    guides; what is deleted."""
    name = full_name(entry)
    if "<" in name.partition("operator")[0] or DELETED.search(plain(entry.find("argsstring"))):
        return False
    return is_class(entry) or not {name, name.rpartition("::")[0]} & names().scopes


def title_of(entries) -> str:
    """The names beside the classes of a header, three of them."""
    rest = sorted((entry for entry in entries if not is_class(entry)), key=lambda entry: entry.get("kind") != "function")
    called = list(dict.fromkeys(map(short_name, rest)))
    called.sort(key=lambda name: name in ("names_of", "for_each_option", "check"))  # every enumeration and every struct has them
    return ", ".join(called[:3]) + ", …" * (len(called) > 3)


def template_of(entry) -> str:
    parameters = []
    for parameter in entry.findall("templateparamlist/param"):
        text = declared(plain(parameter.find("type")), plain(parameter.find("declname")))
        default = plain(parameter.find("defval"))
        parameters.append(f"{text} = {default}" if default else text)
    requires = plain(entry.find("requiresclause"))
    text = f"template <{', '.join(parameters)}>" if entry.find("templateparamlist") is not None else ""
    return f"{text} requires {requires}" if requires else text


def signature_of(entry) -> list[tuple[str, str, str]]:
    """Lines of the declaration: what is before the name, the name, what is behind it."""
    kind, name = entry.get("kind"), full_name(entry)
    lines = [(template_of(entry), "", "")] if template_of(entry) else []
    member = entry.find("compoundname") is None
    if not member and kind == "concept":
        definition = plain(entry.find("initializer"))
        return [*lines, ("concept ", name, " =" + definition.split("=", 1)[-1])]
    if not member:
        return [*lines, (kind + " ", name, "")]
    if name.removesuffix("::" + short_name(entry)) in names().scopes:
        name = short_name(entry)
    of_type = plain(entry.find("type"))
    value = plain(entry.find("initializer"))
    value = f" {value}" if value and len(value) <= LONGEST else ""
    if kind == "typedef":
        return [*lines, ("using ", name, f" = {of_type}")]
    if kind == "enum":
        values = [plain(value.find("name")) for value in entry.findall("enumvalue")]
        return [*lines, ("enum class ", name, f" {{ {', '.join(values)} }}")]
    if kind != "function":
        return [*lines, (of_type + " ", name, value)]
    parameters = []
    for parameter in entry.findall("param"):
        text = declared(plain(parameter.find("type")), plain(parameter.find("declname"))) + plain(parameter.find("array"))
        default = plain(parameter.find("defval"))
        parameters.append(f"{text} = {default}" if default else text)
    behind = plain(entry.find("argsstring"))
    behind = behind[behind.rfind(")") + 1 :]
    if behind and not behind.startswith((" ", "=")):
        behind = " " + behind
    before = of_type + " " if of_type else ""
    if len(before + name + ", ".join(parameters)) <= LONGEST or len(parameters) < 2:
        return [*lines, (before, name, f"({', '.join(parameters)}){behind}")]
    rows = [("    " + text + ("," if i + 1 < len(parameters) else ")" + behind)) for i, text in enumerate(parameters)]
    return [*lines, (before, name, "("), *[(row, "", "") for row in rows]]


def inline_nodes(element) -> list[nodes.Node]:
    """Text with code and links; blocks within are left out, paragraphs_of() makes them."""
    result = [nodes.Text(re.sub(r"\s+", " ", element.text or ""))]
    for child in element:
        if child.tag == "ref":
            result.append(reference_to(child.get("refid"), nodes.Text("".join(child.itertext()))))
        elif child.tag == "ulink":
            result.append(nodes.reference("", "".join(child.itertext()), refuri=child.get("url")))
        elif child.tag == "computeroutput":
            result.append(nodes.literal("", re.sub(r"\s+", " ", "".join(child.itertext()))))
        elif child.tag in ("emphasis", "bold", "s", "sub", "superscript", "term"):
            result.extend(inline_nodes(child))
        elif child.tag not in BLOCKS:
            result.append(nodes.Text("".join(child.itertext())))
        result.append(nodes.Text(re.sub(r"\s+", " ", child.tail or "")))
    return result


def reference_to(name: str, text: nodes.Node) -> nodes.Node:
    return addnodes.pending_xref(
        "", nodes.inline("", "", text), refdomain="", reftype="cpp-name", reftarget=name, refdoc=names().page, refexplicit=True, refwarn=False
    )


def fields_of(element) -> nodes.Node:
    """Parameters and exceptions."""
    result = nodes.field_list()
    title = {"exception": "Throws", "templateparam": "Template parameter"}.get(element.get("kind"), "Parameter")
    for item in element.findall("parameteritem"):
        called = ", ".join("".join(name.itertext()) for name in item.iter("parametername"))
        body = blocks_of(item.find("parameterdescription"))
        if element.get("kind") == "exception" and called[0].islower() and "::" not in called:  # "as above", "exceptions of on_epoch"
            if body and isinstance(body[0], nodes.paragraph):
                body[0].insert(0, nodes.Text(called + " "))
            result += field([nodes.Text(title)], body or [nodes.paragraph("", called)])
        else:
            result += field([nodes.Text(title + " "), nodes.literal("", called)], body)
    return result


def table_of(element) -> nodes.Node:
    rows = element.findall("row")
    columns = max(len(row.findall("entry")) for row in rows)
    group = nodes.tgroup("", *[nodes.colspec(colwidth=1) for _ in range(columns)], cols=columns)
    head, body = nodes.thead(), nodes.tbody()
    for row in rows:
        cells = [nodes.entry("", *blocks_of(cell)) for cell in row.findall("entry")]
        (head if row.find("entry").get("thead") == "yes" else body).append(nodes.row("", *cells))
    group += [part for part in (head, body) if part.children]
    return nodes.table("", group)


def field(name: list[nodes.Node], content: list[nodes.Node]) -> nodes.Node:
    return nodes.field("", nodes.field_name("", "", *name), nodes.field_body("", *content))


def section_of(element) -> nodes.Node:
    title = {"return": "Returns", "see": "See"}.get(element.get("kind"), element.get("kind").capitalize())
    return nodes.field_list("", field([nodes.Text(title)], blocks_of(element)))


def code_of(element) -> nodes.Node:
    return nodes.literal_block("", "".join(element.itertext()).strip("\n"), language="none")


BLOCKS = {
    "verbatim": code_of,
    "preformatted": code_of,
    "itemizedlist": lambda e: nodes.bullet_list("", *[nodes.list_item("", *blocks_of(item)) for item in e.findall("listitem")]),
    "parameterlist": fields_of,
    "simplesect": section_of,
    "table": table_of,
}


def blocks_of(element) -> list[nodes.Node]:
    """The paragraphs, lists and tables of a description."""
    result = []
    for para in element.findall("para") if element is not None else []:
        rest = ElementTree.Element("para")
        rest.text = para.text
        for child in [*para, None]:
            if child is None or child.tag in BLOCKS:
                text = inline_nodes(rest)
                if "".join(node.astext() for node in text).strip():
                    result.append(nodes.paragraph("", "", *text))
                if child is None:
                    break
                result.append(BLOCKS[child.tag](child))
                rest = ElementTree.Element("para")
                rest.text = child.tail
            else:
                rest.append(child)
    return result


def description_of(entry) -> list[nodes.Node]:
    result = blocks_of(entry.find("briefdescription")) + blocks_of(entry.find("detaileddescription"))
    for value in entry.findall("enumvalue"):
        said = blocks_of(value.find("briefdescription")) + blocks_of(value.find("detaileddescription"))
        if said:
            result.append(nodes.field_list("", field([nodes.literal("", plain(value.find("name")))], said)))
    return result


class Page:
    """The nodes of a group's page, with an anchor for each name."""

    def __init__(self, env, document):
        self.env, self.document = env, document

    def anchor(self, entry) -> str:
        base = nodes.make_id(short_name(entry)) or "operator"
        chosen, number = base, 1
        while chosen in self.document.ids:
            number += 1
            chosen = f"{base}-{number}"
        self.document.ids[chosen] = None
        self.env.cpp_anchors[entry.get("id")] = (self.env.docname, chosen)
        return chosen

    def index(self, entry, anchor: str) -> nodes.Node:
        return addnodes.index(entries=[("single", f"{short_name(entry)} (C++)", anchor, "", None)])

    def described(self, entry, content: list[nodes.Node], anchor: str | None) -> nodes.Node:
        signature = addnodes.desc_signature("", "", is_multiline=True, ids=[anchor] if anchor else [])
        for before, name, behind in signature_of(entry):
            line = addnodes.desc_signature_line("", "")
            line += addnodes.desc_sig_element("", before)
            if name:
                line += addnodes.desc_name("", name)
                line["add_permalink"] = bool(anchor)
            line += addnodes.desc_sig_element("", behind)
            signature += line
        body = addnodes.desc_content("", *content)
        return addnodes.desc("", signature, body, domain="cpp", objtype=entry.get("kind"), noindex=True, classes=["cpp"])

    def documented(self, entry) -> list[nodes.Node]:
        """The description, which a public name has to have. Members of a class may speak for themselves, node_count()."""
        text = description_of(entry)
        if not text:
            place = f"{header_of(entry)}:{entry.find('location').get('line')}"
            logger.warning("%s: %s is not documented", place, full_name(entry))
        return text

    def entry(self, entry) -> list[nodes.Node]:
        anchor = self.anchor(entry)
        return [self.index(entry, anchor), self.described(entry, self.documented(entry), anchor)]

    def members(self, entry) -> list[nodes.Node]:
        result = []
        bases = [base for base in entry.findall("basecompoundref") if base.get("prot") == "public" and base.get("refid")]
        if bases:
            text = nodes.paragraph("", "Has what its bases have: ")
            for i, base in enumerate(bases):
                text += [nodes.Text(", " * (i > 0)), reference_to(base.get("refid"), nodes.literal("", plain(base)))]
            result.append(text)
        inside = [member for member in entry.findall("sectiondef/memberdef") if member.get("prot") == "public"]
        inside += [names().compounds[inner.get("refid")] for inner in entry.findall("innerclass") if inner.get("prot") == "public"]
        for member in sorted(inside, key=lambda member: int(member.find("location").get("line"))):
            if member.get("kind") == "friend" or DELETED.search(plain(member.find("argsstring"))):
                continue
            self.env.cpp_anchors[member.get("id")] = self.env.cpp_anchors[entry.get("id")]
            content = description_of(member)
            if is_class(member):
                content += self.members(member)
            result.append(self.described(member, content, None))
        return result

    def section(self, title: str, anchor: str, level: list[nodes.Node]) -> nodes.Node:
        return nodes.section("", nodes.title("", title), *level, ids=[anchor], names=[])

    def of_class(self, entry, functions, fitted: list[str], examples: list[nodes.Node]) -> nodes.Node:
        anchor = self.anchor(entry)
        content = [nodes.paragraph("", "", nodes.literal("", f"#include <{header_of(entry)}>"))]
        content += self.documented(entry) + self.members(entry)
        content += [part for example in examples for part in (nodes.rubric("", "Example"), example)]
        parts = [self.index(entry, anchor), self.described(entry, content, None)]
        if fitted or functions:
            parts.append(nodes.rubric("", "Functions"))
        if fitted:
            text = nodes.paragraph("", "Of every distribution: ")
            for i, name in enumerate(fitted):
                member = next(m for group in names().groups.values() for m in group if not is_class(m) and short_name(m) == name)
                text += [nodes.Text(", " * (i > 0)), reference_to(member.get("id"), nodes.literal("", name))]
            parts.append(text)
        for function in functions:
            parts.extend(self.entry(function))
        return self.section(short_name(entry), anchor, parts)


def words_of(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


class Group(Directive):
    required_arguments = 1
    option_spec = {"first": directives.unchanged, "fitted": directives.unchanged}
    has_content = True

    def run(self):
        env = self.state.document.settings.env
        before = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, before)
        if names() is None:
            return [before, nodes.paragraph("", "docs/site/build.sh lists the names here.")]
        names().page = names().page_of[self.arguments[0]] = env.docname
        of_header = {f"sheafnn/{header}": [] for header in words_of(self.options.get("first", ""))}
        for entry in names().groups[self.arguments[0]]:
            if has_own_place(entry):
                of_header.setdefault(header_of(entry), []).append(entry)
        functions = {short_name(entry): [] for entries in of_header.values() for entry in entries if is_class(entry)}
        examples = self.examples_in(before, functions)
        for entries in of_header.values():
            self.move_functions(entries, functions)
        page = Page(env, self.state.document)
        fitted = words_of(self.options.get("fitted", ""))
        result = list(before.children)
        for header, entries in of_header.items():
            if not (header in names().files and entries):
                if header not in names().files:
                    logger.warning("%s: there is no such header", header, location=(env.docname, self.lineno))
                continue
            sections = []
            for entry in filter(is_class, entries):
                name = short_name(entry)
                sections.append(page.of_class(entry, functions[name], fitted if name in names().fitted else [], examples[name]))
            others = [part for entry in entries if not is_class(entry) for part in page.entry(entry)]
            if others:
                include = nodes.paragraph("", "", nodes.literal("", f"#include <{header}>"))
                sections.append(page.section(title_of(entries), nodes.make_id(header), [include, *others]))
            for node in reversed(description_of(names().files[header])):  # the header's own text, behind the first title
                sections[0].insert(1, node)
            result += sections
        return result

    def examples_in(self, before: nodes.Node, classes) -> dict[str, list[nodes.Node]]:
        """Takes the blocks of code out that name a class."""
        examples = {name: [] for name in classes}
        for block in list(before.findall(nodes.literal_block)):
            named = [word for word in re.findall(r"\w+", block.astext()) if word in examples]
            if named:
                block.parent.remove(block)
                examples[named[0]].append(block)
        return examples

    def move_functions(self, entries, functions):
        """Moves functions whose first argument is of a class from a header to that class."""
        for entry in [entry for entry in entries if entry.get("kind") == "function"]:
            first = re.match(r"(?:const )?(?:\w+::)*(\w+)", plain(entry.find("param/type")))
            if first and first.group(1) in functions:
                functions[first.group(1)].append(entry)
                entries.remove(entry)


def read_headings(app, doctree):
    """Headings of the mathematics, which comments quote."""
    if app.env.docname.startswith("math/"):
        for section in doctree.findall(nodes.section):
            title = re.sub(r"^[0-9.]+ +", "", section.next_node(nodes.title).astext())
            app.env.cpp_headings.setdefault(title, (app.env.docname, section["ids"][0]))


def prepare(app, env, docnames):
    env.cpp_anchors, env.cpp_headings = {}, {}


def check_all(app, env):
    missing = set(names().groups) - set(names().page_of) if names() else ()
    for group in sorted(missing):
        logger.warning("no page has the group %s", group)


def resolve(app, env, node, content):
    """A link to a name; one that no page has is a text."""
    page, anchor = env.cpp_anchors.get(node["reftarget"], (None, None)) if node.get("reftype") == "cpp-name" else (None, None)
    if page is None:
        return None
    uri = "" if page == node["refdoc"] else app.builder.get_relative_uri(node["refdoc"], page)
    return nodes.reference("", "", content, internal=True, refuri=f"{uri}#{anchor}")


def link_headings(app, doctree, docname):
    """Quoted headings of the mathematics become links."""
    if not docname.startswith("cpp/"):
        return
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.reference)):
            continue
        parts = re.split(r"[“\"]([^“”\"]+)[”\"]", str(text))
        found = [app.env.cpp_headings.get(part) for part in parts[1::2]]
        if not any(found):
            continue
        result = [nodes.Text(parts[0])]
        for quoted, rest, place in zip(parts[1::2], parts[2::2], found):
            if place:
                uri = f"{app.builder.get_relative_uri(docname, place[0])}#{place[1]}"
                result.append(nodes.reference("", quoted, internal=True, refuri=uri))
            else:
                result.append(nodes.Text(f"“{quoted}”"))
            result.append(nodes.Text(rest))
        text.parent.replace(text, result)


def setup(app):
    app.add_directive("cpp-group", Group)
    app.connect("env-before-read-docs", prepare)
    app.connect("doctree-read", read_headings)
    app.connect("env-updated", check_all)
    app.connect("missing-reference", resolve)
    app.connect("doctree-resolved", link_headings, priority=600)  # behind formulas.py, which looks for quotes
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": False}
