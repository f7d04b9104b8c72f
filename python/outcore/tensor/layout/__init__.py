"""The form of tensors, without their data: tilings, symmetry, layouts, expressions."""
