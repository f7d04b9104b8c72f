"""Work of every method, distributed: a team of threads, tasks of all processes, requests ahead of their use."""
