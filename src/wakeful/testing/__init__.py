"""The public kit for tests: a runtime in memory, a manual clock, waiting for events, the checker.

From: tests, examples, the verb `demo`.
To: runtime.
Never: imported by the product.
"""
