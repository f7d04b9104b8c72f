"""What the processes of a calculation run on."""
