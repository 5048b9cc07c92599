# SPDX-License-Identifier: BSD-2-Clause
"""Debug information whose tables multiply, in ELF files of hostile_elf.py: DWARF 4, whose units have a head of eleven
bytes.

DEBUG_INFORMATION maps a name to a function that makes such a file of about so many bytes.
"""

import struct

from hostile_elf import CODE, FUNC, SHT_PROGBITS, SYM, strings, symbol, with_functions

DW_TAG_COMPILE_UNIT, DW_TAG_SUBPROGRAM, DW_TAG_NAMESPACE = 0x11, 0x2e, 0x39
DW_AT_SIBLING, DW_AT_NAME, DW_AT_RANGES, DW_AT_SPECIFICATION = 0x01, 0x03, 0x55, 0x47
DW_AT_LOCATION, DW_AT_LOW_PC, DW_AT_HIGH_PC, DW_AT_ABSTRACT_ORIGIN, DW_AT_ENTRY_PC = 0x02, 0x11, 0x12, 0x31, 0x52
DW_TAG_FORMAL_PARAMETER, DW_TAG_LEXICAL_BLOCK = 0x05, 0x0b
DW_TAG_BASE_TYPE, DW_AT_BYTE_SIZE, DW_AT_ENCODING, DW_AT_TYPE, DW_ATE_SIGNED = 0x24, 0x0b, 0x3e, 0x49, 5
DW_AT_CONST_VALUE, DW_AT_ARTIFICIAL = 0x1c, 0x34
DW_TAG_INLINED_SUBROUTINE, DW_AT_INLINE, DW_INL_INLINED = 0x1d, 0x20, 1
DW_AT_LANGUAGE, DW_LANG_C99, DW_AT_PRODUCER, DW_AT_GNU_ALL_CALL_SITES = 0x13, 0x0c, 0x25, 0x2117
DW_TAG_GNU_CALL_SITE, DW_TAG_GNU_CALL_SITE_PARAMETER, DW_AT_GNU_CALL_SITE_VALUE = 0x4109, 0x410a, 0x2111
DW_FORM_ADDR, DW_FORM_DATA4, DW_FORM_DATA1, DW_FORM_SEC_OFFSET = 0x01, 0x06, 0x0b, 0x17
DW_FORM_STRING, DW_FORM_STRP, DW_FORM_REF4, DW_FORM_EXPRLOC, DW_FORM_FLAG_PRESENT = 0x08, 0x0e, 0x13, 0x18, 0x19
DW_OP_CONST4U = 0x0c
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
    """Each leads to a quarter as many entries as the file has bytes. The name of its function has in it those that the
    tests look for: of a name that is nowhere no unit is read."""
    table = (FILE + abbreviation(2, DW_TAG_NAMESPACE, DW_AT_SIBLING, DW_FORM_REF4, children=True) +
             abbreviation(3, DW_TAG_SUBPROGRAM, *CODE_OF, DW_AT_NAME, DW_FORM_STRING, DW_AT_SPECIFICATION, DW_FORM_REF4) +
             b"\0")
    levels = size.bit_length() - 3
    function = b"\3nothing main _start\0" + struct.pack("<I", 0)
    first = UNIT_HEAD + 1 + len(function)
    nested = b"".join(b"\2" + struct.pack("<I", first + 5 * (i + 1)) for i in range(levels))
    one = unit(b"\1" + function + nested + bytes(levels + 2))
    return with_entries(table, one * (size // len(one)))


def strings_with_a_name_at_each_byte(size):
    """They look mangled from many of their bytes on, and have the name that the tests look for in them."""
    table = FILE + abbreviation(2, DW_TAG_SUBPROGRAM, *CODE_OF, DW_AT_NAME, DW_FORM_STRP) + b"\0"
    return with_entries(table, unit(b"\1\2" + struct.pack("<I", 0) + b"\0"), b"_ZN7nothing" * (size // 11) + b"\0")


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


def functions_whose_calls_pass_other_numbers(size):
    """Each has a parameter that is a number; very many calls pass another one for the first of them."""
    count = size // 3 // (SYM + 5 + 28)
    table = (abbreviation(2, DW_TAG_SUBPROGRAM, DW_AT_LOW_PC, DW_FORM_ADDR, DW_AT_HIGH_PC, DW_FORM_DATA4, DW_AT_NAME, DW_FORM_STRING,
                          children=True) +
             abbreviation(3, DW_TAG_FORMAL_PARAMETER, DW_AT_TYPE, DW_FORM_REF4, DW_AT_CONST_VALUE, DW_FORM_DATA4,
                          DW_AT_ARTIFICIAL, DW_FORM_FLAG_PRESENT) +
             abbreviation(4, DW_TAG_GNU_CALL_SITE, children=True) +
             abbreviation(5, DW_TAG_GNU_CALL_SITE_PARAMETER, DW_AT_ABSTRACT_ORIGIN, DW_FORM_REF4, *uleb(DW_AT_GNU_CALL_SITE_VALUE),
                          DW_FORM_EXPRLOC) +
             abbreviation(6, DW_TAG_BASE_TYPE, DW_AT_NAME, DW_FORM_STRING, DW_AT_BYTE_SIZE, DW_FORM_DATA1, DW_AT_ENCODING, DW_FORM_DATA1))
    integer, at = b"\6int\0" + bytes([4, DW_ATE_SIGNED]), UNIT_HEAD + len(WHOLE_CODE)
    functions = [b"\2" + struct.pack("<QI", CODE + i % 4096, 1) + name + b"\0" + b"\3" + struct.pack("<II", at, 0)
                 for i, name in enumerate(strings(count))]
    first = at + len(integer) + len(functions[0]) - 9
    passed = b"".join(b"\5" + struct.pack("<IBBI", first, 5, DW_OP_CONST4U, 1 + i) for i in range(2 * size // 3 // 11))
    functions[-1] += b"\4" + passed + b"\0"
    return functions_in_code(count, table, integer + b"".join(each + b"\0" for each in functions))


def inlined_copies_of_all_the_code(size):
    """Very many copies of one function in another one, each of which says that it has all the code of that."""
    count = size // 17
    table = (abbreviation(2, DW_TAG_SUBPROGRAM, DW_AT_NAME, DW_FORM_STRING, DW_AT_INLINE, DW_FORM_DATA1) +
             abbreviation(3, DW_TAG_SUBPROGRAM, DW_AT_LOW_PC, DW_FORM_ADDR, DW_AT_HIGH_PC, DW_FORM_DATA4, children=True) +
             abbreviation(4, DW_TAG_INLINED_SUBROUTINE, DW_AT_ABSTRACT_ORIGIN, DW_FORM_REF4, DW_AT_LOW_PC, DW_FORM_ADDR,
                          DW_AT_HIGH_PC, DW_FORM_DATA4))
    caller = b"\3" + struct.pack("<QI", CODE, 4096)
    copies = b"".join(b"\4" + struct.pack("<IQI", UNIT_HEAD + len(WHOLE_CODE), CODE + i % 4096, 4096 - i % 4096)
                      for i in range(count))
    return functions_in_code(1, table, b"\2f\0" + bytes([DW_INL_INLINED]) + caller + copies + b"\0")


def functions_that_set_a_result_on_very_many_ways(size):
    """They begin in the same code, where each second instruction sets the result and those between jump to where it is long unused.
    No other file knows them, and they are Clang's, so that their code is looked at for their results."""
    count = size // (SYM + 5 + 23)
    ways = b"".join(b"\x8d\x47\x07" + b"\xe9" + struct.pack("<i", 3900 - 8 * i - 8) for i in range(480))  # lea 7(%rdi),%eax; jmp
    ways = ways.ljust(3900, b"\x90") + b"\x90" * 100
    symbols = b"".join(symbol(1 + 5 * i, FUNC, value=CODE + i % 1920) for i in range(count))
    elf = with_functions(symbols, b"".join(name + b"\0" for name in strings(count)), instructions=ways.ljust(4096, b"\x90"))
    table = (abbreviation(1, DW_TAG_COMPILE_UNIT, DW_AT_PRODUCER, DW_FORM_STRING, DW_AT_LANGUAGE, DW_FORM_DATA1, DW_AT_LOW_PC, DW_FORM_ADDR,
                          DW_AT_HIGH_PC, DW_FORM_DATA4, children=True) +
             abbreviation(2, DW_TAG_SUBPROGRAM, DW_AT_LOW_PC, DW_FORM_ADDR, DW_AT_HIGH_PC, DW_FORM_DATA4, DW_AT_NAME, DW_FORM_STRING,
                          DW_AT_TYPE, DW_FORM_REF4, *uleb(DW_AT_GNU_ALL_CALL_SITES), DW_FORM_FLAG_PRESENT) +
             abbreviation(3, DW_TAG_BASE_TYPE, DW_AT_NAME, DW_FORM_STRING, DW_AT_BYTE_SIZE, DW_FORM_DATA1, DW_AT_ENCODING, DW_FORM_DATA1))
    head = b"\1clang\0" + bytes([DW_LANG_C99]) + struct.pack("<QI", CODE, 4096)
    functions = b"".join(b"\2" + struct.pack("<QI", CODE + i % 1920, 4096 - i % 1920) + name + b"\0" +
                         struct.pack("<I", UNIT_HEAD + len(head)) for i, name in enumerate(strings(count)))
    info = unit(head + b"\3int\0" + bytes([4, DW_ATE_SIGNED]) + functions + b"\0")
    for name, data in ((b".debug_abbrev", table + b"\0"), (b".debug_info", info)):
        elf.section(name, SHT_PROGBITS, elf.store(data), len(data))
    return elf.build()


DEBUG_INFORMATION = {function.__name__: function for function in (
    abbreviations_far_apart, units_times_abbreviations, units_times_abbreviations_without_end,
    functions_of_one_long_name, functions_at_the_end_of_a_chain, functions_deep_in_long_names,
    functions_of_the_smallest_entries, scopes_of_the_smallest_entries, units_whose_siblings_are_their_children,
    strings_with_a_name_at_each_byte, symbols_times_functions, functions_of_one_location_list, functions_of_one_list_of_ranges,
    functions_of_one_declaration, functions_whose_calls_pass_other_numbers, inlined_copies_of_all_the_code,
    functions_that_set_a_result_on_very_many_ways)}
