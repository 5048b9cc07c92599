# SPDX-License-Identifier: BSD-2-Clause
"""How Sphinx makes the site of the pages that pages.py lays out (make_site.py). Sphinx's search index is a script, so that it
is found without a server; those of other generators are fetched, which browsers refuse for files."""

import inspect
import json
import pathlib
import re
import shutil
import sys

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "bindings/python")]

import cpp_names  # noqa: E402
from search_words import SearchTracing  # noqa: E402

project = "usdt"
version = re.search(r"^project\(usdt VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
copyright = "its authors; BSD-2-Clause"  # noqa: A001 (Sphinx's name)
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
myst_heading_anchors = 4
# A page may begin with a smaller heading; what is shown of an answer has "..." in its JSON.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

html_theme = "furo"
html_title = f"usdt {version}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
smartquotes = False  # they make one dash of the two of an option
html_use_index = html_domain_indices = False
html_search_language = "tracing"
html_search_scorer = str(HERE / "search_excerpts.js")
html_show_search_summary = False  # Sphinx fetches pages for it
templates_path = ["templates"]
fonts = {"font-stack": "system-ui, sans-serif", "font-stack--monospace": "ui-monospace, 'DejaVu Sans Mono', monospace"}
# The theme's style sheet has lost its dark colours on the way into Debian, but for those who press the button.
dark = {"color-problematic": "#ee8a8a", "color-foreground-primary": "#e6e6e6", "color-foreground-secondary": "#a8adb4",
        "color-foreground-muted": "#8b9098", "color-foreground-border": "#666666", "color-background-primary": "#16181b",
        "color-background-secondary": "#1e2125", "color-background-hover": "#2a2e34", "color-background-hover--transparent": "#2a2e3400",
        "color-background-border": "#343940", "color-background-item": "#444444", "color-brand-primary": "#7cacf8",
        "color-brand-content": "#8ab4f8", "color-highlight-on-target": "#3a3a1a", "color-highlighted-background": "#1d3a63"}
html_theme_options = {"top_of_page_button": None, "light_css_variables": fonts, "dark_css_variables": {**fonts, **dark}}
highlight_language = "none"  # what names no language has none
pygments_style, pygments_dark_style = "default", "github-dark"

default_role = "literal"  # `names` in comments of Python
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}


class LinkedNames(SphinxPostTransform):
    """In the pages for who writes C++: `usdt::Tracer`, `plan_attach()` lead to the reference."""

    default_priority = 700

    def run(self, **_):
        page = self.env.docname
        if not page.startswith(("docs/guide/", "README")):
            return
        up = "../" * page.count("/")
        for literal in list(self.document.findall(nodes.literal)):
            target = cpp_names.links().get(literal.astext())
            if target and not isinstance(literal.parent, nodes.reference):
                link = nodes.reference("", "", refuri=f"{up}reference/cpp/{target}", internal=True)
                literal.replace_self(link)
                link += literal


def own_lines(what, obj, lines):
    """A comment as its source has it, less the indentation there: Sphinx takes away that of a comment which is all example."""
    if what not in ("class", "exception", "function", "method", "property"):
        return lines
    source = obj.fget if isinstance(obj, property) else obj
    try:
        first = inspect.getsourcelines(source)[0][0]
    except (OSError, TypeError):
        return lines
    indentation = re.compile(rf"^ {{0,{len(first) - len(first.lstrip()) + 4}}}")
    return [indentation.sub("", line) for line in (obj.__doc__ or "").splitlines()]


def plain_docstring(app, what, name, obj, options, lines):
    """The package's comments are plain text with `names`; indented lines are examples. Nothing else in them is markup."""
    text = "\n".join(own_lines(what, obj, lines)).strip("\n")
    parts = re.split(r"((?:^ {4}.*\n?|^\n(?= {4}))+)", text, flags=re.M)
    for number, part in enumerate(parts):
        if number % 2:
            parts[number] = f"\n.. code-block:: python\n\n{part}\n"
        else:
            parts[number] = "".join(each if each.startswith("`") else re.sub(r"([*|_\\])", r"\\\1", each)
                                    for each in re.split(r"(`[^`]*`)", part))
    lines[:] = "".join(parts).splitlines() + [""]


def write_texts(app, exception):
    """The text of each page for the list of what a search has found (search_excerpts.js)."""
    if exception is not None or app.builder.name != "html":
        return
    texts = {}
    for name in sorted(app.env.found_docs):
        page = app.env.get_doctree(name)
        if any(not each["hidden"] for each in page.findall(addnodes.toctree)):  # it shows titles of other pages
            page = app.env.get_and_resolve_doctree(name, app.builder)
        text = " ".join(node.astext() for node in page.findall(nodes.Text))
        texts[name] = re.sub(r"<[^<]+?>", "", re.sub(r"\s+", " ", text))
    file = pathlib.Path(app.outdir) / "search_texts.js"
    file.write_text(f"const searchTexts = {json.dumps(texts, ensure_ascii=False)};\n")


def bundle_theme(app, exception):
    """Debian has the theme as its sources: a style sheet that asks a web server of Debian's for another one, which is put beside
    it, and a module, which browsers refuse for pages that are files, and which takes in the one that it names."""
    if exception is not None or app.builder.name != "html":
        return
    static = pathlib.Path(app.outdir) / "_static"
    style, script = static / "styles/furo.css", static / "scripts/furo.js"

    def copy(match):
        shutil.copy(pathlib.Path("/usr/share/javascript") / match[1], style.parent)
        return f"@import url({pathlib.PurePath(match[1]).name});"

    style.write_text(re.sub(r"@import url\(/javascript/(\S+?)\);", copy, style.read_text()))
    script.write_text(re.sub(r'import \w+ from "\./(\S+?)";', lambda match: (script.parent / match[1]).read_text(), script.read_text()))


def setup(app):
    app.add_search_language(SearchTracing)
    app.add_post_transform(LinkedNames)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("build-finished", write_texts)
    app.connect("build-finished", bundle_theme)
