"""Plans of products: bounds, order of letters, schedule, bytes and seconds."""
