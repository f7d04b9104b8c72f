"""Processes of a calculation, and their resources: launch, memory, cores, scratch, rates of the machine."""
