"""Its place makes helpers beside it importable from the folders below."""
