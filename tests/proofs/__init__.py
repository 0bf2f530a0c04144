"""The proof: a process under test, everybody who takes part, deaths, mutants and chaos.

`make chaos` runs it for as long as is wanted. None of it ships: what users need for their own tests
lies in `wakeful.testing`.
"""
