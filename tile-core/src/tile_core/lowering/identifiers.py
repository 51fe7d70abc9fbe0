"""Names for languages of the C family: from Python's to plain ones, and the words that C++ has taken."""

from __future__ import annotations

# ISO C++17, 5.11, with the alternative spellings of operators, and what common compilers reserve besides
WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl concept const
    const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double
    dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept
    not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed
    sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
    union unsigned using virtual void volatile wchar_t while xor xor_eq
    __restrict __restrict__ __attribute__ __asm __asm__ __inline __typeof__ __volatile__ typeof restrict _Bool NULL main
"""
CPLUSPLUS = frozenset(WORDS.split())


def plain(name: str) -> str:
    """``name`` with ``_`` for each character that is no ASCII letter, digit or ``_``."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name) or "v"
