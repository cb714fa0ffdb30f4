"""Device farms: phones of others, rented for one job."""
