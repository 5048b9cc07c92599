# SPDX-License-Identifier: BSD-2-Clause
"""A list of what static programs have inside (SPDX 2.3, JSON): packages of the distribution with versions and licences."""

import dataclasses
import datetime
import json
import re

# What the parts that end in programs are licensed under, by the copyright files of the packages. Their names for licences are not
# SPDX's, and those of tests and build files are among them, so it is said here; a package that is not is an error.
LICENCES = {
    "libbpf-dev": "LGPL-2.1-only OR BSD-2-Clause",
    "libelf-dev": "GPL-2.0-or-later OR LGPL-3.0-or-later",
    "libdw-dev": "GPL-2.0-or-later OR LGPL-3.0-or-later",
    "libiberty-dev": "GPL-2.0-or-later WITH GCC-exception-2.0 AND LGPL-2.0-or-later",
    "libbz2-dev": "bzip2-1.0.6",
    "liblzma-dev": "LicenseRef-xz-public-domain",
    "libzstd-dev": "BSD-3-Clause OR GPL-2.0-only",
    "zlib1g-dev": "Zlib",
    "libc6-dev": "LGPL-2.1-or-later",
    "libgcc-*-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libstdc++-*-dev": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "linux-libc-dev": "GPL-2.0-only WITH Linux-syscall-note",
    "libboost*-dev": "BSL-1.0",
    "libcli11-dev": "BSD-3-Clause",
    "libexpected-dev": "CC0-1.0",
    "libfmt-dev": "MIT",
    "libprotozero-dev": "BSD-2-Clause",
    "libseccomp-dev": "LGPL-2.1-only",
    "libtomlplusplus-dev": "MIT",
    "libzycore-dev": "MIT",
    "libzydis-dev": "MIT",
    "rapidjson-dev": "MIT",
}
PUBLIC_DOMAIN = {"licenseId": "LicenseRef-xz-public-domain", "name": "liblzma is in the public domain",
                 "extractedText": "liblzma is in the public domain (COPYING of XZ Utils before 5.6)."}


@dataclasses.dataclass(frozen=True, order=True)
class Package:
    name: str
    version: str
    source: str
    machine: str
    linked: bool  # archives of it; else headers alone

    @property
    def licence(self):
        name = re.sub(r"-\w+-cross$", "", self.name)  # made for a cross compiler, of the same sources
        for pattern, licence in LICENCES.items():
            if re.fullmatch(re.escape(pattern).replace(r"\*", r"[\d.]+"), name):
                return licence
        raise KeyError(f"{self.name} is in the programs: its licence has to be said in packaging/spdx.py")

    @property
    def id(self):
        return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", self.name)


# Made of the sources of packages (packaging/static.py), and never in a directory of the distribution.
MADE = {"libZydis.a": "libzydis-dev"}


def made_of(path):
    """The package whose sources a file was made of here; None: it is the distribution's."""
    return MADE.get(path.rsplit("/", 1)[1]) if path.startswith("/usr/local/lib/") else None


def owners(home, paths, arch):
    """The packages that have these paths, as dpkg names them where several machines' are installed: NAME:MACHINE. A header that
    several of them have is that of `arch`."""
    found = {f"{made_of(path)}:{arch}" for path in paths if made_of(path)}
    paths = sorted(path for path in paths if not made_of(path))
    for at in range(0, len(paths), 500):
        for line in home.run("dpkg", "-S", *paths[at:at + 500]).splitlines():
            having = re.match(r"(\S+(?:, \S+)*): /", line)[1].split(", ")
            found.add(next((name for name in having if name.endswith(f":{arch}")), having[0]))
    return found


def packages_of(home, archives, headers, arch):
    linked = owners(home, archives, arch)
    names = sorted(linked | owners(home, headers, arch))
    words = "${Package} ${Version} ${source:Package} ${source:Version} ${Architecture}\\n"
    made = []
    for line in home.run("dpkg-query", "-W", "-f", words, *names).splitlines():
        name, version, source, source_version, machine = line.split()
        made.append(Package(name, version, f"{source} {source_version}", machine, bool({name, f"{name}:{machine}"} & linked)))
    return sorted(made)


def entry(package):
    return {"SPDXID": package.id, "name": package.name, "versionInfo": package.version, "supplier": "Organization: Debian",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": package.licence,
            "licenseDeclared": package.licence, "copyrightText": "NOASSERTION", "sourceInfo": f"built from {package.source}",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{package.name.replace('+', '%2B')}@"
                                                  f"{package.version.replace('+', '%2B').replace(':', '%3A')}?arch={package.machine}"}]}


def document(commit, name, packages):
    created = datetime.datetime.fromtimestamp(commit.seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    ours = {"SPDXID": "SPDXRef-usdt", "name": "usdt-tools", "versionInfo": commit.version(), "supplier": "Organization: The usdt authors",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "BSD-2-Clause",
            "licenseDeclared": "BSD-2-Clause AND (BSD-2-Clause OR GPL-2.0-only)",
            "copyrightText": "Copyright (c) 2026 The usdt authors", "sourceInfo": f"commit {commit.id}"}
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-usdt"}]
    relations += [{"spdxElementId": "SPDXRef-usdt", "relationshipType": "STATIC_LINK" if package.linked else "CONTAINS",
                   "relatedSpdxElement": package.id, **({} if package.linked else {"comment": "code of its headers"})}
                  for package in packages]
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{commit.id}",
        "creationInfo": {"created": created, "creators": ["Organization: The usdt authors", "Tool: packaging/spdx.py"]},
        "packages": [ours, *map(entry, packages)], "hasExtractedLicensingInfos": [PUBLIC_DOMAIN], "relationships": relations,
    }, indent=2) + "\n"
