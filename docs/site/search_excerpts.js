// SPDX-License-Identifier: BSD-2-Clause
// What Sphinx asks about each page that a search has found: how good it is, and here also what is shown of it. The texts
// come with the page of searching (search_texts.js): a browser fetches none for pages that are files.
const searchWords = () => (new URLSearchParams(location.search).get('q') || '').toLowerCase().split(/\s+/).filter(word => word);

const excerpt = text => {
  const lower = text.toLowerCase(), found = searchWords().map(word => lower.indexOf(word)).filter(at => at >= 0);
  const begin = Math.max(0, (found.length ? Math.min(...found) : 0) - 60);
  const shown = document.createElement('span');
  shown.textContent = (begin > 0 ? '…' : '') + text.slice(begin, begin + 200) + (begin + 200 < text.length ? '…' : '');
  return `<span class="excerpt">${shown.innerHTML}</span>`;
};

// A page that has the words often is about them more likely; files that are shown as they are come last.
const occurrences = text => Math.min(...searchWords().map(word => text.toLowerCase().split(word).length - 1));

var Scorer = {
  score: result => {
    const [page, , , described, score] = result, text = searchTexts[page];
    if (described !== null || !text) return score;
    result[3] = excerpt(text);
    return score + Math.min(4, Math.log2(1 + occurrences(text))) - (page.startsWith('sources/') ? 5 : 0);
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
