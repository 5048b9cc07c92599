#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Lays out the pages of the site for Sphinx (make_site.py): the Markdown of the repository, and pages made of what else
can be read there: manual pages, headers, types, examples.

Usage: pages.py DIRECTORY TOOLS     TOOLS: where the tools are

A link to another page stays one; one to a file that is no page leads to a page that shows this file.
"""

import html
import importlib
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import cpp_names

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LANDING = pathlib.PurePath("docs/site/index.md")
TOOLS = ("usdt-list", "usdt-trace", "usdt-agent", "usdt-broker")
# Headers that have a page of the reference, by the page's name.
HEADERS = {
    "c": ("The C interface", "Its guide is [From C](../docs/c-api.md).", ["bindings/c/include/usdt/usdtc.h"]),
    "provider": ("Headers for programs with probes",
                 "[Probes in your own program](../docs/guide/provider.md) and "
                 "[probes made at run time](../docs/runtime-probes.md) say how they are used.",
                 ["provider/include/usdt/probe.h", "provider/include/usdt/provider.h", "provider/include/usdt/trace_context.h"]),
    "bpf": ("Headers for BPF programs",
            "[A BPF program of your own](../docs/guide/own-program.md) says how they are used.",
            ["bpf/include/usdt/bpf/usdt.bpf.h", "bpf/include/usdt/bpf/event.h", "bpf/include/usdt/bpf/cookie.h"]),
}
LANGUAGES = {".c": "c", ".h": "c", ".cpp": "cpp", ".hpp": "cpp", ".py": "python", ".js": "javascript", ".ts": "typescript", ".go": "go",
             ".rs": "rust", ".toml": "toml", ".sql": "sql", ".yml": "yaml", ".yaml": "yaml", ".lua": "lua",
             ".service": "ini", ".sh": "bash"}
# Folders of what others made of the examples.
MADE = {"__pycache__", "node_modules", "target", "build"}
LINK = re.compile(r"(!?)\[((?:[^\]\n]|\n(?!\n))*)\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)")
BLOCK = re.compile(r"^( *```+).*?^\1`*$\n?", re.M | re.S)
# Collections, of which each section is a page below: one subject each.
DIVIDED = [pathlib.PurePath("docs/cookbook.md")]
# Pages that are below the guide's beside those of its folder.
OTHER_LANGUAGES = ["../c-api", "../python", "../node", "../libbpf", "../runtime-probes"]


def markdown():
    """The pages that the repository has, as paths in it."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "LICENSES/README.md"]
    return sorted(pathlib.PurePath(page.relative_to(ROOT)) for page in pages if page.parent != HERE or page.name == LANDING.name)


def slug(heading):
    """A heading's anchor, as GitHub spells it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def headings(text):
    return re.findall(r"^#+ (.*)", BLOCK.sub("", text), re.M)


def sections_of(text):
    """What is before the first section, and each section with its heading."""
    blocks = [range(block.start(), block.end()) for block in BLOCK.finditer(text)]
    found = [match.start() for match in re.finditer(r"^## ", text, re.M) if not any(match.start() in block for block in blocks)]
    return [text[begin:end] for begin, end in zip([0, *found], [*found, len(text)])]


def relative(name, other, anchor=""):
    """How the page of a name calls another one."""
    path = os.path.relpath(other, pathlib.PurePath(name).parent)
    return f"{path}#{anchor}" if anchor else path


def language(path):
    return "cmake" if path.name == "CMakeLists.txt" else LANGUAGES.get(path.suffix, "text")


def code(path, text=None):
    """A file as a block of code, with a fence that is longer than those within."""
    text = (ROOT / path).read_text(errors="replace") if text is None else text
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{language(pathlib.PurePath(path))}\n{text.rstrip()}\n{fence}\n"


class Layout:
    def __init__(self, directory):
        self.directory = directory
        self.pages = markdown()
        self.sources = {}  # path in the repository -> name of the page that shows it
        self.written = set()

    def write(self, name, text):
        file = self.directory / f"{name}.md"
        self.written.add(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def remove_others(self):
        for file in self.directory.rglob("*.md"):
            if file not in self.written:
                file.unlink()

    def name(self, page):
        return "index" if page == LANDING else str(page.with_suffix(""))

    # --- the Markdown of the repository ---

    def lay_out_markdown(self):
        for page in self.pages:
            if page in DIVIDED:
                self.divide(page)
            else:
                self.write(self.name(page), self.linked(page, (ROOT / page).read_text(), self.name(page)) + self.children(page))

    def linked(self, page, text, name):
        """The text of a page, or a part of it, with its links as they are from the page of that name."""
        at, parts = 0, []
        for block in BLOCK.finditer(text):
            parts += [LINK.sub(lambda match: self.link(page, match, name), text[at:block.start()]), block[0]]
            at = block.end()
        return "".join([*parts, LINK.sub(lambda match: self.link(page, match, name), text[at:])])

    def divide(self, page):
        beginning, *sections = sections_of((ROOT / page).read_text())
        names = [self.name_of_section(page, section) for section in sections]
        below = "\n".join(["```{toctree}", ":maxdepth: 2", "", *(f"/{name}" for name in names), "```", ""])
        self.write(self.name(page), f"{self.linked(page, beginning, self.name(page))}\n{below}")
        for name, section in zip(names, sections):
            raised = re.sub(r"^#(?=#+ )", "", section, flags=re.M)  # in consoles "#" is followed by a space
            self.write(name, self.linked(page, raised, name))

    def name_of_section(self, page, section):
        return f"{self.name(page)}/{slug(headings(section)[0])}"

    def place(self, page, anchor):
        """The name of the page that shows a heading of the repository's page, and the anchor there."""
        if page in DIVIDED and anchor:
            for section in sections_of((ROOT / page).read_text())[1:]:
                if anchor in map(slug, headings(section)):
                    return self.name_of_section(page, section), "" if anchor == slug(headings(section)[0]) else anchor
        return self.name(page), anchor

    def children(self, page):
        """The pages of a folder are below its README."""
        if page.name != "README.md" or page.parent.name != "guide":
            return ""
        order = re.findall(r"\]\(([\w-]+)\.md\)", (ROOT / page).read_text())
        return "\n".join(["\n```{toctree}", ":hidden:", "", *dict.fromkeys(order), *OTHER_LANGUAGES, "```", ""])

    def link(self, page, match, name):
        picture, text, path, anchor = match.groups()
        target = pathlib.PurePath(os.path.normpath(page.parent / path)) if path else page
        if picture:
            self.copy(target)
        elif target in self.pages:
            text = self.title(target, anchor) if text.endswith(".md") else text
            place, anchor = self.place(target, anchor)
            return f"[{text}]({relative(name, f'{place}.md', anchor)})"
        elif (ROOT / target).exists():
            return f"[{text}]({relative(name, *self.source(target))})"
        return f"{picture}[{text}]({relative(name, str(target), anchor)})"

    def title(self, page, anchor):
        """What a link says on GitHub, the name of a file, says nothing here."""
        found = headings((ROOT / page).read_text())
        return next((each for each in found if slug(each) == anchor), found[0]).replace("`", "")

    def copy(self, path):
        (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, self.directory / path)

    # --- files that are no pages ---

    def source(self, path):
        """The page that shows a file or a folder, and where on it."""
        for name, (_, _, headers) in HEADERS.items():
            if str(path) in headers:
                return f"reference/{name}.md", slug(path.name)
        if path.parts[0] == "examples" and len(path.parts) > 1:
            folder = pathlib.PurePath(*path.parts[:2])
            if (ROOT / folder).is_dir():
                anchor = slug(str(path.relative_to(folder))) if (ROOT / path).is_file() else ""
                return f"sources/{folder}.md", anchor
            return "sources/examples.md", slug(path.name)
        self.sources[path] = f"sources/{path}"
        return f"sources/{path}.md", ""

    def lay_out_sources(self):
        self.lay_out_folder(pathlib.PurePath("examples"), deep=False)
        folders = [pathlib.PurePath("examples", each.name) for each in sorted((ROOT / "examples").iterdir()) if each.is_dir()]
        for folder in folders:
            self.lay_out_folder(folder, deep=True)
        others = sorted(set(self.sources) - {pathlib.PurePath("examples")})
        for path in others:
            self.write(f"sources/{path}", f"# `{path.name}`\n\n`{path}`\n\n{code(path)}")
        listed = [f"sources/{each}" for each in ("examples", *folders, *others)]
        toctree = "\n".join(["```{toctree}", ":maxdepth: 1", "", *(f"/{each}" for each in listed), "```"])
        self.write("sources/index", f"# Examples\n\nWhole programs of `examples/`, and other files that pages name.\n\n{toctree}\n")

    def lay_out_folder(self, folder, deep):
        text = f"# `{folder}`\n"
        for file in sorted((ROOT / folder).rglob("*") if deep else (ROOT / folder).glob("*")):
            path = pathlib.PurePath(file.relative_to(ROOT))
            if file.is_file() and not MADE.intersection(path.parts):
                text += f"\n## `{path.relative_to(folder)}`\n\n{code(path)}"
        self.write(f"sources/{folder}", text)

    # --- the reference ---

    def lay_out_headers(self):
        for name, (title, said, headers) in HEADERS.items():
            text = f"# {title}\n\n{said}\n"
            for header in headers:
                shown = "/".join(header.split("include/", 1)[1:])
                text += f"\n## `{pathlib.PurePath(header).name}`\n\n`#include <{shown}>`\n\n"
                parts = re.split(r"^/\* -{4} (.*?) -+ \*/\n", (ROOT / header).read_text(), flags=re.M)
                text += code(header, parts[0])
                for heading, body in zip(parts[1::2], parts[2::2]):
                    text += f"\n### {heading[0].upper()}{heading[1:]}\n\n{code(header, body.strip(chr(10)))}"
            self.write(f"reference/{name}", text)

    def lay_out_node(self):
        """Each declaration of the types has a heading; those of a name stay together."""
        text = "# The Node.js package\n\nIts guide is [From Node.js](../docs/node.md). These are the types of `index.d.ts`.\n"
        declarations, last = {}, None
        for part in re.split(r"\n\n(?=\S)", (ROOT / "bindings/node/index.d.ts").read_text()):
            match = re.search(r"^export (?:declare )?(?:abstract )?(?:class|interface|function|type|const|enum) (\w+)", part, re.M)
            last = match[1] if match else last
            declarations.setdefault(last, []).append(part)
        for name, parts in declarations.items():
            text += (f"\n## `{name}`\n\n" if name else "\n") + code("index.d.ts", "\n\n".join(parts))
        self.write("reference/node", text)

    def lay_out_python(self):
        sys.path.insert(0, str(ROOT / "bindings/python"))
        package = importlib.import_module("usdt")
        said, example = inspect.getdoc(package).split("\n\n", 1)
        text = ("# The Python package\n\nIts guide is [From Python](../docs/python.md).\n\n"
                f"{said}\n\n```python\n{example}\n```\n\n```{{eval-rst}}\n.. module:: usdt\n```\n")
        for name in package.__all__:
            value = getattr(package, name)
            kind = "class" if inspect.isclass(value) else "function" if inspect.isfunction(value) else "data"
            options = "   :members:\n" + "   :show-inheritance:\n" * issubclass(value, Exception) if kind == "class" else ""
            text += f"\n## `{name}`\n\n```{{eval-rst}}\n.. auto{kind}:: usdt.{name}\n{options}```\n"
        self.write("reference/python", text)

    def lay_out_cpp(self):
        """A table of each header's names, which lead to doxygen's pages; so this search finds them, too."""
        text = ("# The C++ reference\n\nEverything is in namespace `usdt`, and `#include <usdt/usdt.hpp>` has all of it. "
                "The names lead to <a href=\"cpp/index.html\">doxygen's pages</a>, which have a search of their own.\n")
        headers = {}
        for each in cpp_names.names().values():
            headers.setdefault(each.header, []).append(each)
        for header, each_name in sorted(headers.items()):
            text += f"\n## `{header}`\n\n| name | what it is |\n|---|---|\n"
            for each in each_name:
                name = each.name.removeprefix("usdt::") + ("()" if each.kind == "function" else "")
                brief = re.sub(r"([\\|<>*_`\[\]])", r"\\\1", each.brief)
                text += f'| <a href="cpp/{each.page}"><code>{html.escape(name)}</code></a> | {brief} |\n'
        self.write("reference/cpp", text)

    def lay_out_manuals(self, tools):
        for tool in TOOLS:
            manual = subprocess.run([tools / tool, "--manual"], capture_output=True, text=True, check=True).stdout
            made = subprocess.run(["mandoc", "-T", "html", "-O", "fragment"], input=manual, capture_output=True, text=True,
                                  check=True).stdout
            text = f"# {tool}\n"
            section = r'<section class="Sh">\n<h1 class="Sh"[^>]*><a[^>]*>(.*?)</a></h1>\n(.*?)</section>'
            for title, body in re.findall(section, made, re.S):
                lines = "\n".join(line for line in body.splitlines() if line.strip())
                text += f"\n## {title.capitalize()}\n\n```{{raw}} html\n<div class=\"manual\">\n{lines}\n</div>\n```\n"
            self.write(f"man/{tool}", text)


def main():
    layout = Layout(pathlib.Path(sys.argv[1]).resolve())
    layout.lay_out_markdown()
    layout.lay_out_sources()
    layout.lay_out_headers()
    layout.lay_out_node()
    layout.lay_out_python()
    layout.lay_out_cpp()
    layout.lay_out_manuals(pathlib.Path(sys.argv[2]).resolve())
    layout.remove_others()


if __name__ == "__main__":
    main()
