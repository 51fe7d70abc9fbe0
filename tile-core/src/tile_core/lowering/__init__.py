"""From tile plans to TVM functions: block lowering, where one thread of control runs a whole block.

Importing a module of this room imports TVM.
"""
