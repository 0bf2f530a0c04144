"""Measures the runtime, each figure beside a floor that was measured in the same run."""
