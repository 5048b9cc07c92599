# SPDX-License-Identifier: BSD-2-Clause
"""Which words of the pages can be searched for."""

import re

from sphinx.search.en import SearchEnglish


class SearchTracing(SearchEnglish):
    """Words, and options as they are typed: `--by` is a word of its own, although "by" is none."""

    lang = "tracing"
    OPTION = re.compile(r"(?<![\w-])--?([A-Za-z][\w-]*)")
    # The same in the browser. Sphinx takes a word that begins with "-" for one that pages must not have.
    js_splitter_code = """
function splitQuery(query) {
  return query.split(/\\s+/).flatMap(word => {
    const option = word.match(/^--?([A-Za-z][\\w-]*)/);
    return option ? ['option_' + option[1].replace(/-/g, '_')] : word.split(/[^\\p{Letter}\\p{Number}_]+/gu).filter(each => each);
  });
}
"""

    def split(self, input):  # noqa: A002 (Sphinx's name)
        return super().split(input) + [f"option_{name.replace('-', '_')}" for name in self.OPTION.findall(input)]
