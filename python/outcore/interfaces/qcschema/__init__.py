"""QCSchema: Outcore answers an AtomicInput with an AtomicResult, or with a FailedOperation.

Files:

    command:
        `outcore run input.json`
    translate:
        an AtomicInput as a command, its options and its geometry
    answer:
        results as an AtomicResult, errors as a FailedOperation
"""
