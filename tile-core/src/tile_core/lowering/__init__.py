"""From tile plans to code: block lowering through TVM, where one thread of control runs a whole block, and thread-level
programs (``simt``) with their text in languages like C (``printer``).

Modules of block lowering import TVM; ``simt`` and ``printer`` do not.
"""
