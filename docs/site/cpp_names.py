# SPDX-License-Identifier: BSD-2-Clause
"""What the C++ reference has, by the XML that doxygen writes beside its pages: names, in which header, and where to read on."""

import dataclasses
import functools
import os
import pathlib
import re
import xml.etree.ElementTree as xml

XML = pathlib.Path(os.environ["USDT_REFERENCE_XML"])


@dataclasses.dataclass(frozen=True)
class Name:
    name: str    # as a program has it, usdt::Tracer
    kind: str    # class, struct, function, enum, ...
    header: str  # usdt/tracer.hpp
    brief: str
    page: str    # below the reference: classusdt_1_1v1_1_1Tracer.html


def _text(element):
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip() if element is not None else ""


def _header(element):
    file = pathlib.PurePath(element.find("location").get("file"))
    return "/".join(file.parts[file.parts.index("usdt"):])


def _first_sentence(element):
    """The brief description, or what stands in its place."""
    return _text(element.find("briefdescription")) or _text(element.find("detaileddescription")).split(". ")[0]


def _plain(name):
    return name.replace("::v1::", "::")


def _member(member, scope):
    page, anchor = member.get("id").rsplit("_1", 1)
    return Name(f"{scope}::{member.findtext('name')}", member.get("kind"), _header(member), _first_sentence(member),
                f"{page}.html#{anchor}")


@functools.cache
def names():
    """Classes, and what is in namespaces, each once; of overloads the first."""
    found = {}
    for file in sorted(XML.glob("*.xml")):
        if not file.name.startswith(("class", "struct", "namespace", "union")):
            continue
        compound = xml.parse(file).getroot().find("compounddef")
        if compound.get("prot") == "private":
            continue
        scope = _plain(compound.findtext("compoundname"))
        if compound.get("kind") != "namespace":
            found[scope] = Name(scope, compound.get("kind"), _header(compound), _first_sentence(compound), f"{file.stem}.html")
            continue
        scope = scope.removesuffix("::v1")
        for member in compound.iter("memberdef"):
            if member.get("prot") == "public" and not member.findtext("name").startswith("operator"):
                each = _member(member, scope)
                found.setdefault(each.name, each)
    return found


@functools.cache
def links():
    """What code in a text may say of a name -> its page: `usdt::trace()`, `plan_attach()`, `AttachPlan`."""
    found = {}
    for each in names().values():
        short = each.name.removeprefix("usdt::")
        for name in (each.name, short):
            if each.kind == "function":
                found[f"{name}()"] = each.page
            elif each.name[0].isupper() or "::" in name or name[0].isupper():
                found[name] = each.page
    return found
