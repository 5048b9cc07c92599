// SPDX-License-Identifier: BSD-2-Clause
// Types by their names and members; programs that print their own offsets, sizes and bits say what is right.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>

#include "dwarf/debug_info.hpp"
#include "packaged.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using dwarf::DebugInfo;
using testing::ElementsAre;
using testing::HasSubstr;

/// Where something is in its struct, in bits.
struct Place {
  std::uint64_t first = 0;
  std::uint64_t width = 0;  ///< 0: not known
  friend bool operator==(const Place&, const Place&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Place& place) {
    return out << "bit " << place.first << ", " << place.width << " bits";
  }
};
using Places = std::map<std::string, Place>;

/// Makes structs of all that C has, and the statements that print where their members are.
class StructMaker {
 public:
  explicit StructMaker(unsigned seed) : random_(seed) {}

  [[nodiscard]] std::string program(unsigned count) {
    std::string declarations;
    std::string statements;
    for (unsigned i = 0; i < count; ++i) {
      const std::string name = fmt::format("S{}", i);
      prints_.clear();
      std::string body = "  char first;\n" + members(name, "", 3);
      print("PLACE", name, "first");
      if (one_of(4) == 0) {
        body += "  short end[];\n";
        print("OPEN_END", name, "end");
      }
      const std::string packed = one_of(4) == 0 ? " __attribute__((packed))" : "";
      declarations += fmt::format("struct {} {{\n{}}}{};\nstruct {} {}_;\n", name, body, packed, name, name);
      statements += prints_ + fmt::format("  printf(\"{} 0 %zu\\n\", 8 * sizeof {}_);\n", name, name);
    }
    return std::string(kHead) + declarations + "int main(void) {\n" + statements + "  return 0;\n}\n";
  }

 private:
  static constexpr std::string_view kHead = R"(#include <stddef.h>
#include <stdio.h>
#include <string.h>
enum Color { RED, GREEN = 7, BLUE };
typedef unsigned long word;
typedef const volatile short strange;
struct pair { char first; long long second; };
static void bits(const char *name, const unsigned char *bytes, size_t size) {
  size_t first = 0, width = 0;
  for (size_t i = 8 * size; i-- > 0;)
    if (bytes[i / 8] >> i % 8 & 1) { first = i; ++width; }
  printf("%s %zu %zu\n", name, first, width);
}
#define PLACE(s, m) printf("%s.%s %zu %zu\n", #s, #m, 8 * offsetof(struct s, m), 8 * sizeof s##_.m)
#define OPEN_END(s, m) printf("%s.%s %zu 0\n", #s, #m, 8 * offsetof(struct s, m))
#define BITS(s, m) memset(&s##_, 0, sizeof s##_); s##_.m = -1; bits(#s "." #m, (const unsigned char *)&s##_, sizeof s##_)
)";

  unsigned one_of(unsigned count) { return std::uniform_int_distribution<unsigned>(0, count - 1)(random_); }

  void print(std::string_view macro, const std::string& outer, const std::string& path) {
    prints_ += fmt::format("  {}({}, {});\n", macro, outer, path);
  }

  std::string members(const std::string& outer, const std::string& path, unsigned depth) {
    std::string body;
    for (unsigned left = 1 + one_of(6); left != 0; --left) body += member(outer, path, depth);
    return body;
  }

  std::string member(const std::string& outer, const std::string& path, unsigned depth) {
    static constexpr std::string_view plain[] = {"char",         "short",   "int",    "long",        "long long",
                                                 "_Bool",        "float",   "double", "word",        "enum Color",
                                                 "const char *", "strange", "void *", "struct pair", "struct unknown *",
                                                 "unsigned"};
    static constexpr std::string_view bit_types[] = {"int",   "unsigned",  "short", "char",
                                                     "_Bool", "long long", "word",  "enum Color"};
    static constexpr unsigned widths[] = {32, 32, 16, 8, 1, 64, 32, 8};
    const std::string name = fmt::format("m{}", ++names_);
    const unsigned choice = one_of(10);
    if (choice < 3) {
      const unsigned type = one_of(std::size(bit_types));
      if (one_of(8) == 0) return fmt::format("  {} : 0;\n", bit_types[type]);
      print("BITS", outer, path + name);
      return fmt::format("  {} {} : {};\n", bit_types[type], name, 1 + one_of(widths[type]));
    }
    if (choice < 5 && depth != 0) {
      const bool is_named = one_of(2) == 0;
      const std::string inner = members(outer, is_named ? path + name + "." : path, depth - 1);
      if (is_named) print("PLACE", outer, path + name);
      const std::string_view word = one_of(2) == 0 ? "struct" : "union";
      return fmt::format("  {} {{\n{}  }} {};\n", word, inner, is_named ? name : "");
    }
    print("PLACE", outer, path + name);
    const std::string_view type = plain[one_of(std::size(plain))];
    if (choice == 5) return fmt::format("  {} {}[{}][{}];\n", type, name, 1 + one_of(4), 1 + one_of(4));
    if (choice == 6) return fmt::format("  int (*{})(struct pair, {});\n", name, type);
    return fmt::format("  {} {};\n", type, name);
  }

  std::mt19937 random_;
  unsigned names_ = 0;
  std::string prints_;
};

Places printed_by(const TempDir& dir) {
  const auto run = run_in(dir, "./prog");
  EXPECT_EQ(run.status, 0) << run.output;
  Places places;
  std::istringstream lines(run.output);
  std::string name;
  for (Place place; lines >> name >> place.first >> place.width;) places[name] = place;
  return places;
}

/// All members of `type`, those of structs in it too, by their paths.
void collect(const TypeGraph& graph, TypeId type, const std::string& path, std::uint64_t start, Places& places) {
  const auto outer = graph.info(type);
  const auto members = graph.members(type);
  ASSERT_TRUE(outer) << outer.error().message;
  ASSERT_TRUE(members) << members.error().message;
  for (const MemberInfo& member : *members) {
    const auto info = graph.info(member.type);
    ASSERT_TRUE(info) << info.error().message;
    const std::uint64_t first = start + 8 * member.offset;
    const std::string inner = member.name.empty() ? path : fmt::format("{}.{}", path, member.name);
    if (member.bits != 0) {
      EXPECT_LE(member.shift, 63) << inner;
      places[inner] = {first + member.shift, member.bits};
    } else if (!member.name.empty()) {
      places[inner] = {first, 8 * std::uint64_t{info->type.size}};
    }
    if (info->text != "struct pair") collect(graph, member.type, inner, first, places);
  }
}

class Layouts : public testing::TestWithParam<std::string> {
 protected:
  void build(std::string_view file, std::string_view source, std::string_view others = "") {
    dir_.write(file, source);
    const auto built = run_in(dir_, build_command(GetParam(), fmt::format("-w {} {}", file, others)));
    const bool m32 = GetParam().find("-m32") != std::string::npos;
    if (m32 && (built.status != 0 || !can_run("-m32"))) GTEST_SKIP() << "no -m32 here";
    ASSERT_EQ(built.status, 0) << built.output;
    open("prog");
  }
  void open(std::string_view name) {
    const auto file = ElfFile::open(dir_ / name);
    ASSERT_TRUE(file) << file.error().message;
    const auto info = DebugInfo::open(*file);
    ASSERT_TRUE(info) << info.error().message;
    graph_ = info->types();  // outlives what it is of
  }
  [[nodiscard]] TypeId find(std::string_view name) const {
    const auto found = graph_->find(name);
    EXPECT_TRUE(found) << found.error().message;
    return found.value_or(TypeId::none);
  }
  [[nodiscard]] Places places_of(const std::string& name) const {
    Places places;
    collect(*graph_, find("struct " + name), name, 0, places);
    places[name] = {0, 8 * std::uint64_t{graph_->info(find(name))->type.size}};
    return places;
  }
  [[nodiscard]] MemberInfo member(std::string_view type, std::string_view name) const {
    const auto members = graph_->members(find(type));
    EXPECT_TRUE(members) << members.error().message;
    for (const MemberInfo& each : *members)
      if (each.name == name) return each;
    ADD_FAILURE() << type << " has no " << name;
    return {};
  }

  TempDir dir_;
  std::shared_ptr<const TypeGraph> graph_;
};

TEST_P(Layouts, are_those_that_programs_print_of_themselves) {
  constexpr unsigned count = 60;
  ASSERT_NO_FATAL_FAILURE(build("prog.c", StructMaker(20261122).program(count)));
  if (IsSkipped()) return;
  const Places expected = printed_by(dir_);
  Places ours;
  for (unsigned i = 0; i < count; ++i) ours.merge(places_of(fmt::format("S{}", i)));
  for (const auto& [name, place] : expected) {
    ASSERT_TRUE(ours.contains(name)) << name;
    EXPECT_EQ(ours[name], place) << name;
  }
  EXPECT_EQ(ours.size(), expected.size());
  EXPECT_GT(expected.size(), 4 * count);
}

constexpr std::string_view kClasses = R"(#include <cstddef>
#include <cstdio>
namespace net {
struct Plain { int id; };
struct Named { char name[12]; virtual ~Named() {} };
struct Shared { long uses = 0; };
struct Server : Plain, Named, virtual Shared {
  static int count;
  static constexpr int limit = 7;
  enum class State : short { idle = -1, busy = 2 };
  struct Peer { Server *owner; struct Deep { double x; } deep; };
  State state;
  Peer peers[3];
  const int &port;
  explicit Server(const int &p) : port(p) {}
  struct Later;
  Later *later;
};
struct Server::Later { char pad[3]; short when; };
int Server::count = 3;
template <class T> struct Box { T value; };
namespace { struct Hidden { unsigned a : 3; bool b : 1; }; }
}
int main() {
  int port = 5;
  net::Server server(port);
  net::Server::Later later;
  net::Box<unsigned long> box;
  net::Hidden hidden{};
  const auto at = [&](const char *name, const void *what) { printf("%s %zu 0\n", name, 8 * ((const char *)what - (char *)&server)); };
  at("Plain", static_cast<net::Plain *>(&server));
  at("Named", static_cast<net::Named *>(&server));
  at("state", &server.state);
  at("peers", &server.peers);
  printf("Server 0 %zu\n", 8 * sizeof server);
  printf("box %p %p %d %d %zu\n", &box, &later, (int)hidden.a, server.count, offsetof(net::Server::Later, when));
}
)";

class Classes : public Layouts {
 protected:
  void SetUp() override { build("prog.cpp", kClasses); }
};

TEST_P(Classes, have_their_bases_where_the_program_has_them) {
  if (IsSkipped()) return;
  const Places expected = printed_by(dir_);
  const auto members = graph_->members(find("net::Server"));
  ASSERT_TRUE(members) << members.error().message;
  ASSERT_GE(members->size(), 3U);
  unsigned bases = 0;
  for (const MemberInfo& each : *members) {
    EXPECT_NE(each.name, "count");
    EXPECT_NE(each.name, "limit");
    if (!each.is_base) continue;
    ++bases;
    const std::string text = graph_->info(each.type)->text;
    EXPECT_TRUE(each.name.empty());
    EXPECT_EQ(each.is_virtual, text == "net::Shared");
    if (each.is_virtual) continue;
    EXPECT_EQ(8 * each.offset, expected.at(text.substr(5)).first) << text;
  }
  EXPECT_EQ(bases, 3U);
  for (const std::string name : {"state", "peers"})
    EXPECT_EQ(8 * member("net::Server", name).offset, expected.at(name).first);
  EXPECT_EQ(8 * graph_->info(find("net::Server"))->type.size, expected.at("Server").width);
}

TEST_P(Classes, name_enums_references_arrays_and_what_is_nested) {
  if (IsSkipped()) return;
  const TypeId state = member("net::Server", "state").type;
  EXPECT_EQ(graph_->info(state)->type, (Type{2, true, TypeKind::enumeration}));
  ASSERT_EQ(graph_->enumerators(state).size(), 2U);
  EXPECT_EQ(graph_->enumerators(state)[1].name, "busy");
  const auto port = graph_->info(member("net::Server", "port").type);
  EXPECT_TRUE(port->reference);
  EXPECT_EQ(graph_->info(port->target)->text, "const int");
  const auto peers = graph_->info(member("net::Server", "peers").type);
  EXPECT_EQ(peers->count, 3U);
  EXPECT_EQ(graph_->info(peers->target)->text, "net::Server::Peer");
  EXPECT_EQ(graph_->info(find("net::Server::Peer::Deep"))->type.size, 8U);
  EXPECT_EQ(member("Hidden", "b").bits, 1);
  EXPECT_EQ(member("net::Box<unsigned long>", "value").offset, 0U);
}

TEST_P(Classes, declared_within_another_are_those_defined_outside) {
  if (IsSkipped()) return;
  const auto later = graph_->info(member("net::Server", "later").type);
  ASSERT_TRUE(later);
  const auto members = graph_->members(later->target);
  ASSERT_TRUE(members);
  ASSERT_EQ(members->size(), 2U);
  EXPECT_EQ((*members)[1].offset, 4U);
}

INSTANTIATE_TEST_SUITE_P(Compilers, Layouts,
                         testing::Values("gcc -gdwarf-5", "gcc -gdwarf-4 -O2", "gcc -gdwarf-2 -gstrict-dwarf",
                                         "gcc -gdwarf-5 -m32", "gcc -g -fdebug-types-section", "gcc -g -gsplit-dwarf",
                                         "clang -gdwarf-5", "clang -gdwarf-4", "clang -gdwarf-2",
                                         "clang -gdwarf-4 -fdebug-types-section",
                                         "gcc -gdwarf-4 -gsplit-dwarf -fdebug-types-section | dwp",
                                         "clang -gdwarf-5 -gsplit-dwarf -fdebug-types-section | llvm-dwp"));
INSTANTIATE_TEST_SUITE_P(Compilers, Classes,
                         testing::Values("g++ -gdwarf-5", "g++ -gdwarf-4", "g++ -gdwarf-3 -gstrict-dwarf",
                                         "g++ -g -fdebug-types-section", "clang++ -gdwarf-5", "clang++ -gdwarf-4",
                                         "clang++ -gdwarf-5 -fdebug-types-section"));

class Types : public Layouts {};

TEST_P(Types, have_names_sizes_and_targets) {
  ASSERT_NO_FATAL_FAILURE(build("prog.c", R"(
typedef unsigned long word;
typedef struct { char text[16]; } record;
struct node { struct node *next; const char *name; word grid[2][3]; record all[]; };
struct opaque;
static struct node first;
struct opaque *handle;
unsigned long int plain;
int (*callback)(struct node *);
int main(void) { return first.next != 0 || handle || plain || callback; }
)"));
  const auto node = graph_->members(find("node"));
  ASSERT_TRUE(node);
  ASSERT_EQ(node->size(), 4U);
  const auto next = graph_->info((*node)[0].type);
  EXPECT_EQ(next->text, "struct node *");
  EXPECT_EQ(next->type.kind, TypeKind::pointer);
  EXPECT_EQ(graph_->info(next->target)->type.kind, TypeKind::structure);
  EXPECT_EQ(graph_->info((*node)[1].type)->type.kind, TypeKind::text);
  EXPECT_TRUE(graph_->info(graph_->info((*node)[1].type)->target)->is_char);
  const auto grid = graph_->info((*node)[2].type);
  EXPECT_EQ(grid->text, "word [2][3]");
  EXPECT_EQ(grid->count, 2U);
  const auto row = graph_->info(grid->target);
  EXPECT_EQ(row->text, "word [3]");
  EXPECT_EQ(row->count, 3U);
  EXPECT_EQ(row->type.size, 24U);
  const auto cell = graph_->info(row->target);
  EXPECT_EQ(cell->text, "word");
  EXPECT_EQ(cell->type, (Type{8, false, TypeKind::integer}));
  const auto all = graph_->info((*node)[3].type);
  EXPECT_EQ(all->type.kind, TypeKind::array);
  EXPECT_EQ(all->count, std::nullopt);
  EXPECT_EQ(graph_->info(all->target)->text, "record");
  EXPECT_EQ(graph_->info(find("unsigned long"))->type.size, 8U);
  EXPECT_EQ(find("unsigned long int"), find("long unsigned int"));
  EXPECT_TRUE(graph_->members(find("word"))->empty());
  EXPECT_EQ(graph_->info(TypeId::none)->text, "void");
  EXPECT_FALSE(graph_->info(static_cast<TypeId>(1'000'000)));
}

TEST_P(Types, that_are_not_there_name_near_ones) {
  ASSERT_NO_FATAL_FAILURE(
      build("prog.c", "struct request { int x; }; struct request r; int main(void) { return r.x; }"));
  const auto found = graph_->find("struct requst");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::not_found);
  EXPECT_THAT(found.error().message, HasSubstr("no type 'struct requst'; did you mean request?"));
  EXPECT_FALSE(graph_->find("union request"));
  EXPECT_FALSE(graph_->find("ns::request"));
  EXPECT_FALSE(graph_->find(""));
}

TEST_P(Types, of_another_unit_are_what_a_declaration_means) {
  dir_.write("other.c",
             "struct hidden { short pad; int value; }; struct twice { int a; };\n"
             "struct hidden h; struct twice t; struct hidden *get(void) { return &h; }\n");
  dir_.write("third.c", "struct twice { long b, c; }; struct twice u;\n");
  const std::string_view source = R"(
struct hidden; struct twice; struct nowhere;
struct user { struct hidden *one; struct twice *two; struct nowhere *three; } user;
int main(void) { return user.one != 0; }
)";
  ASSERT_NO_FATAL_FAILURE(build("prog.c", source, "other.c third.c"));
  const auto target = [&](std::string_view name) {
    return graph_->info(graph_->info(member("struct user", name).type)->target).value();
  };
  EXPECT_EQ(target("one").type.size, 8U);
  const auto hidden = graph_->members(graph_->info(member("struct user", "one").type)->target);
  ASSERT_TRUE(hidden && hidden->size() == 2);
  EXPECT_EQ((*hidden)[1].offset, 4U);
  EXPECT_EQ(target("two").type.size, 0U) << "two differ, and nothing says which is meant";
  EXPECT_EQ(target("two").text, "struct twice");
  EXPECT_EQ(target("three").type.size, 0U);
  EXPECT_EQ(graph_->find_all("struct twice")->size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Compilers, Types, testing::Values("gcc -g", "clang -g"));

}  // namespace
}  // namespace usdt::test
