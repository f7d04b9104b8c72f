"""Where tiles lie: one class for each place, behind the interface of `backend.Backend`."""
