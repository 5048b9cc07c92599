// SPDX-License-Identifier: BSD-2-Clause
// Functions that say what their arguments lead to: "FUNCTION<TAB>EXPRESSION<TAB>VALUE", a line for each expression when
// they are called. Also compiled as C, where the lines for C++ are left out.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifdef __cplusplus
#include <memory>
#include <string>
#include <string_view>
#endif

#define NOINLINE __attribute__((noinline))
#define SAY(format, expression) printf("%s\t%s\t" format "\n", __func__, #expression, expression)
#define SAY_LONG(expression) printf("%s\t%s\t%lld\n", __func__, #expression, (long long)(expression))
/// Of an expression that is not C's.
#define SAY_AS(text, expression) printf("%s\t%s\t%lld\n", __func__, text, (long long)(expression))
#define SAY_TEXT(expression) printf("%s\t%s\t\"%s\"\n", __func__, #expression, expression)

enum state { IDLE = 0, BUSY = 3, GONE = -1 };

struct header {
  char name[8];
  const char* value;
  int8_t weight;
};

struct peer {
  uint16_t port;
  enum state state;
  double load;
};

struct request {
  int64_t id;
  struct peer peer;
  struct header headers[3];
  union {
    uint32_t whole;
    struct {
      uint16_t low;
      int16_t high;
    };
  };
  unsigned flag : 1;
  int small : 5;
  unsigned wide : 20;
  int64_t wider : 40;
  bool keep;
  float ratio;
  struct request* next;
  struct peer* chosen;
  int grid[2][3];
  unsigned char raw[4];
};

struct __attribute__((packed)) packed {
  char tag;
  int32_t odd;
  int64_t odder;
};

struct pair {
  int32_t first;
  int32_t second;
};
struct mixed {
  int64_t number;
  double real;
};
struct large {
  int64_t values[4];
  struct pair pair;
};

NOINLINE void by_pointer(struct request* req, const struct packed* p, int* count, const char** words) {
  SAY_LONG(req->id);
  SAY_LONG(req->peer.port);
  SAY_LONG(req->peer.state);
  SAY("%.17g", req->peer.load);
  SAY_TEXT(req->headers[0].name);
  SAY_TEXT(req->headers[2].name);
  SAY_LONG(req->headers[1].weight);
  SAY_LONG(req->whole);
  SAY_LONG(req->low);
  SAY_LONG(req->high);
  printf("by_pointer\treq->flag\t%u\n", req->flag);
  printf("by_pointer\treq->small\t%d\n", req->small);
  printf("by_pointer\treq->wide\t%u\n", req->wide);
  printf("by_pointer\treq->wider\t%lld\n", (long long)req->wider);
  SAY_LONG(req->keep);
  SAY("%.9g", req->ratio);
  SAY_LONG(req->next->id);
  SAY_LONG(req->next->next->peer.port);
  SAY_LONG((*req->next).headers[1].weight);
  SAY_LONG(req->next->next->next->next->id);
  SAY_LONG(req->chosen->port);
  SAY_LONG(req->chosen[1].port);
  SAY_LONG((*req).id);
  SAY_LONG(req->grid[1][2]);
  SAY_LONG(req->raw[3]);
  SAY_LONG(p->odd);
  SAY_LONG(p->odder);
  SAY_LONG(*count);
  SAY_LONG(count[2]);
  // Before where a pointer points.
  SAY_LONG(count[-1]);
  SAY_LONG(req->chosen[-1].port);
  printf("by_pointer\tstr(words[-1])\t\"%s\"\n", words[-1]);
  // As debuggers take it.
  SAY_AS("req.id", req->id);
  SAY_AS("req.next.next.peer.port", req->next->next->peer.port);
  SAY_AS("req.headers[1].weight", req->headers[1].weight);
  SAY_AS("req.chosen.port", req->chosen->port);
  SAY_AS("req.next->chosen[-1].port", req->next->chosen[-1].port);
  SAY_AS("(*req.next).id", req->next->id);
  SAY_AS("*req.next.grid[1]", *req->next->grid[1]);
  printf("by_pointer\tstr(req.headers[1].value)\t\"%s\"\n", req->headers[1].value);
  printf("by_pointer\treq.next.wider\t%lld\n", (long long)req->next->wider);
  SAY_AS("p.odd", p->odd);
  SAY_LONG(((struct peer*)req->chosen)->port);
  SAY_LONG(sizeof(struct request));
  SAY_LONG(sizeof(req->headers));
  SAY_LONG(sizeof(*p));
  printf("by_pointer\tstr(req->headers[1].value)\t\"%s\"\n", req->headers[1].value);
  printf("by_pointer\tstr(words[1])\t\"%s\"\n", words[1]);
  printf("by_pointer\tstr(*words)\t\"%s\"\n", *words);
}

NOINLINE void by_value(struct pair small, struct mixed mixed, struct large large, struct header header) {
  SAY_LONG(small.first);
  SAY_LONG(small.second);
  SAY_LONG(mixed.number);
  SAY("%.17g", mixed.real);
  SAY_LONG(large.values[3]);
  SAY_LONG(large.pair.second);
  SAY_TEXT(header.name);
  SAY_LONG(header.weight);
}

NOINLINE struct request* result(struct request* req) {
  printf("result\tretval->id\t%lld\n", (long long)req->next->id);
  printf("result\tretval->peer.port\t%d\n", req->next->peer.port);
  return req->next;
}

#ifdef __cplusplus
namespace net {
struct Base {
  virtual ~Base() = default;
  int kind = 17;
};
struct Second {
  long second = 18;
};
void say_whole(const char* function, const char* expression, std::string_view text) {
  printf("%s\t%s\t\"", function, expression);
  fwrite(text.data(), 1, text.size(), stdout);
  printf("\"\n");
}
class Server : public Base, public Second {
 public:
  Server(std::string name, int& counter) : name_(std::move(name)), counter_(counter) {}
  NOINLINE void handle(const std::string& path, std::string_view host, const peer& peer, std::string by_copy) {
    printf("%s\tthis->kind\t%d\n", __func__, kind);
    printf("%s\tthis->second\t%ld\n", __func__, second);
    printf("%s\tthis->counter_\t%d\n", __func__, counter_);
    say_whole(__func__, "this->name_", name_);
    SAY_LONG(peer.port);
    say_whole(__func__, "path", path);
    say_whole(__func__, "host", host);
    say_whole(__func__, "by_copy", by_copy);
  }

 private:
  std::string name_;
  int& counter_;
};
}  // namespace net

NOINLINE void referred(int& count, const char*& word, long&& moved, const peer& peer, const enum state& state,
                       struct request*& req, int net::Base::*member) {
  SAY_LONG(count);
  printf("referred\tstr(word)\t\"%s\"\n", word);
  SAY_LONG(moved);
  SAY_LONG(peer.port);
  SAY_LONG(state);
  SAY_LONG(req->id);
  printf("referred\tmember\t%d\n", member == nullptr ? -1 : (int)offsetof(net::Base, kind));
}

struct Left {
  int kind = 1;
  int left = 2;
};
struct Right {
  int kind = 3;
  int right = 4;
};
struct Both : Left, Right {};
struct Own : Left, Right {
  long kind = 5;
};
NOINLINE void of_several(const Both& both, Own* own, std::unique_ptr<Own>& pointer) {
  SAY_LONG(both.left);
  SAY_LONG(both.right);
  SAY_LONG(own->kind);
  printf("of_several\tpointer._M_t._M_t._M_head_impl->right\t%d\n", pointer->right);
}

/// Clang's debug information lacks an object passed by reference that nobody uses, if nothing is optimised.
NOINLINE void behind_unused(std::string, int one, int two, int three, int four, int five, int six, int seven) {
  SAY_LONG(one);
  SAY_LONG(two);
  SAY_LONG(three);
  SAY_LONG(four);
  SAY_LONG(five);
  SAY_LONG(six);
  SAY_LONG(seven);
}
#endif

struct alone {
  long double real;
};
struct nothing {};
NOINLINE struct alone returned_on_top(int number, long other) {
  SAY_LONG(number);
  SAY_LONG(other);
  return (struct alone){(long double)number};
}
NOINLINE struct nothing nothing_returned(int number, long other) {
  SAY_LONG(number);
  SAY_LONG(other);
  return (struct nothing){};
}

#ifdef __x86_64__
struct wide {
  int64_t first;
  int64_t second;
};
/// GCC does not say so in debug information.
NOINLINE __attribute__((ms_abi)) struct wide as_microsoft(int number, long other, struct wide wide, short three,
                                                          char four) {
  SAY_LONG(number);
  SAY_LONG(other);
  SAY_LONG(wide.second);
  SAY_LONG(three);
  SAY_LONG(four);
  return (struct wide){number * 2, -number};
}
void call_as_microsoft(int number) {
  const struct wide got =
      as_microsoft(number, -number, (struct wide){number + 1, number + 2}, (short)(number + 3), (char)(number + 4));
  printf("microsofts_end\tretval.first\t%ld\n", (long)got.first);
  printf("microsofts_end\tretval.second\t%ld\n", (long)got.second);
}
#endif

int main(void) {
  static struct peer peers[3] = {{8080, BUSY, 0.25}, {443, GONE, -1e300}, {53, IDLE, 7.5}};
  static struct request requests[3];
  for (int i = 0; i < 3; ++i) {
    struct request* r = &requests[i];
    r->id = -5000000000LL * (i + 1);
    r->peer = peers[i % 2];
    for (int h = 0; h < 3; ++h) {
      snprintf(r->headers[h].name, sizeof(r->headers[h].name), "h%d-%d", i, h);
      r->headers[h].value = h == 1 ? "text/plain" : "none";
      r->headers[h].weight = (int8_t)(-h * 40);
    }
    memcpy(r->headers[1].name, "ends\0-x", 8);
    memcpy(r->headers[2].name, "12345678", 7);
    r->whole = 0xfffe0001u + (unsigned)i;
    r->flag = i % 2 == 0;
    r->small = -9 + i;
    r->wide = 0xabcdeu - (unsigned)i;
    r->wider = -(1LL << 38) + i;
    r->keep = i != 1;
    r->ratio = 0.1f * (float)(i + 1);
    r->next = &requests[(i + 1) % 3];
    r->chosen = peers + 1;
    r->grid[1][2] = 60 + i;
    r->raw[3] = (unsigned char)(250 + i);
  }
  struct packed packed = {'p', -123456, -98765432101LL};
  int counts[4] = {-31, -1, 5, 777};
  const char* words[3] = {"first", "second", "third"};
  struct large large = {{1, 2, 3, -44}, {5, -66}};
  for (int i = 0; i < 3; ++i) {
    by_pointer(&requests[i], &packed, counts + 1, words + 1);
    by_value((struct pair){i, -i - 1}, (struct mixed){i - 7, 1.0 / (i + 3)}, large, requests[i].headers[i]);
    result(&requests[i]);
    returned_on_top(i + 5, -i);
    nothing_returned(i + 6, i - 9L);
#ifdef __x86_64__
    call_as_microsoft(i + 70);
#endif
  }
#ifdef __cplusplus
  int counter = 41;
  net::Server server(std::string("a name that is not short,\0with a NUL in it", 42), counter);
  for (int i = 0; i < 3; ++i) {
    ++counter;
    server.handle(i == 1 ? "/a/path/that/is/longer/than/sixteen/bytes" : "/short",
                  std::string_view("exam\0le.org/rest", 16).substr(0, 11), peers[1],
                  std::string(20 + i, i == 2 ? '\0' : 'c'));
    int count = 5 - i;
    const char* word = words[i % 2];
    enum state state = i == 1 ? GONE : BUSY;
    struct request* req = &requests[i];
    referred(count, word, 1L << (40 + i), peers[1], state, req, i == 2 ? nullptr : &net::Base::kind);
    auto own = std::make_unique<Own>();
    own->right = i * 70;
    of_several({}, own.get(), own);
    behind_unused("unused", i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6);
  }
#endif
  return 0;
}
