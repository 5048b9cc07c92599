# SPDX-License-Identifier: BSD-2-Clause
"""ELF files and archives whose tables multiply: many headers on the same bytes, names and lists without end.

AMPLIFIERS maps a name to a function that makes such a file of about so many bytes. Each aims at one table that a reader
of probes knows, and fills the whole file with whatever multiplies best there.
"""

import itertools
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

    def sound(self):
        """Code and data, so that sites have places."""
        code = self.store(b"\x90" * 4096)
        data = self.store(bytes(64))
        self.segment(PT_LOAD, 5, CODE, code, 4096)
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


def with_functions(symbols, text):
    """A library of these functions; `symbols` are entries of a symbol table, `text` the names."""
    elf = Elf().sound()
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


# Debug information. DWARF 4, whose units have a head of eleven bytes.

DW_TAG_COMPILE_UNIT, DW_TAG_SUBPROGRAM, DW_TAG_NAMESPACE = 0x11, 0x2e, 0x39
DW_AT_SIBLING, DW_AT_NAME, DW_AT_RANGES, DW_AT_SPECIFICATION = 0x01, 0x03, 0x55, 0x47
DW_AT_LOCATION, DW_AT_LOW_PC, DW_AT_HIGH_PC, DW_AT_ABSTRACT_ORIGIN, DW_AT_ENTRY_PC = 0x02, 0x11, 0x12, 0x31, 0x52
DW_TAG_FORMAL_PARAMETER, DW_TAG_LEXICAL_BLOCK = 0x05, 0x0b
DW_FORM_ADDR, DW_FORM_DATA4, DW_FORM_SEC_OFFSET = 0x01, 0x06, 0x17
DW_FORM_STRING, DW_FORM_STRP, DW_FORM_REF4, DW_FORM_FLAG_PRESENT = 0x08, 0x0e, 0x13, 0x19
UNIT_HEAD = 11


def uleb(number):
    data = bytearray()
    while number >= 0x80:
        data.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(data) + bytes([number])


def abbreviation(code, tag, *attributes, children=False):
    return uleb(code) + uleb(tag) + bytes([children]) + bytes(attributes) + b"\0\0"


def unit(entries, abbreviations=0):
    return struct.pack("<IHIB", UNIT_HEAD - 4 + len(entries), 4, abbreviations, 8) + entries


# That its attributes say nothing of addresses makes each of these a function with code somewhere.
FILE = abbreviation(1, DW_TAG_COMPILE_UNIT, children=True)
CODE_OF = (DW_AT_RANGES, DW_FORM_FLAG_PRESENT)


def with_entries(abbreviations, info, text=b"\0"):
    elf = with_functions(symbol(1, FUNC, value=CODE), b"main\0")
    for name, data in (b".debug_abbrev", abbreviations), (b".debug_info", info), (b".debug_str", text):
        elf.section(name, SHT_PROGBITS, elf.store(data), len(data))
    return elf.build()


def abbreviations_far_apart(size):
    table = b"".join(abbreviation(1 + 256 * i, DW_TAG_COMPILE_UNIT) for i in range(size // 7))
    return with_entries(table + b"\0", unit(b"\1"))


def units_times_abbreviations(size):
    table = FILE + b"".join(abbreviation(2 + i, DW_TAG_NAMESPACE) for i in range(size // 2 // 7))
    units = (unit(b"\1\0", len(FILE) * (i % 2)) for i in range(size // 2 // (UNIT_HEAD + 2)))
    return with_entries(table + b"\0", b"".join(units))


def units_times_abbreviations_without_end(size):
    table = FILE + b"".join(abbreviation(2 + i, DW_TAG_NAMESPACE) for i in range(size // 2 // 7))
    units = (unit(b"\1\0", len(FILE) * (i % 2)) for i in range(size // 2 // (UNIT_HEAD + 2)))
    return with_entries(table + b"\xff\xff", b"".join(units))


def functions_that_stand_for(size, entries, at):
    """So many functions, each of which stands for the entry at an offset of those."""
    table = (FILE + abbreviation(2, DW_TAG_SUBPROGRAM, DW_AT_NAME, DW_FORM_STRING) +
             abbreviation(3, DW_TAG_SUBPROGRAM, *CODE_OF, DW_AT_SPECIFICATION, DW_FORM_REF4) +
             abbreviation(4, DW_TAG_SUBPROGRAM, DW_AT_SPECIFICATION, DW_FORM_REF4) + b"\0")
    function = b"\3" + struct.pack("<I", UNIT_HEAD + 1 + at)
    return with_entries(table, unit(b"\1" + entries + function * (size // len(function)) + b"\0"))


def functions_of_one_long_name(size):
    return functions_that_stand_for(size // 2, b"\2" + b"y" * (size // 2) + b"\0", 0)


def functions_at_the_end_of_a_chain(size):
    chain = b"".join(b"\4" + struct.pack("<I", UNIT_HEAD + 1 + 5 * (i + 1)) for i in range(60))
    return functions_that_stand_for(size, chain + b"\2f\0", 0)


def functions_deep_in_long_names(size):
    table = (FILE + abbreviation(2, DW_TAG_NAMESPACE, DW_AT_NAME, DW_FORM_STRP, children=True) +
             abbreviation(3, DW_TAG_SUBPROGRAM, *CODE_OF, DW_AT_NAME, DW_FORM_STRING) + b"\0")
    scopes = b"".join(b"\2" + struct.pack("<I", i) for i in range(200))
    functions = b"".join(b"\3" + name + b"\0" for name in strings(size // 7))
    return with_entries(table, unit(b"\1" + scopes + functions + bytes(201)), b"y" * (size // 8) + b"\0")


def functions_of_the_smallest_entries(size):
    table = FILE + abbreviation(2, DW_TAG_SUBPROGRAM, *CODE_OF, DW_AT_NAME, DW_FORM_STRING) + b"\0"
    return with_entries(table, unit(b"\1" + b"\2\0" * (size // 2) + b"\0"))


def scopes_of_the_smallest_entries(size):
    table = FILE + abbreviation(2, DW_TAG_NAMESPACE, children=True) + b"\0"
    return with_entries(table, unit(b"\1" + b"\2\0" * (size // 2) + b"\0"))


def units_whose_siblings_are_their_children(size):
    """Each leads to a quarter as many entries as the file has bytes."""
    table = (FILE + abbreviation(2, DW_TAG_NAMESPACE, DW_AT_SIBLING, DW_FORM_REF4, children=True) +
             abbreviation(3, DW_TAG_SUBPROGRAM, *CODE_OF, DW_AT_SPECIFICATION, DW_FORM_REF4) + b"\0")
    levels = size.bit_length() - 3
    function = b"\3" + struct.pack("<I", 0)
    first = UNIT_HEAD + 1 + len(function)
    nested = b"".join(b"\2" + struct.pack("<I", first + 5 * (i + 1)) for i in range(levels))
    one = unit(b"\1" + function + nested + bytes(levels + 2))
    return with_entries(table, one * (size // len(one)))


# A file whose code is the whole page that sound() has, and a function somewhere in it.
FILE_OF_CODE = abbreviation(1, DW_TAG_COMPILE_UNIT, DW_AT_LOW_PC, DW_FORM_ADDR, DW_AT_HIGH_PC, DW_FORM_DATA4, children=True)
WHOLE_CODE = b"\1" + struct.pack("<QI", CODE, 4096)


def symbols_times_functions(size):
    """Symbols that debug information does not name, and a unit to search for each."""
    count = size // 2 // (SYM + 5)
    elf = with_functions(b"".join(symbol(1 + 5 * i, FUNC, value=CODE + i % 4096) for i in range(count)),
                         b"".join(name + b"\0" for name in strings(count)))
    table = (FILE_OF_CODE + abbreviation(2, DW_TAG_SUBPROGRAM, *CODE_OF, DW_AT_NAME, DW_FORM_STRING) +
             abbreviation(3, DW_TAG_SUBPROGRAM, DW_AT_LOW_PC, DW_FORM_ADDR) + b"\0")
    last = b"\3" + struct.pack("<Q", CODE)
    for name, data in ((b".debug_abbrev", table), (b".debug_info", unit(WHOLE_CODE + b"\2\0" * (size // 4) + last + b"\0"))):
        elf.section(name, SHT_PROGBITS, elf.store(data), len(data))
    return elf.build()


def functions_of_one_location_list(size):
    """Each has a parameter that is told by the one list, whose entries are all of other places."""
    count = size // 2 // (SYM + 5 + 24)
    elf = with_functions(b"".join(symbol(1 + 5 * i, FUNC, value=CODE + i % 4096) for i in range(count)),
                         b"".join(name + b"\0" for name in strings(count)))
    table = (FILE_OF_CODE + abbreviation(2, DW_TAG_SUBPROGRAM, DW_AT_LOW_PC, DW_FORM_ADDR, DW_AT_HIGH_PC, DW_FORM_DATA4,
                                         DW_AT_NAME, DW_FORM_STRING, children=True) +
             abbreviation(3, DW_TAG_FORMAL_PARAMETER, DW_AT_LOCATION, DW_FORM_SEC_OFFSET) + b"\0")
    functions = b"".join(b"\2" + struct.pack("<QI", CODE + i % 4096, 1) + name + b"\0" + b"\3" + struct.pack("<I", 0) + b"\0"
                         for i, name in enumerate(strings(count)))
    lists = struct.pack("<QQH", 4097, 4098, 1) + b"\x55"
    lists = lists * (size // 2 // len(lists)) + bytes(16)
    for name, data in ((b".debug_abbrev", table), (b".debug_info", unit(WHOLE_CODE + functions + b"\0")), (b".debug_loc", lists)):
        elf.section(name, SHT_PROGBITS, elf.store(data), len(data))
    return elf.build()


def functions_in_code(count, table, entries, ranges=b""):
    """So many functions with a symbol each; `entries` are what their one unit has."""
    symbols = b"".join(symbol(1 + 5 * i, FUNC, value=CODE + i % 4096) for i in range(count))
    elf = with_functions(symbols, b"".join(name + b"\0" for name in strings(count)))
    info = unit(WHOLE_CODE + entries + b"\0")
    for name, data in ((b".debug_abbrev", FILE_OF_CODE + table + b"\0"), (b".debug_info", info), (b".debug_ranges", ranges)):
        elf.section(name, SHT_PROGBITS, elf.store(data), len(data))
    return elf.build()


def functions_of_one_list_of_ranges(size):
    """None of whose entries has the address that each of them says it begins at."""
    count = size // 2 // (SYM + 5 + 17)
    table = abbreviation(2, DW_TAG_SUBPROGRAM, DW_AT_NAME, DW_FORM_STRING, DW_AT_ENTRY_PC, DW_FORM_ADDR, DW_AT_RANGES,
                         DW_FORM_SEC_OFFSET)
    functions = b"".join(b"\2" + name + b"\0" + struct.pack("<QI", CODE + i % 4096, 0)
                         for i, name in enumerate(strings(count)))
    return functions_in_code(count, table, functions, struct.pack("<QQ", 1 << 40, 1 << 41) * (size // 2 // 16))


def functions_of_one_declaration(size):
    """They are instances of one that has very many entries, none of which is a parameter."""
    count = size // 4 // (SYM + 5 + 13)
    table = (abbreviation(2, DW_TAG_SUBPROGRAM, DW_AT_NAME, DW_FORM_STRING, children=True) +
             abbreviation(3, DW_TAG_LEXICAL_BLOCK) +
             abbreviation(4, DW_TAG_SUBPROGRAM, DW_AT_ABSTRACT_ORIGIN, DW_FORM_REF4, DW_AT_LOW_PC, DW_FORM_ADDR))
    functions = b"".join(b"\4" + struct.pack("<IQ", UNIT_HEAD + len(WHOLE_CODE), CODE + i % 4096) for i in range(count))
    return functions_in_code(count, table, b"\2f\0" + b"\3" * (3 * size // 4) + b"\0" + functions)


DEBUG_INFORMATION = {function.__name__: function for function in (
    abbreviations_far_apart, units_times_abbreviations, units_times_abbreviations_without_end,
    functions_of_one_long_name, functions_at_the_end_of_a_chain, functions_deep_in_long_names,
    functions_of_the_smallest_entries, scopes_of_the_smallest_entries, units_whose_siblings_are_their_children,
    symbols_times_functions, functions_of_one_location_list, functions_of_one_list_of_ranges,
    functions_of_one_declaration)}
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
