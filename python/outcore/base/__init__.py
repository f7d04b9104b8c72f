"""What every room needs: errors, text on terminals, checked input, signals."""
