"""What a tensor is, without data: tilings, symmetry, layouts, expressions."""
