"""What stands in for Numba's runtime: memory that kernels make for arrays, from the C library.

It is counted as Numba's own (``nrt.cpp``: ``MemInfo``), whose functions these are named after;
counting up and down is compiled into each kernel. A kernel's image holds them, too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .image import Unusable

RELEASE = "evalengine_release"
_COUNTED = "{i64, i8*, i8*, i8*, i64}"
_MEMORY = """
declare i8* @malloc(i64)
declare void @free(i8*)

; {count, destructor, its argument, data, size, allocator}, then the data, aligned
define i8* @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %wide = zext i32 %align to i64
  %room = add i64 %size, 48
  %all = add i64 %room, %wide
  %over = icmp ult i64 %all, %size
  br i1 %over, label %none, label %some
some:
  %base = call i8* @malloc(i64 %all)
  %missing = icmp eq i8* %base, null
  br i1 %missing, label %none, label %made
made:
  %words = bitcast i8* %base to i64*
  %address = ptrtoint i8* %base to i64
  %first = add i64 %address, 48
  %above = add i64 %first, %wide
  %last = sub i64 %above, 1
  %mask = sub i64 0, %wide
  %data = and i64 %last, %mask
  store i64 1, i64* %words
  %dtor = getelementptr i64, i64* %words, i64 1
  store i64 0, i64* %dtor
  %info = getelementptr i64, i64* %words, i64 2
  store i64 0, i64* %info
  %at = getelementptr i64, i64* %words, i64 3
  store i64 %data, i64* %at
  %long = getelementptr i64, i64* %words, i64 4
  store i64 %size, i64* %long
  %by = getelementptr i64, i64* %words, i64 5
  store i64 0, i64* %by
  ret i8* %base
none:
  ret i8* null
}

; of a list, whose values lie elsewhere
define i8* @NRT_MemInfo_new_varsize_dtor(i64 %size, i8* %dtor) {
  %base = call i8* @NRT_MemInfo_alloc_aligned(i64 0, i32 32)
  %missing = icmp eq i8* %base, null
  br i1 %missing, label %none, label %made
made:
  %data = call i8* @malloc(i64 %size)
  %empty = icmp eq i8* %data, null
  br i1 %empty, label %failed, label %full
full:
  %words = bitcast i8* %base to i8**
  %dtor.at = getelementptr i8*, i8** %words, i64 1
  store i8* bitcast (void (i8*, i64, i8*)* @varsize_dtor to i8*), i8** %dtor.at
  %info.at = getelementptr i8*, i8** %words, i64 2
  store i8* %dtor, i8** %info.at
  %data.at = getelementptr i8*, i8** %words, i64 3
  store i8* %data, i8** %data.at
  %numbers = bitcast i8* %base to i64*
  %size.at = getelementptr i64, i64* %numbers, i64 4
  store i64 %size, i64* %size.at
  ret i8* %base
failed:
  call void @free(i8* %base)
  br label %none
none:
  ret i8* null
}

; what frees an array's memory once no object of Python's refers to it, under Python's lock
declare i8* @PyCapsule_GetPointer(i8*, i8*)

define void @evalengine_release(i8* %capsule) {
  %base = call i8* @PyCapsule_GetPointer(i8* %capsule, i8* null)
  %count.at = bitcast i8* %base to i64*
  %count = atomicrmw sub i64* %count.at, i64 1 acq_rel
  %last = icmp eq i64 %count, 1
  br i1 %last, label %free, label %kept
free:
  call void @NRT_MemInfo_call_dtor(i8* %base)
  br label %kept
kept:
  ret void
}

define internal void @varsize_dtor(i8* %data, i64 %size, i8* %info) {
  %plain = icmp eq i8* %info, null
  br i1 %plain, label %last, label %own
own:
  %dtor = bitcast i8* %info to void (i8*, i64, i8*)*
  call void %dtor(i8* %data, i64 %size, i8* null)
  br label %last
last:
  call void @free(i8* %data)
  ret void
}

define void @NRT_MemInfo_call_dtor(i8* %base) {
  %words = bitcast i8* %base to i8**
  %dtor.at = getelementptr i8*, i8** %words, i64 1
  %dtor = load i8*, i8** %dtor.at
  %plain = icmp eq i8* %dtor, null
  br i1 %plain, label %last, label %own
own:
  %info.at = getelementptr i8*, i8** %words, i64 2
  %info = load i8*, i8** %info.at
  %data.at = getelementptr i8*, i8** %words, i64 3
  %data = load i8*, i8** %data.at
  %numbers = bitcast i8* %base to i64*
  %size.at = getelementptr i64, i64* %numbers, i64 4
  %size = load i64, i64* %size.at
  %call = bitcast i8* %dtor to void (i8*, i64, i8*)*
  call void %call(i8* %data, i64 %size, i8* %info)
  br label %last
last:
  call void @free(i8* %base)
  ret void
}
"""


@cache
def _machine() -> Any:
    """Makes object files of code that may be put anywhere, as Numba's are."""
    from llvmlite import binding

    binding.initialize_native_target()  # as Numba does when it first compiles
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(opt=2, reloc="static", codemodel="large")


def object_of(text: str) -> bytes:
    """The object file of a module of IR."""
    from llvmlite import binding

    module = binding.parse_assembly(text)
    module.verify()
    made: bytes = _machine().emit_object(module)
    return made


@cache
def memory_object() -> bytes:
    """The object file of the functions that make and free the memory of arrays.

    Raises:
        Unusable: this version of Numba counts references in another way.
    """
    from numba.core.runtime import nrtdynmod

    if str(getattr(nrtdynmod, "_meminfo_struct_type", "")) != _COUNTED:
        raise Unusable("memory is counted in another way")
    return object_of(_MEMORY)
