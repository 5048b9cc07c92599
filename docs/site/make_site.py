#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the site: doxygen's reference, the pages (pages.py), and Sphinx over them (conf.py). Warnings are errors.

Usage: make_site.py DIRECTORY TOOLS      DIRECTORY/site is the site; TOOLS: where the tools are
       make_site.py --reference DIRECTORY   the C++ reference alone, which says whether everything public has a comment
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def make_reference(directory):
    """Doxygen's pages below the site, whose name leads back to it, and the XML by which the site has their names."""
    for made in ("site", "xml"):
        shutil.rmtree(directory / made, ignore_errors=True)
    (directory / "site/reference").mkdir(parents=True)
    settings = (ROOT / "docs/Doxyfile").read_text()
    settings += f'OUTPUT_DIRECTORY = "{directory}"\nWARN_LOGFILE = "{directory}/warnings"\n'
    subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT, check=True)
    name = '<div id="projectname">'
    for page in (directory / "site/reference/cpp").glob("*.html"):
        page.write_text(page.read_text().replace(f"{name}usdt", f'{name}<a href="../../index.html">usdt</a>'))
    subprocess.run([sys.executable, ROOT / "docs/check_reference.py", directory / "warnings"], check=True)


def make_site(directory, tools):
    make_reference(directory)
    os.environ["USDT_REFERENCE_XML"] = str(directory / "xml")
    subprocess.run([sys.executable, "-B", HERE / "pages.py", directory / "pages", tools], check=True)
    # Everything anew (-E): what was read before does not know of changes here.
    subprocess.run(["sphinx-build", "-q", "-E", "-W", "--keep-going", "-c", HERE, "-d", directory / "doctrees",
                    directory / "pages", directory / "site"], check=True)


def main():
    words = [word for word in sys.argv[1:] if word != "--reference"]
    directory = pathlib.Path(words[0]).resolve()
    if len(words) < len(sys.argv) - 1:
        make_reference(directory)
    else:
        make_site(directory, pathlib.Path(words[1]).resolve())


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failed:
        sys.exit(f"make_site: {failed}")
