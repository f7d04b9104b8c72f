"""Methods of quantum chemistry on data larger than memory."""
