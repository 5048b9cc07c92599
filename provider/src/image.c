/* SPDX-License-Identifier: BSD-2-Clause */
#include "image.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/*
 * What differs from machine to machine. cie: how to get from a stub to its caller, for whoever unwinds the stack at a
 * site: nothing was pushed (DWARF 5, section 6.4; augmentation "R": addresses relative to where they are, in 4 bytes).
 */
#if defined __x86_64__
#define MACHINE EM_X86_64
static const unsigned char cie[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0};
#elif defined __i386__
#define MACHINE EM_386
static const unsigned char cie[] = {1, 'z', 'R', 0, 1, 0x7c, 8, 1, 0x1b, 0x0c, 4, 4, 0x88, 1, 0, 0};
#elif defined __aarch64__
#define MACHINE EM_AARCH64
static const unsigned char cie[] = {1, 'z', 'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0, 0, 0, 0, 0};
#else
#error "no ELF machine and frames of stubs for this machine"
#endif

typedef ElfW(Addr) Address;
typedef ElfW(Ehdr) Header;
typedef ElfW(Phdr) Segment;
typedef ElfW(Shdr) Section;
typedef ElfW(Sym) Symbol;

/* The code of a stub, which is that of USDT_PROBE_STUB, from the assembler. */
__asm__(
    ".pushsection .rodata.usdtp_stub,\"a\"\n"
    ".hidden usdtp_stub_entry, usdtp_stub_site, usdtp_stub_end\n"
    ".globl usdtp_stub_entry, usdtp_stub_site, usdtp_stub_end\n"
    "usdtp_stub_entry: " USDTP_STUB_ENTRY "usdtp_stub_site: " USDTP_STUB_NOPS
    "usdtp_stub_end:\n"
    ".popsection\n");
extern const char usdtp_stub_entry[] __attribute__((visibility("hidden")));
extern const char usdtp_stub_site[] __attribute__((visibility("hidden")));
extern const char usdtp_stub_end[] __attribute__((visibility("hidden")));

static size_t stub_length(void) { return (size_t)((uintptr_t)usdtp_stub_end - (uintptr_t)usdtp_stub_entry); }
static size_t stub_site(void) { return (size_t)((uintptr_t)usdtp_stub_site - (uintptr_t)usdtp_stub_entry); }

void usdtp_put_stubs(struct usdtp_bytes* text, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    usdtp_put(text, usdtp_stub_entry, stub_length());
    usdtp_align(text, USDTP_STUB_SIZE > 16 ? 16 : USDTP_STUB_SIZE);
    while (!text->failed && text->size % USDTP_STUB_SIZE != 0) usdtp_put_u32(text, 0);
  }
}

/*
 * Where argument `n` is at the site: in the machine's calling convention for functions of 64-bit numbers. The names of
 * registers are those of <usdt/probe.h>, which doubles each '%' for the compiler.
 */
static void put_operand(struct usdtp_bytes* out, unsigned n) {
  static const char* const places[USDTP_MAX_ARGUMENTS] = {USDTP_AT_1, USDTP_AT_2,  USDTP_AT_3,  USDTP_AT_4,
                                                          USDTP_AT_5, USDTP_AT_6,  USDTP_AT_7,  USDTP_AT_8,
                                                          USDTP_AT_9, USDTP_AT_10, USDTP_AT_11, USDTP_AT_12};
  for (const char* c = places[n]; *c != '\0'; ++c) {
    if (c[0] == '%' && c[1] == '%') ++c;
    usdtp_put(out, c, 1);
  }
}

static void put_argument_text(struct usdtp_bytes* out, const struct usdtp_arguments* arguments) {
  for (unsigned n = 0; n < arguments->count; ++n) {
    const int size = usdtp_size_of(arguments->types[n]);
    const char digit = (char)('0' + (size < 0 ? -size : size));
    if (n > 0) usdtp_put(out, " ", 1);
    if (size < 0) usdtp_put(out, "-", 1);
    usdtp_put(out, &digit, 1);
    usdtp_put(out, "@", 1);
    put_operand(out, n);
  }
  usdtp_put(out, "", 1);
}

static void put_address(struct usdtp_bytes* out, Address address) { usdtp_put(out, &address, sizeof address); }

/* Begins a note; what is put from then on is its descriptor. Returns what end_note() wants. */
static size_t begin_note(struct usdtp_bytes* out, const char* owner, uint32_t type) {
  usdtp_put_u32(out, (uint32_t)strlen(owner) + 1);
  usdtp_put_u32(out, 0);
  usdtp_put_u32(out, type);
  usdtp_put_text(out, owner);
  usdtp_align(out, 4);
  return out->size;
}

static void end_note(struct usdtp_bytes* out, size_t begin, size_t owner_size) {
  if (out->failed) return;
  const uint32_t size = (uint32_t)(out->size - begin);
  const size_t header = sizeof(ElfW(Nhdr));
  memcpy(out->data + begin - owner_size - header + sizeof(uint32_t), &size, sizeof size);
  usdtp_align(out, 4);
}

static Address site_of(const struct usdtp_layout* layout, const struct usdtp_noted* probe) {
  return (Address)(layout->text + probe->slot * USDTP_STUB_SIZE + stub_site());
}

/* .stapsdt.base: the last byte of the first page. */
static Address base_of(const struct usdtp_layout* layout) { return (Address)(layout->page - 1); }

static void put_stapsdt_note(struct usdtp_bytes* out, const struct usdtp_layout* layout, const char* provider,
                             const struct usdtp_noted* probe) {
  const size_t begin = begin_note(out, "stapsdt", 3);
  put_address(out, site_of(layout, probe));
  put_address(out, base_of(layout));
  put_address(out, (Address)(layout->data + probe->slot * USDTP_PROBE_SIZE));
  usdtp_put_text(out, provider);
  usdtp_put_text(out, probe->name);
  put_argument_text(out, probe->arguments);
  end_note(out, begin, 8);
}

/* docs/provider-note.md. Names are in the note of the site; where there are meanings, in that of the probe. */
static void put_site_note(struct usdtp_bytes* out, const struct usdtp_layout* layout, const struct usdtp_noted* probe) {
  const size_t begin = begin_note(out, "usdt", 1);
  put_address(out, site_of(layout, probe));
  usdtp_put_u32(out, 0);
  usdtp_put(out, probe->arguments->types, sizeof probe->arguments->types);
  usdtp_put_text(out, "");
  usdtp_put_text(out, probe->arguments->has_meanings ? "" : probe->items);
  end_note(out, begin, 8);
}

static void put_probe_note(struct usdtp_bytes* out, const char* provider, const struct usdtp_noted* probe) {
  if (!probe->arguments->has_meanings) return;
  const size_t begin = begin_note(out, "usdt", 2);
  usdtp_put_text(out, provider);
  usdtp_put_text(out, probe->name);
  usdtp_put_text(out, probe->items);
  end_note(out, begin, 8);
}

static void put_frames(struct usdtp_bytes* out, size_t at, size_t text, size_t text_size) {
  static const unsigned char fde_end[4] = {0};
  usdtp_put_u32(out, 4 + sizeof cie);
  usdtp_put_u32(out, 0);
  usdtp_put(out, cie, sizeof cie);
  usdtp_put_u32(out, 16);
  usdtp_put_u32(out, 4 + sizeof cie + 8);
  usdtp_put_u32(out, (uint32_t)(text - (at + 4 + 4 + sizeof cie + 8)));
  usdtp_put_u32(out, (uint32_t)text_size);
  usdtp_put(out, fde_end, sizeof fde_end);
  usdtp_put_u32(out, 0);
}

/* The sections, in the order of their headers: bcc, and bpftrace by it, finds no probes in another one. */
enum { NONE, TEXT, BASE, FRAMES, PROBES, STAPSDT, SITES, DECLARED, SYMBOLS, STRINGS, NAMES, SECTIONS };
static const char section_names[] =
    "\0.text\0.stapsdt.base\0.eh_frame\0.probes\0.note.stapsdt\0.note.usdt\0.note.usdt.probes\0.symtab\0.strtab\0"
    ".shstrtab";

static void name_sections(Section* sections) {
  size_t at = 0;
  for (int i = NONE; i < SECTIONS; ++i) {
    sections[i].sh_name = (uint32_t)at;
    at += strlen(section_names + at) + 1;
  }
}

/* A section of what was put since `from` at the end of the file. */
static void section_here(Section* section, const struct usdtp_layout* layout, const struct usdtp_bytes* notes,
                         size_t from, uint32_t type) {
  section->sh_type = type;
  section->sh_offset = layout->notes + from;
  section->sh_size = notes->size - from;
  section->sh_addralign = 4;
}

static void section_in_memory(Section* section, size_t at, size_t size, size_t align, size_t flags) {
  section->sh_type = SHT_PROGBITS;
  section->sh_flags = SHF_ALLOC | flags;
  section->sh_addr = at;
  section->sh_offset = at;
  section->sh_size = size;
  section->sh_addralign = align;
}

/* Names of the stubs, for stacks: "provider:name". */
static void put_symbols(struct usdtp_bytes* notes, const struct usdtp_layout* layout, const char* provider,
                        const struct usdtp_noted* probes, size_t count, Section* sections) {
  struct usdtp_bytes strings = {0};
  usdtp_put(&strings, "", 1);
  usdtp_align(notes, sizeof(Address));
  size_t from = notes->size;
  Symbol symbol = {0};
  usdtp_put(notes, &symbol, sizeof symbol);
  for (size_t i = 0; i < count; ++i) {
    symbol.st_name = (uint32_t)strings.size;
    symbol.st_info = ELF32_ST_INFO(STB_LOCAL, STT_FUNC); /* the same in ELF64 */
    symbol.st_shndx = TEXT;
    symbol.st_value = layout->text + probes[i].slot * USDTP_STUB_SIZE;
    symbol.st_size = stub_length();
    usdtp_put(notes, &symbol, sizeof symbol);
    usdtp_put(&strings, provider, strlen(provider));
    usdtp_put(&strings, ":", 1);
    usdtp_put_text(&strings, probes[i].name);
  }
  section_here(&sections[SYMBOLS], layout, notes, from, SHT_SYMTAB);
  sections[SYMBOLS].sh_entsize = sizeof symbol;
  sections[SYMBOLS].sh_link = STRINGS;
  sections[SYMBOLS].sh_info = (uint32_t)count + 1; /* all of them are local */
  sections[SYMBOLS].sh_addralign = sizeof(Address);
  from = notes->size;
  usdtp_put(notes, strings.data, strings.size);
  notes->failed |= strings.failed;
  free(strings.data);
  section_here(&sections[STRINGS], layout, notes, from, SHT_STRTAB);
}

static void put_notes(struct usdtp_bytes* notes, const struct usdtp_layout* layout, const char* provider,
                      const struct usdtp_noted* probes, size_t count, Section* sections) {
  size_t from = notes->size;
  for (size_t i = 0; i < count; ++i) put_stapsdt_note(notes, layout, provider, &probes[i]);
  section_here(&sections[STAPSDT], layout, notes, from, SHT_NOTE);
  from = notes->size;
  for (size_t i = 0; i < count; ++i) put_site_note(notes, layout, &probes[i]);
  section_here(&sections[SITES], layout, notes, from, SHT_NOTE);
  from = notes->size;
  for (size_t i = 0; i < count; ++i) put_probe_note(notes, provider, &probes[i]);
  section_here(&sections[DECLARED], layout, notes, from, SHT_NOTE);
}

static Segment load(const struct usdtp_layout* layout, size_t from, size_t to, uint32_t flags) {
  Segment segment = {0};
  segment.p_type = PT_LOAD;
  segment.p_flags = flags;
  segment.p_offset = segment.p_vaddr = segment.p_paddr = from;
  segment.p_filesz = segment.p_memsz = to - from;
  segment.p_align = layout->page;
  return segment;
}

enum { SEGMENTS = 3 };

static Header header_of(size_t sections_at) {
  Header header = {0};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = sizeof(Address) == 8 ? ELFCLASS64 : ELFCLASS32;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = MACHINE;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_shoff = sections_at;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Segment);
  header.e_phnum = SEGMENTS;
  header.e_shentsize = sizeof(Section);
  header.e_shnum = SECTIONS;
  header.e_shstrndx = NAMES;
  return header;
}

void usdtp_put_tables(const struct usdtp_layout* layout, const char* provider, const struct usdtp_noted* probes,
                      size_t count, struct usdtp_bytes* notes, struct usdtp_bytes* head) {
  Section sections[SECTIONS];
  memset(sections, 0, sizeof sections);
  name_sections(sections);
  put_notes(notes, layout, provider, probes, count, sections);
  put_symbols(notes, layout, provider, probes, count, sections);
  const size_t names = notes->size;
  usdtp_put(notes, section_names, sizeof section_names);
  section_here(&sections[NAMES], layout, notes, names, SHT_STRTAB);

  const Segment segments[SEGMENTS] = {load(layout, 0, layout->text, PF_R),
                                      load(layout, layout->text, layout->data, PF_R | PF_X),
                                      load(layout, layout->data, layout->notes, PF_R | PF_W)};
  usdtp_align(notes, 16);
  const Header header = header_of(layout->notes + notes->size);
  usdtp_put(head, &header, sizeof header);
  usdtp_put(head, segments, sizeof segments);
  usdtp_align(head, 16);
  const size_t frames = head->size;
  put_frames(head, frames, layout->text, layout->data - layout->text);

  section_in_memory(&sections[TEXT], layout->text, layout->data - layout->text, USDTP_STUB_SIZE, SHF_EXECINSTR);
  section_in_memory(&sections[BASE], base_of(layout), 1, 1, 0);
  section_in_memory(&sections[FRAMES], frames, head->size - frames, 4, 0);
  section_in_memory(&sections[PROBES], layout->data, layout->notes - layout->data, USDTP_PROBE_SIZE, SHF_WRITE);
  usdtp_put(notes, sections, sizeof sections);
}
