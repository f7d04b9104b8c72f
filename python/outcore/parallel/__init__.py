"""Distribution of work in all methods: a team of threads, tasks of all processes, requests ahead of their use."""
