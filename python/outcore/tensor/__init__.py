"""Extended arrays: tensors of tiles that lie in memory or on disk, and what is computed of them."""
