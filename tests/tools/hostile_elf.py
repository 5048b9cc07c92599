# SPDX-License-Identifier: BSD-2-Clause
"""ELF files and archives whose tables multiply: many headers on the same bytes, names and lists without end.

AMPLIFIERS maps a name to a function that makes such a file of about so many bytes. Each aims at one table that a reader
of probes knows, and fills the whole file with whatever multiplies best there.
"""

import lzma
import random
import struct

ET_REL, ET_DYN = 1, 3
PT_LOAD, PT_DYNAMIC, PT_NOTE = 1, 2, 4
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_DYNSYM = 1, 2, 3, 4, 7, 11
SHF_ALLOC = 2
EM_X86_64 = 62
R_64, R_GLOB_DAT, R_RELATIVE = 1, 6, 8
CODE, DATA, BASE = 0x1000, 0x3000, 0x2000
SHDR, PHDR, SYM, RELA = 64, 56, 24, 24


def padded(data):
    return data + bytes(-len(data) % 4)


def note(provider=b"p", name=b"n", args=b"", pc=CODE, semaphore=0):
    desc = struct.pack("<QQQ", pc, BASE, semaphore) + provider + b"\0" + name + b"\0" + args + b"\0"
    return struct.pack("<III", 8, len(desc), 3) + b"stapsdt\0" + padded(desc)


def symbol(name=0, kind=1, section=2, value=DATA):
    return struct.pack("<IBBHQQ", name, kind, 0, section, value, 8)


def rela(offset, kind, index=0, addend=0):
    return struct.pack("<QQq", offset, index << 32 | kind, addend)


def strings(count, start=0):
    """`count` different strings of up to four letters and digits."""
    letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    for number in range(start, start + count):
        yield bytes(letters[number // 62**k % 62] for k in range(4))


class Elf:
    """A file under construction. Pieces of contents are stored once; any number of headers may name them."""

    def __init__(self, kind=ET_DYN):
        self.kind = kind
        self.contents = bytearray()
        self.segments = []
        self.sections = [bytes(SHDR)]
        self.names = bytearray(b"\0")
        self.name_at = {}

    def store(self, data, align=8):
        """The place of `data`, to be turned into a file offset in build()."""
        self.contents += bytes(-len(self.contents) % align)
        at = len(self.contents)
        self.contents += data
        return at

    def segment(self, kind, flags, vaddr, place, size):
        self.segments.append((kind, flags, place, vaddr, size))

    def section(self, name, kind, place, size, flags=0, addr=0, link=0, info=0):
        if name not in self.name_at:
            self.name_at[name] = len(self.names)
            self.names += name + b"\0"
        self.sections.append((self.name_at[name], kind, flags, addr, place, size, link, info))
        return len(self.sections) - 1

    def sound(self, instructions=b"\x90" * 4096):
        """Code and data, so that sites have places."""
        code = self.store(instructions)
        data = self.store(bytes(64))
        self.segment(PT_LOAD, 5, CODE, code, len(instructions))
        self.segment(PT_LOAD, 6, DATA, data, 64)
        return self

    def notes(self, data):
        return self.section(b".note.stapsdt", SHT_NOTE, self.store(data), len(data))

    def build(self, sections=True):
        start = 64 + PHDR * len(self.segments)
        start += -start % 8
        if sections:
            names = self.store(bytes(self.names))
            self.sections.append((0, SHT_STRTAB, 0, 0, names, len(self.names), 0, 0))
        contents = bytes(self.contents) + bytes(-len(self.contents) % 8)
        count = len(self.sections) if sections else 0
        first = bytes(SHDR)
        if count >= 0xff00:  # the number is section 0's
            first = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, count, count - 1, 0, 0, 0)
        header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
            "<HHIQQQIHHHHHH", self.kind, EM_X86_64, 1, 0, 64, start + len(contents) if count else 0, 0, 64, PHDR,
            len(self.segments), SHDR, count if count < 0xff00 else 0, min(max(count - 1, 0), 0xffff))
        program = b"".join(struct.pack("<IIQQQQQQ", kind, flags, start + place, vaddr, vaddr, size, size, 4)
                           for kind, flags, place, vaddr, size in self.segments)
        table = first + b"".join(
            struct.pack("<IIQQQQIIQQ", name, kind, flags, addr, start + place, size, link, info, 4, 0)
            for name, kind, flags, addr, place, size, link, info in self.sections[1:]) if count else b""
        return (header + program).ljust(start, b"\0") + contents + table


# Notes.

def headers_on_one_note(size):
    elf = Elf().sound()
    data = note(args=b"8@%rdi")
    place = elf.store(data)
    for _ in range(size // SHDR):
        elf.section(b".note.stapsdt", SHT_NOTE, place, len(data))
    return elf.build()


def headers_on_all_notes(size):
    elf = Elf().sound()
    data = note(args=b"8@%rdi")
    count = size // 2 // len(data)
    place = elf.store(data * count)
    for i in range(size // 2 // SHDR):
        skipped = i % count * len(data)
        elf.section(b".note.stapsdt", SHT_NOTE, place + skipped, count * len(data) - skipped)
    return elf.build()


def sections_of_one_note_each(size):
    elf = Elf().sound()
    for name in strings(size // 130):
        elf.notes(note(name=name, args=b"8@%rdi"))
    return elf.build()


def smallest_notes(size):
    elf = Elf().sound()
    elf.notes(note(b"", b"n") * (size // len(note(b"", b"n"))))
    return elf.build()


def different_probes(size):
    elf = Elf().sound()
    elf.notes(b"".join(note(b"p", name, b"") for name in strings(size // 52)))
    return elf.build()


def signatures_of_one_probe(size):
    elf = Elf().sound()
    elf.notes(b"".join(note(b"p", b"n", b"4@%d(%%rbp)" % i, CODE + i % 4096) for i in range(size // 64)))
    return elf.build()


def semaphores_of_one_probe(size):
    elf = Elf().sound()
    elf.notes(b"".join(note(b"p", b"n", b"", CODE, DATA + i) for i in range(size // 48)))
    return elf.build()


def note_segments_on_the_same_bytes(size):
    elf = Elf().sound()
    data = note(args=b"8@%rdi") * (size // len(note(args=b"8@%rdi")))
    place = elf.store(data)
    for _ in range(1100):
        elf.segment(PT_NOTE, 4, 0, place, len(data))
    return elf.build(sections=False)


def load_segments_to_search(size):
    elf = Elf().sound()
    elf.segments = [(PT_LOAD, 7, 0, 0x100000 + 16 * i, 16) for i in range(1100)] + elf.segments
    elf.notes(note(semaphore=DATA) * (size // len(note())))
    return elf.build()


# Symbols and strings.

def with_symbols(elf, symbols, text, args=b"4@x(%rip)"):
    table, names = elf.store(symbols), elf.store(text)
    link = elf.section(b".strtab", SHT_STRTAB, names, len(text))
    elf.notes(note(args=args))
    return table, link


def symbol_tables_on_the_same_bytes(size):
    elf = Elf().sound()
    symbols = symbol() + symbol(1) * (size // 2 // SYM)
    table, link = with_symbols(elf, symbols, b"\0x\0")
    for _ in range(size // 2 // SHDR):
        elf.section(b".symtab", SHT_SYMTAB, table, len(symbols), link=link)
    return elf.build()


def symbol_tables_of_one_string_table(size):
    elf = Elf().sound()
    text = b"\0x\0" + b"y" * (size // 2)
    _, link = with_symbols(elf, b"", text)
    for _ in range(size // 2 // (SHDR + 2 * SYM)):
        elf.section(b".symtab", SHT_SYMTAB, elf.store(symbol() + symbol(1)), 2 * SYM, link=link)
    return elf.build()


def symbols_named_by_one_long_string(size):
    elf = Elf().sound()
    text = b"\0x\0" + b"y" * (size // 2)
    symbols = symbol() + symbol(1) + b"".join(symbol(4 + i) for i in range(size // 2 // SYM))
    table, link = with_symbols(elf, symbols, text)
    elf.section(b".symtab", SHT_SYMTAB, table, len(symbols), link=link)
    return elf.build()


def arguments_times_symbols_of_one_name(size):
    elf = Elf().sound()
    symbols = symbol() + symbol(1) * (size // 2 // SYM)
    table, link = with_symbols(elf, symbols, b"\0x\0")
    elf.section(b".symtab", SHT_SYMTAB, table, len(symbols), link=link)
    elf.notes(b"".join(note(args=b"4@x+%d(%%rip)" % i) for i in range(size // 2 // 64)))
    return elf.build()


def section_names_of_one_long_string(size):
    elf = Elf().sound()
    elf.notes(note())
    elf.names += b".note.stapsdt" + b"y" * (size // 2)
    for i in range(size // 2 // SHDR):
        elf.sections.append((len(elf.names) - size // 2 - 13 + i % 13, SHT_NOTE, 0, 0, 0, 0, 0, 0))
    return elf.build()


# Functions and their names.

FUNC = 2


def with_functions(symbols, text, **code):
    """A library of these functions; `symbols` are entries of a symbol table, `text` the names."""
    elf = Elf().sound(**code)
    table, names = elf.store(symbol() + symbols), elf.store(b"\0" + text)
    link = elf.section(b".strtab", SHT_STRTAB, names, len(text) + 1)
    elf.section(b".symtab", SHT_SYMTAB, table, len(symbols) + SYM, link=link)
    return elf


def functions_of_short_names(size):
    count = size // (SYM + 5)
    symbols = b"".join(symbol(1 + 5 * i, FUNC, value=CODE + 8 * i) for i in range(count))
    return with_functions(symbols, b"".join(name + b"\0" for name in strings(count))).build()


def functions_of_one_address(size):
    count = size // (SYM + 5)
    symbols = b"".join(symbol(1 + 5 * i, FUNC, value=CODE) for i in range(count))
    return with_functions(symbols, b"".join(name + b"\0" for name in strings(count))).build()


def functions_named_by_one_long_string(size):
    count = size // 2 // SYM
    symbols = b"".join(symbol(1 + i, FUNC, value=CODE + 8 * i) for i in range(count))
    return with_functions(symbols, b"y" * (size // 2) + b"\0").build()


def functions_of_one_mangled_name(mangled, size):
    """Many, each with letters of its own before what is the same in all."""
    names = [b"_Z4" + name + mangled + b"\0" for name in strings(size // (SYM + len(mangled) + 8))]
    symbols = b"".join(symbol(1 + i * len(names[0]), FUNC, value=CODE + 8 * i) for i in range(len(names)))
    return with_functions(symbols, b"".join(names)).build()


def substitution(number):
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if number == 0:
        return b"S_"
    number -= 1
    text = ""
    while True:
        text = digits[number % 36] + text
        number //= 36
        if number == 0:
            return f"S{text}_".encode()


def names_that_double(size):
    levels = 9
    doubled = b"".join(b"1BI" + 2 * substitution(2 * level) + b"E" for level in range(levels))
    return functions_of_one_mangled_name(b"1a" + doubled, size)


def names_that_double_without_end(size):
    levels = 60
    doubled = b"".join(b"1BI" + 2 * substitution(2 * level) + b"E" for level in range(levels))
    return functions_of_one_mangled_name(b"1a" + doubled, size)


def packs_that_double(levels, size):
    closed = b"".join(substitution(levels + level) + b"E" for level in range(levels))
    return functions_of_one_mangled_name(b"Dp" + b"1BI" * levels + b"1a" + closed, size)


def packs_to_search(size):
    return packs_that_double(16, size)


def packs_to_search_long(size):
    return packs_that_double(24, size)


def names_of_many_pointers(size):
    return functions_of_one_mangled_name(b"P" * 1000 + b"i", size)


def rust_names_that_double(size):
    digits = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    names = []
    for name in strings(size // 250):
        path = b"INvC1a4" + name
        start, text = len(path), path + b"TuuE"
        for _ in range(20):
            at = b"B" + (digits[(start - 1) // 62:(start - 1) // 62 + 1] if start > 62 else b"")
            at += digits[(start - 1) % 62:(start - 1) % 62 + 1] + b"_"
            start = len(text)
            text += b"T" + at + at + b"E"
        names.append(b"_R" + text + b"E\0")
    at = 1
    symbols = []
    for i, name in enumerate(names):
        symbols.append(symbol(at, FUNC, value=CODE + 8 * i))
        at += len(name)
    return with_functions(b"".join(symbols), b"".join(names)).build()


def version_definitions_on_each_other(size):
    elf = with_functions(symbol(1, FUNC, value=CODE), b"x\0")
    definitions = struct.pack("<HHHHIII", 1, 0, 2, 1, 0, 20, 1) * (size // 20)
    elf.section(b".gnu.version_d", 0x6FFFFFFD, elf.store(definitions), len(definitions), link=1)
    return elf.build()


XZ_HEADERS = 24  # of the stream and of its one block


def packed_zeroes(size):
    """Zeroes without end. Of two MiB each xz makes a piece of some 300 bytes, the same every time but the first."""
    packed = lzma.compress(bytes(8 << 20), preset=0)
    first = XZ_HEADERS + 6 + int.from_bytes(packed[XZ_HEADERS + 3:XZ_HEADERS + 5], "big") + 1
    piece = packed[first:first + 5 + int.from_bytes(packed[first + 3:first + 5], "big") + 1]
    packed = (packed[:first] + piece * (size // len(piece)))[:size]
    elf = Elf().sound()
    elf.section(b".gnu_debugdata", SHT_PROGBITS, elf.store(packed), len(packed))
    return elf.build()


def packed_functions(size):
    chance = random.Random(1)
    symbols = b"".join(symbol(1, FUNC, value=chance.getrandbits(40)) for _ in range(size // SYM))
    packed = lzma.compress(with_functions(symbols, b"x\0").build(), preset=0)
    elf = Elf().sound()
    elf.store(bytes(size - len(packed)))
    elf.section(b".gnu_debugdata", SHT_PROGBITS, elf.store(packed), len(packed))
    return elf.build()


# Global offset table, dynamic segment.

def got_sections_times_relocations(size):
    elf = Elf().sound()
    relocations = b"".join(rela(DATA + i, R_RELATIVE, 0, i) for i in range(size // 2 // RELA))
    table, link = with_symbols(elf, symbol() + symbol(1), b"\0x\0", b"8@x@GOTPCREL(%rip)")
    elf.section(b".symtab", SHT_SYMTAB, table, 2 * SYM, link=link)
    elf.section(b".rela.dyn", SHT_RELA, elf.store(relocations), len(relocations), SHF_ALLOC)
    for i in range(size // 2 // SHDR):
        elf.section(b".got", SHT_PROGBITS, 0, 8, SHF_ALLOC, 0x10000000 + 16 * i)
    return elf.build()


def got_sections_on_the_same_words(size):
    elf = Elf().sound()
    table, link = with_symbols(elf, symbol() + symbol(1), b"\0x\0", b"8@x@GOTPCREL(%rip)")
    elf.section(b".symtab", SHT_SYMTAB, table, 2 * SYM, link=link)
    words = b"".join(struct.pack("<Q", 0x100000 + 4099 * i) for i in range(size // 2 // 8))
    place = elf.store(words)
    for i in range(size // 2 // SHDR):
        elf.section(b".got", SHT_PROGBITS, place, len(words), SHF_ALLOC, 0x10000000 * i)
    return elf.build()


def relocation_sections_on_the_same_bytes(size):
    elf = Elf().sound()
    relocations = b"".join(rela(DATA + i, R_GLOB_DAT, 1) for i in range(size // 2 // RELA))
    table, link = with_symbols(elf, symbol() + symbol(1), b"\0x\0", b"8@x@GOTPCREL(%rip)")
    symbols = elf.section(b".symtab", SHT_SYMTAB, table, 2 * SYM, link=link)
    place = elf.store(relocations)
    for _ in range(size // 2 // SHDR):
        elf.section(b".rela.dyn", SHT_RELA, place, len(relocations), SHF_ALLOC, link=symbols)
    return elf.build()


def slots_of_long_names(size):
    elf = Elf().sound()
    count = size // 3 // RELA
    text = b"\0x\0" + b"y" * (size // 3)
    symbols = symbol() + b"".join(symbol(3 + i) for i in range(count))
    table, link = with_symbols(elf, symbols, text, b"8@x@GOTPCREL(%rip)")
    number = elf.section(b".dynsym", SHT_DYNSYM, table, len(symbols), link=link)
    relocations = b"".join(rela(DATA + i, R_GLOB_DAT, 1 + i) for i in range(count))
    elf.section(b".rela.dyn", SHT_RELA, elf.store(relocations), len(relocations), SHF_ALLOC, link=number)
    return elf.build()


def arguments_times_dynamic_segment(size):
    elf = Elf().sound()
    dynamic = struct.pack("<QQ", 0x70000001, 0) * 4000
    elf.segment(PT_DYNAMIC, 6, 0, elf.store(dynamic), len(dynamic))
    symbols = symbol() + symbol(1, kind=6)
    table, link = with_symbols(elf, symbols, b"\0x\0")
    elf.section(b".symtab", SHT_SYMTAB, table, len(symbols), link=link)
    elf.notes(b"".join(note(args=b"4@%%fs:x@tpoff+%d" % i) for i in range(size // 68)))
    return elf.build()


# Relocatable objects and archives.

def relocation_sections_times_note_sections(size):
    elf = Elf(ET_REL)
    data = note(args=b"8@%rdi")
    for _ in range(size // (2 * SHDR + len(data) + RELA)):
        number = elf.notes(data)
        elf.section(b".rela.note.stapsdt", SHT_RELA, elf.store(rela(20, R_64)), RELA, info=number)
    return elf.build()


def relocations_times_symbol_tables(size):
    elf = Elf(ET_REL)
    symbols = symbol() * (size // 2 // SYM)
    data = note()
    link = elf.section(b".symtab", SHT_SYMTAB, elf.store(symbols), len(symbols))
    number = elf.notes(data)
    for _ in range(size // 2 // (SHDR + RELA)):
        elf.section(b".rela.note.stapsdt", SHT_RELA, elf.store(rela(20, R_64)), RELA, link=link, info=number)
    return elf.build()


def member(name, data):
    head = b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"644", len(data))
    return head + data + b"\n" * (len(data) % 2)


def archive_of_smallest_members(size):
    one = Elf(ET_REL)
    data = one.build(sections=False)
    return b"!<arch>\n" + member(b"a.o/", data) * (size // len(member(b"a.o/", data)))


def archive_of_long_names(size):
    long_name = b"n" * 4000 + b"/\n"
    elf = Elf(ET_REL)
    elf.notes(note(b"", b"n") * (size // 2 // len(note(b"", b"n"))))
    small = Elf(ET_REL)
    small.notes(note())
    one = member(b"/0", small.build())
    return (b"!<arch>\n" + member(b"//", long_name) + member(b"/0", elf.build()) + one * (size // 2 // len(one)))


# Argument texts.

def arguments_of_one_site(size):
    elf = Elf().sound()
    elf.notes(note(args=b"1 " * (size // 2)))
    return elf.build()


def unreadable_arguments_of_one_site(size):
    elf = Elf().sound()
    elf.notes(note(args=b"? " * (size // 2)))
    return elf.build()


def arguments_of_many_sites(size):
    elf = Elf().sound()
    each = b"".join(b"1 " for _ in range(250))
    elf.notes(b"".join(note(args=each + b"8@%d" % i) for i in range(size // 560)))
    return elf.build()


def repeated_relocation_name(size):
    elf = Elf().sound()
    half = size // 3
    elf.notes(note(args=b"8@" + b"a" * half + b"@" + b"a" * half + b"b(%rip)"))
    return elf.build()


AMPLIFIERS = {function.__name__: function for function in (
    headers_on_one_note, headers_on_all_notes, sections_of_one_note_each, smallest_notes, different_probes,
    signatures_of_one_probe, semaphores_of_one_probe, note_segments_on_the_same_bytes, load_segments_to_search,
    symbol_tables_on_the_same_bytes, symbol_tables_of_one_string_table, symbols_named_by_one_long_string,
    arguments_times_symbols_of_one_name, functions_of_short_names, functions_of_one_address,
    functions_named_by_one_long_string, names_that_double, names_that_double_without_end, packs_to_search,
    packs_to_search_long, names_of_many_pointers, rust_names_that_double, version_definitions_on_each_other,
    packed_zeroes, packed_functions, section_names_of_one_long_string, got_sections_times_relocations,
    got_sections_on_the_same_words, relocation_sections_on_the_same_bytes, slots_of_long_names,
    arguments_times_dynamic_segment, relocation_sections_times_note_sections, relocations_times_symbol_tables,
    archive_of_smallest_members, archive_of_long_names, arguments_of_one_site, unreadable_arguments_of_one_site,
    arguments_of_many_sites, repeated_relocation_name)}
