// SPDX-License-Identifier: BSD-2-Clause
// The flame graph of the pages flame_page.html and report_page.html, each of which has this file in it.
'use strict';
const at = id => document.getElementById(id);
const number = value => value.toLocaleString('en-US');
const share = (part, whole) => (whole ? 100 * part / whole : 0).toFixed(2) + ' %';

/** Puts the page's one tip beside the mouse; '' takes it away. */
function showTip(event, text) {
  const tip = at('tip');
  tip.hidden = text === '';
  tip.textContent = text;
  tip.style.left = Math.max(8, Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = Math.max(8, Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8)) + 'px';
}

/** A pen for a canvas of that height, as sharp as the screen. */
function penOf(canvas, height) {
  const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  canvas.style.height = height + 'px';
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext('2d');
  pen.scale(ratio, ratio);
  pen.font = '12px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  return pen;
}

/** Makes a tree of what the file has: nodes by number, each behind its parent, with what is on top of it. */
function treeOf(data) {
  const nodes = data.names_of.map((name, n) => ({
                                    name: data.names[name],
                                    parent: data.parents[n],
                                    self: data.counts[n],
                                    total: data.counts[n],
                                    children: [],
                                    depth: 0,
                                    before: 0
                                  }));
  for (let n = nodes.length - 1; n > 0; --n) nodes[nodes[n].parent].total += nodes[n].total;
  for (let n = 1; n < nodes.length; ++n) {
    nodes[n].depth = nodes[nodes[n].parent].depth + 1;
    nodes[nodes[n].parent].children.push(nodes[n]);
    nodes[n].parent = nodes[nodes[n].parent];
  }
  nodes[0].parent = null;
  return nodes;
}

/** Stacks as flame graphs' programs have them, a line each. */
function dataOfFolded(text) {
  const data = {names: ['all'], names_of: [0], parents: [0], counts: [0]};
  const known = new Map(), numbers = new Map([['all', 0]]);
  for (const line of text.split('\n')) {
    const parts = /^(.*) (\d+)$/.exec(line.trimEnd());
    if (!parts) continue;
    let node = 0;
    for (const name of parts[1].split(';')) {
      const key = node + ';' + name;
      if (!known.has(key)) {
        if (!numbers.has(name)) numbers.set(name, data.names.push(name) - 1);
        known.set(key, data.names_of.push(numbers.get(name)) - 1);
        data.parents.push(node);
        data.counts.push(0);
      }
      node = known.get(key);
    }
    data.counts[node] += Number(parts[2]);
  }
  return data;
}

class FlameGraph {
  /** Draws `data` on `canvas`; what is chosen is told in `where`. */
  constructor(data, canvas, where) {
    this.data = data;
    this.canvas = canvas;
    this.where = where;
    this.rowHeight = 18;
    this.nodes = treeOf(data);
    this.root = this.zoomed = this.chosen = this.nodes[0];
    this.matches = null;
    this.before = 0;  // what all frames of another graph have
    this.drawn = [];
    canvas.addEventListener('click', event => {
      const node = this.under(event);
      if (node) this.zoom(node);
    });
    canvas.addEventListener('mousemove', event => {
      const node = this.under(event);
      showTip(event, node ? this.describe(node) : '');
    });
    canvas.addEventListener('mouseleave', event => showTip(event, ''));
  }

  colourOf(node) {
    if (this.before > 0) {
      const change = node.total / (this.root.total || 1) - node.before / this.before;
      const strength = Math.min(1, Math.abs(change) * 8);
      return change >= 0 ? `hsl(4 85% ${88 - 38 * strength}%)` : `hsl(216 85% ${88 - 38 * strength}%)`;
    }
    let hash = 0;
    for (let i = 0; i < node.name.length; ++i) hash = (hash * 31 + node.name.charCodeAt(i)) >>> 0;
    const [from, to] = node.name.endsWith('_[k]') ? [18, 30] :
        node.name.endsWith('_[j]')                ? [100, 130] :
        node.name.endsWith('_[i]')                ? [175, 195] :
                                                    [38, 56];
    return `hsl(${from + hash % (to - from)} ${70 + hash % 17}% ${62 + hash % 11}%)`;
  }

  describe(node) {
    let text = `${node.name}: ${number(node.total)} ${this.data.unit} (${share(node.total, this.root.total)})`;
    if (node.self && node.self !== node.total) text += `, ${number(node.self)} in itself`;
    if (this.before > 0) {
      const change = 100 * (node.total / (this.root.total || 1) - node.before / this.before);
      text += `; before ${number(node.before)} (${share(node.before, this.before)}): ` +
          `${change < 0 ? '' : '+'}${change.toFixed(2)} points`;
    }
    return text;
  }

  /** Frames around the one that is zoomed are as wide as all; the others share its width. */
  place(width) {
    const least = 0.4;  // pixels
    this.drawn = [];
    const around = [];
    for (let node = this.zoomed.parent; node; node = node.parent) around.push(node);
    for (const node of around) this.drawn.push({node, x: 0, width});
    const scale = width / (this.zoomed.total || 1);
    const stack = [[this.zoomed, 0]];
    while (stack.length > 0) {
      const [node, x] = stack.pop();
      this.drawn.push({node, x, width: node.total * scale});
      let next = x;
      for (const child of node.children) {
        if (child.total * scale >= least) stack.push([child, next]);
        next += child.total * scale;
      }
    }
  }

  draw() {
    const style = getComputedStyle(document.documentElement), rowHeight = this.rowHeight;
    this.place(this.canvas.clientWidth);
    const rows = this.drawn.reduce((most, box) => Math.max(most, box.node.depth), 0) + 1;
    const pen = penOf(this.canvas, rows * rowHeight);
    const ink = style.getPropertyValue('--frame-text'), mark = style.getPropertyValue('--mark'),
          line = style.getPropertyValue('--text');
    for (const box of this.drawn) {
      const y = box.node.depth * rowHeight, w = Math.max(box.width - 0.5, 0.5);
      pen.globalAlpha = box.node.depth < this.zoomed.depth ? 0.5 : 1;
      pen.fillStyle = this.matches && this.matches.has(box.node) ? mark : this.colourOf(box.node);
      pen.fillRect(box.x, y, w, rowHeight - 1);
      if (box.node === this.chosen) {
        pen.strokeStyle = line;
        pen.strokeRect(box.x + 0.5, y + 0.5, Math.max(w - 1, 0.5), rowHeight - 2);
      }
      if (box.width < 24) continue;
      const letters = Math.floor((box.width - 6) / 6.4);
      pen.fillStyle = ink;
      pen.save();
      pen.beginPath();
      pen.rect(box.x, y, w, rowHeight);
      pen.clip();
      pen.fillText(
          box.node.name.length > letters ? box.node.name.slice(0, Math.max(letters - 1, 1)) + '\u2026' : box.node.name,
          box.x + 3, y + rowHeight / 2);
      pen.restore();
    }
    pen.globalAlpha = 1;
    this.tell();
  }

  tell() {
    let text = this.describe(this.chosen);
    if (this.matches) {
      let found = 0;
      for (const node of this.matches) {
        let inner = false;
        for (let outer = node.parent; outer && !inner; outer = outer.parent) inner = this.matches.has(outer);
        if (!inner) found += node.total;
      }
      text =
          `${this.matches.size} frames match: ${number(found)} ${this.data.unit} (${share(found, this.root.total)}). ` +
          text;
    }
    this.where.textContent = text;
  }

  zoom(node) {
    this.zoomed = this.chosen = node;
    this.draw();
  }

  /** Marks the frames whose names `wanted` finds; null: none. */
  search(wanted) {
    this.matches = wanted && new Set(this.nodes.filter(node => node !== this.root && wanted.test(node.name)));
    this.draw();
  }

  /** Gives every frame its number in another graph; what that graph alone has, is not drawn. */
  compareWith(other) {
    const theirs = treeOf(other);
    this.before = theirs[0].total;
    const pairs = [[this.root, theirs[0]]];
    for (const node of this.nodes) node.before = 0;
    while (pairs.length > 0) {
      const [node, its] = pairs.pop();
      node.before = its.total;
      const byName = new Map(its.children.map(child => [child.name, child]));
      for (const child of node.children)
        if (byName.has(child.name)) pairs.push([child, byName.get(child.name)]);
    }
    this.draw();
  }

  under(event) {
    const edge = this.canvas.getBoundingClientRect();
    const x = event.clientX - edge.left, depth = Math.floor((event.clientY - edge.top) / this.rowHeight);
    return this.drawn.find(box => box.node.depth === depth && x >= box.x && x < box.x + Math.max(box.width, 1))?.node;
  }

  /** Goes from frame to frame by an arrow key. */
  move(key) {
    const chosen = this.chosen, siblings = chosen.parent ? chosen.parent.children : [this.root],
          n = siblings.indexOf(chosen);
    const next = {
      ArrowUp: chosen.parent,
      ArrowLeft: siblings[n - 1],
      ArrowRight: siblings[n + 1],
      ArrowDown: chosen.children.reduce((most, child) => !most || child.total > most.total ? child : most, null)
    }[key];
    if (next) this.chosen = next;
    this.draw();
  }
}

/** What finds names by a regular expression, or by the text itself if it is none; null: nothing is looked for. */
function finder(text) {
  if (text === '') return null;
  try {
    return new RegExp(text, 'i');
  } catch {
    return {test: name => name.includes(text)};
  }
}
