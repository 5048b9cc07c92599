#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The site: each link and anchor of it leads somewhere within it, each page is in the navigation, the search finds words
on the pages that have them, and a browser shows it on a phone and on a desk without complaints and without scrolling
sideways.

With USDT_SITE=DIRECTORY that site is looked at; otherwise it is made first."""

import atexit
import functools
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / each) for each in ("tests/programs", "tests/live/export", "docs/site")]

from browser import Page  # noqa: E402
from harness import Failure, Skip, check, check_equal, main, scenario  # noqa: E402

PHONE, DESK = 390, 1280
# What people look for, and a page that has it.
WORDS = {"uretprobe": "docs/functions", "sudo": "README", "--by": "man/usdt-trace", "cookie": "docs/carriers",
         "--max-overhead": "docs/guards", "PostgreSQL": "docs/cookbook/postgresql", "usdtc_session_new": "reference/c",
         "plan_attach": "reference/cpp", "Tracer": "reference/python",
         "UsdtError": "reference/node", "USDT_PROBE": "reference/provider", "bpf_usdt_arg": "docs/libbpf", "ClickHouse": "docs/fleet",
         "uprobe_multi": "docs/benchmarks", "--record": "docs/recording"}


NO_FILE = ("data:", "javascript:")
DOXYGEN_FAULTS = ["#nested-classes"]  # its summary of a class names them also if there are none with a comment


# --- the site ---------------------------------------------------------------------------------------------------------

def require_generator():
    missing = [name for name in ("doxygen", "sphinx-build", "mandoc") if not shutil.which(name)]
    if subprocess.run(["/usr/bin/python3", "-c", "import furo, myst_parser"], capture_output=True, check=False).returncode:
        missing.append("furo or python3-myst-parser")
    if missing:
        raise Skip(f"no {', '.join(missing)}: ./run setup docs")


@functools.cache
def made_site(tools):
    """Where it is, or why there is none."""
    if "USDT_SITE" in os.environ:
        return pathlib.Path(os.environ["USDT_SITE"]).resolve(), ""
    directory = tempfile.mkdtemp(prefix="usdt-site-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    argv = ["/usr/bin/python3", "-B", ROOT / "docs/site/make_site.py", directory, tools]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=500, check=False)
    return pathlib.Path(directory) / "site", done.stdout + done.stderr if done.returncode else ""


def site_of(run):
    if "USDT_SITE" not in os.environ:
        require_generator()
    site, trouble = made_site(run.tool.parent)
    if trouble:
        raise Failure(f"the site cannot be made: {trouble}")
    return site


# --- what is in its pages ---------------------------------------------------------------------------------------------

class Document(html.parser.HTMLParser):
    """A page's anchors, its links, what it loads, and the links of its navigation."""

    LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}

    def __init__(self, file):
        super().__init__()
        self.anchors, self.links, self.loaded, self.navigation, self.within = set(), set(), set(), set(), 0
        self.feed(file.read_text(errors="replace"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "div":
            self.within = self.within + 1 if self.within or "sidebar-tree" in (given.get("class") or "") else 0
        if tag == "a" and given.get("href"):
            (self.navigation if self.within else self.links).add(given["href"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "shortcut icon"):
            self.loaded.add(given["href"])
        if given.get(self.LOADED.get(tag)):
            self.loaded.add(given[self.LOADED[tag]])

    def handle_endtag(self, tag):
        if tag == "div" and self.within:
            self.within -= 1


@functools.cache
def documents(site):
    return {file: Document(file) for file in sorted(site.rglob("*.html"))}


def split(link):
    """Whether it leads out of the site, the path and the anchor."""
    parts = urllib.parse.urlsplit(link)
    return bool(parts.scheme or parts.netloc), urllib.parse.unquote(parts.path), urllib.parse.unquote(parts.fragment)


def target_of(file, path):
    return pathlib.Path(os.path.normpath(file.parent / path)) if path else file


def pages_of(site):
    """The names of the pages that Sphinx made of a text, as the index of the search has them."""
    text = (site / "searchindex.js").read_text()
    return json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))["docnames"]


def looked_up(site):
    """Each link within a site, and whether it leads somewhere."""
    for file, document in documents(site).items():
        for link in document.links | document.navigation:
            outside, path, anchor = split(link)
            if not outside and link not in DOXYGEN_FAULTS:
                target = target_of(file, path)
                known = documents(site).get(target)
                yield f"{file.relative_to(site)}: {link}", target.exists() and (not anchor or not known or anchor in known.anchors)


@scenario
def each_link_and_anchor_leads_somewhere(run):
    links = dict(looked_up(site_of(run)))
    check(len(links) > 10_000, f"only {len(links)} links")
    dead = [link for link, leads in links.items() if not leads]
    check_equal(dead[:20], [], f"{len(dead)} links that lead nowhere")


@scenario
def a_dead_link_is_noticed(run):
    for name, begin, links in (("a", "", ["b.html", "b.html#there", "b.html#gone", "c.html"]),
                               ("b", '<p id="there">', ["#there", "https://a.b/c.html", "a%20b.html"])):
        (run.dir / f"{name}.html").write_text(begin + "".join(f'<a href="{link}">there</a>' for link in links))
    dead = sorted(link for link, leads in looked_up(run.dir) if not leads)
    check_equal(dead, ["a.html: b.html#gone", "a.html: c.html", "b.html: a%20b.html"], "dead links")


@scenario
def nothing_is_loaded_from_outside(run):
    site, outside = site_of(run), []
    for file, document in documents(site).items():
        outside += [f"{file.name}: {link}" for link in document.loaded if split(link)[0] and not link.startswith(NO_FILE)]
        missing = [link for link in document.loaded if not split(link)[0] and not target_of(file, split(link)[1]).exists()]
        check_equal(missing, [], f"what {file.relative_to(site)} loads and is not there")
    for file in site.rglob("*.css"):
        wanted = re.findall(r"""@import\s+(?:url\()?['"]?([^'")]+)|url\(['"]?((?!data:)[^'")]+)""", file.read_text())
        for link in (first or second for first, second in wanted):
            if split(link)[0] or not target_of(file, split(link)[1]).exists():
                outside.append(f"{file.name}: {link}")
    check_equal(outside, [], "what is loaded from outside")


@scenario
def each_page_is_in_the_navigation(run):
    site = site_of(run)
    names = set(pages_of(site)) - {"index"}
    for start in ("index.html", "docs/results/hit.html"):
        file = site / start
        listed = {target_of(file, split(link)[1]) for link in documents(site)[file].navigation}
        left_out = sorted(name for name in names if site / f"{name}.html" not in listed)
        check_equal(left_out, [], f"pages that the navigation of {start} does not have")
    check(len(names) > 60, f"only {len(names)} pages")


@scenario
def each_page_of_the_reference_can_be_reached(run):
    site = site_of(run)
    seen, waiting = set(), [site / "reference/cpp.html"]
    while waiting:
        file = waiting.pop()
        if file in seen or file not in documents(site):
            continue
        seen.add(file)
        waiting += [target_of(file, split(link)[1]) for link in documents(site)[file].links if not split(link)[0]]
    classes = {file for file in documents(site) if file.name.startswith(("classusdt", "structusdt")) and "-members" not in file.name}
    check(len(classes) > 150, f"only {len(classes)} classes")
    check_equal(sorted(file.name for file in classes - seen)[:20], [], "classes that no page leads to")
    for file in classes:
        check("../../index.html" in documents(site)[file].links, f"{file.name} does not lead back to the site")


# --- the search -------------------------------------------------------------------------------------------------------

@scenario
def the_index_has_the_words_of_the_pages(run):
    site = site_of(run)
    from search_words import SearchTracing  # Sphinx's own, which is there now
    language = SearchTracing({})
    text = (site / "searchindex.js").read_text()
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))
    texts = json.loads((site / "search_texts.js").read_text().removeprefix("const searchTexts = ").rstrip().removesuffix(";"))
    for word, page in WORDS.items():
        term = language.stem(language.split(word)[-1].lower())
        found = [each for terms in (index["terms"], index["titleterms"]) for each in [terms.get(term, [])]]
        pages = {index["docnames"][n] for each in found for n in (each if isinstance(each, list) else [each])}
        check(page in pages, f"{word} ({term}) is on {page}; the index has {sorted(pages)}")
        for each in pages:
            check(word.lower().lstrip("-")[:4] in texts[each].lower(), f"{word} is not on {each}, where the index has it")
    check_equal(sorted(texts), sorted(index["docnames"]), "pages with a text to show")


FOUND = """[...document.querySelectorAll('#search-results ul.search li')].map(
             li => [li.querySelector('a').getAttribute('href'), li.innerText])"""


def found_by(page, site, word):
    page.open(site / "search.html", query="q=" + urllib.parse.quote(word))
    for _ in range(200):
        if page.value("document.querySelector('#search-results p.search-summary')?.innerText.includes('found')"):
            return page.value(FOUND)
        if page.value("document.querySelector('#search-results p.search-summary')?.innerText.includes('did not match')"):
            return []
        time.sleep(0.05)
    raise Failure(f"the search for {word} does not end")


@scenario
def the_search_finds_them_in_a_browser_without_a_server(run):
    site = site_of(run)
    page = Page(site / "search.html", width=DESK)
    for word, wanted in WORDS.items():
        found = dict((re.sub(r"[#?].*", "", href), text) for href, text in found_by(page, site, word))
        check(f"{wanted}.html" in found, f"{word}: {list(found)}")
        shown = found[f"{wanted}.html"]
        check(word.lower() in shown.lower(), f"{word} is in what is shown of {wanted}: {shown!r}")
    check_equal(found_by(page, site, "xyzzyplugh"), [], "a word that is nowhere")
    check(not page.value("document.querySelector('#search-results script, #search-results img')"), "texts are texts")
    page.close()


# --- how it looks -----------------------------------------------------------------------------------------------------

# What is needed, also of texts that a page hides what it has no room for; blocks of code and tables scroll by themselves.
WIDTHS = """(() => {
  const texts = [...document.querySelectorAll('article :is(h1, h2, h3, p, li, code)')].filter(each => !each.closest('pre, table'));
  return [Math.max(document.documentElement.scrollWidth, ...texts.map(each => each.getBoundingClientRect().right)), window.innerWidth];
})()"""
# The pages of doxygen that are looked at: one of each kind.
DOXYGEN = [f"reference/cpp/{each}" for each in ("index", "annotated", "namespaceusdt_1_1v1", "classusdt_1_1v1_1_1Session",
                                               "structusdt_1_1v1_1_1AttachPlan")]


def check_widths(run, width):
    site = site_of(run)
    page, too_wide = Page(site / "index.html", width=width), []
    for name in [*pages_of(site), "search", *DOXYGEN]:
        page.open(site / f"{name}.html")
        needed, there = page.value(WIDTHS)
        if needed > there:
            too_wide.append(f"{name}: {needed} of {there}")
        check(page.value("document.body.innerText.length") > 100, f"{name} is empty")
    check_equal(too_wide, [], f"pages that scroll sideways at {width} pixels")
    page.close()


@scenario
def a_phone_shows_each_page_without_scrolling_sideways(run):
    check_widths(run, PHONE)


@scenario
def a_desk_shows_each_page_without_scrolling_sideways(run):
    check_widths(run, DESK)


# How bright the page and its text are, 0 to 255.
BRIGHTNESS = """(() => {
  const of = color => { const [r, g, b] = color.match(/[\\d.]+/g).map(Number); return (r * 299 + g * 587 + b * 114) / 1000; };
  const all = [...document.querySelectorAll('article :is(p, td, code, pre span, a, h1), .sidebar-tree a')];
  const ground = element => {
    for (let each = element; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (!/, 0\\)$/.test(color)) return of(color);
    }
    return 255;
  };
  const shown = all.filter(each => each.innerText.trim() && each.getClientRects().length);
  return {page: ground(document.querySelector('article')),
          weakest: Math.min(...shown.map(each => Math.abs(ground(each) - of(getComputedStyle(each).color)))), texts: shown.length};
})()"""


@scenario
def both_themes_can_be_read(run):
    site = site_of(run)
    page = Page(site / "index.html", width=DESK)
    for name in ("index", "docs/tables", "docs/stability", "reference/c", "reference/python", "man/usdt-trace", "docs/results/hit"):
        for dark in (False, True):
            page.look_at(DESK, dark=dark)
            page.open(site / f"{name}.html")
            seen = page.value(BRIGHTNESS)
            check((seen["page"] < 60) if dark else (seen["page"] > 240), f"{name}, {dark=}: {seen}")
            check(seen["texts"] > 20 and seen["weakest"] > 60, f"text on its ground, {name}, {dark=}: {seen}")
    page.close()


@scenario
def who_types_into_the_box_of_a_page_finds(run):
    site = site_of(run)
    for width in (PHONE, DESK):
        page = Page(site / "docs/tables.html", width=width)
        box = "(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('%s').getBoundingClientRect())"
        if width == PHONE:  # the navigation comes in from the side
            page.click(*page.value(box % "label.nav-overlay-icon[for=__navigation]"))
            time.sleep(0.5)
        page.click(*page.value(box % "input[name=q]"))
        page.type("uretprobe")
        page.press("Enter", "\r")
        for _ in range(100):
            if page.value("location.pathname.endsWith('search.html') && document.readyState == 'complete'") and page.value(FOUND):
                break
            time.sleep(0.05)
        found = [href for href, _ in page.value(FOUND)]
        check(any(href.startswith("docs/functions.html") for href in found), f"at {width} pixels: {found}")
        page.close()


if __name__ == "__main__":
    main()
