"""Object files in, one image out: what a linker does, for the little that compiled kernels need.

Only 64-bit ELF objects for x86-64 are read, with absolute 64-bit addresses as their only
relocations (psABI: R_X86_64_64), which is what code for any distance (the large model) has.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from .image import Contract, Image, Unusable

_HEAD = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _REL = 1, 2, 4, 8, 9
_WRITE, _ALLOC, _TLS = 1, 2, 1 << 10
_ABSOLUTE = 1  # R_X86_64_64
_UNDEFINED, _RESERVED = 0, 0xFF00
_LOCAL, _WEAK = 0, 2
_TRAP = 0xCC  # int3: what is left out must never be run


@dataclass
class _Section:
    kind: int
    flags: int
    data: bytes
    link: int
    info: int
    align: int
    name: str = ""
    base: int = -1  # its offset in the image; -1 where it is left out


@dataclass
class _Symbol:
    name: str
    local: bool
    weak: bool
    section: int
    value: int
    size: int  # bytes from ``value`` on


@dataclass
class _Object:
    sections: list[_Section]
    symbols: list[_Symbol] = field(default_factory=list)


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _parsed(data: bytes) -> _Object:
    """Sections and symbols of an object file."""
    kind, machine = struct.unpack_from("<HH", data, 16)
    if not data.startswith(_HEAD) or (kind, machine) != (_RELOCATABLE, _X86_64):
        raise Unusable("not an object file for x86-64")
    (at,) = struct.unpack_from("<Q", data, 40)
    n, names = struct.unpack_from("<HH", data, 60)
    sections, names_at = [], []
    for i in range(n):
        name, kind, flags, _, begin, size, link, info, align, _ = struct.unpack_from(
            "<IIQQQQIIQQ", data, at + 64 * i
        )
        held = bytes(size) if kind == _NOBITS else data[begin : begin + size]
        names_at.append(name)
        sections.append(_Section(kind, flags, held, link, info, max(1, align)))
    for section, name in zip(sections, names_at, strict=True):
        section.name = _text(sections[names].data, name)
    made = _Object(sections)
    for section in sections:
        if section.kind == _SYMTAB:
            table = sections[section.link].data
            for name, info, _, where, value, size in struct.iter_unpack("<IBBHQQ", section.data):
                bound = info >> 4
                made.symbols.append(
                    _Symbol(_text(table, name), bound == _LOCAL, bound == _WEAK, where, value, size)
                )
    return made


def _laid(objects: Sequence[_Object]) -> int:
    """Give every section that code needs its place; the size of them all."""
    size = 0
    for one in objects:
        for section in one.sections:
            # Tables for unwinding are needed where exceptions of C++ pass; kernels return a status.
            if not section.flags & _ALLOC or section.name == ".eh_frame" or not section.data:
                continue
            if section.kind != _PROGBITS or section.flags & (_WRITE | _TLS):
                raise Unusable(f"section {section.name} would be written to")
            section.base = -(-size // section.align) * section.align
            size = section.base + len(section.data)
    return size


def _exported(objects: Sequence[_Object]) -> dict[str, int]:
    """Offsets of what the objects define for one another; where one is weak, the other counts."""
    strong: dict[str, int] = {}
    weak: dict[str, int] = {}
    for one in objects:
        for symbol in one.symbols:
            if symbol.local or not _UNDEFINED < symbol.section < _RESERVED:
                continue
            base = one.sections[symbol.section].base
            if base >= 0:
                found = weak if symbol.weak else strong
                found.setdefault(symbol.name, base + symbol.value)
    return {**weak, **strong}


def _target(
    one: _Object, symbol: _Symbol, exported: dict[str, int], known: Collection[str]
) -> int | str:
    """What a symbol stands for: an offset in the image, or a name beyond the objects.

    Raises:
        Unusable: it is neither.
    """
    if not symbol.local and symbol.name in exported:
        return exported[symbol.name]
    if _UNDEFINED < symbol.section < _RESERVED and one.sections[symbol.section].base >= 0:
        return one.sections[symbol.section].base + symbol.value
    if symbol.section == _UNDEFINED and symbol.name in known:
        return symbol.name
    raise Unusable(f"it refers to {symbol.name}")


def _links(
    one: _Object, gone: list[_Symbol], exported: dict[str, int], known: Collection[str]
) -> Iterator[tuple[int, int, int | str]]:
    """Where addresses stand in an object's part of the image, what is added to each, and of what.

    Args:
        one: an object whose sections have their places.
        gone: functions whose instructions are left out.
        exported: offsets of what the objects define for one another.
        known: names beyond the objects.

    Raises:
        Unusable: an address is of an unknown kind, or of something unknown.
    """
    for section in one.sections:
        if section.kind not in (_RELA, _REL) or one.sections[section.info].base < 0:
            continue
        if section.kind == _REL:
            raise Unusable("relocations of an unknown kind")
        out = [(g.value, g.value + g.size) for g in gone if g.section == section.info]
        for offset, info, addend in struct.iter_unpack("<QQq", section.data):
            if any(begin <= offset < end for begin, end in out):
                continue
            if info & 0xFFFFFFFF != _ABSOLUTE:
                raise Unusable(f"relocation {info & 0xFFFFFFFF} in {section.name}")
            target = _target(one, one.symbols[info >> 32], exported, known)
            yield one.sections[section.info].base + offset, addend, target


def linked(
    objects: Sequence[bytes],
    entry: str,
    release: str,
    contract: Contract,
    *,
    without: str,
    known: Collection[str],
) -> Image:
    """One image of several object files.

    Args:
        objects: object files; they may refer to one another.
        entry: the function to call.
        release: the function that gives memory back.
        contract: what the image is made for.
        without: a function that nothing calls here, whose instructions are left out, and with them
            what it refers to.
        known: names that may be referred to beyond the objects.

    Raises:
        Unusable: the objects hold, or refer to, something else.
    """
    parsed = [_parsed(data) for data in objects]
    code = np.zeros(_laid(parsed), np.uint8)
    exported = _exported(parsed)
    if not {entry, release} <= exported.keys():
        raise Unusable("no such function")
    symbols: dict[str, int] = {}
    places: list[tuple[int, int]] = []
    targets: list[int] = []
    for one in parsed:
        for section in one.sections:
            if section.base >= 0:
                data = np.frombuffer(section.data, np.uint8)
                code[section.base : section.base + data.size] = data
        gone = [s for s in one.symbols if s.name == without and s.section != _UNDEFINED]
        for symbol in gone:
            begin = one.sections[symbol.section].base + symbol.value
            code[begin : begin + symbol.size] = _TRAP
        for place, added, target in _links(one, gone, exported, known):
            if isinstance(target, int):
                places.append((place, added + target))
                targets.append(-1)
            else:
                places.append((place, added))
                targets.append(symbols.setdefault(target, len(symbols)))
    return Image(
        contract,
        exported[entry],
        exported[release],
        code,
        np.array(places, np.int64).reshape(-1, 2),
        np.array(targets, np.int64),
        tuple(symbols),
    )
