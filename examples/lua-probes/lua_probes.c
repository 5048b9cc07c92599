/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A Lua interpreter whose calls and returns can be traced: `lua-probes SCRIPT [ARGUMENTS]`
 *
 *   usdt-trace 'lua:*' -p PID
 *   bpftrace -p PID -e 'usdt:*:lua:call { @calls[str(arg0)] = count(); }'
 *
 * Scripts may make probes of their own: usdt.probe("cache-miss", "str key, i64 size") is a function that fires one.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>
#include <usdt/provider.h>

static usdtp_provider* provider;
static usdtp_probe* on_call;
static usdtp_probe* on_return;

/* While nobody traces, a call costs a look at two semaphores. */
static void hook(lua_State* lua, lua_Debug* event) {
  usdtp_probe* probe = event->event == LUA_HOOKRET ? on_return : on_call;
  if (!usdtp_probe_traced(probe)) return;
  lua_getinfo(lua, "nS", event);
  const char* name = event->name ? event->name : strcmp(event->what, "main") == 0 ? "(main chunk)" : "(anonymous)";
  USDT_PROBE_FIRE(probe, name, (const char*)event->short_src, event->linedefined);
}

/* A probe of the script: the upvalues are the probe, and of each argument whether it is a float or a text. */
static int fire(lua_State* lua) {
  usdtp_probe* probe = lua_touserdata(lua, lua_upvalueindex(1));
  uint64_t values[USDTP_MAX_ARGUMENTS] = {0};
  const int count = lua_gettop(lua);
  if (!usdtp_probe_traced(probe)) return 0;
  luaL_argcheck(lua, count <= USDTP_MAX_ARGUMENTS, count, "a probe has at most 12 arguments");
  for (int i = 1; i <= count; ++i) {
    const lua_Number number = lua_tonumber(lua, i);
    if (lua_type(lua, i) == LUA_TSTRING)
      values[i - 1] = (uintptr_t)lua_tostring(lua, i);
    else if (lua_isinteger(lua, i))
      values[i - 1] = (uint64_t)lua_tointeger(lua, i);
    else if (lua_isnumber(lua, i))
      memcpy(&values[i - 1], &number, sizeof number);
    else
      values[i - 1] = (uint64_t)lua_toboolean(lua, i);
  }
  luaL_argcheck(lua, usdtp_fire(probe, values, (size_t)count) == 0, count, "not as many arguments as declared");
  return 0;
}

static int make_probe(lua_State* lua) {
  usdtp_probe* probe;
  int status = usdtp_probe_add(provider, luaL_checkstring(lua, 1), luaL_optstring(lua, 2, ""), &probe);
  if (status == 0) status = usdtp_provider_publish(provider);
  if (status != 0) return luaL_error(lua, "%s: %s", lua_tostring(lua, 1), strerror(-status));
  lua_pushlightuserdata(lua, probe);
  lua_pushcclosure(lua, fire, 1);
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s SCRIPT [ARGUMENTS]\n", argv[0]);
    return 2;
  }
  if (usdtp_provider_create("lua", 0, &provider) != 0 ||
      usdtp_probe_add(provider, "call", "str function, str source, i32 line", &on_call) != 0 ||
      usdtp_probe_add(provider, "return", "str function, str source, i32 line", &on_return) != 0 ||
      usdtp_provider_publish(provider) != 0)
    fprintf(stderr, "%s: no probes on this system; the script runs without\n", argv[0]);
  lua_State* lua = luaL_newstate();
  luaL_openlibs(lua);
  lua_createtable(lua, 0, 1);
  lua_pushcfunction(lua, make_probe);
  lua_setfield(lua, -2, "probe");
  lua_setglobal(lua, "usdt");
  lua_sethook(lua, hook, LUA_MASKCALL | LUA_MASKRET, 0);
  int status = luaL_loadfile(lua, argv[1]);
  for (int i = 2; i < argc; ++i) lua_pushstring(lua, argv[i]);
  if (status == LUA_OK) status = lua_pcall(lua, argc - 2, 0, 0);
  if (status != LUA_OK) fprintf(stderr, "%s: %s\n", argv[0], lua_tostring(lua, -1));
  lua_close(lua);
  usdtp_provider_retire(provider);
  return status != LUA_OK;
}
